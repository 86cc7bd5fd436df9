"""Decides the next writes for a job from its observed objects: pure functions, without clock and API server."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from .jobs import Claim, Job, Manifest, Slot, holding, instant, written
from .log_rules import hanging_at
from .pods import has_ended, is_going, is_ready, phase, reference, unplaced_since
from .restarts import Restarts, restarts
from .sizes import Observed, dropped_step, granted, next_claim, size_of
from .status import State, conditions
from .workloads import admitted_at as admitted_since
from .workloads import condition, finished, is_evicted, readiness, returned

_PATIENCE: Final = timedelta(seconds=5)
"""Time for a pod to fit on the node that Kueue chose. The operator then creates it again with the current choice."""
_DEADLINES: Final = {"Starting": "startupDeadlineSeconds", "Faulted": "faultDeadlineSeconds"}


@dataclass(frozen=True, slots=True)
class NewPod:
    """A pod to create."""

    claim: Claim
    slot: Slot


@dataclass
class Decision:
    """The next writes, in this order."""

    status: Manifest
    """Fields of the job's status; None removes a field."""
    deleted_pods: list[str] = field(default_factory=list)
    grace_seconds: int | None = None
    """Grace period of the deleted pods in seconds; None for the pods' own."""
    pods: list[NewPod] = field(default_factory=list)
    size: int = 0
    """Pods that the job runs with; 0 if it waits or has ended, so that its processes must not start."""
    workloads: list[Claim] = field(default_factory=list)
    deleted_workloads: list[str] = field(default_factory=list)
    conditions: dict[str, list[Manifest]] = field(default_factory=dict)
    """The operator's own conditions of Workloads."""
    returned: dict[str, list[Manifest]] = field(default_factory=dict)
    """All conditions of Workloads that no longer hold quota."""
    deletes_job: bool = False
    due: datetime | None = None
    """Time of the next decision if no object changes before it."""

    def decide_again_by(self, time: datetime | None) -> None:
        """Let the next decision be due at this time at the latest."""
        if time is not None:
            self.due = min(time, self.due or time)


def decide(observed: Observed) -> Decision:
    """Return the next writes for a job."""
    job = observed.job
    if job.condition("Completed") or job.condition("Failed"):
        return _end(observed)
    claims = granted(observed)
    decision = _run(observed, claims) if claims else _wait(observed)
    if job.queue:
        _keep_workloads(observed, claims, decision)
    return decision


def _wait(observed: Observed) -> Decision:
    """Stop the pods of a job that is suspended or waits in its queue."""
    job = observed.job
    reason = "Suspended" if job.policy.get("suspend") else "Queued"
    message = "runPolicy.suspend is set" if reason == "Suspended" else f"waits in {job.queue}"
    nothing = dict.fromkeys(("elasticScalingStatus", "elasticWorkloadRef", "masterAddr", "jobPods"))
    state = State("Suspended", reason, message)
    decision = Decision({"conditions": conditions(job, state, observed.now), **nothing})
    _stop(observed, observed.pods, decision)
    return decision


def _stop(observed: Observed, names: Mapping[str, object] | Sequence[str], decision: Decision) -> None:
    """Delete pods. Those of an elastic job get time to save a checkpoint."""
    decision.deleted_pods += [name for name in names if not is_going(observed.pods[name])]
    timeout = observed.job.elastic.get("gracefulShutdownTimeoutInSeconds")
    decision.grace_seconds = None if timeout is None else int(timeout * observed.pace)


