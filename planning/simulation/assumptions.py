"""What Kueue does not decide, and a simulation has to take for true: numbers, and the sentence that names each."""

from collections.abc import Iterator
from dataclasses import dataclass


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

    def sentences(self) -> Iterator[str]:
        """Each assumption in words."""
        yield f"pods are ready {self.startup_seconds:g} s after their job is admitted"
        yield f"pods of a stopped job are gone {self.grace_seconds:g} s later, and until then its quota is in use"
        yield (
            f"a stopped job continues from its last checkpoint and does {self.repeated_seconds / 60:g} minutes again, "
            "or all where it had run for less"
        )
        if self.failures_per_node_hour:
            yield f"a node fails {self.failures_per_node_hour:g} times an hour"
        else:
            yield "no node fails"
        yield "a job with fewer pods than it asks for takes longer in proportion"
        yield "pods of jobs that name no topology go wherever quota and nodes allow"
