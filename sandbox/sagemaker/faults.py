"""Faults of nodes and jobs, an operation of the sandbox.

`GET /podwright/faults` returns the current faults. `PUT` changes the keys that it contains:

    {"nodes": [{"node": "i-0123456789abcdef0", "kind": "xid-replace"}]}
    {"lifecycle": {"h200": ["mount /fsx", "mount.lustre: Connection timed out"]}}
    {"jobs": {"podwright-nccl": "slow"}, "verdicts": {"h200": "fail"}, "exporters": {"dcgm": "silent"}}

`nodes` breaks nodes now. Its kinds are those of `repair.FAULT_KINDS` and of `real_nodes.NODE_FAULTS`, which need a real
node and last until it is rebooted or replaced, a full disk until it is replaced. `lifecycle` lets lifecycle scripts of
new nodes of these groups print lines and fail. `jobs` are faults of jobs by a prefix of their names. Their kinds are
those of `pod_ends.FAULTS`, and need a real control plane. `verdicts` are those of nodes' benchmarks, by instance id or
group, whose records are replaced. `exporters` send no metrics. An empty object removes the faults of a key. These three
are lost when the server stops. Groups and nodes that no cluster has are refused,
unless the parameter `new=true` allows future ones.
"""

import json
from collections.abc import Iterable
from typing import Any

from werkzeug.wrappers import Request, Response

from ...config.catalog.metrics import metrics
from ..hyperpod.pod_ends import FAULTS as JOB_FAULTS
from ..hyperpod.repair import FAULT_KINDS
from ..hyperpod.verdicts import VERDICTS, republish
from ..nodes.real_nodes import FULL_DISK, NODE_FAULTS
from ..protocol.json_objects import JsonObject
from ..protocol.known_names import check_known
from .service import FAULTS, HyperPod

PATH = "/podwright/faults"


def serve(hyperpod: HyperPod, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Serve one request."""
    request = Request(environ)
    if request.method == "PUT":
        try:
            _put(hyperpod, json.loads(request.get_data()), to_come=request.args.get("new") == "true")
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            return Response(f"{error}\n", 400)(environ, start_response)
    text = json.dumps(_shown(hyperpod))
    return Response(text, content_type="application/json")(environ, start_response)


def _put(hyperpod: HyperPod, specified: JsonObject, to_come: bool) -> None:
    """Set faults. `to_come` allows groups that no cluster has yet. Raises ValueError before any change."""
    check_known("key", specified, ("nodes", "lifecycle", *FAULTS))
    for name, known in (("jobs", JOB_FAULTS), ("verdicts", VERDICTS), ("exporters", ("silent",))):
        check_known(f"kind of {name}", specified.get(name, {}).values(), known)
    check_known("exporter", specified.get("exporters", {}), sorted({metric.exporter for metric in metrics().values()}))
    planes = hyperpod.eks.control_planes
    if specified.get("jobs") and planes.new_clusters == "store" and not planes.planes:
        raise ValueError("jobs: no job runs on the stores of this sandbox, see `podwright sandbox kubernetes install`")
    if not to_come:
        _check_places(hyperpod, specified)
    broken = [(hyperpod.node(item["node"]), item["kind"]) for item in specified.get("nodes", [])]
    check_known("kind of nodes", (kind for _, kind in broken), (*FAULT_KINDS, *NODE_FAULTS))
    names = {node.instance_id: f"hyperpod-{node.instance_id}" for (_, node), kind in broken if kind in NODE_FAULTS}
    machines = {instance_id: planes.real_nodes_with(name) for instance_id, name in names.items()}
    for (_, node), kind in broken:
        if kind == FULL_DISK:
            machines[node.instance_id].disk(names[node.instance_id])
    if "lifecycle" in specified:
        hyperpod.failing = {str(group): list(map(str, lines)) for group, lines in specified["lifecycle"].items()}
    for name in FAULTS:
        if name in specified:
            hyperpod.faults[name] = {str(key): str(value) for key, value in specified[name].items()}
    if "verdicts" in specified:
        for cluster in list(hyperpod.clusters.values()):
            store = hyperpod.clients.client("s3", cluster.region)
            for node in cluster.nodes:
                if node.logged and not node.deleted:
                    republish(store, cluster, node, hyperpod.faults["verdicts"])
    for (cluster, node), kind in broken:
        if kind in NODE_FAULTS:
            machines[node.instance_id].break_node(names[node.instance_id], kind)
            continue
        hyperpod.break_node(cluster, node, FAULT_KINDS[kind])


def _check_places(hyperpod: HyperPod, specified: JsonObject) -> None:
    """Raise ValueError for a group or node that no cluster has: its fault would never happen."""
    clusters = list(hyperpod.clusters.values())
    groups = sorted({group for cluster in clusters for group in cluster.groups})
    nodes = [node.instance_id for cluster in clusters for node in cluster.nodes if not node.deleted]
    hint = " (add new=true to the parameters for one that is to come)"
    check_known("group of lifecycle", specified.get("lifecycle", {}), groups, hint)
    check_known("group or node of verdicts", specified.get("verdicts", {}), [*groups, *nodes], hint)


def _shown(hyperpod: HyperPod) -> JsonObject:
    return {
        "nodes": [
            {"node": node.instance_id, "group": node.group, "cluster": cluster.name, "health": node.health}
            for cluster in hyperpod.clusters.values()
            for node in cluster.nodes
            if node.health != "Schedulable" and not node.deleted
        ],
        "lifecycle": hyperpod.failing,
        **hyperpod.faults,
    }
