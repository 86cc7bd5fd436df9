"""The gate `verdicts`: every node that is to measure itself has done so since it was set up, and passed."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any, Final

from ...config.catalog.names import benchmark_prefix, lifecycle_bucket_name
from ...config.settings.benchmarks import benchmark_policy
from ...planning.node.benchmark_results import BenchmarkResults
from ...planning.node.collective_thresholds import thresholds_version
from ..aws.clusters import Node
from ..aws.clusters import nodes as cluster_nodes
from ..aws.objects import read_text
from ..benchmarks.command import parsed
from .gate import Context, Observation, Result

_AT_ONCE: Final = 8
# Clocks of a node and of AWS.
_SKEW: Final = timedelta(minutes=5)
# AWS does not say whether the time of a software update is that of its beginning or of its end.
_UPDATE: Final = timedelta(hours=6)


def run(context: Context) -> Result:
    """Wait until every node has published a verdict, and look at it."""
    context.asked["thresholds_version"] = thresholds_version()
    return context.wait(lambda: _observe(context))


def _observe(context: Context) -> Observation:
    """The benchmark verdict of each node whose group has a policy."""
    observation, environment = Observation(next_step=_next(context)), context.environment
    measured = {
        name: policy
        for name, group in environment.instance_groups.items()
        if (policy := benchmark_policy(group, context.types)) != "skip"
    }
    nodes = [node for node in cluster_nodes(context.account, environment.cluster.name) if node.group in measured]
    bucket = _bucket(context)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        records = list(pool.map(lambda node: _record(context, bucket, node), nodes))
    for name in measured:
        if not any(node.group == name for node in nodes) and environment.instance_groups[name].count:
            observation.check(f"group {name}", "nodes", "has no nodes", False)
    final: list[str] = []
    for node, record in zip(nodes, records, strict=True):
        observed, ok = _judged(context, node, record)
        observation.check(f"{node.id} of {node.group}", " or ".join(context.settings.verdicts.accept), observed, ok)
        replaced = record is not None and record.decision is not None and record.decision.action != "keep"
        if not ok and record and _fresh(node, record) and not replaced:
            final.append(node.id)
    if final:
        # Nobody replaces these: what they say will not change.
        observation.final = (
            f"{len(final)} node{'s' if len(final) > 1 else ''} will not pass by waiting: {', '.join(final[:4])}"
        )
    observation.answers["records"] = [_shown(record) for record in records if record]
    return observation


def _next(context: Context) -> str:
    name = context.environment.name
    return (
        f"read the results with `podwright bench show --environment {name}`, and replace a bad node with `podwright "
        f"node replace {name} NODE`; if nothing was measured, run `podwright kernels build` and deploy"
    )


def _bucket(context: Context) -> str:
    environment = context.environment
    return environment.storage.buckets.lifecycle or lifecycle_bucket_name(
        environment.name, context.account.id, environment.region
    )


def _record(context: Context, bucket: str, node: Node) -> BenchmarkResults | None:
    """What a node published; None where it did not. Raises CommandError for something else in its place."""
    prefix = benchmark_prefix(context.environment.cluster.name)
    key = f"{prefix}/results/{node.group}/{node.id}.json"
    text = read_text(context.account, bucket, key)
    return None if text is None else parsed(text, f"s3://{bucket}/{key}")


def _judged(context: Context, node: Node, record: BenchmarkResults | None) -> tuple[str, bool]:
    """What there is to say of a node, and whether it is good enough."""
    if record is None:
        return f"no verdict, {node.status}", False
    if not _fresh(node, record):
        return f"{record.verdict} of {record.started:%Y-%m-%d %H:%M}, before it was set up last", False
    worst = next((item for item in record.results if item.outcome == record.verdict and item.reason), None)
    why = f": {worst.name} {worst.reason}" if worst and record.verdict != "pass" else ""
    return f"{record.verdict}{why}", record.verdict in context.settings.verdicts.accept


def _fresh(node: Node, record: BenchmarkResults) -> bool:
    """Whether a node was measured after its instance was launched and its software last updated."""
    since = [node.launched - _SKEW] if node.launched else []
    since += [node.updated - _UPDATE] if node.updated else []
    return all(record.started >= timestamp for timestamp in since)


def _shown(record: BenchmarkResults) -> dict[str, Any]:
    shown = record.model_dump(mode="json", include={"group", "instance_id", "started", "verdict", "thresholds_version"})
    bad = [item for item in record.results if item.outcome in ("fail", "warn")]
    return {**shown, "not passed": [item.model_dump(mode="json") for item in bad]}
