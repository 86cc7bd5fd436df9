"""Just enough of the Kubernetes API for our functions to see, and to mark nodes; HTTPS by the standard library."""

import base64
import json
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import boto3

from ....planning.kubernetes.api_tls import api_tls
from ....planning.kubernetes.eks_token import eks_token

_PAGE: Final = 500
_TIMEOUT_SECONDS: Final = 10
# Source: Kubernetes documentation, API concepts, "Metadata-only fetches", 2026-11.
_METADATA: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, application/json"


@dataclass(frozen=True)
class Node:
    """A Kubernetes node."""

    name: str
    ready: bool
    """Whether its kubelet reports Ready."""
    message: str
    """Why not, in the kubelet's words."""


class KubernetesApi:
    """The API of one EKS cluster, as the role of `session` sees it."""

    def __init__(self, session: boto3.Session, cluster: str) -> None:
        described = session.client("eks").describe_cluster(name=cluster)["cluster"]
        authority = base64.b64decode(described["certificateAuthority"]["data"]).decode()
        self._session = session
        self._cluster = cluster
        self._endpoint = described["endpoint"]
        # The authority of this cluster alone: EKS signs each API with one of its own.
        self._tls = api_tls(authority)

    def nodes(self, label: str, value: str) -> Iterator[Node]:
        """The nodes with that label. Raises OSError when the API cannot be reached or refuses."""
        query = {"labelSelector": f"{label}={value}", "limit": str(_PAGE)}
        while True:
            # The API hands a large list out in pages, and a page's token leads to the next one.
            answer = self._get(f"/api/v1/nodes?{urllib.parse.urlencode(query)}")
            for item in answer["items"]:
                condition = next(
                    (condition for condition in item["status"].get("conditions", []) if condition["type"] == "Ready"),
                    {},
                )
                yield Node(item["metadata"]["name"], condition.get("status") == "True", condition.get("message", ""))
            if not answer["metadata"].get("continue"):
                return
            query["continue"] = answer["metadata"]["continue"]

    def node_labels(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Name and labels of every node, without the rest of it. Raises OSError as `nodes` does."""
        query = {"limit": str(_PAGE)}
        while True:
            answer = self._get(f"/api/v1/nodes?{urllib.parse.urlencode(query)}", accept=_METADATA)
            for item in answer["items"]:
                yield item["metadata"]["name"], item["metadata"].get("labels", {})
            if not answer["metadata"].get("continue"):
                return
            query["continue"] = answer["metadata"]["continue"]

    def deployment(self, namespace: str, name: str) -> dict[str, Any]:
        """A Deployment. Raises OSError when there is none, or the API cannot be reached or refuses."""
        return self._get(f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}")

    def namespace(self, name: str) -> dict[str, Any]:
        """A namespace. Raises OSError when there is none, or the API cannot be reached or refuses."""
        return self._get(f"/api/v1/namespaces/{name}")

    def node(self, name: str) -> dict[str, Any]:
        """A node. Raises OSError when there is none, or the API cannot be reached or refuses."""
        return self._get(f"/api/v1/nodes/{name}")

    def patch_node(self, name: str, change: dict[str, Any]) -> None:
        """Merge a change into a node. Raises OSError as `node` does."""
        self._send(f"/api/v1/nodes/{name}", "PATCH", json.dumps(change).encode())

    def _get(self, path: str, accept: str = "application/json") -> dict[str, Any]:
        return self._send(path, accept=accept)

    def _send(
        self, path: str, method: str = "GET", body: bytes | None = None, accept: str = "application/json"
    ) -> dict[str, Any]:
        # A token anew for each call: it ends after a quarter of an hour, and some waits are longer.
        headers = {"Authorization": f"Bearer {eks_token(self._session, self._cluster)}", "Accept": accept}
        if body is not None:
            headers["Content-Type"] = "application/merge-patch+json"
        request = urllib.request.Request(self._endpoint + path, headers=headers, data=body, method=method)
        with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS, context=self._tls) as response:
            return json.load(response)
