"""The windows of training plans on a time line, in percent of its width."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any, Final

Data = Mapping[str, Any]
REMINDERS: Final = (14, 7, 1)
"""Days before the end of a part at which people are reminded. The reminder of the last hour has no room of its own."""
# The steps of the axis in days, and how many of them an axis may have.
_STEPS: Final = (1, 2, 7, 14, 28, 91, 182, 364)
_MOST_TICKS: Final = 8


@dataclass(frozen=True)
class Span:
    """The time that is shown."""

    start: datetime
    end: datetime

    def percent(self, timestamp: datetime) -> float:
        """Where a moment is."""
        return round(100 * (timestamp - self.start) / (self.end - self.start), 2)


@dataclass(frozen=True)
class Tick:
    """A day of the axis."""

    at: float
    words: str
    """Empty where the axis ends before they would."""


@dataclass(frozen=True)
class Window:
    """A part of a plan."""

    at: float
    width: float
    title: str
    reminders: Sequence[float]


@dataclass(frozen=True)
class PlanRow:
    """A plan, with its windows or with what is known instead."""

    name: str
    needs: str
    words: str
    windows: Sequence[Window]


@dataclass(frozen=True)
class TimeLine:
    """Plans under each other. Without dates it has no ticks."""

    ticks: Sequence[Tick]
    rows: Sequence[PlanRow]
    today: float | None


def time_line(plans: Sequence[Data], day: date | None) -> TimeLine:
    """Plans of `architecture` under each other, with a day marked where one is given and shown."""
    span = _span(plans, day)
    if span is None:
        return TimeLine((), [_row(plan, None) for plan in plans], None)
    today = datetime.combine(day, time(), span.start.tzinfo) if day else None
    return TimeLine(
        ticks=list(_ticks(span)),
        rows=[_row(plan, span) for plan in plans],
        today=span.percent(today) if today and span.start <= today <= span.end else None,
    )


def said(window: Data) -> str:
    """A window in words: `16 × 4 Jan to 1 Feb 2027`."""
    start, end = _moments(window)
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


def _moments(window: Data) -> tuple[datetime, datetime]:
    return datetime.fromisoformat(window["start"]), datetime.fromisoformat(window["end"])


def _row(plan: Data, span: Span | None) -> PlanRow:
    windows = [_window(plan, window, span) for window in plan["windows"]] if span else []
    words = " · ".join(map(said, plan["windows"])) or unknown(plan)
    return PlanRow(plan["name"], ", ".join(plan["needs"]), words, windows)


def _window(plan: Data, window: Data, span: Span) -> Window:
    start, end = _moments(window)
    reminders = [end - timedelta(days=days) for days in REMINDERS]
    return Window(
        at=span.percent(start),
        # A day of a year would be thinner than its frame.
        width=round(max(span.percent(end) - span.percent(start), 0.5), 2),
        title=f"{plan['name']}: {said(window)} in {window['zone']} {window['status']}".strip(),
        reminders=[span.percent(timestamp) for timestamp in reminders if timestamp >= start],
    )


def _span(plans: Sequence[Data], day: date | None) -> Span | None:
    """From the first start to the last end, with a little room beside them; None where no plan has dates."""
    windows = [window for plan in plans for window in plan["windows"]]
    moments = [timestamp for window in windows for timestamp in _moments(window)]
    if not moments:
        return None
    first, last = min(moments), max(moments)
    today = datetime.combine(day, time(), first.tzinfo) if day else first
    # A day long before everything would leave the windows no room.
    if first - timedelta(days=60) <= today < first:
        first = today
    slack = (last - first) * 0.04 + timedelta(hours=12)
    return Span(first - slack, last + slack)


def _ticks(span: Span) -> Iterator[Tick]:
    days = (span.end - span.start).days + 1
    step = next((each for each in _STEPS if days / each <= _MOST_TICKS), _STEPS[-1])
    tick = span.start.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    year = None
    while tick < span.end:
        at = span.percent(tick)
        words = f"{tick.day} {tick:%b}" + (f" {tick.year}" if tick.year != year else "")
        year = tick.year
        yield Tick(at, words if at < 90 else "")
        tick += timedelta(days=step)
