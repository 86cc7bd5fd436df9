"""Budgets: accelerator-hours that the work of a queue may hold in a period, and what happens to it after that."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from .work import Work


class Budget(NamedTuple):
    """Of a ClusterQueue."""

    queue: str
    hours: float
    """Accelerator-hours in a period."""
    ends: Callable[[float], float]
    """When the period ends in which a time lies."""
    when_reached: Literal["warn", "demote", "hold"] = "warn"
    priority: int = 0
    """That demoted work has at most."""
    start: float = 0.0
    """From when on its hours are counted."""
    used: float = 0.0
    """Accelerator-hours of the first period that were used before anything happens."""


class Use(NamedTuple):
    """Of a budget in a period."""

    queue: str
    end: float
    """Of the period."""
    hours: float
    """Accelerator-hours that were used by its end, or by the end of everything."""
    reached: float | None
    """When nothing was left."""


@dataclass(slots=True, eq=False)
class Meter:
    """What of a budget is used. Hours pass while work holds accelerators."""

    budget: Budget
    resources: frozenset[int]
    """Flavor-resources that are accelerators."""
    hours: float = 0.0
    holds: int = 0
    """Accelerators that are held now."""
    since: float = 0.0
    reached: float | None = None
    end: float | None = None
    """Of the current period; None before anything is used in one."""
    number: int = 0
    """By which an expectation is told from a later one."""
    withheld: list[Work] = field(default_factory=list)
    """Work that is not let into its queue until the period ends."""
    demoted: list[tuple[Work, int]] = field(default_factory=list)
    """Work with its priority before."""

    def pass_time(self, now: float) -> None:
        """Count what was held until now."""
        self.hours += self.holds * (now - self.since) / 3600
        self.since = now

    def take(self, work: Work, sign: int) -> None:
        """From now on work holds its accelerators, or no longer."""
        self.holds += sign * sum(amount for fr, amount in work.usage.items() if fr in self.resources)

    @property
    def left(self) -> float:
        """Seconds until it is reached, if nothing changes."""
        left = max(self.budget.hours - self.hours, 0.0) * 3600
        return left and (left / self.holds if self.holds else math.inf)

    def holds_back(self) -> bool:
        """Whether work is not let into its queue."""
        return self.reached is not None and self.budget.when_reached == "hold"

    def demote(self, work: Work) -> None:
        """Lower the priority of work, where it is reached and says so."""
        if self.reached is not None and self.budget.when_reached == "demote" and work.priority > self.budget.priority:
            self.demoted.append((work, work.priority))
            work.prioritize(self.budget.priority)

    def restore(self) -> None:
        """Give demoted work its priority back."""
        for work, priority in self.demoted:
            work.prioritize(priority)
        self.demoted.clear()

    def use(self) -> Use | None:
        """What was used in the current period; None where nothing was."""
        return None if self.end is None else Use(self.budget.queue, self.end, self.hours, self.reached)
