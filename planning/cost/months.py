"""What an environment costs month by month, as far as its file and price lists know that something changes.

Two things do: a Kubernetes version enters extended support, and training plans begin and end.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Final, NamedTuple

from ...config.settings.environment import Environment
from .costs import Cost, Sum, control_plane, costs, extended_from, total
from .plan_prices import parts

_MOST: Final = 12
"""Months that are looked at, this one included."""


@dataclass(frozen=True, slots=True)
class PriceChange:
    """A price that changes on a day to come."""

    name: str
    """The item that costs the new price."""
    on: date
    hourly: float
    """US dollars an hour more."""
    monthly: float
    """US dollars more in a month of 730 hours."""


@dataclass(frozen=True, slots=True)
class Month:
    """What a calendar month costs, or each of several that cost the same."""

    first: date
    """Its first day."""
    last: date
    """First day of the last one."""
    total: Sum
    why: tuple[str, ...]
    """What begins, ends or changes in it, in words."""


def price_changes(environment: Environment, today: date) -> list[PriceChange]:
    """Prices that change after `today`, as far as both prices are known."""
    on = extended_from(environment)
    if on is None or on <= today:
        return []
    (before,), (after,) = control_plane(environment, today), control_plane(environment, on)
    if before.price is None or after.price is None:
        return []
    more = replace(after, price=replace(after.price, usd=after.price.usd - before.price.usd))
    return [PriceChange(after.name, on, more.hourly or 0.0, more.monthly or 0.0)]


def months(environment: Environment, today: date) -> list[Month]:
    """The months from today's to the one after the last change, at most twelve; none where nothing changes.

    A month has 730 hours, of which a control plane has its two prices by days. A training plan costs what was paid, by
    the hours of the month in which its capacity is there, so that all its months come to what it cost.
    """
    horizon = list(_starts(today.replace(day=1), _MOST))
    turns = [turn for turn in sorted(_turns(environment)) if horizon[0] <= turn.on < _next(horizon[-1])]
    if not turns:
        return []
    items, results = costs(environment, today), list[Month]()
    after = _next(turns[-1].on.replace(day=1))
    for start in (start for start in horizon if start <= after):
        words = tuple(turn.words for turn in turns if start <= turn.on < _next(start))
        month = Month(start, start, total(_of_month(environment, items, start)), words)
        same = results and not words and not results[-1].why and results[-1].total == month.total
        if same:
            results[-1] = replace(results[-1], last=start)
        else:
            results.append(month)
    return results


def above_budget(environment: Environment, sums: Sum) -> bool:
    """Whether a month is billed more than the budget; what was paid with training plans is on no bill of a month."""
    budget = environment.observability.budget_usd_per_month if environment.observability else None
    return budget is not None and sums.monthly - sums.prepaid > budget


class _Turn(NamedTuple):
    """A day on which something changes, and what."""

    on: date
    words: str


def _turns(environment: Environment) -> list[_Turn]:
    turns: list[_Turn] = []
    for change in price_changes(environment, date.min):
        words = f"extended support from {change.on}: +${change.hourly:,.2f} an hour, +${change.monthly:,.0f} a month"
        turns.append(_Turn(change.on, words))
    for name in sorted({group.plan for group in environment.groups.values() if group.plan}):
        for part in parts(environment.training_plans[name]) if name in environment.training_plans else ():
            turns += [_Turn(part.start.date(), f"plan {name} from {part.start.date()}")]
            turns += [_Turn(part.end.date(), f"plan {name} until {part.end.date()}")]
    return turns


def _of_month(environment: Environment, items: Sequence[Cost], start: date) -> Iterator[Cost]:
    """The parts of a month's cost, each with its hours and its price in that month."""
    for item in items:
        group = environment.groups.get(item.group or "")
        if group and group.plan and item.price and item.price.usd:
            yield from _of_plan(environment, item, group.plan, start)
        elif item.stack != "eks":
            yield item
    yield from _control_plane(environment, start)


def _control_plane(environment: Environment, start: date) -> Iterator[Cost]:
    """The control plane at the price before a change, and at the price after it, by days."""
    later, end = extended_from(environment), _next(start)
    days = (end - start).days
    before = min(max((later - start).days, 0), days) if later else days
    for day, share in ((start, before / days), (end, 1 - before / days)):
        if share:
            for item in control_plane(environment, day):
                yield replace(item, hours=item.hours * share)


def _of_plan(environment: Environment, item: Cost, name: str, start: date) -> Iterator[Cost]:
    """A group on a plan by the hours of each part that lie in the month; unknown where no part has dates."""
    known = parts(environment.training_plans[name])
    if not known:
        yield replace(item, price=None)
    first, last = _instant(start), _instant(_next(start))
    for part in known:
        seconds = (min(part.end, last) - max(part.start, first)).total_seconds()
        if seconds > 0:
            yield replace(item, quantity=min(item.quantity, part.count), hours=seconds / 3600)


def _instant(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _next(start: date) -> date:
    """The first day of the month after."""
    return date(start.year + start.month // 12, start.month % 12 + 1, 1)


def _starts(first: date, count: int) -> Iterable[date]:
    for _ in range(count):
        yield first
        first = _next(first)
