"""How far jobs are: what they have done, and how long they still take."""

from ....config.errors import InvalidValue
from ..assumptions import Assumptions
from .history import Job


class Progress:
    """Under some assumptions."""

    def __init__(self, assumptions: Assumptions) -> None:
        """These."""
        self._assumptions = assumptions

    def lasts(self, job: Job) -> float:
        """Seconds from admission to the end, unless something comes between. Raises InvalidValue without an end."""
        lost = self._failures(job) * (self._assumptions.repeated_seconds + self.startup(job))
        if lost >= 1:
            raise InvalidValue(
                f"with {self._assumptions.failures_per_node_hour:g} failures of a node in an hour {job.work.name} "
                "loses more than it does: it would never end"
            )
        return self.startup(job) + job.left / self.pace(job) / (1 - lost)

    def startup(self, job: Job) -> float:
        """Seconds until its pods are ready."""
        return self._assumptions.startup_seconds if job.startup is None else job.startup

    def pace(self, job: Job) -> float:
        """Its speed with the pods that it has; 1 with all that it asks for."""
        return self._assumptions.pace(sum(job.turns[-1].counts), _pods(job))

    def worked(self, now: float, job: Job) -> float:
        """Seconds of work, as it would take with all its pods, that it has done since it has begun."""
        return max(0.0, now - job.turns[-1].begun - self.startup(job)) * self.pace(job)

    def left_as(self, job: Job, successor: Job) -> float:
        """Seconds that a larger or smaller slice of a job takes for what is left of that."""
        return job.left * self._assumptions.pace(_pods(job), _pods(successor))

    def handed_over(self, now: float, job: Job, successor: Job) -> float:
        """The same where the job runs until now, and its pods do while the new ones start."""
        turn = job.turns[-1]
        if not turn.ended:
            job.left -= self.worked(now, job)
        left = self.left_as(job, successor)
        if turn.ended or now < turn.begun + self.startup(job):
            return left
        return max(0.0, left - self._assumptions.pace(sum(turn.counts), _pods(successor)) * self.startup(successor))

    def _failures(self, job: Job) -> float:
        """Of its nodes, in a second; a pod is taken to have a node."""
        return sum(job.turns[-1].counts) * self._assumptions.failures_per_node_hour / 3600


def _pods(job: Job) -> int:
    """That it asks for."""
    return sum(pods.count for pods in job.work.pod_sets)
