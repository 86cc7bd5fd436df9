"""The HTTP API of the simulated Kubernetes: discovery, get, list, create, replace, patch and delete.

Watches, logs and tables are missing. Clients (kubectl, the Kubernetes Python client, urllib) authenticate with a bearer
token of `aws eks get-token`, and need an access entry on the cluster.
"""

import json
import zlib
from collections.abc import Callable, Iterable
from typing import Any, Protocol
from urllib.parse import unquote

import yaml
from werkzeug.wrappers import Request, Response

from ...config.catalog.sandbox_account import SANDBOX_ACCOUNT
from ..eks.access_entries import user_of
from ..eks.service import Eks
from ..eks.tokens import Unauthorized
from ..kubernetes.store import ApiError, KubernetesStore, selected
from ..protocol.json_objects import JsonObject, merged

PREFIX = "/podwright/kubernetes/"
ObjectKey = tuple[str, str, str]
"""A cluster: its account, region and name."""


class Nodes(Protocol):
    """The service that has the nodes of clusters, by region and name."""

    def kubernetes_nodes(self, region: str, eks_cluster: str) -> list[JsonObject]:
        """Return the nodes of a cluster."""
        ...

    def patch_node(self, region: str, eks_cluster: str, name: str, patch: JsonObject) -> None:
        """Change a node of a cluster."""
        ...

    def run_pod(self, region: str, eks_cluster: str, pod: JsonObject) -> JsonObject | None:
        """Return the status of a pod on a node; None without a node."""
        ...


def prefix(account: str) -> str:
    """Prefix of the paths of clusters."""
    return PREFIX if account == SANDBOX_ACCOUNT else f"{PREFIX}{account}/"


