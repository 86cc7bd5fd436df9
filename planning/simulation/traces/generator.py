"""Work that is made up: as much as the teams' quotas carry at a load, with sizes and durations as people have them.

Jobs come at random, independent of each other (a Poisson process for each team). Sizes are powers of two from a part of
a node to many nodes, small ones most often. Durations are log-normal: most are near the median, and some are ten times
as long. The same seed makes the same work, whatever other teams there are.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import exp
from random import Random
from typing import Final, NamedTuple

from ....config.errors import InvalidValue
from .trace import Trace, TracedJob

SIZES: Final[Mapping[int, float]] = {1: 0.45, 8: 0.33, 16: 0.12, 32: 0.05, 64: 0.03, 128: 0.015, 256: 0.005}
"""Accelerators of a job, with how much more often one size comes than another."""
SPREAD: Final = 1.2
"""Sigma of the logarithm of durations: two thirds of them are between a third and three times the median."""


class Demand(NamedTuple):
    """What a team works with."""

    team: str
    accelerators: int
    """Those of its quota: at load 1 its work would fill them."""
    most: int
    """The most accelerators that a job of it can hold."""
    per_node: int
    """Accelerators of a node: a larger job has a pod for each node."""
    group: str = ""
    """The instance group that its jobs ask for; empty for any."""


class Made(NamedTuple):
    """How work is made."""

    days: float
    seed: int
    load: float = 0.9
    """Accelerator-hours that the work asks for, relative to those that all quotas have."""
    median_seconds: float = 3600.0
    sizes: Mapping[int, float] = SIZES
    priorities: Sequence[str] = ()
    """Priorities that jobs have, each as often as the others."""


def generated(demands: Sequence[Demand], made: Made) -> Trace:
    """Work of teams over some days from the first second on, in the order of its submission.

    Raises:
        InvalidValue: days, load or median are not above 0, or no team has accelerators.
    """
    for name, value in (("days", made.days), ("load", made.load), ("the median duration", made.median_seconds)):
        if not value > 0:
            raise InvalidValue(f"{name} is {value:g}; it is more than 0")
    working = [demand for demand in demands if demand.accelerators and demand.most]
    if not working:
        raise InvalidValue("no team has a quota with accelerators, so there is nothing that work could be made from")
    jobs = (job for demand in working for job in _jobs(demand, made))
    ordered = sorted(jobs, key=lambda job: (job.submitted, job.team, job.group))
    words = (
        f"the work is made up (seed {made.seed}): {made.days:g} days at a load of {made.load:g}, durations log-normal "
        f"with a median of {made.median_seconds / 3600:g} h and a sigma of {SPREAD:g}, sizes "
        f"{', '.join(f'{size} ({weight:.1%})' for size, weight in made.sizes.items())}"
    )
    return Trace("made up", tuple(_named(ordered)), assumptions=(words,))


def _named(jobs: Sequence[TracedJob]) -> Iterator[TracedJob]:
    """Jobs with the number that each has in its team as their names."""
    numbers = Counter[str]()
    for line, job in enumerate(jobs, 1):
        numbers[job.team] += 1
        yield replace(job, line=line, name=f"{job.team}-{numbers[job.team]}")


def _jobs(demand: Demand, made: Made) -> Iterator[TracedJob]:
    """The jobs of one team, one after the other."""
    random = Random(f"{made.seed}:{demand.team}:{demand.group}")
    sizes = {size: weight for size, weight in made.sizes.items() if size <= demand.most} or {demand.most: 1.0}
    mean_size = sum(size * weight for size, weight in sizes.items()) / sum(sizes.values())
    mean_seconds = made.median_seconds * exp(SPREAD**2 / 2)
    # Little's law: what arrives in a second times how long it stays is what is held.
    rate = made.load * demand.accelerators / (mean_size * mean_seconds)
    time = random.expovariate(rate)
    while time < made.days * 86400:
        (size,) = random.choices(list(sizes), list(sizes.values()))
        seconds = made.median_seconds * exp(random.gauss(0, SPREAD))
        pods = -(-size // demand.per_node)
        yield TracedJob(
            line=0,
            name="",
            team=demand.team,
            submitted=round(time, 3),
            seconds=max(1.0, round(seconds)),
            pods=pods,
            accelerators=-(-size // pods),
            priority=random.choice(made.priorities) if made.priorities else "",
            group=demand.group,
        )
        time += random.expovariate(rate)
