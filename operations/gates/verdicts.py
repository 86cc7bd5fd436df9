"""The gate `verdicts`: every node that is to measure itself has done so since it was set up, and passed."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any, Final

from ...config.catalog.names import benchmark_prefix, lifecycle_bucket_name
from ...config.settings.benchmarks import benchmark_policy
from ...planning.node.benchmark_results import BenchmarkResults
from ...planning.node.collective_thresholds import thresholds_version
from ..benchmarks.command import parsed
from .gate import Context, Look, Result

_AT_ONCE: Final = 8
# Clocks of a node and of AWS.
_SKEW: Final = timedelta(minutes=5)
# AWS does not say whether the time of a software update is that of its beginning or of its end.
_UPDATE: Final = timedelta(hours=6)


def run(context: Context) -> Result:
    """Wait until every node has published a verdict, and look at it."""
    context.asked["thresholds_version"] = thresholds_version()
    return context.wait(lambda: _look(context))


def _look(context: Context) -> Look:
    look, environment = Look(next_step=_next(context)), context.environment
    measured = {
        name: policy
        for name, group in environment.instance_groups.items()
        if (policy := benchmark_policy(group, context.types)) != "skip"
    }
    client = context.account.client("sagemaker")
    pages = client.get_paginator("list_cluster_nodes").paginate(ClusterName=environment.cluster.name)
    nodes = [row for page in pages for row in page["ClusterNodeSummaries"] if row["InstanceGroupName"] in measured]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        # boto3's clients may be used by several threads, and are made by one.
        store, bucket = context.account.client("s3"), _bucket(context)
        records = list(pool.map(lambda row: _record(context, store, bucket, row), nodes))
    for name in measured:
        if not any(row["InstanceGroupName"] == name for row in nodes) and environment.instance_groups[name].count:
            look.check(f"group {name}", "nodes", "has no nodes", False)
    final: list[str] = []
    for row, record in zip(nodes, records, strict=True):
        seen, ok = _judged(context, row, record)
        group = row["InstanceGroupName"]
        look.check(f"{row['InstanceId']} of {group}", " or ".join(context.settings.verdicts.accept), seen, ok)
        replaced = record is not None and record.decision is not None and record.decision.action != "keep"
        if not ok and record and _fresh(row, record) and not replaced:
            final.append(row["InstanceId"])
    if final:
        # Nobody replaces these: what they say will not change.
        look.final = (
            f"{len(final)} node{'s' if len(final) > 1 else ''} will not pass by waiting: {', '.join(final[:4])}"
        )
    look.answers["records"] = [_shown(record) for record in records if record]
    return look


def _next(context: Context) -> str:
    name = context.environment.name
    return (
        f"`podwright bench show --cluster {name}` shows what was measured, `podwright node replace {name} NODE` takes "
        "a bad node away; where nothing was measured, `podwright kernels build` and deploy"
    )


def _bucket(context: Context) -> str:
    environment = context.environment
    return environment.storage.buckets.lifecycle or lifecycle_bucket_name(
        environment.name, context.account.id, environment.region
    )


def _record(context: Context, store: Any, bucket: str, row: dict[str, Any]) -> BenchmarkResults | None:
    """What a node published; None where it did not. Raises CommandError for something else in its place."""
    prefix = benchmark_prefix(context.environment.cluster.name)
    key = f"{prefix}/results/{row['InstanceGroupName']}/{row['InstanceId']}.json"
    try:
        text = store.get_object(Bucket=bucket, Key=key)["Body"].read().decode()
    except (store.exceptions.NoSuchKey, store.exceptions.NoSuchBucket):
        return None
    return parsed(text, f"s3://{bucket}/{key}")


def _judged(context: Context, row: dict[str, Any], record: BenchmarkResults | None) -> tuple[str, bool]:
    """What there is to say of a node, and whether it is good enough."""
    if record is None:
        return f"no verdict, {row['InstanceStatus']['Status']}", False
    if not _fresh(row, record):
        return f"{record.verdict} of {record.started:%Y-%m-%d %H:%M}, before it was set up last", False
    worst = next((item for item in record.results if item.outcome == record.verdict and item.reason), None)
    why = f": {worst.name} {worst.reason}" if worst and record.verdict != "pass" else ""
    return f"{record.verdict}{why}", record.verdict in context.settings.verdicts.accept


def _fresh(row: dict[str, Any], record: BenchmarkResults) -> bool:
    """Whether a node was measured after its instance was launched and its software last updated."""
    launched: datetime = row["LaunchTime"] - _SKEW
    updated: datetime | None = row.get("LastSoftwareUpdateTime")
    return record.started >= max(launched, updated - _UPDATE if updated else launched)


def _shown(record: BenchmarkResults) -> dict[str, Any]:
    shown = record.model_dump(mode="json", include={"group", "instance_id", "started", "verdict", "thresholds_version"})
    bad = [item for item in record.results if item.outcome in ("fail", "warn")]
    return {**shown, "not passed": [item.model_dump(mode="json") for item in bad]}
