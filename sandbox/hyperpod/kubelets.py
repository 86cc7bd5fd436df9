"""Keeps the Node objects of a real API server equal to the nodes of the simulated HyperPod.

kwok sends the heartbeats of simulated nodes. A client's change of a Node object, such as a health label, changes
HyperPod's node, as HyperPod's agents watch these objects.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from ..kubernetes.api_objects import Connection, connection
from ..kubernetes.cluster_objects import ApiError
from ..nodes.real_nodes import RealNodes
from ..protocol.clock import now
from ..protocol.json_objects import JsonObject
from .rebooted_pods import mark_not_ready, restart_pods

REAL: Final = {"podwright.io/kubelet": "real"}
"""Annotation of real nodes, whose containers run on this machine."""
_NODES: Final = "/api/v1/nodes"
_PODS: Final = "/api/v1/pods"
_NOT_ENDED: Final = "status.phase!=Succeeded,status.phase!=Failed"
_TYPE: Final = "node.kubernetes.io/instance-type"
_KWOK: Final = {"kwok.x-k8s.io/node": "fake"}
_GONE: Final = 404
_PATCH: Final = "strategic-merge-patch+json"


class NodeService(Protocol):
    """The service that has the nodes."""

    def kubernetes_nodes(self, region: str, eks_cluster: str) -> list[JsonObject]:
        """Return the Node objects that a cluster should have now."""
        ...

    def first_nodes(self, region: str, eks_cluster: str) -> list[str]:
        """Return the names of all present and future nodes of a cluster. The first of them are real."""
        ...

    def patch_node(self, region: str, eks_cluster: str, name: str, patch: JsonObject) -> None:
        """Apply a client's change of a Node object."""
        ...


class Kubelets:
    """The Node objects of one EKS cluster."""

    def __init__(self, kubeconfig: Path, region: str, cluster: str, port: int, real: RealNodes | None = None) -> None:
        """Prepare to follow the nodes of a cluster.

        Args:
            kubeconfig: The administrator's kubeconfig.
            region: Region of the cluster.
            cluster: Name of the cluster.
            port: Port on loopback of the kubelets of all simulated nodes.
            real: Real nodes of the cluster; None if all nodes are simulated.
        """
        self._kubeconfig = kubeconfig
        self._port = port
        self._real = real
        self._at = (region, cluster)
        self._written: dict[str, JsonObject] = {}
        """Metadata and specification of each node at the last write."""

    @property
    def instance_types(self) -> set[str]:
        """Instance types of the nodes at the last write."""
        return {node["labels"].get(_TYPE, "") for node in self._written.values()}

    def follow(self, service: NodeService) -> None:
        """Report clients' changes to the service, then create, change and delete Node objects to match its nodes."""
        actual = self._nodes()
        for name, node in actual.items():
            if name in self._written and (patch := _changes(self._written[name], node)):
                service.patch_node(*self._at, name, patch)
        expected = {node["metadata"]["name"]: node for node in service.kubernetes_nodes(*self._at)}
        for name in actual.keys() - expected.keys():
            self._delete(name)
        real = self._real_names(service, actual)
        for name, node in expected.items():
            self._write(name, node, actual.get(name), is_real=name in real)
        if self._real:
            self._real.follow({name: node for name, node in expected.items() if name in real})

    def _real_names(self, service: NodeService, actual: Mapping[str, JsonObject]) -> set[str]:
        """Return the names of the nodes with a real kubelet. A node is real from its creation on, or never."""
        if self._real is None:
            return set()
        real = {
            name for name, node in actual.items() if REAL.items() <= node["metadata"].get("annotations", {}).items()
        }
        first = service.first_nodes(*self._at)[: self._real.count]
        return {name for name in first if name in real or name not in actual}

    def _addresses(self, node: JsonObject, *, is_real: bool) -> JsonObject:
        """Return the addresses of a node. The API server reaches its kubelet by its InternalDNS, which is loopback."""
        addresses = {"addresses": [*node["status"]["addresses"], {"type": "InternalDNS", "address": "localhost"}]}
        # A real kubelet sets its port itself.
        return addresses | ({} if is_real else {"daemonEndpoints": {"kubeletEndpoint": {"Port": self._port}}})

    @property
    def _api(self) -> Connection:
        return connection(self._kubeconfig, self._kubeconfig.stat().st_mtime_ns)

    def _nodes(self) -> dict[str, JsonObject]:
        return {node["metadata"]["name"]: node for node in self._api.request("GET", _NODES)["items"]}

    def _write(self, name: str, node: JsonObject, actual: JsonObject | None, *, is_real: bool) -> None:
        """Create a Node object, or change its differences."""
        ready = next(item for item in node["status"]["conditions"] if item["type"] == "Ready")
        # Without heartbeat, the node lifecycle controller taints a node.
        heartbeat = _KWOK if ready["status"] == "True" and not is_real else dict.fromkeys(_KWOK)
        heartbeat = heartbeat | (REAL if is_real else dict.fromkeys(REAL))
        metadata, specification = node["metadata"], node.get("spec", {})
        mine: JsonObject = {
            "labels": metadata["labels"],
            "annotations": metadata.get("annotations", {}) | heartbeat,
            "unschedulable": specification.get("unschedulable"),
            "taints": specification.get("taints", []),
        }
        addresses = self._addresses(node, is_real=is_real)
        if actual is None:
            self._create(name, node, mine, addresses)
        elif self._written.get(name) != mine:
            patch = _patch(self._written.get(name, {}), mine, actual)
            self._api.request("PATCH", f"{_NODES}/{name}", patch, _PATCH)
        stated = _of_real_node(node) if is_real else node
        if actual is not None and (status := _status(stated, ready, actual, addresses)):
            # Pods are changed first: the next call takes the node's status as the sign that they were changed.
            # A real kubelet changes them itself.
            if not is_real and "conditions" in status:
                mark_not_ready(self._api, name, now())
            if not is_real and _has_booted(actual, status):
                restart_pods(self._api, name, now())
            self._api.request("PATCH", f"{_NODES}/{name}/status", {"status": status}, _PATCH)
        self._written[name] = mine

    def _create(self, name: str, node: JsonObject, mine: JsonObject, addresses: JsonObject) -> None:
        annotations = {key: value for key, value in mine["annotations"].items() if value is not None}
        status = {key: value for key, value in node["status"].items() if key != "conditions"}
        body = {
            "metadata": {"name": name, "labels": mine["labels"], "annotations": annotations},
            "spec": {"taints": mine["taints"]},
            "status": status | addresses,
        }
        self._api.request("POST", _NODES, body)

    def _delete(self, name: str) -> None:
        """Delete a node and its running pods, which the pod garbage collector would only delete after a minute."""
        self._written.pop(name, None)
        self._remove(f"{_NODES}/{name}")
        for pod in self._api.request("GET", _PODS, fieldSelector=f"spec.nodeName={name},{_NOT_ENDED}")["items"]:
            metadata = pod["metadata"]
            self._remove(f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}", gracePeriodSeconds="0")

    def _remove(self, path: str, **query: str) -> None:
        try:
            self._api.request("DELETE", path, **query)
        except ApiError as error:
            if error.code != _GONE:
                raise


