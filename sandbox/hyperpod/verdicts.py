"""Writes the benchmark records that nodes would publish when they boot, with synthetic measurements.

A record has the form and the key of those of real nodes. Its values are near published measurements, and each is marked
as synthetic. Groups whose scripts skip benchmarks publish none.
"""

import json
from typing import Any, Final

from botocore.exceptions import ClientError

from ...config.catalog.instance_types import catalog
from ..protocol.json_objects import JsonObject
from .cluster import Cluster, Node
from .made_up_benchmarks import SOURCE, measurements

VERDICTS: Final = ("pass", "warn", "fail", "skip", "none")
"""Verdicts that a fault can set; with `none`, a node publishes nothing."""


def publish(s3: Any, cluster: Cluster, node: Node, faults: dict[str, str]) -> None:
    """Write the record of a running node. `faults` has verdicts by instance id or by group."""
    group = cluster.groups[node.group].specification
    uri = group.get("LifeCycleConfig", {}).get("SourceS3Uri", "")
    facts = _facts(s3, uri)
    _publish_setup(s3, node, facts)
    verdict = faults.get(node.instance_id) or faults.get(node.group, "pass")
    policy = facts.get("groups", {}).get(node.group, {}).get("benchmarks", "skip")
    where = (facts.get("benchmarks") or {}).get("results_uri", "")
    if policy == "skip" or not where or verdict == "none":
        return
    bucket, _, prefix = where.removeprefix("s3://").partition("/")
    key = f"{prefix}/results/{node.group}/{node.instance_id}.json"
    s3.put_object(Bucket=bucket, Key=key, Body=json.dumps(_record(cluster, node, verdict, policy, facts)).encode())


def _publish_setup(s3: Any, node: Node, facts: JsonObject) -> None:
    """Write the record of a successful set-up, since no script runs on a simulated node."""
    uri = facts.get("cluster", {}).get("setup_uri", "")
    if not uri or node.group not in facts.get("groups", {}):
        return
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    record = {
        "version": 1,
        "group": node.group,
        "instance_id": node.instance_id,
        "instance_type": node.instance_type,
        "ended": node.ready.isoformat(),
        "verdict": "ready",
        "failed": {},
        "degraded": {},
    }
    s3.put_object(Bucket=bucket, Key=f"{prefix}/{node.group}/{node.instance_id}.json", Body=json.dumps(record).encode())


def republish(s3: Any, cluster: Cluster, node: Node, faults: dict[str, str]) -> None:
    """Replace or delete the record after a change of the faults."""
    group = cluster.groups[node.group].specification
    facts = _facts(s3, group.get("LifeCycleConfig", {}).get("SourceS3Uri", ""))
    # Null if no group has accelerators.
    where = (facts.get("benchmarks") or {}).get("results_uri")
    if where:
        bucket, _, prefix = where.removeprefix("s3://").partition("/")
        s3.delete_object(Bucket=bucket, Key=f"{prefix}/results/{node.group}/{node.instance_id}.json")
        publish(s3, cluster, node, faults)


def _facts(s3: Any, uri: str) -> JsonObject:
    """Return the cluster's settings in the published scripts; empty for scripts of other tools."""
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    if not bucket:
        return {}
    try:
        text = s3.get_object(Bucket=bucket, Key="/".join(filter(None, (prefix.strip("/"), "node.json"))))["Body"].read()
    except ClientError:
        return {}
    return json.loads(text)


def _record(cluster: Cluster, node: Node, verdict: str, policy: str, facts: JsonObject) -> JsonObject:
    """Return a node's benchmark record, with synthetic measurements that fit the verdict."""
    row = catalog().find(node.instance_type)
    accelerators = row.accelerator_count if row else 0
    return {
        "version": 1,
        "cluster": cluster.name,
        "group": node.group,
        "instance_id": node.instance_id,
        "instance_type": node.instance_type,
        "started": node.ready.isoformat(),
        "seconds": 0.0,
        "mode": facts["benchmarks"].get("mode", "quick"),
        "thresholds_version": "sandbox",
        "results": measurements(node.instance_type, accelerators, node.instance_id, verdict),
        "verdict": verdict,
        "decision": {"policy": policy, "action": "keep", "reason": SOURCE},
    }
