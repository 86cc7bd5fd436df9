"""What becomes of jobs that podwright hands to a simulated cluster: pods on nodes, a log, an end; elastic ones resize.

Nothing runs. A job's pods follow from when it was seen first, the shortened time, the nodes that are there and what
else holds them; its end is that of its kind's operator. Jobs without podwright's label are stored and nothing else.

Sources: Kubernetes Job API; Kubeflow's and HyperPod's types of status (kubeflow-training 1.9.4, sagemaker-hyperpod
3.12.0).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from ...config.catalog.instance_types import catalog
from ...planning.quota.amounts import GPU, NEURON
from ..hyperpod.cluster import HEALTHY, Timing
from ..kubernetes.job_logs import log_of
from ..kubernetes.queue_states import priority_of, queue_refusal
from ..kubernetes.store import KubernetesStore
from ..protocol.clock import now
from ..protocol.json_objects import JsonObject

KINDS: Final = (
    "batch/Job",
    "kubeflow.org/MPIJob",
    "kubeflow.org/PyTorchJob",
    "sagemaker.amazonaws.com/HyperPodPyTorchJob",
)
FAULTS: Final = {
    "fails": "its pods end with exit code 1",
    "image": "its image cannot be pulled",
    "hangs": "it never ends",
    "rigid": "an elastic one does not grow",
    "greedy": "an elastic one does not shrink",
    "slow": "NCCL talks TCP",
    "wrong": "NCCL's results are wrong",
}
"""What can be wrong with a job, by name (`/podwright/faults`)."""
_MANAGED: Final = "app.kubernetes.io/managed-by"
_MARK: Final = "podwright/simulated"
_GROUP: Final = "sagemaker.amazonaws.com/instance-group-name"
_HEALTH: Final = "sagemaker.amazonaws.com/node-health-status"
_TYPE: Final = "node.kubernetes.io/instance-type"
_START, _RUN, _GROW, _ELASTIC = 0.3, 1.2, 0.6, 600.0


@dataclass
class _Life:
    """How far a job is; forgotten when the server stops, and begun anew then."""

    seen: datetime
    order: int
    admitted: datetime | None = None
    places: list[str] = field(default_factory=list)
    """Nodes of its pods, in their order."""


@dataclass
class JobRuns:
    """The jobs of all clusters. `faults` are those of jobs by how their names begin, and of queues by name."""

    timing: Timing
    faults: Mapping[str, Mapping[str, str]]
    lives: dict[str, _Life] = field(default_factory=dict)

    def settle(self, store: KubernetesStore, nodes: list[JsonObject]) -> None:
        """Let happen what happened since somebody last looked."""
        jobs = [item for (kind, _, _), item in store.objects.items() if kind in KINDS and _is_ours(item)]
        self._forget(store, jobs)
        if not jobs:
            return
        timestamp = now()
        for job in jobs:
            self.lives.setdefault(job["metadata"]["uid"], _Life(timestamp, len(self.lives)))
        running = [job for job in jobs if not _ended(job)]
        self._place(store, running, nodes, timestamp)
        for job in running:
            self._live(store, job, timestamp)

    def log(self, store: KubernetesStore, namespace: str, name: str) -> str | None:
        """What a pod's container printed; None for a pod that is none of ours, or has not started."""
        pod = store.objects.get(("/Pod", namespace, name))
        if pod is None or _MARK not in pod["metadata"].get("annotations", {}):
            return None
        if pod.get("status", {}).get("phase") == "Pending":
            return None
        return log_of(pod, self.faults.get("jobs", {}))

    def _fault(self, job: JsonObject) -> str:
        name = job["metadata"]["name"]
        return next((kind for stem, kind in self.faults.get("jobs", {}).items() if name.startswith(stem)), "")

    def _forget(self, store: KubernetesStore, jobs: list[JsonObject]) -> None:
        """The pods of jobs that are gone go too."""
        existing = {job["metadata"]["uid"] for job in jobs}
        for key, item in list(store.objects.items()):
            if key[0] == "/Pod" and _MARK in item["metadata"].get("annotations", {}) and _owner(item) not in existing:
                del store.objects[key]

    def _place(
        self, store: KubernetesStore, jobs: list[JsonObject], nodes: list[JsonObject], timestamp: datetime
    ) -> None:
        """Give jobs their nodes: what runs keeps its fewest, others follow by priority, extras take what is left."""
        free = {
            node["metadata"]["name"]: _devices(node)
            for node in nodes
            if node["metadata"]["labels"].get(_HEALTH) == HEALTHY and _is_ready(node)
        }
        labels = {node["metadata"]["name"]: node["metadata"]["labels"] for node in nodes}
        lives = {job["metadata"]["uid"]: self.lives[job["metadata"]["uid"]] for job in jobs}
        requested = {job["metadata"]["uid"]: _base(job) for job in jobs}

        def rank(job: JsonObject) -> tuple[bool, int, int]:
            life = lives[job["metadata"]["uid"]]
            return life.admitted is None, -priority_of(store, job), life.order

        before = {uid: list(life.places) for uid, life in lives.items()}
        for job in sorted(jobs, key=rank):
            life, uid = lives[job["metadata"]["uid"]], job["metadata"]["uid"]
            keep = requested[uid]
            if life.admitted and self._fault(job) == "greedy":
                keep = max(keep, len(before[uid]))
            if life.admitted is None and queue_refusal(store, job, jobs, lives, self.faults.get("queues", {})):
                continue
            locations = _fitting(_templates(job, keep), free, labels, life.places)
            if locations is None:
                continue
            life.places, life.admitted = locations, life.admitted or timestamp
        for job in sorted(jobs, key=rank):
            uid, life = job["metadata"]["uid"], lives[job["metadata"]["uid"]]
            sizes = _sizes(job)
            due = life.admitted and timestamp >= life.admitted + timedelta(seconds=_GROW * self.timing.scale)
            if not due or self._fault(job) in ("rigid", "image") or len(sizes) < 2:
                continue
            for size in sorted((size for size in sizes if size > len(life.places)), reverse=True):
                held = before[uid][len(life.places) :]
                more = _fitting(_templates(job, size)[len(life.places) :], free, labels, held)
                if more is not None:
                    life.places += more
                    break

    def _live(self, store: KubernetesStore, job: JsonObject, timestamp: datetime) -> None:
        """Pods and status of a job at this moment."""
        life, scale, fault = self.lives[job["metadata"]["uid"]], self.timing.scale, self._fault(job)
        pods = _templates(job, len(life.places))
        if life.admitted is None:
            job["status"] = {"conditions": [_condition("Suspended", timestamp)]}
            return
        runs = timestamp >= life.admitted + timedelta(seconds=_START * scale) and fault != "image"
        length = _ELASTIC if len(_sizes(job)) > 1 else _RUN
        over = runs and fault != "hangs" and timestamp >= life.admitted + timedelta(seconds=(_START + length) * scale)
        phase = "Running" if runs else "Pending"
        if over:
            phase = "Failed" if fault == "fails" else "Succeeded"
        names = set[str]()
        for at, ((role, template), node) in enumerate(zip(pods, life.places, strict=True)):
            name = f"{job['metadata']['name']}-{role}-{at}"
            names.add(name)
            self._pod(store, job, name, template, node, phase, fault)
        for key, item in list(store.objects.items()):
            if key[0] == "/Pod" and _owner(item) == job["metadata"]["uid"] and key[2] not in names:
                del store.objects[key]
        started = life.admitted.strftime("%Y-%m-%dT%H:%M:%SZ")
        status: JsonObject = {"startTime": started, "conditions": []}
        if over:
            good = "Complete" if job["kind"] in ("Job", "HyperPodPyTorchJob") else "Succeeded"
            words = "BackoffLimitExceeded" if fault == "fails" else "Completed"
            status["conditions"] = [_condition("Failed" if fault == "fails" else good, timestamp, words)]
        elif job["kind"] == "Job":
            status["active"] = len(life.places)
        elif runs:
            status["conditions"] = [_condition("Running", timestamp)]
        job["status"] = status

    def _pod(
        self,
        store: KubernetesStore,
        job: JsonObject,
        name: str,
        template: JsonObject,
        node: str,
        phase: str,
        fault: str,
    ) -> None:
        """Store a pod as it is now."""
        namespace = job["metadata"]["namespace"]
        pod = store.objects.get(("/Pod", namespace, name))
        if pod is None:
            owner = {"apiVersion": job["apiVersion"], "kind": job["kind"], "name": job["metadata"]["name"]}
            metadata = {
                "name": name,
                "namespace": namespace,
                "labels": template.get("metadata", {}).get("labels", {}),
                "annotations": {_MARK: "nothing runs in it"},
                "ownerReferences": [{**owner, "uid": job["metadata"]["uid"], "controller": True}],
            }
            pod = store.put({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**template["spec"]}})
        pod["spec"]["nodeName"] = node
        ready = "True" if phase == "Running" else "False"
        pod["status"] = {
            "phase": phase,
            "conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": ready}],
            "containerStatuses": [
                {"name": item["name"], "restartCount": 0, "state": _container(phase, fault)}
                for item in template["spec"]["containers"]
            ],
        }


