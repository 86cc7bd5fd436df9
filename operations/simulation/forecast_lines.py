"""A forecast for people."""

from collections.abc import Iterator, Sequence
from typing import Final

from ...config.findings import listed
from ...planning.simulation.summary.forecast import Forecast
from ..output.tables import Block, new_table
from .summary import duration

_SHOWN: Final = 12
_NAMED: Final = 5


def forecast_lines(forecast: Forecast) -> Iterator[Block]:
    """When a job starts, where, whom it stops and by whom it is stopped."""
    if forecast.unknown_ends:
        yield (
            f"{forecast.job} of {forecast.team} starts at an unknown time: nothing says when "
            f"{_few(forecast.unknown_ends)} ends, since it has run longer than all jobs that ended in its queue"
        )
        yield f"Until then: {forecast.waits_for}"
    elif forecast.starts_in is None:
        yield f"{forecast.job} of {forecast.team} does not start: {forecast.waits_for}"
    else:
        when = f"in {duration(forecast.starts_in)}" if forecast.starts_in else "at once"
        until = "" if forecast.ends_in is None else f", and ends in {duration(forecast.ends_in)}"
        yield f"{forecast.job} of {forecast.team} starts {when} on {forecast.flavor}{until}"
        if forecast.starts_in and forecast.waits_for:
            yield f"Until then: {forecast.waits_for}"
    if forecast.domains:
        rows = [(domain, f"{pods} pod{'' if pods == 1 else 's'}") for domain, pods in forecast.domains]
        yield new_table("", (), rows[:_SHOWN], right=(1,), indent=2)
        if len(rows) > _SHOWN:
            yield f"  and {len(rows) - _SHOWN} more"
    for stop in forecast.stops:
        yield f"It stops {stop.victim} of {stop.victim_team} ({stop.reason})"
    for stop in forecast.stopped:
        yield f"It is stopped for {stop.preemptor} of {stop.preemptor_team} ({stop.reason})"


def _few(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    more = [f"{len(names) - _NAMED} more"] if len(names) > _NAMED else []
    return listed([*names[:_NAMED], *more])


def assumption_lines(assumptions: Sequence[str]) -> Iterator[str]:
    """What was assumed for that."""
    yield "Assumed, because no policy says it:"
    yield from (f"  - {assumption}" for assumption in assumptions)
