"""The latest benchmark results of nodes, which lie in the lifecycle bucket, as samples."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any, Final

import boto3

from .fleet import RETRIES
from .remote_write import Sample

_AT_ONCE: Final = 16
_OUTCOMES: Final = ("pass", "warn", "fail", "skip")
# What was read stays for as long as the function does: a node is measured when it boots, and rarely again.
_READ: dict[str, tuple[str, dict[str, Any]]] = {}


def benchmarks(session: boto3.Session, facts: dict[str, Any]) -> Iterator[Sample]:
    """Values, limits and verdicts of all nodes that are still there; nothing where nodes are not measured."""
    if not facts["results"]:
        return
    present = _instance_ids(session, facts["cluster"])
    limits: dict[tuple[str, str, str, str], float] = {}
    for record in _records(session, *facts["results"]):
        # Results of nodes that are gone stay in the bucket, and are history rather than the state of the cluster.
        if record["instance_id"] not in present:
            continue
        location = {"instance_group": record["group"], "instance_type": record["instance_type"]}
        node = {**location, "instance_id": record["instance_id"]}
        for verdict in _OUTCOMES:
            # Each outcome as a series of 0 or 1: a dashboard sums them, and a node that changes leaves no stale series.
            yield Sample("podwright_benchmark_verdict", {**node, "verdict": verdict}, record["verdict"] == verdict)
        began = datetime.fromisoformat(record["started"])
        yield Sample("podwright_benchmark_timestamp_seconds", node, began.timestamp())
        for kernel, items in _by_kernel(record).items():
            # A node is as slow as its slowest GPU, for a collective waits for it.
            worst = min if items[0]["higher_is_better"] else max
            unit = items[0]["unit"]
            labels = {**node, "kernel": kernel, "unit": unit}
            yield Sample("podwright_benchmark_value", labels, worst(item["value"] for item in items))
            if items[0]["fail_below"] is not None:
                limits[record["group"], record["instance_type"], kernel, unit] = items[0]["fail_below"]
    for (group, kind, kernel, unit), limit in limits.items():
        labels = {"instance_group": group, "instance_type": kind, "kernel": kernel, "unit": unit}
        yield Sample("podwright_benchmark_limit", labels, limit)


def _by_kernel(record: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The measurements that have a value, by the name of their kernel."""
    results: dict[str, list[dict[str, Any]]] = {}
    for item in record["results"]:
        if item["value"] is not None:
            results.setdefault(item["name"], []).append(item)
    return results


def _instance_ids(session: boto3.Session, cluster: str) -> set[str]:
    pages = (
        session.client("sagemaker", config=RETRIES).get_paginator("list_cluster_nodes").paginate(ClusterName=cluster)
    )
    return {node["InstanceId"] for page in pages for node in page["ClusterNodeSummaries"] if "InstanceId" in node}


def _records(session: boto3.Session, bucket: str, prefix: str) -> Iterator[dict[str, Any]]:
    """All results, each read once for every version of it."""
    client = session.client("s3", config=RETRIES)
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{prefix}/results/")
    tags = {item["Key"]: item["ETag"] for page in pages for item in page.get("Contents", ())}
    # The function lives on between its runs; without this it would grow with every node that comes and goes.
    for deleted in _READ.keys() - tags.keys():
        del _READ[deleted]
    # An ETag changes with the content, so listing a prefix says what to read.
    new = [key for key, tag in tags.items() if key not in _READ or _READ[key][0] != tag]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for key, body in zip(new, pool.map(lambda key: _body(client, bucket, key), new), strict=True):
            _READ[key] = (tags[key], json.loads(body))
    yield from (record for _, record in _READ.values())


def _body(client: Any, bucket: str, key: str) -> bytes:
    return client.get_object(Bucket=bucket, Key=key)["Body"].read()
