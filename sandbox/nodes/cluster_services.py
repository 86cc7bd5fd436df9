"""Objects that a cluster needs for its real nodes: CoreDNS's user, the API server's address, and the volume driver."""

from typing import Final

from ..protocol.json_objects import JsonObject
from .settings import KUBERNETES
from .volumes import DRIVER

NAMES_USER: Final = "system:coredns"
"""The user that CoreDNS is to the API server."""

_RBAC: Final = "rbac.authorization.k8s.io"


def cluster_objects() -> list[JsonObject]:
    """Return the objects that a cluster with real nodes has.

    The role is that of upstream's deployment of CoreDNS. Without an endpoint, kube-proxy would reject connections to
    the Service `kubernetes`, at whose address each node itself answers.
    """
    address, port = KUBERNETES
    role: JsonObject = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": NAMES_USER},
        "rules": [
            {"apiGroups": [""], "resources": ["services", "pods", "namespaces"], "verbs": ["list", "watch"]},
            {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
        ],
    }
    binding: JsonObject = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": NAMES_USER},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": NAMES_USER},
        "subjects": [{"apiGroup": _RBAC, "kind": "User", "name": NAMES_USER}],
    }
    labels = {"kubernetes.io/service-name": "kubernetes"}
    endpoints: JsonObject = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": labels},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
    }
    driver: JsonObject = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": DRIVER},
        # As upstream's driver says: without it, a controller would have to attach volumes to nodes.
        "spec": {"attachRequired": False},
    }
    return [role, binding, endpoints, driver]
