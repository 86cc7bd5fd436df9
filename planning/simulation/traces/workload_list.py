"""Traces as Kubernetes has them: what `kubectl get workloads --all-namespaces --output=json` prints."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any, Final

from ....config.errors import InvalidValue
from ...jobs.queue import REPLACEMENT
from ...quota.amounts import GPU, NEURON, required_number
from .comma_separated import negative
from .times import timestamp
from .trace import Trace, TracedJob, TraceProblem, UnreadableTrace, traced

Object = Mapping[str, Any]
ALL_NAMESPACES: Final = "kubectl get workloads --all-namespaces --output=json"
_PRIORITY: Final = "-priority"


def read_workloads(text: str, teams: Mapping[str, str]) -> Trace:
    """The jobs of a list of Workloads.

    Args:
        text: The list as JSON.
        teams: Teams by their namespace.

    Raises:
        UnreadableTrace: it is no list of Workloads.
    """
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise UnreadableTrace(error.lineno, f"not JSON: {error.msg}", f"`{ALL_NAMESPACES}` prints one") from None
    items = document.get("items") if isinstance(document, dict) else None
    if not isinstance(items, list) or not all(_is_workload(item) for item in items):
        raise UnreadableTrace(1, "this is not a list of Kueue's Workloads", f"`{ALL_NAMESPACES}` prints one")
    jobs, problems, open_jobs = list[TracedJob](), list[TraceProblem](), list[tuple[TracedJob, float | None]]()
    newest = max((time for item in items for time in _times(item)), default=0.0)
    for line, item in enumerate(items, 1):
        name = f"{item['metadata'].get('namespace', '')}/{item['metadata'].get('name', '')}"
        try:
            job, started = _job(item, line, teams)
        except (InvalidValue, KeyError, TypeError, AttributeError, ValueError) as error:
            problems.append(TraceProblem(line, "unreadable", f"{name}: {_words(error)}"))
            continue
        ended = condition(item, "Finished")
        if started is None and ended is not None:
            problems.append(TraceProblem(line, "no duration", f"{name} ended and never ran"))
        elif started is None or ended is None:
            open_jobs.append((job, started))
        else:
            jobs.append(replace(job, seconds=ended - started))
    problems += [negative(job) for job in jobs if job.seconds < 0]
    jobs = [job for job in jobs if job.seconds >= 0]
    estimated = _estimated([job for job in _whole(jobs) if not job.replaces], open_jobs, newest)
    problems += [
        TraceProblem(job.line, "no duration", f"{job.name} has not ended, and nothing of {job.team} has")
        for job, _ in open_jobs
        if job.line not in estimated
    ]
    taken = sorted(_whole([*jobs, *estimated.values()]), key=lambda job: (job.submitted, job.line))
    assumptions = (f"{len(estimated)} jobs that have not ended run as long as the median of their team's that have",)
    return traced("Workloads of Kueue", taken, problems, assumptions=assumptions if estimated else ())


def condition(workload: Object, kind: str) -> float | None:
    """When a condition of a Workload became true; None where it is not."""
    conditions = workload.get("status", {}).get("conditions", ())
    times = [item["lastTransitionTime"] for item in conditions if item["type"] == kind and item["status"] == "True"]
    return timestamp(times[0]) if times else None


def slice_before(workload: Object) -> str:
    """`NAMESPACE/NAME` of the slice of the same elastic job whose place a Workload takes; empty where there is none."""
    return (workload["metadata"].get("annotations") or {}).get(REPLACEMENT, "")


def _whole(jobs: Sequence[TracedJob]) -> list[TracedJob]:
    """Jobs that others continue, with all that these do, in proportion to their pods."""
    result = {(job.team, job.name): job for job in jobs}
    for job in sorted(jobs, key=lambda item: -item.submitted):
        before = result.get((job.team, job.replaces))
        if before and before.pods and before.name != job.name:
            more = result[job.team, job.name].seconds * job.pods / before.pods
            result[before.team, before.name] = replace(before, seconds=before.seconds + more)
    return list(result.values())


def _estimated(
    ended: Sequence[TracedJob], open_jobs: Sequence[tuple[TracedJob, float | None]], newest: float
) -> dict[int, TracedJob]:
    """Jobs that have not ended, by line, with the duration that they are taken to have."""
    by_team: dict[str, list[float]] = {}
    for job in ended:
        by_team.setdefault(job.team, []).append(job.seconds)
    typical = {team: median(durations) for team, durations in by_team.items()}
    return {
        # As long as it has run it runs in any case.
        job.line: replace(job, seconds=max(typical[job.team], newest - started if started is not None else 0.0))
        for job, started in open_jobs
        if job.team in typical
    }


def _is_workload(item: Any) -> bool:
    return isinstance(item, dict) and item.get("kind", "Workload") == "Workload" and "podSets" in item.get("spec", {})


def _times(item: Object) -> list[float]:
    texts = [each.get("lastTransitionTime") for each in item.get("status", {}).get("conditions", ())]
    return [timestamp(text) for text in texts if isinstance(text, str)]


def _job(item: Object, line: int, teams: Mapping[str, str]) -> tuple[TracedJob, float | None]:
    """The job of a Workload, without a duration, and when it was last admitted. Raises what bad input does."""
    metadata, spec = item["metadata"], item["spec"]
    # Of several sets (a launcher and its workers) the largest is what waits for accelerators.
    pod_set = max(spec["podSets"], key=lambda each: each.get("count", 1) * _devices(_requests(each)))
    requests, count = _requests(pod_set), pod_set.get("count", 1)
    namespace = metadata["namespace"]
    priority = spec.get("priorityClassRef", {}).get("name") or spec.get("priorityClassName") or ""
    topology = pod_set.get("topologyRequest") or {}
    selector = pod_set["template"]["spec"].get("nodeSelector") or {}
    least = pod_set.get("minCount")
    job = TracedJob(
        line=line,
        name=metadata["name"],
        team=teams.get(namespace, namespace),
        submitted=timestamp(metadata["creationTimestamp"]),
        seconds=0.0,
        pods=count,
        accelerators=_devices(requests),
        vcpu=requests.get("cpu", 0.0),
        memory_gib=requests.get("memory", 0.0) / 2**30,
        priority=priority.removesuffix(_PRIORITY),
        group=selector.get("sagemaker.amazonaws.com/instance-group-name")
        or selector.get("node.kubernetes.io/instance-type")
        or "",
        least_pods=least if least is not None and least < count else None,
        topology=topology.get("required", ""),
        replaces=slice_before(item).removeprefix(f"{namespace}/"),
    )
    return job, condition(item, "Admitted") or condition(item, "QuotaReserved")


def _requests(pod_set: Object) -> dict[str, float]:
    """What a pod of a set asks for, all containers together."""
    sums: dict[str, float] = {}
    for container in pod_set["template"]["spec"]["containers"]:
        resources = container.get("resources", {})
        for name, amount in (resources.get("limits", {}) | resources.get("requests", {})).items():
            sums[name] = sums.get(name, 0.0) + float(required_number(amount))
    return sums


def _devices(requests: Mapping[str, float]) -> int:
    return int(requests.get(GPU, 0) + requests.get(NEURON, 0))


def _words(error: Exception) -> str:
    return f"it has no {error.args[0]}" if isinstance(error, KeyError) else str(error)