def _run(observed: Observed, claims: Sequence[Claim]) -> Decision:
    """Create and replace the pods of an admitted job, and count lost pods as restarts."""
    job, pods = observed.job, observed.pods
    size = size_of(observed, claims)
    desired = _allotted(claims, size.pods)
    hanging = {name: time for name in desired if name in pods and (time := hanging_at(job, pods[name]))}
    hung = [name for name, time in hanging.items() if observed.now >= time and not is_going(pods[name])]
    lost = [*_lost(job, desired, pods), *hung]
    counts = restarts(job, lost, observed.now)
    unplaced = {name: time + _PATIENCE for name in desired if name in pods and (time := unplaced_since(pods[name]))}
    # They do not count as restarts: the operator deletes them itself.
    misplaced = [name for name, time in unplaced.items() if observed.now >= time]
    state = _within_deadlines(observed, _state(observed, desired, lost, counts))
    decision = Decision({})
    decision.decide_again_by(size.grows_at)
    recorded = _recorded(observed, desired, [*lost, *misplaced])
    decision.status = _status(observed, desired, recorded, lost, counts, state)
    if state.name in ("Completed", "Failed"):
        return decision
    decision.size = size.pods
    _stop(observed, [name for name in pods if name not in desired], decision)
    failed = [name for name in desired if name in pods and phase(pods[name]) == "Failed"]
    again = list(pods) if counts.is_full else [*failed, *hung, *misplaced]
    decision.deleted_pods += [name for name in again if name not in decision.deleted_pods and not is_going(pods[name])]
    decision.pods = [new for name, new in desired.items() if name not in pods]
    if state.name == "Faulted":
        _drop_step(observed, claims, decision)
    for time in (*_deadlines(observed, state).values(), *hanging.values(), *unplaced.values()):
        decision.decide_again_by(time)
    return decision


def _allotted(claims: Sequence[Claim], size: int) -> dict[str, NewPod]:
    """Return the pods of a job of this size, by name."""
    slots = [NewPod(claim, slot) for claim in claims for slot in claim.slots]
    return {new.slot.name: new for new in slots[:size]}


def _lost(job: Job, desired: Mapping[str, NewPod], pods: Mapping[str, Manifest]) -> list[str]:
    """Return the pods that disappeared or failed since the last write of the job's status."""
    known = {item["name"]: item["uid"] for item in job.status.get("jobPods") or () if item["name"] in desired}
    actual = {name: item["metadata"]["uid"] for name, item in pods.items()}
    removed = [name for name, uid in known.items() if actual.get(name) != uid]
    failed = [name for name in desired if name in pods and phase(pods[name]) == "Failed" and not is_going(pods[name])]
    return [*removed, *(name for name in failed if name not in removed)]


def _state(observed: Observed, desired: Mapping[str, NewPod], lost: Sequence[str], counts: Restarts) -> State:
    """Return the state of an admitted job."""
    pods = [observed.pods[name] for name in desired if name in observed.pods]
    has_all = len(pods) == len(desired)
    if counts.failure:
        return State("Failed", "RestartLimit", counts.failure)
    if lost:
        return State("Faulted", "PodsLost", f"lost {', '.join(sorted(lost))}")
    if has_all and all(phase(item) == "Succeeded" for item in pods):
        return State("Completed", "Completed", "all pods succeeded")
    if has_all and all(map(is_ready, pods)):
        return State("Running", "Running", f"{len(pods)} pods run")
    if faulted := observed.job.condition("Faulted"):
        return State("Faulted", faulted["reason"], faulted["message"])
    return State("Starting", "Starting", f"{sum(map(is_ready, pods))} of {len(desired)} pods run")


def _within_deadlines(observed: Observed, state: State) -> State:
    """Return the state, or Failed if the job has passed a deadline."""
    passed = [name for name, time in _deadlines(observed, state).items() if observed.now >= time]
    if not passed or state.name in ("Completed", "Failed"):
        return state
    return State("Failed", "DeadlineExceeded", f"longer than {passed[0]}")


def _deadlines(observed: Observed, state: State) -> dict[str, datetime]:
    """Return the deadlines of a job in this state, by the field that sets each."""
    job = observed.job
    current = job.condition(state.name)
    since = {
        "activeDeadlineSeconds": job.status.get("startTime"),
        _DEADLINES.get(state.name, ""): current["lastTransitionTime"] if current else None,
    }
    return {
        name: instant(start) + timedelta(seconds=job.policy[name])
        for name, start in since.items()
        if start and job.policy.get(name)
    }


