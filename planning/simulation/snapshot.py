"""The state of a cluster as Kubernetes has it: policy, nodes and work, from which a forecast continues."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any, Final, NamedTuple

from ...config.errors import InvalidValue
from .traces.times import timestamp
from .traces.workload_list import condition, slice_before

KINDS: Final = (
    *("ResourceFlavor", "Topology", "Cohort", "ClusterQueue", "LocalQueue", "WorkloadPriorityClass", "Node"),
    *("AdmissionCheck", "Pod", "Workload"),
)
"""What a snapshot holds of a cluster. Only where somebody adds them to `COMMAND`: Pods, which take room on nodes, and
AdmissionChecks, some of which choose nodes after quota."""
COMMAND: Final = (
    "kubectl get resourceflavors,topologies.kueue.x-k8s.io,cohorts.kueue.x-k8s.io,clusterqueues,localqueues,"
    "workloadpriorityclasses,nodes,workloads --all-namespaces --output=json"
)
"""Prints one."""
_LEAST_HISTORY: Final = 3
"""The number of jobs that have to have ended in a queue before their durations count."""
Object = Mapping[str, Any]


class Snapshot(NamedTuple):
    """What there was at a time."""

    taken: float
    """Seconds since 1970: the newest timestamp of a condition or of an object's creation."""
    objects: tuple[Object, ...]
    """All but Workloads."""
    workloads: tuple[Object, ...]
    """Those that have not ended, and are not switched off."""
    seconds: Mapping[str, float]
    """The duration of each, by `NAMESPACE/NAME`; infinite for one that has run too long for an estimate."""
    assumptions: tuple[str, ...]

    @property
    def running(self) -> dict[str, float]:
        """The admission times of the Workloads that run, by `NAMESPACE/NAME`."""
        times = {name_of(item): condition(item, "Admitted") for item in self.workloads}
        return {name: time for name, time in times.items() if time is not None}

    @property
    def open_ended(self) -> tuple[str, ...]:
        """The Workloads that run and whose end is unknown, by `NAMESPACE/NAME`."""
        return tuple(name for name in self.running if self.seconds[name] == math.inf)

    @property
    def first_end(self) -> float:
        """Seconds until the first Workload ends; infinite where no end is known."""
        return min((since + self.seconds[name] - self.taken for name, since in self.running.items()), default=math.inf)

    def assuming_end_in(self, seconds: float) -> "Snapshot":
        """A copy of this snapshot in which each Workload with an unknown end ends in `seconds` from now."""
        running = self.running
        known = {name: self.taken - running[name] + seconds for name in self.open_ended}
        return self._replace(seconds={**self.seconds, **known})


def read_snapshot(text: str, default_seconds: float) -> Snapshot:
    """The snapshot in what `COMMAND` prints.

    Work that waits runs as long as the median of what ended in its queue. Work that runs lasts as long as the median of
    what lasted longer than it has. In a queue in which little has ended, that is `default_seconds`. If nothing lasted
    longer, the duration is unknown. No work runs longer than its own limit.

    Raises:
        InvalidValue: it is no list of objects, or has no queues.
    """
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidValue(f"line {error.lineno} is not JSON: {error.msg}") from None
    items = document.get("items") if isinstance(document, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) and "metadata" in item for item in items):
        raise InvalidValue("it is not a list of Kubernetes objects")
    known = [item for item in items if item.get("kind") in KINDS]
    if not any(item["kind"] == "ClusterQueue" for item in known):
        raise InvalidValue("it has no ClusterQueue, so nothing decides who gets what")
    workloads = [item for item in known if item["kind"] == "Workload"]
    ended = [item for item in workloads if condition(item, "Finished") is not None]
    waiting = tuple(
        item for item in workloads if condition(item, "Finished") is None and item["spec"].get("active") is not False
    )
    times = [time for item in known for time in _times(item)]
    if not times:
        raise InvalidValue("none of its objects says when it was made, so it is of no time")
    # kubectl prints no time of its own; the newest that an object tells is closest to it.
    taken = max(times)
    by_name = {name_of(item): item for item in workloads}
    durations = _durations(ended, by_name)
    # The durations of few jobs say little: the first that crashes lasts seconds.
    history = {queue: times for queue, times in durations.items() if len(times) >= _LEAST_HISTORY}
    seconds = {name_of(item): _seconds(item, by_name, history, default_seconds, taken) for item in waiting}
    return Snapshot(
        taken,
        tuple(item for item in known if item["kind"] != "Workload"),
        waiting,
        seconds,
        tuple(_assumptions(waiting, seconds, history, default_seconds)),
    )


