"""What becomes of jobs: the times in which they hold quota, and who stops whom."""

import math
from dataclasses import dataclass, field

from .budgets import Use
from .work import Placement, Work


@dataclass(slots=True)
class Turn:
    """A time in which a job held quota, on the same nodes."""

    start: float
    flavors: tuple[dict[str, str], ...]
    counts: tuple[int, ...]
    placements: tuple[Placement, ...]
    end: float | None = None
    ended: str = ""
    """`finished`, or why it was interrupted."""
    begun: float = math.inf
    """Since when it is admitted: its pods start, once its admission checks are ready."""


@dataclass(slots=True, eq=False)
class Job:
    """Work with how long it runs."""

    work: Work
    seconds: float
    """Undisturbed, with all its pods."""
    turns: list[Turn] = field(default_factory=list)
    left: float = 0.0
    """Seconds that it still has to run."""
    waits_for: str = ""
    """What the scheduler said of it last."""
    finished: float | None = None
    comes: float = 0.0
    """When it is in its queue, where that is later than its creation."""
    startup: float | None = None
    """Seconds until its pods are ready; None as is assumed of all."""
    timeouts: int = 0
    """How often its pods were not ready in time."""
    fruitless: int = 0
    """How often in a row it was interrupted without progress."""
    is_set_aside: bool = False
    """Whether it is not tried any more."""

    def __post_init__(self) -> None:
        self.left = self.seconds


@dataclass(frozen=True, slots=True)
class Preemption:
    """Of one job by another."""

    time: float
    victim: Job
    preemptor: Job
    reason: str


@dataclass
class History:
    """Everything that happened."""

    jobs: list[Job]
    preemptions: list[Preemption]
    end: float
    uses: list[Use] = field(default_factory=list)
    """Of budgets by period, in the order in which these ended."""
