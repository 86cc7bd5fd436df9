"""Controls HyperPod's elastic agents in the containers of real nodes.

AWS's operator is closed. What it can say is in hyperpod-elastic-agent 1.1.3: `/status`, `/start` with rank and size,
`/stop`, and `/shutdown` once the training is complete. An agent waits for `/start` until then. The pods of simulated
nodes have no agent.
"""

import json
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection, HTTPException
from typing import Any, Final

from ..kubernetes.api_objects import Connection
from .jobs import Job, Manifest
from .pods import is_going, phase

STARTED_WITH: Final = "podwright/started-with"
"""Annotation of a pod: how many pods the job had when its processes started."""

_PORT: Final = 8080
_MASTER_PORT: Final = 29500
_REAL: Final = "containerd://"
_SECONDS: Final = 10.0
READY, RUNNING, COMPLETED, FAULTED = "ready", "running", "completed", "faulted"


class Agent:
    """The agent of a pod. It is asked through the API server and its kubelet: this machine has no route to the pod."""

    def __init__(self, api: Connection, pod: Manifest) -> None:
        self._api, self._namespace = api, pod["metadata"]["namespace"]
        self.pod, self.name = pod, pod["metadata"]["name"]

    def status(self) -> str:
        """Its state; empty while it does not answer."""
        try:
            return str(self._ask("GET", "/status")["status"]).lower()
        except (OSError, HTTPException, ValueError, KeyError, TypeError):
            # Another program may listen on this port.
            return ""

    @property
    def size(self) -> int:
        """Pods of the job when its processes started; 0 before that."""
        return int(self.pod["metadata"].get("annotations", {}).get(STARTED_WITH, 0))

    def start(self, settings: Mapping[str, Any], size: int) -> None:
        """Start its processes, and write the job's number of pods into the pod's annotation."""
        self._ask("POST", "/start", settings)
        path = f"/api/v1/namespaces/{self._namespace}/pods/{self.name}"
        patch = {"metadata": {"uid": self.pod["metadata"]["uid"], "annotations": {STARTED_WITH: str(size)}}}
        self._api.request("PATCH", path, patch, "merge-patch+json")

    def stop(self, timeout: int | None) -> None:
        """End its processes: at once, or after `timeout` seconds in which they can save a checkpoint."""
        self._ask("POST", "/stop", {} if timeout is None else {"is_graceful": True, "timeout": timeout})

    def shut_down(self) -> None:
        """End the agent, and with it the container."""
        self._ask("POST", "/shutdown")

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        """Send a request to the agent. Raises OSError or HTTPException if it does not answer."""
        from kubernetes.client import ApiClient, CoreV1Api
        from kubernetes.client.exceptions import ApiException
        from kubernetes.stream import portforward

        # portforward replaces a method of its client meanwhile, so other threads must not use the same client.
        with ApiClient(self._api.client.configuration) as client:
            method_of_api = CoreV1Api(client).connect_get_namespaced_pod_portforward
            try:
                forwarded = portforward(method_of_api, self.name, self._namespace, ports=str(_PORT))
            except ApiException as error:
                raise OSError(f"no way to port {_PORT} of {self.name}: {error.reason}") from error
        request = HTTPConnection("localhost", _PORT, timeout=_SECONDS)
        request.sock = forwarded.socket(_PORT)
        request.sock.settimeout(_SECONDS)
        try:
            request.request(method, path, json.dumps(body or {}), {"Content-Type": "application/json"})
            answer = request.getresponse().read()
        finally:
            request.close()
            forwarded.close()
        return json.loads(answer) if answer else {}


def agents(api: Connection, job: Job, pods: Mapping[str, Manifest]) -> list[Agent]:
    """The agents of a job's containers that run on real nodes, in the order of their ranks."""
    existing = [pods[slot.name] for slot in job.slots if slot.name in pods]
    return [Agent(api, pod) for pod in existing if phase(pod) == "Running" and not is_going(pod) and _is_real(pod)]


def direct(
    asked: Sequence[Agent],
    size: int,
    ended: int,
    restarts: int,
    timeout: int | None,
    log_rules: Sequence[Manifest] = (),
) -> list[str]:
    """Tell each agent what to do next, by the states of all agents of a job.

    Processes start when all agents are ready. If some are ready and others run or are complete, because a pod was
    replaced or the job grew, the others stop first. If the job has shrunk, all stop. When all are complete they end.
    After a fault all stop at once, since no process can save a checkpoint without the lost one, and start again.

    Args:
        asked: The agents, in the order of their ranks.
        size: Pods that the job has.
        ended: Those of them that have ended.
        restarts: How often pods of the job were replaced.
        timeout: Seconds for a checkpoint before the job changes its size; None to stop at once.
        log_rules: Rules by which agents find in the log that their processes hang.

    Returns:
        Names of the pods whose processes had failed or hung.
    """
    states = {agent.name: agent.status() for agent in asked}
    values, has_all = set(states.values()), len(asked) == size - ended
    active = [agent for agent in asked if states[agent.name] in (RUNNING, COMPLETED)]
    if FAULTED in values:
        faulted = [agent for agent in asked if states[agent.name] == FAULTED]
        for agent in (*faulted, *active):
            agent.stop(None)
        return [agent.name for agent in faulted]
    if has_all and values == {READY}:
        common = {
            "nnodes": len(asked),
            "faultCount": restarts,
            "master_addr": asked[0].pod["status"]["podIP"],
            "master_port": _MASTER_PORT,
            "log_monitoring_configuration": list(log_rules),
        }
        for rank, agent in enumerate(asked):
            agent.start(common | {"rank": rank}, size)
    elif has_all and values == {COMPLETED}:
        for agent in asked:
            agent.shut_down()
    elif any(agent.size > size for agent in active) or (has_all and READY in values):
        is_resized = any(agent.size != size for agent in active)
        for agent in active:
            agent.stop(timeout if is_resized else None)
    return []


def _is_real(pod: Manifest) -> bool:
    statuses = pod["status"].get("containerStatuses") or ()
    return any(str(status.get("containerID", "")).startswith(_REAL) for status in statuses)
