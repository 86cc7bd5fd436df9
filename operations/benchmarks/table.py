"""Benchmark results as tables."""

from collections.abc import Sequence
from typing import Any, Final

from ...planning.node.benchmark_results import BenchmarkResults
from ..output.console import write_line
from ..output.tables import new_table, severity, styled
from .rows import ORDER, Row, devices_of, faults, rows

_SHOWN_NODES: Final = 40
_SHOWN_FAULTS: Final = 20
_OPTIONAL: Final = ("median of bound", "bound", "warns at", "spread", "best", "n")


def write_tables(runs: Sequence[BenchmarkResults]) -> None:
    """Print nodes with their verdicts, kernels with their values, and what did not pass."""
    write_line(_nodes(runs))
    write_line()
    resolved_rows = rows(runs)
    for group, instance_type in dict.fromkeys((row.group, row.instance_type) for row in resolved_rows):
        own = [row for row in resolved_rows if (row.group, row.instance_type) == (group, instance_type)]
        write_line(_kernels(f"{group}, {instance_type}", own, nodes=len(runs) > 1))
        write_line()
    wrong = faults(runs)
    for fault in wrong[:_SHOWN_FAULTS]:
        write_line(styled(severity(fault.outcome), f" {fault.where}: {fault.reason}"))
    if len(wrong) > _SHOWN_FAULTS:
        write_line(f"and {len(wrong) - _SHOWN_FAULTS} more; --json has all of them")


def _nodes(runs: Sequence[BenchmarkResults]) -> Any:
    """Every node of few; of many those with the worst verdicts."""
    columns = ("node", "group", "verdict", "what follows", "measured", "seconds")
    table = new_table("Nodes", columns, right=columns[4:], optional=("seconds", "group"))
    worst = sorted(runs, key=lambda run: (ORDER.index(run.verdict), run.group, run.instance_id or ""))
    for run in worst[:_SHOWN_NODES]:
        decided = f"{run.decision.action}: {run.decision.reason}" if run.decision else "not decided yet"
        when = f"{run.started:%Y-%m-%d %H:%M}Z" if not run.started.utcoffset() else run.started.isoformat("minutes")
        table.add_row(
            run.instance_id or "?",
            run.group,
            severity(run.verdict),
            decided,
            f"{when} {run.mode}",
            f"{run.seconds:.0f}",
        )
    if len(worst) > _SHOWN_NODES:
        table.add_row(f"and {len(worst) - _SHOWN_NODES} more")
    return table


def _kernels(title: str, result: Sequence[Row], *, nodes: bool) -> Any:
    """A row for each kernel; with `nodes` the worst is named by its node, else by its device."""
    numbers = ("n", "worst", "median", "best", "spread", "fails at", "warns at", "bound", "median of bound")
    table = new_table(title, ("kernel", "unit", "outcome", "worst on", *numbers), right=numbers, optional=_OPTIONAL)
    for row in result:
        points, bound = row.points, row.line("bound")
        head = (row.first.name, row.first.unit, severity(row.outcome))
        if not points:
            table.add_row(*head, "", "0")
            continue
        where = points[0].where if nodes else devices_of(points[0].measurement)
        spread = row.spread_percent
        table.add_row(
            *head,
            where if len(points) > 1 else "",
            str(len(points)),
            *(number(value) for value in (points[0].value, row.middle, points[-1].value)),
            "" if spread is None else f"{spread:.1f} %",
            *(number(row.line(name)) for name in ("fail_below", "warn_below")),
            number(bound),
            f"{row.middle / bound:.0%}" if bound and row.first.higher_is_better else "",
        )
    return table


def number(value: float | None) -> str:
    """A value with as many digits as tell something; nothing for none."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.4g}"
