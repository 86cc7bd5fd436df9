"""The windows of training plans on a time line."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, Final

from .lettering import width
from .markup import Markup, tag
from .shapes import Drawn, box, headed, text

Data = Mapping[str, Any]
REMINDERS: Final = (14, 7, 1)
"""Days before the end of a part at which people are reminded. The reminder of the last hour has no room of its own."""
_LABELS: Final = 210
_ROW: Final = 46
_PAD: Final = 12
# The steps of the axis in days, and how many of them an axis may have.
_STEPS: Final = (1, 2, 7, 14, 28, 91, 182, 364)
_MOST_TICKS: Final = 12


def time_line(plans: Sequence[Data], x: float, y: float, room: float, day: date | None) -> Drawn:
    """Plans under each other.

    Args:
        plans: Those of `architecture`.
        x: Left edge.
        y: Upper edge.
        room: Width.
        day: A day to mark; none when absent.
    """
    left, wide = x + _LABELS, room - _LABELS - 2 * _PAD
    span = _span(plans, day)
    top = y + (62 if span else 44)
    parts: list[Markup] = headed(x + _PAD, y + 26, _LABELS - _PAD, "Training plans", "")
    bottom = top + _ROW * len(plans)
    if span:
        parts += _axis(span, left, wide, top, bottom)
    for index, plan in enumerate(plans):
        row = top + index * _ROW
        parts += [
            text(x + _PAD, row + 18, plan["name"], 13, room=_LABELS - 2 * _PAD, bold=True),
            text(x + _PAD, row + 34, ", ".join(plan["needs"]), 11, "soft", room=_LABELS - 2 * _PAD),
        ]
        parts += _windows(plan, span, left, wide, row) if plan["windows"] and span else _unknown(plan, left, wide, row)
    if span and day and span[0].date() <= day <= span[1].date():
        at = left + wide * _share(span, datetime.combine(day, datetime.min.time(), span[0].tzinfo))
        parts.append(tag("g", tag("path", d=f"M{at:.1f} {top - 4:.1f}V{bottom:.1f}", class_="edge"), class_="red"))
    total = bottom - y + 4
    return total, [box(x, y, room, total, "box", 10), *parts]


def said(window: Data) -> str:
    """A window in words: `16 from 4 Jan to 1 Feb 2027`."""
    start, end = (datetime.fromisoformat(window[key]) for key in ("start", "end"))
    year = "" if start.year == end.year else f" {start.year}"
    count = f"{window['count']} × " if window["count"] else ""
    return f"{count}{start.day} {start:%b}{year} to {end.day} {end:%b} {end.year}"


def unknown(plan: Data) -> str:
    """What there is to say of a plan whose window nobody knows yet."""
    wish = plan.get("wish") or {}
    if plan["state"] != "purchase":
        return "SageMaker knows its dates: podwright report --live, or start and end in the file"
    parts = [f"{wish['days']} days" if wish.get("days") else "", "bought by the deployment"]
    parts += [f"starts after {wish['earliest'][:10]}"] if wish.get("earliest") else []
    parts += [f"ends before {wish['latest'][:10]}"] if wish.get("latest") else []
    return ", ".join(filter(None, parts))


def _span(plans: Sequence[Data], day: date | None) -> tuple[datetime, datetime] | None:
    """From the first start to the last end, with a little room beside them; None where no plan has dates."""
    moments = [
        datetime.fromisoformat(window[key]) for plan in plans for window in plan["windows"] for key in ("start", "end")
    ]
    if not moments:
        return None
    if day and min(moments) - timedelta(days=60) <= (
        today := datetime.combine(day, datetime.min.time(), moments[0].tzinfo)
    ):
        moments.append(min(today, max(moments)))
    slack = (max(moments) - min(moments)) * 0.04 + timedelta(hours=12)
    return min(moments) - slack, max(moments) + slack


def _share(span: tuple[datetime, datetime], moment: datetime) -> float:
    return (moment - span[0]) / (span[1] - span[0])


def _axis(span: tuple[datetime, datetime], left: float, wide: float, top: float, bottom: float) -> Iterator[Markup]:
    days = (span[1] - span[0]).days + 1
    step = next((each for each in _STEPS if days / each <= _MOST_TICKS), _STEPS[-1])
    tick = span[0].replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    year = None
    while tick < span[1]:
        at = left + wide * _share(span, tick)
        words = f"{tick.day} {tick:%b}" + (f" {tick.year}" if tick.year != year else "")
        year = tick.year
        yield tag("path", d=f"M{at:.1f} {top - 6:.1f}V{bottom:.1f}", class_="rule", fill="none")
        if at + width(words, 11) < left + wide:
            yield text(at + 4, top - 10, words, 11, "soft")
        tick += timedelta(days=step)


def _windows(plan: Data, span: tuple[datetime, datetime], left: float, wide: float, row: float) -> Iterator[Markup]:
    """The parts of a plan; words stand in or beside a part where there is room for them, and always in its title."""
    moments = [[datetime.fromisoformat(window[key]) for key in ("start", "end")] for window in plan["windows"]]
    edges = [[left + wide * _share(span, moment) for moment in pair] for pair in moments]
    for index, (window, (start, end), (begin, finish)) in enumerate(zip(plan["windows"], moments, edges, strict=True)):
        words, long = said(window), max(finish - begin, 3.0)
        taken = width(words, 11) + 12
        after = min((other for other, _ in edges if other > begin), default=left + wide)
        before = max((other for _, other in edges if other < finish), default=left) if index else left
        at = begin if taken <= long else finish if finish + taken <= after else begin - taken
        marks = "".join(
            f"M{place:.1f} {row + 31:.1f}l4 7h-8z"
            for days in REMINDERS
            if (moment := end - timedelta(days=days)) >= start
            for place in (left + wide * _share(span, moment),)
        )
        yield tag(
            "g",
            tag("title", f"{plan['name']}: {words} in {window['zone']} {window['status']}".strip()),
            box(begin, row + 6, long, 22, "tint", 5),
            text(at + 6, row + 21, words, 11) if at >= begin or at >= before else None,
            tag("path", tag("title", "reminders 14, 7 and 1 days before the end"), d=marks, class_="hue")
            if marks
            else None,
            class_="orange",
        )


def _unknown(plan: Data, left: float, wide: float, row: float) -> Iterator[Markup]:
    frame = box(left, row + 6, wide, 22, "tint dashed", 5)
    yield tag("g", frame, text(left + 10, row + 21, unknown(plan), 11, room=wide - 20), class_="orange")
