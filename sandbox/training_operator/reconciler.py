"""Reads the objects of a job, decides, and writes the changes with the operator's service account."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from typing import Final

from ..kubernetes.api_objects import Connection, connection
from ..kubernetes.cluster_objects import ApiError
from .agents import agents_of, plan
from .decisions import Decision, after_processes_failed, decide
from .jobs import GROUP, JOB_LABEL, PLURAL, VERSION, Claim, Job, Manifest
from .pods import Placement, is_going, phase, pod, pod_set
from .sizes import Observed
from .workloads import API_VERSION, JOB_UID, PriorityClass, priority_class, workload

_JOBS: Final = f"/apis/{GROUP}/{VERSION}"
_KUEUE: Final = f"/apis/{API_VERSION}"
_PRIORITIES: Final = {
    "WorkloadPriorityClass": f"{_KUEUE}/workloadpriorityclasses",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
}
_MERGE: Final = "merge-patch+json"
_APPLY: Final = "apply-patch+yaml"
_NOT_THERE, _CONFLICT = 404, 409
_MANAGER: Final = "podwright-training-operator"
_SOON: Final = 0.5
_LATER: Final = 5.0
_AGENTS: Final = 2.0
"""Seconds between two requests for the states of agents."""
_AT_LEAST: Final = 60.0


@dataclass(frozen=True)
class Reconciler:
    """The operator of one cluster."""

    kubeconfig: Path
    pace: float
    """Factor for its own waits."""

    def reconcile(self, namespace: str, name: str) -> float | None:
        """Reconcile a job. Returns the seconds until it is due again; None without the job.

        If the API server refuses a write, such as a pod above a ResourceQuota, the operator logs it and tries again.
        """
        try:
            observed = self._observe(namespace, name)
            if observed is None:
                return None
            decision = decide(observed)
            self._write(observed, decision)
            has_agents = self._control_agents(observed, decision)
        except (OSError, HTTPException) as error:
            logging.warning("%s/%s: an agent does not answer: %s", namespace, name, error)
            return _AGENTS
        except ApiError as error:
            # Another client has changed an object since the read, or the API server does not answer.
            logging.warning("%s/%s: %s", namespace, name, error)
            return _SOON if error.code == _CONFLICT else _LATER
        seconds = (decision.due - datetime.now(UTC)).total_seconds() if decision.due else _AT_LEAST
        return min(max(seconds, 0.0) + 0.05, _AGENTS if has_agents else _AT_LEAST)

    def _control_agents(self, observed: Observed, decision: Decision) -> bool:
        """Send the agents of pods on real nodes their next requests. Returns whether the job has such agents.

        A process that failed or hangs is a restart of the job. The operator counts it before it stops the processes. If
        it ends between the two, the next operator finds the count and only stops the processes. If the job needs a full
        restart, the operator deletes the pods of these processes instead, and counts their loss.
        """
        job = observed.job
        pods = {name: pod for name, pod in observed.pods.items() if name not in decision.deleted_pods}
        agents = agents_of(self._api, job, pods) if decision.size else []
        if not agents:
            return False
        # A smaller job no longer has the pods that it gives up, even if they have succeeded.
        ended = sum(phase(pod) == "Succeeded" and not is_going(pod) for pod in pods.values())
        restarts = decision.status["restartCount"]
        timeout = job.elastic.get("gracefulShutdownTimeoutInSeconds")
        rules = job.policy.get("logMonitoringConfiguration") or ()
        planned = plan([agent.report() for agent in agents], decision.size, ended, restarts, timeout, rules)
        deleted_pods = self._count_restart(observed, planned.uncounted_faults)
        for agent in agents:
            if agent.name in planned.requests and agent.name not in deleted_pods:
                agent.send(planned.requests[agent.name])
        for name in deleted_pods:
            # Their processes have ended or hang.
            self._delete(f"/api/v1/namespaces/{job.namespace}/pods/{name}", gracePeriodSeconds="1")
        return True

    def _count_restart(self, observed: Observed, faulted: Sequence[str]) -> Sequence[str]:
        """Count a restart for pods with failed processes. Returns them instead if the job needs a full restart."""
        if not faulted:
            return ()
        job = observed.job
        status = after_processes_failed(observed, faulted)
        if status is None:
            return faulted
        path = f"{_JOBS}/namespaces/{job.namespace}/{PLURAL}/{job.name}/status"
        self._api.request("PATCH", path, {"status": status}, _MERGE, fieldManager=_MANAGER)
        return ()

    def jobs(self) -> list[tuple[str, str]]:
        """Return namespace and name of all jobs; none while the API server does not answer."""
        try:
            items = self._api.request("GET", f"{_JOBS}/{PLURAL}")["items"]
        except ApiError as error:
            logging.info("no jobs are listed: %s", error)
            return []
        return [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in items]

    @property
    def _api(self) -> Connection:
        return connection(self.kubeconfig, self.kubeconfig.stat().st_mtime_ns)

    def _observe(self, namespace: str, name: str) -> Observed | None:
        """Return a job with its pods and Workloads; None if it does not exist or is being deleted."""
        manifest = self._find(f"{_JOBS}/namespaces/{namespace}/{PLURAL}/{name}")
        if manifest is None or "deletionTimestamp" in manifest["metadata"]:
            return None
        job = Job(manifest)
        pods = self._owned(f"/api/v1/namespaces/{namespace}/pods", f"{JOB_LABEL}={name}", job)
        workloads = self._owned(f"{_KUEUE}/namespaces/{namespace}/workloads", f"{JOB_UID}={job.uid}", job)
        return Observed(job, pods, workloads, datetime.now(UTC), self.pace)

    def _find(self, path: str) -> Manifest | None:
        try:
            return self._api.request("GET", path)
        except ApiError as error:
            if error.code == _NOT_THERE:
                return None
            raise

    def _owned(self, path: str, labels: str, job: Job) -> dict[str, Manifest]:
        """Return a job's own objects by name; none if the API server does not serve their kind."""
        try:
            items = self._api.request("GET", path, labelSelector=labels)["items"]
        except ApiError as error:
            if error.code == _NOT_THERE:
                return {}
            raise
        return {item["metadata"]["name"]: item for item in items if _is_of(item, job)}

    def _write(self, observed: Observed, decision: Decision) -> None:
        """Write a decision: the job's status first, so that a restart is counted once."""
        job = observed.job
        path = f"{_JOBS}/namespaces/{job.namespace}/{PLURAL}/{job.name}"
        changed = {key: value for key, value in decision.status.items() if job.status.get(key) != value}
        if changed:
            self._api.request("PATCH", f"{path}/status", {"status": changed}, _MERGE, fieldManager=_MANAGER)
        for name in decision.deleted_pods:
            grace = {} if decision.grace_seconds is None else {"gracePeriodSeconds": str(decision.grace_seconds)}
            self._delete(f"/api/v1/namespaces/{job.namespace}/pods/{name}", **grace)
        self._write_workloads(observed, decision)
        self._create_pods(observed, decision)
        if decision.deletes_job:
            self._delete(path, propagationPolicy="Background")

    def _create_pods(self, observed: Observed, decision: Decision) -> None:
        job, placements = observed.job, dict[tuple[str, str], Placement | None]()
        for new in decision.pods:
            key = (new.claim.name, new.slot.part)
            if key not in placements:
                placements[key] = self._placement(observed, new.claim, new.slot.part)
            body = pod(job, new.claim, new.slot, decision.size, placements[key])
            self._create(f"/api/v1/namespaces/{job.namespace}/pods", body)

    def _placement(self, observed: Observed, claim: Claim, part: str) -> Placement | None:
        """Return Kueue's placement of the pods of a claim."""
        item = observed.workloads.get(claim.name)
        if item is None:
            return None
        name = pod_set(observed.job, part)
        assignment = next(entry for entry in item["status"]["admission"]["podSetAssignments"] if entry["name"] == name)
        labels, tolerations = dict[str, str](), list[Manifest]()
        for flavor in sorted(set((assignment.get("flavors") or {}).values())):
            specification = (self._find(f"{_KUEUE}/resourceflavors/{flavor}") or {}).get("spec") or {}
            labels |= specification.get("nodeLabels") or {}
            tolerations += specification.get("tolerations") or ()
        return Placement(labels, tolerations, "topologyAssignment" in assignment)

    def _write_workloads(self, observed: Observed, decision: Decision) -> None:
        """Create and delete Workloads, and write their conditions."""
        job = observed.job
        path = f"{_KUEUE}/namespaces/{job.namespace}/workloads"
        for name in decision.deleted_workloads:
            self._delete(f"{path}/{name}", propagationPolicy="Background")
        for name, conditions in decision.conditions.items():
            metadata = {key: observed.workloads[name]["metadata"][key] for key in ("name", "namespace", "uid")}
            body = {"apiVersion": API_VERSION, "kind": "Workload", "metadata": metadata}
            body["status"] = {"conditions": conditions}
            query = {"fieldManager": _MANAGER, "force": "true"}
            self._api.request("PATCH", f"{path}/{name}/status", body, _APPLY, **query)
        for name, conditions in decision.returned.items():
            # All conditions, Kueue's among them, and its admission: only on what was read.
            version = {"resourceVersion": observed.workloads[name]["metadata"]["resourceVersion"]}
            body = {"metadata": version, "status": {"conditions": conditions, "admission": None}}
            self._api.request("PATCH", f"{path}/{name}/status", body, _MERGE, fieldManager=_MANAGER)
        for claim in decision.workloads:
            topologies = bool(self._api.request("GET", f"{_KUEUE}/topologies", limit="1")["items"])
            priority = self._priority(priority_class(job, claim))
            self._create(path, workload(job, claim, priority, topologies=topologies))

    def _priority(self, source: PriorityClass | None) -> int:
        item = self._find(f"{_PRIORITIES[source.kind]}/{source.name}") if source else None
        return item["value"] if item else 0

    def _create(self, path: str, body: Manifest) -> None:
        try:
            self._api.request("POST", path, body, fieldManager=_MANAGER)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise

    def _delete(self, path: str, **query: str) -> None:
        try:
            self._api.request("DELETE", path, **query)
        except ApiError as error:
            if error.code != _NOT_THERE:
                raise


def _is_of(item: Manifest, job: Job) -> bool:
    owners = item["metadata"].get("ownerReferences") or ()
    return any(owner["uid"] == job.uid for owner in owners)
