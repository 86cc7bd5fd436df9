"""Benchmark results as a picture: a line for each kernel, a dot for each measurement.

It is SVG, which browsers, editors and wikis show, and which needs no drawing library.
"""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from ...planning.node.benchmark_results import BenchmarkResults
from .rows import ORDER, Point, Row, rows
from .table import number

_WIDTH, _LEFT, _RIGHT, _ROW, _HEAD = 1040, 250, 250, 34, 44
_PLOT: Final = _WIDTH - _LEFT - _RIGHT
_LANES: Final = 7
_COLOURS: Final = {"pass": "#2f7d4f", "warn": "#c98a00", "fail": "#c2302a", "skip": "#8a8f98"}
_INK, _FAINT, _GRID = "#1d2330", "#6a7180", "#e4e7ec"


def picture(runs: Sequence[BenchmarkResults]) -> str:
    """The picture of some nodes' results.

    Kernels that have a physical bound share a scale, which ends at their bound; each other kernel has a scale of its
    own, which ends at its largest value or line.
    """
    parts: list[str] = []
    top = 64
    found = rows(runs)
    for group, instance_type in dict.fromkeys((row.group, row.instance_type) for row in found):
        own = [row for row in found if (row.group, row.instance_type) == (group, instance_type)]
        nodes = len({run.instance_id for run in runs if run.group == group and run.instance_type == instance_type})
        heading = f"{group}: {nodes} {'node' if nodes == 1 else 'nodes'} of {instance_type}"
        for bounded, note in (
            (True, "in percent of what the hardware can do at best"),
            (False, "each on a scale of its own; latencies and errors are better to the left"),
        ):
            some = [row for row in own if _bounded(row) is bounded]
            if some:
                parts += _section(heading, note, some, top, percent=bounded)
                top += _HEAD + _ROW * len(some) + 18
    verdicts = [run.verdict for run in runs]
    counts = ", ".join(f"{verdicts.count(one)} {one}" for one in ORDER if one in verdicts)
    clusters = ", ".join(dict.fromkeys(run.cluster for run in runs))
    title = _text(24, 34, f"Benchmarks of {clusters}: {counts}", size=20, weight=600)
    height = top + 36
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
            f'viewBox="0 0 {_WIDTH} {height}" font-family="system-ui, Segoe UI, Helvetica, Arial, sans-serif">',
            f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
            title,
            *parts,
            *_legend(height - 20),
            "</svg>\n",
        ]
    )


def _bounded(row: Row) -> bool:
    return bool(row.line("bound")) and row.first.higher_is_better


def _section(heading: str, note: str, found: Sequence[Row], top: int, *, percent: bool) -> Iterator[str]:
    yield _text(24, top + 14, heading, size=14, weight=600)
    yield _text(_LEFT + _PLOT + 16, top + 14, note, size=11, colour=_FAINT, anchor="end")
    bottom = top + _HEAD + _ROW * len(found)
    for tick in (0, 25, 50, 75, 100):
        x = _LEFT + _PLOT * tick / 100
        yield f'<line x1="{x:.1f}" y1="{top + _HEAD}" x2="{x:.1f}" y2="{bottom}" stroke="{_GRID}"/>'
        if percent:
            yield _text(x, top + _HEAD - 6, f"{tick} %", size=11, colour=_FAINT, anchor="middle")
    for index, row in enumerate(found):
        yield from _row(row, top + _HEAD + _ROW * index + _ROW / 2)


def _row(row: Row, y: float) -> Iterator[str]:
    points = row.points
    yield _text(_LEFT - 16, y + 4, row.first.name, size=13, anchor="end")
    if not points:
        reason = row.first.reason or "not measured"
        yield _text(_LEFT + 8, y + 4, reason if len(reason) < 110 else f"{reason[:109]}…", size=12, colour=_FAINT)
        return
    end = _end(row)
    yield f'<line x1="{_LEFT}" y1="{y}" x2="{_LEFT + _PLOT}" y2="{y}" stroke="{_GRID}"/>'
    for name, outcome in (("warn_below", "warn"), ("fail_below", "fail")):
        if (line := row.line(name)) is not None:
            x = _LEFT + _PLOT * line / end
            colour = _COLOURS[outcome]
            yield f'<line x1="{x:.1f}" y1="{y - 13}" x2="{x:.1f}" y2="{y + 13}" stroke="{colour}" stroke-width="2"/>'
    for index, point in enumerate(reversed(points)):
        yield _dot(point, _LEFT + _PLOT * max(0.0, min(1.0, point.value / end)), y + _lane(index, len(points)))
    if points[0].measurement.outcome in ("warn", "fail"):
        yield _name_of_worst(points[0], end, y + _lane(len(points) - 1, len(points)), row.first.higher_is_better)
    words = f"{number(row.middle)} {row.first.unit}"
    if points[0].value != points[-1].value:
        words += f"  ({number(points[0].value)} to {number(points[-1].value)})"
    yield _text(
        _LEFT + _PLOT + 16, y + 4, words, size=12, colour=_INK if row.outcome == "pass" else _COLOURS[row.outcome]
    )


def _name_of_worst(point: Point, end: float, y: float, higher_is_better: bool) -> str:
    """The node and device of the dot furthest out, beside it on the side where no other dot is."""
    x, anchor = _LEFT + _PLOT * max(0.0, min(1.0, point.value / end)), "end" if higher_is_better else "start"
    if anchor == "end" and x < _LEFT + 160:
        x, anchor = x + 20, "start"
    colour = _COLOURS[point.measurement.outcome]
    return _text(x + (-10 if anchor == "end" else 10), y + 4, point.where, size=11, colour=colour, anchor=anchor)


def _end(row: Row) -> float:
    """The value at the right end of a row's scale."""
    if _bounded(row):
        return row.line("bound") or 1.0
    lines = [line for name in ("fail_below", "warn_below") if (line := row.line(name)) is not None]
    return max([point.value for point in row.points] + lines) * 1.05 or 1.0


def _lane(index: int, count: int) -> float:
    """Dots of equal values lie above each other, not on each other."""
    return 0.0 if count == 1 else (index % _LANES - _LANES // 2) * 3.0


def _dot(point: Point, x: float, y: float) -> str:
    item = point.measurement
    told = f"{point.where}: {number(point.value)} {item.unit}, {item.outcome} {item.reason}".strip()
    colour = _COLOURS[item.outcome]
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{5 if item.outcome == "fail" else 3.5}" fill="{colour}" '
        f'fill-opacity="0.75"><title>{escape(told)}</title></circle>'
    )


def _legend(y: float) -> Iterator[str]:
    x = 24.0
    for outcome in ("pass", "warn", "fail"):
        yield f'<circle cx="{x + 4}" cy="{y - 4}" r="4" fill="{_COLOURS[outcome]}"/>'
        yield _text(x + 14, y, outcome, size=12, colour=_FAINT)
        x += 64
    for outcome, words in (("fail", "nodes beyond it fail"), ("warn", "nodes beyond it are warned of")):
        stroke = f'stroke="{_COLOURS[outcome]}" stroke-width="2"'
        yield f'<line x1="{x + 4}" y1="{y - 12}" x2="{x + 4}" y2="{y + 3}" {stroke}/>'
        yield _text(x + 14, y, words, size=12, colour=_FAINT)
        x += 150


def _text(
    x: float, y: float, words: str, *, size: int, weight: int = 400, colour: str = _INK, anchor: str = "start"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}" fill="{colour}" '
        f'text-anchor="{anchor}">{escape(words)}</text>'
    )
