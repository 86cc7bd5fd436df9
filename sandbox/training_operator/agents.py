"""Controls HyperPod's elastic agents in the containers of real nodes.

AWS's operator is closed. Its requests follow from hyperpod-elastic-agent 1.1.3: `/status`, `/start` with rank and size,
`/stop`, and `/shutdown` once the training is complete. An agent waits for `/start` until then. The pods of simulated
nodes have no agent.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any, Final

from ..kubernetes.api_objects import Connection
from ..kubernetes.pod_requests import ask_pod, is_on_real_node
from .jobs import Job, Manifest
from .pods import is_going, phase

PODS_AT_START: Final = "podwright/pods-at-start"
"""Annotation of a pod: how many pods the job had when the pod's processes started."""
RESTARTS_AT_START: Final = "podwright/restarts-at-start"
"""Annotation of a pod: how many restarts of the job were counted when the pod's processes started."""

_PORT: Final = 8080
_MASTER_PORT: Final = 29500
READY, RUNNING, COMPLETED, FAULTED = "ready", "running", "completed", "faulted"


@dataclass(frozen=True, slots=True)
class Report:
    """The state of an agent, and its pod."""

    pod: Manifest
    state: str
    """Empty while the agent does not answer."""

    @property
    def name(self) -> str:
        """Name of the pod."""
        return self.pod["metadata"]["name"]

    @property
    def pods(self) -> int:
        """Pods of the job when this pod's processes started; 0 before the first start."""
        return self._annotation(PODS_AT_START)

    @property
    def restarts(self) -> int:
        """Counted restarts of the job when this pod's processes started."""
        return self._annotation(RESTARTS_AT_START)

    def _annotation(self, name: str) -> int:
        return int(self.pod["metadata"].get("annotations", {}).get(name, 0))


@dataclass(frozen=True, slots=True)
class Request:
    """A POST request to an agent."""

    path: str
    body: Mapping[str, Any] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Annotations that the pod gets before the request."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The next requests to the agents of a job."""

    requests: Mapping[str, Request] = field(default_factory=dict)
    """Requests by the name of the pod."""
    uncounted_faults: tuple[str, ...] = ()
    """Pods with failed or hanging processes, which the operator counts together as one restart of the job.

    It does not count a fault that it has counted before, or that follows from the loss of another pod.
    """


class Agent:
    """The agent of a pod."""

    def __init__(self, api: Connection, pod: Manifest) -> None:
        self._api, self._pod = api, pod
        self._namespace, self.name = pod["metadata"]["namespace"], pod["metadata"]["name"]

    def report(self) -> Report:
        """Ask the agent for its state."""
        try:
            state = str(self._request("GET", "/status")["status"]).lower()
        except (OSError, HTTPException, ValueError, KeyError, TypeError):
            # Another program may listen on this port.
            state = ""
        return Report(self._pod, state)

    def send(self, request: Request) -> None:
        """Annotate the pod, then send the request. Raises OSError or HTTPException if the agent does not answer."""
        if request.annotations:
            patch = {"metadata": {"uid": self._pod["metadata"]["uid"], "annotations": dict(request.annotations)}}
            path = f"/api/v1/namespaces/{self._namespace}/pods/{self.name}"
            self._api.request("PATCH", path, patch, "merge-patch+json")
        self._request("POST", request.path, request.body)

    def _request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        """Return the agent's JSON answer. Raises OSError or HTTPException if it does not answer."""
        _, answer = ask_pod(self._api, self._pod, _PORT, method, path, json.dumps(body or {}).encode())
        return json.loads(answer) if answer else {}


def agents_of(api: Connection, job: Job, pods: Mapping[str, Manifest]) -> list[Agent]:
    """Return the agents in a job's running pods on real nodes, in the order of their ranks."""
    existing = [pods[slot.name] for slot in job.slots if slot.name in pods]
    running = [pod for pod in existing if phase(pod) == "Running" and not is_going(pod)]
    return [Agent(api, pod) for pod in running if is_on_real_node(pod)]


def plan(
    reports: Sequence[Report],
    size: int,
    ended: int,
    restarts: int,
    timeout: int | None,
    log_rules: Sequence[Manifest] = (),
) -> Plan:
    """Plan the next requests to the agents of a job from the states of all its agents.

    Processes start when all agents are ready. If some are ready and others run or are complete, because a pod was
    replaced or the job grew, the others stop first. If the job has shrunk, all stop. When all are complete, the agents
    end. After a fault all processes stop at once, since none can save a checkpoint without the lost one, and then start
    again.

    Args:
        reports: The states of the agents, in the order of their ranks.
        size: Pods that the job has.
        ended: Pods of the job that have ended.
        restarts: Counted restarts of the job.
        timeout: Seconds for a checkpoint before the job changes its size; None to stop at once.
        log_rules: Rules by which agents recognize from the log that their processes hang.
    """
    states = {report.state for report in reports}
    have_all_answered = len(reports) == size - ended and "" not in states
    active = [report for report in reports if report.state in (RUNNING, COMPLETED)]
    if FAULTED in states:
        # A new pod cannot have caused the fault, and is no substitute for a lost one.
        started = [report for report in reports if report.pods]
        if any(report.state == "" for report in started):
            # Its pod may be lost, and the faults follow from that loss, which counts as the restart.
            return Plan()
        faulted = [report for report in reports if report.state == FAULTED]
        # Processes also fail when another pod of the job disappears, whose loss counts as the restart.
        counted = [item for item in faulted if item.restarts == restarts and len(started) + ended >= item.pods]
        return Plan(_each([*faulted, *active], _stop(None)), tuple(report.name for report in counted))
    if have_all_answered and states == {READY}:
        return Plan(_starts(reports, size, restarts, log_rules))
    if have_all_answered and states == {COMPLETED}:
        return Plan(_each(reports, Request("/shutdown")))
    if any(report.pods > size for report in active) or (have_all_answered and READY in states):
        # If a restart was counted after their start, they have lost a pod, and none can save a checkpoint without it.
        is_whole = all(report.restarts == restarts for report in active)
        is_resized = any(report.pods != size for report in active)
        return Plan(_each(active, _stop(timeout if is_whole and is_resized else None)))
    return Plan()


def _starts(
    reports: Sequence[Report], size: int, restarts: int, log_rules: Sequence[Manifest]
) -> Mapping[str, Request]:
    common = {
        "nnodes": len(reports),
        "faultCount": restarts,
        "master_addr": reports[0].pod["status"]["podIP"],
        "master_port": _MASTER_PORT,
        "log_monitoring_configuration": list(log_rules),
    }
    annotations = {PODS_AT_START: str(size), RESTARTS_AT_START: str(restarts)}
    return {report.name: Request("/start", common | {"rank": rank}, annotations) for rank, report in enumerate(reports)}


def _stop(timeout: int | None) -> Request:
    """A request to end processes: at once, or after `timeout` seconds in which they can save a checkpoint."""
    return Request("/stop", {} if timeout is None else {"is_graceful": True, "timeout": timeout})


def _each(reports: Sequence[Report], request: Request) -> Mapping[str, Request]:
    return {report.name: request for report in reports}
