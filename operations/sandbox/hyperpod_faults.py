"""Faults on command: an operation of the sandbox's own, for trying what happens to nodes that break.

`GET /podwright/faults` shows what is broken or fails to start. `PUT` changes what it is given, and leaves the rest:

    {"nodes": [{"node": "i-0123456789abcdef0", "kind": "xid-replace"}]}
    {"lifecycle": {"h200": ["mount /fsx", "mount.lustre: Connection timed out"]}}

`nodes` breaks nodes now; kinds are those of `hyperpod_repair.FAULT_KINDS`. `lifecycle` lets lifecycle scripts of new
nodes of these groups print lines and fail; an empty object lets them succeed again.
"""

import json
from collections.abc import Iterable
from typing import Any

from werkzeug.wrappers import Request, Response

from .hyperpod_repair import FAULT_KINDS
from .hyperpod_service import HyperPod
from .template import JsonObject

PATH = "/podwright/faults"


def serve(hyperpod: HyperPod, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Serve one request."""
    request = Request(environ)
    if request.method == "PUT":
        try:
            _put(hyperpod, json.loads(request.get_data()))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            return Response(f"{error}\n", 400)(environ, start_response)
    text = json.dumps(_shown(hyperpod))
    return Response(text, content_type="application/json")(environ, start_response)


def _put(hyperpod: HyperPod, given: JsonObject) -> None:
    if unknown := sorted(set(given) - {"nodes", "lifecycle"}):
        raise ValueError(f"unknown keys: {', '.join(unknown)}; known are nodes and lifecycle")
    broken = [(hyperpod.node(item["node"]), item["kind"]) for item in given.get("nodes", [])]
    for _, kind in broken:
        if kind not in FAULT_KINDS:
            raise ValueError(f"unknown kind {kind}; known are {', '.join(FAULT_KINDS)}")
    if "lifecycle" in given:
        hyperpod.failing = {str(group): [str(line) for line in lines] for group, lines in given["lifecycle"].items()}
    for (cluster, node), kind in broken:
        hyperpod.break_node(cluster, node, FAULT_KINDS[kind])


def _shown(hyperpod: HyperPod) -> JsonObject:
    return {
        "nodes": [
            {"node": node.instance_id, "group": node.group, "cluster": cluster.name, "health": node.health}
            for cluster in hyperpod.clusters.values()
            for node in cluster.nodes
            if node.health != "Schedulable" and not node.deleted
        ],
        "lifecycle": hyperpod.failing,
    }