def _changes(written: JsonObject, actual: JsonObject) -> JsonObject:
    """Return clients' changes of a node since the last write, as a merge patch."""
    metadata = {
        key: difference
        for key in ("labels", "annotations")
        if (difference := _difference(written[key], actual["metadata"].get(key) or {}))
    }
    patch: JsonObject = {"metadata": metadata} if metadata else {}
    if bool(written["unschedulable"]) != bool(unschedulable := actual["spec"].get("unschedulable")):
        patch["spec"] = {"unschedulable": unschedulable or None}
    return patch


def _difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the merge patch from one mapping to another."""
    keys = before.keys() | after.keys()
    return {key: after.get(key) for key in keys if key not in before or before[key] != after.get(key)}


def _patch(before: JsonObject, after: JsonObject, actual: JsonObject) -> JsonObject:
    """Return a strategic merge patch of the service's fields. Taints of other writers remain."""
    ours = {taint["key"] for taint in (*before.get("taints", ()), *after["taints"])}
    others = [taint for taint in actual["spec"].get("taints") or () if taint["key"] not in ours]
    changed = {key: _difference(before.get(key, {}), after[key]) for key in ("labels", "annotations")}
    return {
        "metadata": changed,
        "spec": {"taints": [*after["taints"], *others], "unschedulable": after["unschedulable"]},
    }


def _has_booted(actual: JsonObject, status: JsonObject) -> bool:
    """Return True for the first change of a node's status after a boot."""
    before = actual.get("status", {}).get("nodeInfo", {}).get("bootID")
    return bool(before) and status.get("nodeInfo", {}).get("bootID", before) != before


def _status(node: JsonObject, ready: JsonObject, actual: JsonObject, addresses: JsonObject) -> JsonObject:
    """Return the changes of a node's status. kwok sets that a node is ready; this sets that it is not."""
    before, changed = actual.get("status", {}), JsonObject()
    now_ready = next((item["status"] for item in before.get("conditions") or () if item["type"] == "Ready"), "")
    if ready["status"] not in ("True", now_ready):
        changed["conditions"] = [ready]
    devices = node["status"].get("devices", {})
    if any(before.get("capacity", {}).get(name) != count for name, count in devices.items()):
        # The kubelet keeps extended resources that others set.
        changed["capacity"] = devices
    # A kubelet that is down does not report a new boot.
    software = node["status"].get("nodeInfo", {}) if ready["status"] == "True" else {}
    if any(before.get("nodeInfo", {}).get(key) != value for key, value in software.items()):
        changed["nodeInfo"] = before.get("nodeInfo", {}) | software
    # The port changes if the sandbox is restarted.
    return changed | {key: value for key, value in addresses.items() if before.get(key) != value}


def _of_real_node(node: JsonObject) -> JsonObject:
    """Return the fields of a real node that its kubelet cannot detect: devices that this machine lacks."""
    devices = {name: count for name, count in node["status"]["capacity"].items() if "/" in name}
    status = {key: node["status"][key] for key in ("conditions", "addresses")}
    return {**node, "status": status | {"devices": devices}}
