"""What a simulation says of one job: when it starts, where, and whom it stops; or why it never does."""

from typing import Any, NamedTuple

from .outcome import Outcome, Stop


class Forecast(NamedTuple):
    """Of one job."""

    job: str
    team: str
    starts_in: float | None
    """Seconds after its submission; None where it does not start in the simulated time."""
    ends_in: float | None
    """Seconds after its submission; None where it does not end in the simulated time."""
    flavor: str
    domains: tuple[tuple[str, int], ...]
    stops: tuple[Stop, ...]
    """The jobs that it stops."""
    stopped: tuple[Stop, ...]
    """How it is stopped itself after it started."""
    waits_for: str
    """What Kueue says of it while it waits; empty where it starts at once."""
    unknown_ends: tuple[str, ...] = ()
    """The running jobs with an unknown end, where it does not start before one of them ends."""

    def document(self) -> dict[str, Any]:
        """As plain data."""
        return self._asdict() | {
            "domains": [{"domain": domain, "pods": pods} for domain, pods in self.domains],
            "stops": [stop._asdict() for stop in self.stops],
            "stopped": [stop._asdict() for stop in self.stopped],
        }


def forecast(outcome: Outcome, job: str) -> Forecast:
    """What an outcome says of the job of this name. Raises LookupError where it has none."""
    matches = [each for each in outcome.jobs if each.name == job]
    if not matches:
        raise LookupError(job)
    own = matches[-1]
    first = own.runs[0] if own.runs else None
    return Forecast(
        job,
        own.team,
        first.start - own.submitted if first else None,
        own.finished - own.submitted if own.finished is not None else None,
        first.flavor if first else "",
        first.domains if first else (),
        tuple(stop for stop in outcome.stops if stop.preemptor == job),
        tuple(stop for stop in outcome.stops if stop.victim == job),
        own.waits_for,
    )