def _status(
    observed: Observed,
    desired: Mapping[str, NewPod],
    recorded: Sequence[Manifest],
    lost: Sequence[str],
    counts: Restarts,
    state: State,
) -> Manifest:
    """Return the status of an admitted job."""
    job, pods, now = observed.job, observed.pods, observed.now
    status: Manifest = {
        "conditions": conditions(job, state, now),
        "startTime": job.status.get("startTime") or written(now),
        "restartCount": counts.total,
        "restartStatus": counts.status,
        "jobPods": [] if counts.is_full else [reference(item) for item in recorded],
        "masterAddr": next((pods[name].get("status", {}).get("podIP") for name in desired if name in pods), None),
    }
    if state.name in ("Completed", "Failed"):
        status["completionTime"] = written(now)
    if lost:
        status["latestFaultyPodInstanceList"] = _faulty(observed, lost, "JLR" if counts.is_full else "PLR")
    if job.elastic:
        status |= _scaling(observed, desired, restarted=bool(lost), runs=state.name == "Running")
    return status


def after_processes_failed(observed: Observed, names: Sequence[str]) -> Manifest | None:
    """Return the status of a job whose processes restart in their pods; None if the job must replace all pods.

    Args:
        observed: The job.
        names: The pods whose processes have failed or hang.
    """
    counts, now = restarts(observed.job, names, observed.now), written(observed.now)
    if counts.is_full or counts.failure:
        return None
    status: Manifest = {"restartCount": counts.total, "restartStatus": counts.status}
    status["latestFaultyPodInstanceList"] = _faulty(observed, names, "PLR")
    if observed.job.elastic:
        status["elasticScalingStatus"] = {**observed.scaling, "lastRestartTime": now, "lastUpdated": now}
    return status


def _faulty(observed: Observed, names: Sequence[str], restart: str) -> Manifest:
    """Return the status entry of a fault: its pods and their instances."""
    pods = observed.pods
    nodes = [pods[name]["spec"].get("nodeName", "") for name in names if name in pods]
    return {
        "restartType": restart,
        "faultyPodList": sorted(names),
        "faultyInstanceIdList": sorted(node.removeprefix("hyperpod-") for node in nodes if node),
    }


def _recorded(observed: Observed, desired: Mapping[str, NewPod], deleted: Sequence[str]) -> list[Manifest]:
    """Return the pods whose later loss counts as a restart; the operator's own deletions do not count."""
    known = {item["uid"] for item in observed.job.status.get("jobPods") or ()}
    pods = [observed.pods[name] for name in desired if name in observed.pods and name not in deleted]
    # The next decision counts pods of this list that are missing as lost. One that is being deleted stays in the list,
    # also if its containers have failed by now.
    return [item for item in pods if (item["metadata"]["uid"] in known if is_going(item) else phase(item) != "Failed")]


def _scaling(observed: Observed, desired: Mapping[str, NewPod], *, restarted: bool, runs: bool) -> Manifest:
    """Return the status fields about the job's size."""
    before, now = observed.scaling, written(observed.now)
    replicas = dict(Counter(new.slot.part for new in desired.values()))
    scaling = dict(before) | {"targetReplicas": replicas, "podsScaled": runs}
    if before.get("targetReplicas") != replicas:
        scaling |= {"lastScalingTime": now, "lastUpdated": now, "isFaultyPodScaleDown": False}
    if restarted:
        scaling |= {"lastRestartTime": now, "lastUpdated": now}
    if runs and len(desired) == observed.job.sizes[-1]:
        scaling["consecutiveScalingFailures"] = 0
    steps = [claim.name for claim in observed.job.claims[1:] if claim.name in observed.workloads]
    workload = {"kind": "Workload", "name": steps[-1], "namespace": observed.job.namespace} if steps else None
    return {"elasticScalingStatus": scaling, "elasticWorkloadRef": workload}


