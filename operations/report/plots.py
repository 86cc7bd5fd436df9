"""Figures that plotly would draw in a browser, as shapes of an SVG: a report runs no script."""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

WIDTH: Final = 760
_RIGHT, _TOP, _BOTTOM = 48, 8, 22
_LEFT, _LEFT_OF_NAMES = 52, 116
"""Room for numbers, and for names of domains."""
_TICKS: Final = 6
_DAY: Final = 86400.0
Figure = Mapping[str, Any]


class Scale(NamedTuple):
    """From a value to a place in pixels."""

    low: float
    high: float
    first: float
    last: float
    is_log: bool = False

    def at(self, value: Any) -> float:
        """The place of a value, which may be a date; within the picture."""
        number = seconds(value)
        number = math.log10(max(number, 1e-9)) if self.is_log else number
        part = (number - self.low) / ((self.high - self.low) or 1.0)
        return round(self.first + min(max(part, 0.0), 1.0) * (self.last - self.first), 1)


def seconds(value: Any) -> float:
    """A number; a date of a figure in seconds."""
    if isinstance(value, str):
        return datetime.strptime(value, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp()
    return float(value)


def plot(title: str, words: str, figure: Figure) -> dict[str, Any]:
    """A figure as plain data: areas, lines, boxes, arrows and words, each with its colour's name in the style sheet."""
    layout, traces = figure["layout"], figure["data"]
    height = layout["height"] - 60
    left = _LEFT_OF_NAMES if "ticktext" in layout["yaxis"] else _LEFT
    across = _across(layout["xaxis"], traces, left)
    stacked = list(_stacked(traces))
    tops = [value for each in stacked for value in each["top"] if value is not None]
    bounds = layout["yaxis"].get("range") or [0.0, max(tops, default=1.0) or 1.0]
    down = Scale(bounds[0], bounds[1], height - _BOTTOM, _TOP)
    right_tops = [value for each in stacked if each["on_right"] for value in each["top"] if value is not None]
    right = Scale(0.0, max(right_tops, default=1.0) or 1.0, height - _BOTTOM, _TOP)
    dated = isinstance(traces[0]["x"][0] if traces and traces[0]["type"] == "scatter" else _base(traces), str)
    return {
        "title": title,
        "words": words,
        "height": height,
        "boxes": [*_windows(layout, across, height), *_bars(traces, across, down, dated=dated)],
        "paths": [_path(each, across, right if each["on_right"] else down) for each in stacked],
        "arrows": list(_arrows(layout, across, down)),
        "left": left,
        "right": WIDTH - _RIGHT,
        "labels": [
            *_times(layout["xaxis"], across, height, dated=dated),
            *_amounts(layout["yaxis"], down, left),
            *(_at_right(right) if right_tops else ()),
        ],
        "legend": [{"name": each["name"], "hue": each["hue"]} for each in _legend(traces)],
    }


def _base(traces: Sequence[Figure]) -> Any:
    return traces[0]["base"][0] if traces else 0.0


def _across(axis: Figure, traces: Sequence[Figure], left: int) -> Scale:
    if axis.get("type") == "log":
        values = [seconds(value) for trace in traces for value in trace["x"]]
        return Scale(0.0, math.log10(max(values, default=10.0)), left, WIDTH - _RIGHT, is_log=True)
    low, high = map(seconds, axis["range"])
    return Scale(low, high, left, WIDTH - _RIGHT)


def _stacked(traces: Sequence[Figure]) -> Iterator[dict[str, Any]]:
    """Each trace of lines with where it begins and ends upwards."""
    below: list[float] | None = None
    for trace in traces:
        if trace["type"] != "scatter":
            continue
        is_area = "stackgroup" in trace
        ground = below or [0.0] * len(trace["y"])
        values = trace["y"]
        top = [low + value for low, value in zip(ground, values, strict=True)] if is_area else values
        yield {
            "x": trace["x"],
            "ground": ground if is_area else None,
            "top": top,
            "hue": _hue(trace["line"]["color"]),
            "dash": "4 3" if trace["line"].get("dash") else "",
            "hatched": bool(trace.get("fillpattern")),
            "on_right": trace.get("yaxis") == "y2",
            "name": trace["name"],
        }
        below = top if is_area else below


def _path(each: Mapping[str, Any], across: Scale, down: Scale) -> dict[str, Any]:
    """A line in steps, closed where it is an area."""
    line = _steps(each["x"], each["top"], across, down)
    if each["ground"] is not None:
        back = _steps(each["x"], each["ground"], across, down)
        line = f"{line}{''.join(reversed(_segments(back)))}Z".replace("ZM", "L") if back else line
    return {key: each[key] for key in ("hue", "dash", "hatched", "name")} | {
        "d": line,
        "area": each["ground"] is not None,
    }


def _steps(x: Sequence[Any], y: Sequence[float | None], across: Scale, down: Scale) -> str:
    """Of a line that stays until it changes; it is broken where nothing is known."""
    parts, last = list[str](), None
    for step, value in zip(x, y, strict=True):
        if value is None:
            last = None
            continue
        at, height = across.at(step), down.at(value)
        parts.append(f"M{at} {height}" if last is None else f"L{at} {last}L{at} {height}")
        last = height
    return "".join(parts)


def _segments(path: str) -> list[str]:
    return [f"L{each}" for each in path.replace("M", "L").split("L") if each]


def _windows(layout: Figure, across: Scale, height: int) -> Iterator[dict[str, Any]]:
    """Boxes behind everything, with their names."""
    for shape in layout.get("shapes", ()):
        left, right = across.at(shape["x0"]), across.at(shape["x1"])
        box = {"x": left, "y": _TOP, "width": round(right - left, 1), "height": height - _BOTTOM - _TOP}
        yield box | {"hue": _hue(shape["fillcolor"]), "title": shape["label"]["text"], "is_window": True}


def _bars(traces: Sequence[Figure], across: Scale, down: Scale, *, dated: bool) -> Iterator[dict[str, Any]]:
    """Bars of jobs, each with its name."""
    # Lengths of dates are in milliseconds, and those of days in days.
    unit = 1000.0 if dated else 1.0
    for trace in traces:
        if trace["type"] != "bar":
            continue
        for base, length, middle, wide, names in zip(
            trace["base"], trace["x"], trace["y"], trace["width"], trace["customdata"], strict=True
        ):
            left, right = across.at(base), across.at(seconds(base) + length / unit)
            top = down.at(middle + wide / 2)
            yield {
                "x": left,
                "y": top,
                "width": round(max(right - left, 0.6), 1),
                "height": round(max(down.at(middle - wide / 2) - top, 0.6), 1),
                "hue": _hue(trace["marker"]["color"]),
                "title": f"{names[0]}: {names[2]} on {names[1]}, {names[3]}",
                "is_window": False,
            }


def _arrows(layout: Figure, across: Scale, down: Scale) -> Iterator[dict[str, Any]]:
    for each in layout.get("annotations", ()):
        ends = {"x1": across.at(each["ax"]), "y1": down.at(each["ay"]), "x2": across.at(each["x"])}
        yield ends | {"y2": down.at(each["y"]), "title": each["hovertext"]}


def _times(axis: Figure, across: Scale, height: int, *, dated: bool) -> Iterator[dict[str, Any]]:
    """Words below the picture."""
    if across.is_log:
        known = zip(axis["tickvals"], axis["ticktext"], strict=True)
        ticks = [(value, text) for value, text in known if math.log10(value) <= across.high]
    else:
        values = [across.low + (across.high - across.low) * index / _TICKS for index in range(_TICKS + 1)]
        ticks = [(value, _time(value, across, dated=dated)) for value in values]
    for value, text in ticks:
        yield {"x": across.at(value), "y": height - 6, "text": text, "anchor": "middle", "line": 0}


def _time(value: float, across: Scale, *, dated: bool) -> str:
    if not dated:
        return f"{value:.3g} d"
    form = "%d %b" if across.high - across.low > 3 * _DAY else "%d %b %H:%M"
    return datetime.fromtimestamp(value, UTC).strftime(form)


def _amounts(axis: Figure, down: Scale, left: int) -> Iterator[dict[str, Any]]:
    """Words beside the picture, each with a line across it."""
    if "ticktext" in axis:
        for value, text in zip(axis["tickvals"], axis["ticktext"], strict=True):
            yield {"x": left - 6, "y": down.at(value) + 3, "text": text, "anchor": "end", "line": 0}
        return
    step = _nice((down.high - down.low) / 4)
    for index in range(int((down.high - down.low) / step) + 1):
        value = down.low + index * step
        yield {"x": left - 6, "y": down.at(value) + 3, "text": f"{value:,.4g}", "anchor": "end", "line": down.at(value)}


def _at_right(right: Scale) -> Iterator[dict[str, Any]]:
    """Percents of the lines that have their own scale: none, half and all of it."""
    for part in (0.0, 0.5, 1.0):
        value = part * right.high
        level = right.at(value) + (8 if part == 1 else 3)
        yield {"x": WIDTH - _RIGHT + 4, "y": level, "text": f"{value:.2g} %", "anchor": "start", "line": 0}


def _nice(step: float) -> float:
    """The next larger one of 1, 2 and 5 times a power of ten."""
    power = 10 ** math.floor(math.log10(step)) if step > 0 else 1.0
    return next((factor * power for factor in (1, 2, 5, 10) if factor * power >= step), step) or 1.0


def _legend(traces: Sequence[Figure]) -> Iterator[dict[str, Any]]:
    for trace in traces:
        colour = trace["marker"]["color"] if trace["type"] == "bar" else trace["line"]["color"]
        yield {"name": trace["name"], "hue": _hue(colour)}


def _hue(colour: str) -> str:
    """The name of a colour without what makes it one in a style sheet."""
    return colour.removeprefix("--")
