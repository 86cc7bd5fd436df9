"""What came of simulated work: when each job ran and where, and who stopped whom."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Run(NamedTuple):
    """A time in which a job held its quota."""

    start: float
    end: float
    """When it gave its quota back; the end of the simulation where it still held it."""
    flavor: str
    """That of its accelerators, or of its first resource where it has none."""
    accelerators: int
    """What it held."""
    domains: tuple[tuple[str, int], ...] = ()
    """Pods by topology domain; empty where nothing places them."""
    ended: str = ""
    """Why it ended: `finished`, or the reason of an eviction; empty where it still ran."""


@dataclass(slots=True)
class JobOutcome:
    """A job and its runs."""

    name: str
    team: str
    submitted: float
    accelerators: int
    """All its pods together."""
    priority: int = 0
    runs: list[Run] = field(default_factory=list)
    finished: float | None = None
    waits_for: str = ""
    """Why it was not admitted, where it never was."""


class Stop(NamedTuple):
    """A job that was stopped for another one."""

    time: float
    victim: str
    victim_team: str
    preemptor: str
    preemptor_team: str
    reason: str
    """Kueue's reason of the preemption."""


class BudgetUse(NamedTuple):
    """What a team used of its budget in a period."""

    team: str
    end: float
    """Of the period."""
    hours: float
    """Accelerator-hours that it held in it, by the end of the simulation."""
    limit: float
    """Accelerator-hours of the budget."""
    reached: float | None
    """When nothing was left of it."""
    when_reached: str
    """`warn`, `demote` or `hold`."""
    demote_to: str | None


class Level(NamedTuple):
    """What there is from a time on."""

    time: float
    quotas: Mapping[str, Mapping[str, int]]
    """As `Outcome.quotas`."""
    capacity: Mapping[str, int]
    """As `Outcome.capacity`."""


class Outcome(NamedTuple):
    """Everything that a simulation of one policy says. Times are seconds of the trace's own clock."""

    name: str
    """The environment whose policy it was."""
    start: float
    end: float
    jobs: Sequence[JobOutcome]
    """In the order of their submission."""
    stops: Sequence[Stop]
    """In the order of time."""
    quotas: Mapping[str, Mapping[str, int]]
    """Accelerators that are guaranteed, by team and flavor; teams in the order of their names."""
    capacity: Mapping[str, int]
    """Accelerators that there are, by flavor."""
    weights: Mapping[str, float]
    """Fair share weights of teams."""
    later: Sequence[Level] = ()
    """Other quotas or capacities, in the order of time; all before that are those of the beginning."""

    budgets: Sequence[BudgetUse] = ()
    """In the order in which their periods end."""

    def accelerators(self) -> list[tuple[float, int]]:
        """How many accelerators there are from when on, up to the end."""
        levels = [Level(self.start, self.quotas, self.capacity), *self.later]
        return [(level.time, sum(level.capacity.values())) for level in levels if level.time < self.end] or [
            (self.start, sum(self.capacity.values()))
        ]
