"""What came of a node's set-up: kept on the node, published beside the scripts, and a metric of its log.

`podwright canary` reads the published record.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from .failure import Failure
from .node import Node
from .object_store import Store
from .retry import retry

RECORD = "/var/lib/podwright/setup.json"
NAMESPACE = "podwright/nodes"
METRIC = "degraded_steps"
PATIENCE_SECONDS = 20
"""How long publishing is tried: the node waits for it."""


def record(node: Node, *, failed: Mapping[str, str], degraded: Mapping[str, str]) -> str:
    """Keep, measure, publish and return the verdict. What cannot be written is logged, and no reason to lose the node.

    Args:
        node: This node.
        failed: What each step that costs the node saw; such steps make the verdict `failed`.
        degraded: What each other step that failed saw; with only such steps the verdict is `degraded`.
    """
    verdict = "degraded" if degraded else "ready"
    if failed:
        verdict = "failed"
    made = {
        "version": 1,
        "group": node.group,
        "instance_id": node.instance_id,
        "instance_type": node.instance_type,
        "ended": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
        "verdict": verdict,
        "failed": dict(failed),
        "degraded": dict(degraded),
    }
    try:
        node.write(RECORD, json.dumps(made, indent=1) + "\n")
    except OSError as error:
        node.log.say("warning", note=f"the verdict is not kept on this node: {error}")
    if node.group is not None and node.facts.get("cluster"):
        _publish(node, made)
    return verdict


def _publish(node: Node, made: dict[str, Any]) -> None:
    cluster = node.facts["cluster"]
    node.log.metrics(_metric(node, str(cluster["name"]), len(made["degraded"])))
    # A cluster without a place for records has none of its nodes write them.
    if not cluster.get("setup_uri") or node.instance_id is None:
        return
    store = Store(node, cluster["setup_uri"])
    try:
        name = f"{node.group}/{node.instance_id}.json"
        retry(node, lambda: store.write(name, made), seconds=PATIENCE_SECONDS, what="publishing the verdict")
    except Failure as failure:
        node.log.say("warning", note=f"the verdict stays on this node only: {failure}")


def _metric(node: Node, cluster: str, count: int) -> dict[str, Any]:
    """A document in CloudWatch's embedded metric format; see `benchmarking.metrics` for its source."""
    own = {"ClusterName": cluster, "InstanceGroup": node.group}
    # By group for whoever looks, and of the whole cluster for the alarm.
    dimensions = [list(own), ["ClusterName"]]
    directive = {"Namespace": NAMESPACE, "Dimensions": dimensions, "Metrics": [{"Name": METRIC, "Unit": "Count"}]}
    head = {"_aws": {"Timestamp": int(time.time() * 1000), "CloudWatchMetrics": [directive]}}
    return {**head, **own, "InstanceId": node.instance_id, METRIC: count}