class KubernetesApi:
    """A WSGI application for all paths below PREFIX. `clusters` and `nodes` return those of an account."""

    def __init__(self, clusters: Callable[[str], Eks], nodes: Callable[[str], Nodes]):
        self.clusters, self.nodes = clusters, nodes

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Serve one request."""
        request = Request(environ)
        try:
            parts = [unquote(part) for part in request.path.removeprefix(PREFIX).split("/") if part]
            # A number before the region is an account.
            account = parts.pop(0) if parts and parts[0].isdecimal() else SANDBOX_ACCOUNT
            region, cluster, *path = parts
            store = self.clusters(account).kubernetes.store(region, cluster)
            self._authorize(request, account, region, cluster)
            status, answer = self._serve(request, store, path, (account, region, cluster))
        except ApiError as error:
            status = error.code
            answer = {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Failure",
                "code": status,
                "reason": error.reason,
                "message": str(error),
            }
        return Response(json.dumps(answer), status, content_type="application/json")(environ, start_response)

    def _authorize(self, request: Request, account: str, region: str, cluster: str) -> None:
        """Refuse a caller without access to the cluster."""
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        try:
            user_of(self.clusters(account), region, cluster, token)
        except Unauthorized as error:
            raise ApiError(401, "Unauthorized", f"Unauthorized: {error} (sandbox)") from None

    def _serve(
        self, request: Request, store: KubernetesStore, path: list[str], object_key: ObjectKey
    ) -> tuple[int, Any]:
        """Answer a request to a cluster's API for discovery or objects."""
        match path:
            case ["version"]:
                major, minor = store.version.split(".")[:2]
                return 200, {"major": major, "minor": minor, "gitVersion": f"v{major}.{minor}.0-sandbox"}
            case ["api"]:
                return 200, {"kind": "APIVersions", "versions": ["v1"]}
            case ["apis"]:
                return 200, {"kind": "APIGroupList", "apiVersion": "v1", "groups": store.groups()}
            case ["api", version] | ["apis", _, version] if request.method == "GET":
                group = path[1] if path[0] == "apis" else ""
                return 200, {
                    "kind": "APIResourceList",
                    "apiVersion": "v1",
                    "groupVersion": f"{group}/{version}".strip("/"),
                    "resources": store.resources(group, version),
                }
            case ["api", version, *rest]:
                return self._objects(request, store, "", version, rest, object_key)
            case ["apis", group, version, *rest]:
                return self._objects(request, store, group, version, rest, object_key)
            case _:
                raise ApiError(404, "NotFound", "the server could not find the requested resource")

    def _objects(
        self, request: Request, store: KubernetesStore, group: str, version: str, rest: list[str], object_key: ObjectKey
    ) -> tuple[int, Any]:
        """Read, list, watch and write objects of one kind, after the checks that a real API server makes."""
        namespace = ""
        if len(rest) >= 3 and rest[0] == "namespaces":
            namespace, rest = rest[1], rest[2:]
        resource = next((item for item in store.resources(group, version) if item["name"] == rest[0]), None)
        if resource is None:
            raise ApiError(404, "NotFound", "the server could not find the requested resource")
        api_version, kind = f"{group}/{version}".strip("/"), resource["kind"]
        nodes, at = self.nodes(object_key[0]), object_key[1:]
        if rest[2:] == ["log"] and kind == "Pod":
            raise ApiError(400, "BadRequest", f'pod "{rest[1]}" does not run: this is a store (sandbox)')
        extra = [_versioned(item) for item in nodes.kubernetes_nodes(*at)] if kind == "Node" and not group else []
        if len(rest) == 1 and request.method == "GET":
            result = store.all(api_version, kind, namespace) + extra
            fields = request.args.get("fieldSelector", "")
            return 200, {
                "kind": f"{kind}List",
                "apiVersion": api_version,
                "metadata": {"resourceVersion": str(store.revision)},
                "items": [
                    item
                    for item in result
                    if selected(item, request.args.get("labelSelector", "")) and _has_fields(item, fields)
                ],
            }
        if len(rest) == 1 and request.method == "POST":
            manifest = _body(request)
            return 201, self._run(object_key, store.create(manifest, namespace or "default"))
        reference = {"apiVersion": api_version, "kind": kind, "metadata": {"name": rest[1], "namespace": namespace}}
        # Nodes are not in the store: HyperPod's clusters have the current ones.
        current = store.objects.get(store.key(reference)) or next(
            (item for item in extra if item["metadata"]["name"] == rest[1]), None
        )
        if request.method == "DELETE":
            return 200, store.delete(reference, namespace)
        # Server-side apply creates a missing object; other patches require an existing one.
        if current is None and not (request.method == "PATCH" and "apply" in (request.content_type or "")):
            raise ApiError(404, "NotFound", f'{rest[0]}{"." + group if group else ""} "{rest[1]}" not found')
        if request.method == "GET":
            return 200, current or {}
        changed = _body(request)
        if current in extra:
            if request.method != "PATCH":
                raise ApiError(405, "MethodNotAllowed", "nodes of HyperPod can be patched only (sandbox)")
            _check_version(current or {}, changed)
            nodes.patch_node(*at, rest[1], changed)
            return 200, merged(current or {}, changed)
        if request.method == "PATCH":
            changed = merged(current or reference, changed)
        return 200, self._run(object_key, store.apply(changed, namespace or "default"))

    def _run(self, object_key: ObjectKey, stored: JsonObject) -> JsonObject:
        if stored["kind"] == "Pod" and (status := self.nodes(object_key[0]).run_pod(*object_key[1:], stored)):
            stored["status"] = status
        return stored


def _body(request: Request) -> JsonObject:
    return yaml.safe_load(request.get_data(as_text=True))


def _versioned(node: JsonObject) -> JsonObject:
    """Return a node with a resource version that each change of it changes."""
    version = str(zlib.crc32(json.dumps(node, sort_keys=True).encode()))
    return node | {"metadata": node["metadata"] | {"resourceVersion": version}}


def _check_version(current: JsonObject, patch: JsonObject) -> None:
    """Refuse a patch of an older resource version, as an API server does, and remove the version from the patch."""
    version, name = (patch.get("metadata") or {}).pop("resourceVersion", None), current["metadata"]["name"]
    if version not in (None, current["metadata"]["resourceVersion"]):
        message = "the object has been modified; please apply your changes to the latest version and try again"
        raise ApiError(409, "Conflict", f'Operation cannot be fulfilled on nodes "{name}": {message}')


def _has_fields(item: JsonObject, selector: str) -> bool:
    """Return True if fields match a selector such as `metadata.name=a,spec.nodeName=b`."""
    for part in filter(None, selector.split(",")):
        path, _, requested = part.replace("==", "=").partition("=")
        value: Any = item
        for key in path.split("."):
            value = value.get(key, "") if isinstance(value, dict) else ""
        if value != requested:
            return False
    return True
