"""What Kueue does not decide, and a simulation has to take for true: numbers, and the sentence that names each."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from ...config.errors import InvalidValue

DEFAULT_SECONDS: Final = 14400.0
"""How long work runs of which nothing says it: four hours."""
NODE_FAILURES_PER_HOUR: Final = 419 / (16_384 / 8 * 54 * 24)
"""How often a node fails unless somebody knows better: 419 unexpected interruptions of 16,384 GPUs, eight to a node, in
54 days (Meta, "The Llama 3 Herd of Models", section 3.3.4, 2024-07). A job on 256 nodes loses 2% of its time by it."""
NOBODY_ELSE: Final = "no other job is submitted from now on"
CHECKS: Final = "admission checks are ready {:g} s after a job has quota, which no policy says"
AS_IN_THE_FILE: Final = "Kueue's manager is configured as the file says, which no cluster shows"


class Measured(NamedTuple):
    """What a job did with so many pods."""

    pods: int
    throughput: float
    """In any unit: only ratios count."""


def throughput(text: str) -> tuple[Measured, ...]:
    """What was measured, of `1=1,2=1.9,4=3.6`: pods, and what they did. Raises InvalidValue."""
    result = list[Measured]()
    for part in text.split(","):
        pods, _, done = part.partition("=")
        try:
            measured = Measured(int(pods), float(done))
        except ValueError:
            raise InvalidValue(
                f"{part.strip() or text!r} is not a number of pods and what they did, such as 4=3.6"
            ) from None
        if measured.pods < 1 or not 0 < measured.throughput < math.inf:
            raise InvalidValue(f"{part.strip()}: a job has at least one pod, and does more than nothing")
        if result and measured.pods <= result[-1].pods:
            raise InvalidValue(
                f"{part.strip()} comes after {result[-1].pods} pods; write each number of pods once, rising"
            )
        result.append(measured)
    if len(result) < 2:
        raise InvalidValue(f"{text} is one measurement; it takes two to compare")
    return tuple(result)


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What no policy says."""

    startup_seconds: float = 0.0
    """From admission until the pods of a job are ready."""
    grace_seconds: float = 30.0
    """From a preemption until the pods of the victim are gone. Kubernetes waits 30 seconds unless a pod says more."""
    repeated_seconds: float = 1800.0
    """Work that a stopped job does again, because it came after its last checkpoint."""
    failures_per_node_hour: float = 0.0
    """How often a node fails."""
    check_seconds: float = 0.0
    """From the reservation of quota until the admission checks of a job are ready, where its queue has some."""
    throughput: tuple[Measured, ...] = ()
    """What jobs did with how many pods, by rising numbers; in proportion to their pods where nothing was measured."""

    def pace(self, pods: int, whole: int) -> float:
        """How fast a job runs with some of its pods; 1 with all."""
        return self._does(pods) / self._does(whole) if whole else 1.0

    def _does(self, pods: int) -> float:
        """Between two measurements on a straight line; below the first, and above the last, in proportion to pods."""
        if not self.throughput:
            return float(pods)
        first, last = self.throughput[0], self.throughput[-1]
        if pods <= first.pods or pods >= last.pods:
            nearest = first if pods <= first.pods else last
            return nearest.throughput * pods / nearest.pods
        above = next(index for index, each in enumerate(self.throughput) if each.pods >= pods)
        (low, less), (high, more) = self.throughput[above - 1 : above + 1]
        return less + (more - less) * (pods - low) / (high - low)

    def sentences(self) -> Iterator[str]:
        """Each assumption in words."""
        yield f"pods are ready {self.startup_seconds:g} s after their job is admitted"
        yield f"pods of a stopped job are gone {self.grace_seconds:g} s later, and until then its quota is in use"
        yield (
            f"a stopped job continues from its last checkpoint and does {self.repeated_seconds / 60:g} minutes again, "
            "or all where it had run for less"
        )
        if self.failures_per_node_hour:
            yield f"a node fails {self.failures_per_node_hour:.3g} times an hour"
        else:
            yield "no node fails"
        if self.throughput:
            measured = ", ".join(f"{each.pods} pods do {each.throughput:g}" for each in self.throughput)
            yield (
                f"a job with fewer pods than it asks for is slower as was measured: {measured}; between these on a "
                "straight line, beyond them in proportion"
            )
        else:
            yield "a job with fewer pods than it asks for takes longer in proportion"
        yield "pods of jobs that name no topology go wherever quota and nodes allow"
