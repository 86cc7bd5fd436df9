"""A real API server as tests start it and talk to it: server-side apply, and the same as another user."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.resource import Resource

from control_plane_parts import ALL_PARTS, require_parts
from podwright.planning.helm.operators import BUNDLED, OPERATORS
from podwright.sandbox.control_plane.cache import Cache
from podwright.sandbox.control_plane.control_plane import ControlPlane
from podwright.sandbox.control_plane.kubectl import read_objects
from podwright.sandbox.control_plane.pins import pins

MANAGER = "podwright"
Object = dict[str, Any]


@contextmanager
def started(folder: Path, *parts: str) -> Iterator[ControlPlane]:
    """Start a control plane without operators in a folder.

    Args:
        folder: Its folder.
        parts: Parts that the test needs besides Kubernetes.
    """
    require_parts(*parts)
    control_plane = ControlPlane(folder, pins(), Cache.of_user())
    control_plane.start()
    try:
        yield control_plane
    finally:
        control_plane.stop()


def upstream_definitions() -> list[Object]:
    """Return the definitions of custom kinds of all operators and KAI. Nothing converts their versions here."""
    require_parts(*ALL_PARTS)
    folders = {part.name: Cache.of_user().folder(part) for part in pins().parts}
    files = [*(folders[name] / "release.yaml" for name in OPERATORS if name not in BUNDLED)]
    files += sorted((folders["kai-scheduler"] / "charts/kai-scheduler/crds").glob("*.yaml"))
    objects = [item for file in files for item in read_objects(file)]
    # The training operator has another version of the MPI operator's kind, which comes last.
    items = {item["metadata"]["name"]: item for item in objects if item["kind"] == "CustomResourceDefinition"}
    for item in items.values():
        item["spec"].pop("conversion", None)
    return list(items.values())


class ApiServer:
    """Objects of one API server as plain data, read and written as one user."""

    def __init__(self, api_client: Any) -> None:
        self._client, self._dynamic = api_client, DynamicClient(api_client)

    @classmethod
    def of(cls, kubeconfig: Path) -> "ApiServer":
        """The server of a kubeconfig, as its user."""
        return cls(config.new_client_from_config(str(kubeconfig)))

    def kind(self, api_version: str, kind: str) -> Resource:
        """What the server says of a kind, which it has to serve."""
        return self._dynamic.resources.get(api_version=api_version, kind=kind)

    def apply(self, item: Object, *, dry_run: bool = False) -> Object:
        """Server-side apply as podwright, with unknown and double fields refused."""
        query = [("fieldManager", MANAGER), ("fieldValidation", "Strict"), ("force", "true"), *_dry(dry_run)]
        path = self._path(item, item["metadata"]["name"])
        return self._send("PATCH", path, item, query, "application/apply-patch+yaml")

    def accepts(self, job: Object) -> bool:
        """Apply a job. False while the webhook of its operator does not answer yet."""
        try:
            self.apply(job)
        except ApiException as error:
            if error.status == 500 and "failed to call webhook" in (error.body or ""):
                return False
            raise
        return True

    def create(
        self, item: Object, *, subresource: str = "", body: Object | None = None, dry_run: bool = False
    ) -> Object:
        """Create an object, or with `body` a subresource of it. A name is not needed where there is generateName."""
        path = self._path(item, item["metadata"]["name"] if subresource else "", subresource)
        return self._send("POST", path, body or item, _dry(dry_run))

    def merge(self, item: Object, change: Object, *, subresource: str = "") -> Object:
        """Merge a change into an object."""
        return self._send("PATCH", self._path(item, item["metadata"]["name"], subresource), change)

    def read(self, item: Object) -> Object:
        """An object as it is now."""
        return self._send("GET", self._path(item, item["metadata"]["name"]))

    def items(self, api_version: str, kind: str, namespace: str) -> list[Object]:
        """All objects of a kind in a namespace."""
        listed = {"apiVersion": api_version, "kind": kind, "metadata": {"namespace": namespace}}
        return self._send("GET", self._path(listed))["items"]

    def log(self, pod: Object) -> str:
        """The logs of a pod's containers that have started. A process of kubectl would take a tenth of a CPU second."""
        logs: list[str] = []
        for container in (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]):
            path = self._path({"apiVersion": "v1", "kind": "Pod"} | pod, pod["metadata"]["name"], "log")
            try:
                logs.append(self._read("GET", path, query=[("container", container["name"])]))
            except ApiException as error:
                # The container or its node does not run, or the pod was deleted.
                if error.status not in (400, 404, 500, 502):
                    raise
        return "".join(logs)

    def delete(self, item: Object) -> None:
        """Delete an object at once, whatever its finalizers wait for; none is as good."""
        path = self._path(item, item["metadata"]["name"])
        try:
            self._send("PATCH", path, {"metadata": {"finalizers": None}})
            self._send("DELETE", path, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})
        except ApiException as error:
            if error.status != 404:
                raise

    def allows(self, user: str, groups: Iterable[str], **attributes: str) -> bool:
        """Whether authorization lets a user do something."""
        spec = {"user": user, "groups": ["system:authenticated", *groups], "resourceAttributes": attributes}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {}, "spec": spec}
        return self.create(review)["status"]["allowed"]

    def with_token(self, token: str) -> "ApiServer":
        """The same server for the bearer of a token."""
        settings: Any = client.Configuration()
        own = self._client.configuration
        settings.host, settings.ssl_ca_cert = own.host, own.ssl_ca_cert
        return ApiServer(client.ApiClient(settings, "Authorization", f"Bearer {token}"))

    def acting_as(self, user: str, group: str) -> "ApiServer":
        """The same server for a user in a group, whom its administrator impersonates."""
        impersonating = client.ApiClient(self._client.configuration)
        impersonating.set_default_header("Impersonate-User", user)
        impersonating.set_default_header("Impersonate-Group", group)
        return ApiServer(impersonating)

    def _path(self, item: Object, name: str = "", subresource: str = "") -> str:
        kind = self.kind(item["apiVersion"], item["kind"])
        path = kind.path(name=name or None, namespace=item["metadata"].get("namespace") if kind.namespaced else None)
        return f"{path}/{subresource}" if subresource else path

    def _send(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        query: list[tuple[str, str]] | None = None,
        form: str = "application/merge-patch+json",
    ) -> Object:
        return json.loads(self._read(method, path, body, query, form))

    def _read(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        query: list[tuple[str, str]] | None = None,
        form: str = "application/merge-patch+json",
    ) -> str:
        headers = {"Accept": "application/json", "Content-Type": form if method == "PATCH" else "application/json"}
        answer = self._client.call_api(
            path, method, {}, query or [], headers, body=body, auth_settings=["BearerToken"], _preload_content=False
        )
        return (answer[0].data if isinstance(answer, tuple) else answer.data).decode()


def _dry(run: bool) -> list[tuple[str, str]]:
    return [("dryRun", "All")] if run else []