def _assumptions(
    workloads: Sequence[Object], seconds: Mapping[str, float], history: Mapping[str, Sequence[float]], default: float
) -> Iterator[str]:
    """The assumptions about durations, as sentences."""
    known = [item for item in workloads if seconds[name_of(item)] < math.inf]
    measured = sum(1 for item in known if queue_of(item) in history)
    if measured:
        yield (
            f"{measured} jobs run as long as the median of jobs that ended in their queue; for running jobs, the "
            "median of jobs that lasted longer than they have run"
        )
    if guessed := len(known) - measured:
        yield f"{guessed} jobs run for {default / 3600:g} h, as fewer than {_LEAST_HISTORY} have ended in their queue"
    if unknown := len(workloads) - len(known):
        yield (
            f"{unknown} jobs have run longer than everything that ended in their queue, or than {default / 3600:g} h "
            f"where fewer than {_LEAST_HISTORY} have: when they end is unknown"
        )


def comes_at(workload: Object, taken: float) -> float:
    """When work that waits in a snapshot is in its queue: Kueue sends some back for a time before it tries it again."""
    back = ((workload.get("status") or {}).get("requeueState") or {}).get("requeueAt")
    return max(taken, timestamp(back)) if back else taken


def name_of(workload: Object) -> str:
    """`NAMESPACE/NAME` of a Workload."""
    return f"{workload['metadata'].get('namespace', '')}/{workload['metadata']['name']}"


def queue_of(workload: Object) -> str:
    """`NAMESPACE/QUEUE` of the LocalQueue in which it waits."""
    return f"{workload['metadata'].get('namespace', '')}/{workload['spec'].get('queueName', '')}"


def _times(item: Object) -> list[float]:
    """When something of an object last changed, as far as it says so."""
    conditions = item.get("status", {}).get("conditions") or ()
    texts = [item["metadata"].get("creationTimestamp"), *(each.get("lastTransitionTime") for each in conditions)]
    return [timestamp(text) for text in texts if text]


def _began(workload: Object, by_name: Mapping[str, Object]) -> float | None:
    """When a Workload was admitted; of a slice of an elastic job, when the first of those before it was."""
    first, before = workload, set[str]()
    while (name := slice_before(first)) in by_name and name not in before:
        before.add(name)
        first = by_name[name]
    return condition(first, "Admitted")


def _durations(ended: list[Object], by_name: Mapping[str, Object]) -> dict[str, list[float]]:
    """The durations of what ended, by queue; elastic jobs end with their last slice."""
    replaced = {slice_before(item) for item in by_name.values() if condition(item, "Admitted") is not None}
    durations: dict[str, list[float]] = {}
    for item in ended:
        started, finished = _began(item, by_name), condition(item, "Finished")
        if name_of(item) in replaced:
            continue
        if started is not None and finished is not None:
            durations.setdefault(queue_of(item), []).append(max(finished - started, 0.0))
    return durations


def _seconds(
    workload: Object,
    by_name: Mapping[str, Object],
    history: Mapping[str, Sequence[float]],
    default: float,
    taken: float,
) -> float:
    """The duration of a Workload since its own admission."""
    started, began = condition(workload, "Admitted"), _began(workload, by_name)
    most = workload["spec"].get("maximumExecutionTimeSeconds")
    durations = history.get(queue_of(workload), [default])
    elapsed = None if began is None else taken - began
    # A job that has run for so long is none of those that ended sooner.
    longer = durations if elapsed is None else [each for each in durations if each > elapsed]
    seconds = min(median(longer) if longer else math.inf, math.inf if most is None else float(most))
    if started is None or began is None:
        return seconds
    return max(seconds - (started - began), taken - started)
