"""Reads and writes objects of a starting control plane without kubectl, whose start takes a tenth of a second."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from ...config.errors import CommandError
from ..kubernetes.api_objects import ApiObjects, Connection, connection
from ..kubernetes.cluster_objects import ApiError, unknown_kind

_MANAGER: Final = "kubectl"
"""Field manager of applied objects. Charts that users install later take over its fields."""
_TOKEN_SECONDS: Final = 10 * 365 * 24 * 3600
_SERVED_SECONDS: Final = 60.0
_DELETED_SECONDS: Final = 120.0
_POLL_SECONDS: Final = 0.2
_GONE: Final = 404
Manifest = dict[str, Any]


def apply(kubeconfig: Path, objects: Sequence[Manifest]) -> None:
    """Apply objects by server-side apply.

    Raises:
        CommandError: The API server refuses one.
    """
    api = _connection(kubeconfig)
    for item in objects:
        with _named(f"{item['kind']} {item['metadata']['name']}"):
            path = _path(api, item)
            if path is None:
                raise unknown_kind(item)
            api.request("PATCH", path, item, "apply-patch+yaml", fieldManager=_MANAGER, force="true")


def delete(kubeconfig: Path, objects: Sequence[Manifest]) -> None:
    """Delete objects if they exist, without waiting for their end. A namespace is deleted with its objects.

    Raises:
        CommandError: The API server refuses to delete one.
    """
    api = _connection(kubeconfig)
    for item in objects:
        with _named(f"{item['kind']} {item['metadata']['name']}"):
            if path := _path(api, item):
                _delete(api, path)


def find(kubeconfig: Path, kind: str, namespace: str, name: str) -> Manifest | None:
    """Return an object of a core kind, such as `Secret`; None if it does not exist.

    Raises:
        CommandError: The API server does not answer.
    """
    with _named(f"{kind} {name}"):
        return ApiObjects(kubeconfig).find("v1", kind, name, namespace)


def find_definition(kubeconfig: Path, name: str) -> Manifest | None:
    """Return a custom resource definition; None if it does not exist.

    Raises:
        CommandError: The API server does not answer.
    """
    with _named(f"CustomResourceDefinition {name}"):
        return ApiObjects(kubeconfig).find("apiextensions.k8s.io/v1", "CustomResourceDefinition", name)


def account_token(kubeconfig: Path, namespace: str, account: str) -> str:
    """Return a token of a service account, valid for ten years.

    Raises:
        CommandError: The account does not exist.
    """
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    with _named(f"the token of {account}"):
        body = {"spec": {"expirationSeconds": _TOKEN_SECONDS}}
        return _connection(kubeconfig).request("POST", path, body)["status"]["token"]


def wait_served(kubeconfig: Path, definitions: Sequence[Manifest]) -> None:
    """Wait until the API server serves the kinds of these definitions. Programs that start earlier retry after seconds.

    Raises:
        CommandError: A kind is not served after a minute.
    """
    kinds = ", ".join(sorted({item["spec"]["names"]["kind"] for item in definitions}))
    otherwise = f"not served after {_SERVED_SECONDS:.0f} s: {kinds}"
    _wait(lambda: are_served(kubeconfig, definitions), _SERVED_SECONDS, otherwise)


def are_served(kubeconfig: Path, definitions: Sequence[Manifest]) -> bool:
    """Return True if the API server serves the kinds of these definitions, in all versions that they name.

    Raises:
        CommandError: The API server does not answer.
    """
    api = _connection(kubeconfig)
    kinds: dict[str, set[str]] = {}
    for item in definitions:
        for version in item["spec"]["versions"]:
            if version["served"]:
                served = kinds.setdefault(f"{item['spec']['group']}/{version['name']}", set())
                served.add(item["spec"]["names"]["kind"])
    with _named("a list of its kinds"):
        return all(expected <= api.resources(version).keys() for version, expected in kinds.items())


def wait_deleted(kubeconfig: Path, objects: Sequence[Manifest]) -> None:
    """Wait for the end of namespaces among these objects that are being deleted: they accept no objects.

    Raises:
        CommandError: One still exists after two minutes.
    """
    for name in [item["metadata"]["name"] for item in objects if item["kind"] == "Namespace"]:

        def is_kept(name: str = name) -> bool:
            namespace = find(kubeconfig, "Namespace", "", name)
            return not (namespace and "deletionTimestamp" in namespace["metadata"])

        _wait(is_kept, _DELETED_SECONDS, f"the namespace {name} is still being deleted")


def _connection(kubeconfig: Path) -> Connection:
    return connection(kubeconfig, kubeconfig.stat().st_mtime_ns)


@contextmanager
def _named(subject: str) -> Iterator[None]:
    """Name the object in the error if the API server refuses a request."""
    try:
        yield
    except ApiError as error:
        raise CommandError(f"the API server refuses {subject}: {error}") from error


def _delete(api: Connection, path: str) -> None:
    try:
        api.request("DELETE", path, propagationPolicy="Background")
    except ApiError as error:
        if error.code != _GONE:
            raise


def _path(api: Connection, item: Manifest) -> str | None:
    """Return the path of an object; None if the API server does not serve its kind."""
    version, metadata = item["apiVersion"], item["metadata"]
    served = api.resource(version, item["kind"])
    if served is None:
        return None
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    scope = f"namespaces/{quote(metadata.get('namespace', 'default'))}/" if served["namespaced"] else ""
    return f"{root}/{scope}{served['name']}/{quote(metadata['name'])}"


def _wait(condition: Callable[[], bool], seconds: float, otherwise: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise CommandError(otherwise)
        time.sleep(_POLL_SECONDS)