def _container(phase: str, fault: str) -> JsonObject:
    if phase in ("Succeeded", "Failed"):
        code = int(phase == "Failed")
        return {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed"}}
    if phase == "Running":
        return {"running": {}}
    if fault == "image":
        return {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image (sandbox)"}}
    return {"waiting": {"reason": "ContainerCreating"}}


def _is_ours(item: JsonObject) -> bool:
    return (item["metadata"].get("labels") or {}).get(_MANAGED) == "podwright"


def _owner(pod: JsonObject) -> str:
    return next((item["uid"] for item in pod["metadata"].get("ownerReferences", [])), "")


def _ended(job: JsonObject) -> bool:
    conditions = job.get("status", {}).get("conditions", [])
    return any(item["type"] in ("Complete", "Succeeded", "Failed") for item in conditions)


def _condition(kind: str, timestamp: datetime, reason: str = "") -> JsonObject:
    time = timestamp.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"type": kind, "status": "True", "reason": reason or kind, "message": "", "lastTransitionTime": time}


def _is_ready(node: JsonObject) -> bool:
    return any(item["type"] == "Ready" and item["status"] == "True" for item in node["status"]["conditions"])


def _devices(node: JsonObject) -> int:
    row = catalog().find(node["metadata"]["labels"].get(_TYPE, ""))
    return row.accelerator_count if row else 0


def _templates(job: JsonObject, count: int) -> list[tuple[str, JsonObject]]:
    """Role and template of each of `count` pods, the launcher of MPI among them."""
    spec = job["spec"]
    if job["kind"] == "Job":
        return [("pod", spec["template"])] * count
    if job["kind"] == "HyperPodPyTorchJob":
        each = [
            (str(part["name"]), part["template"])
            for part in spec["replicaSpecs"]
            for _ in range(part.get("maxReplicas", part["replicas"]))
        ]
        return each[:count]
    if job["kind"] == "PyTorchJob":
        return [("worker", spec["pytorchReplicaSpecs"]["Worker"]["template"])] * count
    parts = spec["mpiReplicaSpecs"]
    launcher = [("launcher", parts["Launcher"]["template"])]
    return [*launcher, *[("worker", parts["Worker"]["template"])] * (count - 1)][:count]


def _base(job: JsonObject) -> int:
    """Pods that it has to have."""
    return _sizes(job)[0]


def _sizes(job: JsonObject) -> list[int]:
    """Every number of pods that it may have, in rising order."""
    spec = job["spec"]
    if job["kind"] == "Job":
        return [spec.get("parallelism", 1)]
    if job["kind"] == "MPIJob":
        return [1 + spec["mpiReplicaSpecs"]["Worker"]["replicas"]]
    if job["kind"] == "PyTorchJob":
        return [spec["pytorchReplicaSpecs"]["Worker"]["replicas"]]
    policy = spec.get("elasticPolicy")
    if not policy:
        return [sum(part["replicas"] for part in spec["replicaSpecs"])]
    least, most = policy["minReplicas"], policy["maxReplicas"]
    return policy.get("replicaDiscreteValues") or list(range(least, most + 1, policy.get("replicaIncrementStep", 1)))


def _fitting(
    pods: list[tuple[str, JsonObject]], free: dict[str, int], labels: Mapping[str, Mapping[str, str]], held: list[str]
) -> list[str] | None:
    """A node for each pod, those that it has first; None where they do not all fit. Takes what it gives from `free`."""
    left, locations = dict(free), list[str]()
    for at, (_, template) in enumerate(pods):
        spec = template["spec"]
        wants = _wants(spec)
        order = [*held[at : at + 1], *sorted(left, key=lambda name: (locations.count(name), name))]
        for name in order:
            selector: Mapping[str, str] = spec.get("nodeSelector", {})
            if left.get(name, -1) >= wants and all(labels[name].get(key) == value for key, value in selector.items()):
                left[name] -= wants
                locations.append(name)
                break
        else:
            return None
    free.update(left)
    return locations


def _wants(spec: JsonObject) -> int:
    """Accelerators of a pod."""
    return sum(
        int(container.get("resources", {}).get("requests", {}).get(name, 0))
        for container in spec["containers"]
        for name in (GPU, NEURON)
    )