def _drop_step(observed: Observed, claims: Sequence[Claim], decision: Decision) -> None:
    """Continue with fewer pods if a lost one has not recovered within its time limit."""
    claim = dropped_step(observed, claims, decision.size) if observed.job.queue else None
    if isinstance(claim, datetime):
        decision.decide_again_by(claim)
    elif claim:
        decision.deleted_workloads.append(claim.name)
        scaling = decision.status["elasticScalingStatus"]
        failures = scaling.get("consecutiveScalingFailures", 0) + 1
        scaling |= {"isFaultyPodScaleDown": True, "consecutiveScalingFailures": failures}
        scaling |= {"lastScalingTime": written(observed.now), "lastUpdated": written(observed.now)}


def _keep_workloads(observed: Observed, claims: Sequence[Claim], decision: Decision) -> None:
    """Request quota, report whether pods are ready, and release the quota of evicted Workloads."""
    job = observed.job
    base, *steps = job.claims
    if job.policy.get("suspend"):
        # The pods use the quota until they have ended.
        decision.deleted_workloads += [] if observed.pods else list(observed.workloads)
        return
    if base.name not in observed.workloads:
        decision.workloads.append(base)
    if not claims:
        decision.deleted_workloads += [step.name for step in steps if step.name in observed.workloads]
    else:
        runs = decision.status["conditions"][-1]["type"] == "Running"
        claim = next_claim(observed, is_running=runs)
        if isinstance(claim, datetime):
            decision.decide_again_by(claim)
        elif claim:
            decision.workloads.append(claim)
    for claim in job.claims:
        if claim.name in observed.workloads and claim.name not in decision.deleted_workloads:
            _keep_conditions(observed, claim, decision)


def _keep_conditions(observed: Observed, claim: Claim, decision: Decision) -> None:
    """Add the changed conditions of one Workload to the decision."""
    item, pods = observed.workloads[claim.name], observed.pods
    # While a pod of the claim exists its node is in use, so another job must not get the quota yet.
    if is_evicted(item) and not observed.has_pods(claim):
        decision.returned[claim.name] = returned(item, observed.now)
        return
    existing = [pods[slot.name] for slot in claim.slots if slot.name in pods]
    ready = bool(admitted_since(item)) and len(existing) == len(claim.slots) and all(map(is_ready, existing))
    before, after = condition(item, "PodsReady"), readiness(item, ready=ready, now=observed.now)
    # A Workload that was never admitted has no pods to report.
    relevant = admitted_since(item) or (before and before["status"] == "True")
    if relevant and not (before and (before["status"], before["reason"]) == (after["status"], after["reason"])):
        decision.conditions[claim.name] = [after]


def _end(observed: Observed) -> Decision:
    """Clean up after a job that has ended: its pods, its quota, and finally the job itself."""
    job, now = observed.job, observed.now
    completed = job.condition("Completed")
    message = (completed or job.condition("Failed") or {})["message"]
    decision = Decision({})
    policy = job.policy.get("cleanPodPolicy", "All")
    ended = [name for name, item in observed.pods.items() if has_ended(item)]
    removed = {"All": list(observed.pods), "OnlyComplete": ended}.get(policy, [])
    decision.deleted_pods = [name for name in removed if not is_going(observed.pods[name])]
    for name, item in observed.workloads.items():
        if not holding(item.get("status") or {}, "Finished"):
            decision.conditions[name] = finished(item, succeeded=bool(completed), message=message, now=now)
    seconds = job.policy.get("ttlSecondsAfterFinished", 0)
    # A negative number keeps the job until the user deletes it.
    if seconds >= 0:
        end = instant(job.status["completionTime"]) + timedelta(seconds=seconds)
        decision.deletes_job = now >= end
        decision.decide_again_by(end)
    return decision
