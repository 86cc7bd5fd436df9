"""What nodes measured of themselves when they were created, over time."""

from ....config.settings.observability import Targets
from .panel import Choice, Dashboard, Panel, Row

_KERNEL = '{$cluster, kernel=~"$kernel"}'


def define(_: Targets) -> Dashboard:
    """The dashboard."""
    return Dashboard(
        name="benchmarks",
        title="Benchmarks",
        says="What nodes measured of themselves when they were created, over time: is new hardware as good as old?",
        needs=("podwright_benchmark_value",),
        rows=(Row("Verdicts", _verdicts()), Row("Kernels", _kernels())),
        choices=(Choice("kernel", "kernel", "podwright_benchmark_value"),),
        hours=168,
    )


def _verdicts() -> tuple[Panel, ...]:
    """Nodes by the verdict of their benchmarks, and those that did not pass."""
    return (
        Panel(
            "stacked",
            "Nodes by verdict",
            "count",
            {"{{verdict}}": "count by (verdict) (podwright_benchmark_verdict{$cluster} == 1)"},
            "The verdict of each node's last benchmark.",
            width=8,
        ),
        Panel(
            "table",
            "Nodes that did not pass",
            "count",
            {
                "nodes": "max by (instance_group, instance_id, verdict) "
                '(podwright_benchmark_verdict{$cluster, verdict=~"warn|fail"}) > 0'
            },
            "With gate such a node is replaced; with report somebody has to look.",
            width=8,
            may_be_empty=True,
        ),
        Panel(
            "bars",
            "Longest since a benchmark",
            "days",
            {
                "{{instance_group}}": "max by (instance_group) "
                "(time() - podwright_benchmark_timestamp_seconds{$cluster}) / 86400"
            },
            "Nodes are measured when they are created. What was good months ago may have aged.",
            width=8,
        ),
    )


def _kernels() -> tuple[Panel, ...]:
    """What each kernel reached against its limit, and how far nodes of a group are apart."""
    same = "cluster_name, instance_group, kernel, unit"
    limit = f"max by ({same}) (podwright_benchmark_limit{_KERNEL}) > 0"
    ratio = f"podwright_benchmark_value{_KERNEL} / on ({same}) group_left () ({limit})"
    values = f"by (kernel, unit) (podwright_benchmark_value{_KERNEL})"
    return (
        Panel(
            "lines",
            "Least, median and most",
            "count",
            {
                "{{kernel}} {{unit}} least": f"min {values}",
                "{{kernel}} {{unit}} median": f"quantile by (kernel, unit) (0.5, podwright_benchmark_value{_KERNEL})",
                "{{kernel}} {{unit}} most": f"max {values}",
            },
            "Each kernel over all nodes. A median that falls after an update of software is the update's doing.",
        ),
        Panel(
            "bars",
            "Nearest to their limit",
            "fraction",
            {"{{instance_id}} {{kernel}}": f"bottomk(10, {ratio})"},
            "A value as a share of the one at which the node fails: the ten nearest from above. Of latencies and "
            "errors, where less is better, look at the table of nodes that did not pass.",
            {0: "red", 1: "orange", 1.1: "green"},
        ),
        Panel(
            "lines",
            "Worst node against its limit",
            "fraction",
            {"{{instance_group}} {{kernel}}": f"min by (instance_group, kernel) ({ratio})"},
            "The lowest value of each group as a share of the one at which a node fails, over time.",
            {1: "red"},
        ),
        Panel(
            "bars",
            "Spread between nodes of a group",
            "fraction",
            {
                "{{instance_group}} {{kernel}}": "1 - min by (instance_group, kernel) "
                f"(podwright_benchmark_value{_KERNEL}) / max by (instance_group, kernel) "
                f"(podwright_benchmark_value{_KERNEL})"
            },
            "How far the worst node is behind the best. Nodes of a type should differ by a few percent.",
            {0: "green", 0.05: "orange", 0.15: "red"},
            most=1,
        ),
    )
