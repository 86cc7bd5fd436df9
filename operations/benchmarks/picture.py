"""Benchmark results as a picture: a line for each kernel, a dot for each measurement.

It is SVG, which browsers, editors and wikis show.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...planning.node.benchmark_results import BenchmarkResults
from ..output.templates import templates
from .rows import ORDER, Point, Row, rows
from .table import number

# The scale stands between the names and the values.
_WIDTH, _LEFT, _PLOT = 920, 220, 450
_ROW, _HEAD, _GAP, _TOP, _KEY = 34, 62, 18, 64, 36
_LANES: Final = 7
_MOST_LETTERS: Final = 90
_NOTES: Final = {
    True: "in percent of what the hardware can do at best",
    False: "each on a scale of its own; latencies and errors are better to the left",
}


@dataclass(frozen=True)
class Dot:
    """A measurement."""

    x: float
    y: float
    outcome: str
    title: str


@dataclass(frozen=True)
class Label:
    """The node and device of the dot furthest out, beside it on the side where no other dot is."""

    x: float
    y: float
    anchor: str
    outcome: str
    text: str


@dataclass(frozen=True)
class Kernel:
    """A kernel with its measurements."""

    name: str
    outcome: str
    words: str
    """Its values, or why there are none."""
    dots: Sequence[Dot] = ()
    limits: Sequence[tuple[float, str]] = ()
    """Where a value fails or warns."""
    worst: Label | None = None


@dataclass(frozen=True)
class Plot:
    """Kernels on one kind of scale."""

    top: float
    heading: str
    note: str
    ticks: Sequence[tuple[float, str]]
    kernels: Sequence[Kernel]

    @property
    def height(self) -> int:
        """How high it is, with the room below it."""
        return _HEAD + _ROW * len(self.kernels) + _GAP


def picture(runs: Sequence[BenchmarkResults]) -> str:
    """The picture of some nodes' results.

    Kernels that have a physical bound share a scale, which ends at their bound; each other kernel has a scale of its
    own, which ends at its largest value or line.
    """
    plots = list(_plots(runs))
    verdicts = [run.verdict for run in runs]
    counts = ", ".join(f"{verdicts.count(one)} {one}" for one in ORDER if one in verdicts)
    clusters = ", ".join(dict.fromkeys(run.cluster for run in runs))
    kernels = [kernel for plot in plots for kernel in plot.kernels]
    dots = {dot.outcome for kernel in kernels for dot in kernel.dots}
    template = templates(Path(__file__).parent).get_template("picture.svg.jinja")
    made = template.render(
        title=f"Benchmarks of {clusters}: {counts}",
        plots=plots,
        outcomes=[outcome for outcome in reversed(ORDER) if outcome in dots],
        limits={outcome for kernel in kernels for _, outcome in kernel.limits},
        width=_WIDTH,
        height=_TOP + sum(plot.height for plot in plots) + _KEY,
        left=_LEFT,
        right=_LEFT + _PLOT,
        row=_ROW,
        head=_HEAD,
    )
    return f"{made}\n"


def _plots(runs: Sequence[BenchmarkResults]) -> Iterator[Plot]:
    top, resolved_rows = _TOP, rows(runs)
    for group, instance_type in dict.fromkeys((row.group, row.instance_type) for row in resolved_rows):
        own = [row for row in resolved_rows if (row.group, row.instance_type) == (group, instance_type)]
        nodes = len({run.instance_id for run in runs if run.group == group and run.instance_type == instance_type})
        heading = f"{group}: {nodes} {'node' if nodes == 1 else 'nodes'} of {instance_type}"
        for bounded in (True, False):
            kernels = [_kernel(row) for row in own if _is_bounded(row) is bounded]
            ticks = [(_x(share), f"{100 * share:g} %" if bounded else "") for share in (0, 0.25, 0.5, 0.75, 1)]
            if kernels:
                plot = Plot(top, heading, _NOTES[bounded], ticks, kernels)
                yield plot
                top += plot.height


def _is_bounded(row: Row) -> bool:
    return bool(row.line("bound")) and row.first.higher_is_better


def _x(share: float) -> float:
    return round(_LEFT + _PLOT * max(0.0, min(1.0, share)), 1)


def _kernel(row: Row) -> Kernel:
    """A kernel with a dot for each measurement and its limits, or with the reason why nothing was measured."""
    points = row.points
    if not points:
        reason = row.first.reason or "not measured"
        short = reason if len(reason) <= _MOST_LETTERS else f"{reason[: _MOST_LETTERS - 1]}…"
        return Kernel(row.first.name, row.outcome, short)
    end, count = _end(row), len(points)
    limits = [(row.line(f"{outcome}_below"), outcome) for outcome in ("warn", "fail")]
    spread = (
        f"  ({number(points[0].value)} to {number(points[-1].value)})" if points[0].value != points[-1].value else ""
    )
    # The worst are drawn last, upon the others.
    dots = [_dot(point, end, _lane(index, count)) for index, point in enumerate(reversed(points))]
    return Kernel(
        name=row.first.name,
        outcome=row.outcome,
        words=f"{number(row.middle)} {row.first.unit}{spread}",
        dots=dots,
        limits=[(_x(threshold / end), outcome) for threshold, outcome in limits if threshold is not None],
        worst=_label(points[0], dots[-1], row.first.higher_is_better),
    )


def _end(row: Row) -> float:
    """The value at the right end of a row's scale."""
    if _is_bounded(row):
        return row.line("bound") or 1.0
    lines = [threshold for name in ("fail_below", "warn_below") if (threshold := row.line(name)) is not None]
    return max([point.value for point in row.points] + lines) * 1.05 or 1.0


def _lane(index: int, count: int) -> float:
    """Dots of equal values lie above each other, not on each other."""
    return 0.0 if count == 1 else (index % _LANES - _LANES // 2) * 3.0


def _dot(point: Point, end: float, y: float) -> Dot:
    item = point.measurement
    title = f"{point.where}: {number(point.value)} {item.unit}, {item.outcome} {item.reason}".strip()
    return Dot(_x(point.value / end), y, item.outcome, title)


def _label(worst: Point, dot: Dot, higher_is_better: bool) -> Label | None:
    if dot.outcome not in ("warn", "fail"):
        return None
    # Left of the scale stand the names of kernels.
    if higher_is_better and dot.x >= _LEFT + 160:
        return Label(dot.x - 10, dot.y, "end", dot.outcome, worst.where)
    return Label(dot.x + (30 if higher_is_better else 10), dot.y, "start", dot.outcome, worst.where)
