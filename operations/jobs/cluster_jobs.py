"""The jobs of a cluster as Kubernetes has them: of all kinds, with their pods and with what Kueue says of them.

It reads what a team's role may read: objects in the namespaces of teams. Whoever may see all namespaces is asked once.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final, NamedTuple

from ...config.catalog.instance_types import environment_types
from ...config.settings.environment import Environment
from ...planning.jobs.plan import engine_of
from ...planning.jobs.queue import KAI_QUEUE_LABEL, YUNIKORN_QUEUE_LABEL
from ...planning.quota.amounts import in_words, is_accelerator
from ...planning.quota.policy import countable_groups, environment_policy
from ...planning.quota.team_names import team_namespace
from ...planning.simulation.snapshot import name_of
from ...planning.simulation.traces.workload_list import slice_before
from ..doctor.bundle import moment
from ..doctor.pods import Pod
from ..gates.jobs import state_of
from ..kubernetes.kubectl import Kubectl, Refused
from .conditions import condition, preemption, short_reason, with_verdicts
from .resources import (
    Amounts,
    accelerators,
    counted,
    free_on_nodes,
    of_pod,
    pods_least,
    pods_requested,
    pods_reserved,
    requested,
    reserved,
    total,
)

Object = dict[str, Any]
JOBS: Final[Mapping[str, str]] = {
    "hyperpodpytorchjobs.sagemaker.amazonaws.com": "hyperpod_pytorch",
    "pytorchjobs.kubeflow.org": "pytorch",
    "trainjobs.trainer.kubeflow.org": "train",
    "rayjobs.ray.io": "ray",
    "rayclusters.ray.io": "ray_cluster",
    "mpijobs.kubeflow.org": "mpi",
    "jobsets.jobset.x-k8s.io": "jobset",
    "leaderworkersets.leaderworkerset.x-k8s.io": "leader_worker_set",
    "jobs.batch": "job",
    "inferenceendpointconfigs.inference.sagemaker.aws.amazon.com": "inference",
    "jumpstartmodels.inference.sagemaker.aws.amazon.com": "jumpstart",
    "workspaces.workspace.jupyter.org": "space",
}
"""Kinds of jobs, by how kubectl names them, with podwright's word. What one of them owns is a part of it."""
_KUEUE: Final = ("workloads.kueue.x-k8s.io", "localqueues.kueue.x-k8s.io")
_FORBIDDEN: Final = "Forbidden"
_SYSTEM: Final = "kube-system"
"""Where nobody's work runs: a deployment's own jobs are there, such as the one that makes the folders of teams."""
_FIRST: Final = ("master", "launcher", "head")
# What numbers pods among each other, and the parts of a job that have such pods.
_NUMBERS: Final = (
    "training.kubeflow.org/replica-index",
    "leaderworkerset.sigs.k8s.io/worker-index",
    "batch.kubernetes.io/job-completion-index",
)
_PARTS: Final = ("jobset.sigs.k8s.io/job-index", "leaderworkerset.sigs.k8s.io/group-index")
_NAME_LABEL: Final = "app.kubernetes.io/name"
_NODES: Final = "nodes"
_NOT_LISTED: Final = re.compile(r'cannot list resource "([^"]+)"')


class Size(NamedTuple):
    """The number of pods of a job."""

    pods: int
    """Those that have quota, or a node where Kueue does not decide."""
    least: int
    """The fewest with which the job runs."""
    most: int
    """Those that the job can have."""


class Growth(NamedTuple):
    """The next size for which a job that runs waits."""

    workload: Object
    """The Workload that waits."""
    pods: int
    """The number of pods after it."""
    needs: Amounts
    """The resources that the job needs besides those that it holds."""


@dataclass(frozen=True)
class ClusterJob:
    """A job with everything that belongs to it."""

    item: Object
    kind: str
    """In podwright's words, or Kubernetes' where it has none."""
    team: str
    """Empty outside the namespaces of teams."""
    workloads: Sequence[Object]
    """What Kueue admits, oldest first; none with another engine."""
    pods: Sequence[Pod]
    free: Mapping[str, Amounts] = field(default_factory=dict)
    """The resources that are free on nodes, by flavor; empty where nodes cannot be read."""

    @property
    def name(self) -> str:
        """Its name."""
        return self.item["metadata"]["name"]

    @property
    def namespace(self) -> str:
        """Where it is."""
        return self.item["metadata"].get("namespace", "default")

    @property
    def created(self) -> datetime | None:
        """When it was submitted."""
        return moment(self.item["metadata"].get("creationTimestamp"))

    @property
    def queue(self) -> str:
        """The queue that it is in, by whoever keeps the quotas; empty where it is in none."""
        labels = self.item["metadata"].get("labels") or {}
        names = [workload["spec"].get("queueName", "") for workload in self.workloads[-1:]]
        return next(filter(None, (*names, labels.get(KAI_QUEUE_LABEL), labels.get(YUNIKORN_QUEUE_LABEL))), "")

    @property
    def waiting(self) -> list[Object]:
        """Its Workloads without a quota."""
        return [item for item in self.workloads if waits(item)]

    @property
    def next_pending(self) -> Object:
        """The pending Workload that Kueue will try to admit next."""
        return min(self.waiting, key=_rank)

    @cached_property
    def state(self) -> str:
        """`waiting`, `preempted`, `starting`, `running`, `stuck`, `paused`, `succeeded` or `failed`."""
        state, _ = state_of(self.item)
        if state in ("succeeded", "failed"):
            return state
        # An elastic job has several Workloads; with quota for one of them it runs, and waits only to grow.
        if self.workloads and len(self.waiting) == len(self.workloads):
            if not all(item["spec"].get("active", True) for item in self.waiting):
                return "paused"
            return "preempted" if any(map(preemption, self.waiting)) else "waiting"
        if any(pod.waiting for pod in self.pods):
            return "stuck"
        current = [pod for pod in self.pods if pod.phase in ("Pending", "Running")]
        if current and all(pod.phase == "Running" for pod in current):
            return "running"
        # Kueue has given it its quota, or one of its pods has its node: the others are on their way.
        started = self.workloads or any(pod.node for pod in current)
        return "starting" if started else "waiting"

    @property
    def reason(self) -> str:
        """Why it does not run, or does not have all of its pods, in a sentence; else empty."""
        if self.state == "failed":
            return state_of(self.item)[1]
        if self.state in ("waiting", "preempted", "paused") and self.waiting:
            return short_reason(self.next_pending, requested(self.next_pending), self.free)
        stuck = [
            f"{state.get('reason')}: {state.get('message', '')}".strip(": ")
            for pod in self.pods
            for state in pod.waiting
        ]
        return next(iter((*stuck, *self._unscheduled(), *self._growing())), "")

    def _growing(self) -> Iterator[str]:
        """The next size and its condition, where the job could be larger."""
        if growth := self.growth:
            needs = [in_words(name, count) for name, count in growth.needs.items() if is_accelerator(name) and count]
            needs = needs or [in_words(name, count) for name, count in growth.needs.items() if count]
            size = f"at {self.size.pods} of {self.size.most}, could grow to {growth.pods}"
            yield f"{size} when {' and '.join(needs)} are free" if needs else size

    def _unscheduled(self) -> Iterator[str]:
        for pod in self.pods:
            entry = condition(pod.status, "PodScheduled")
            if pod.phase == "Pending" and entry.get("status") == "False":
                yield entry.get("message") or entry.get("reason", "")

    @property
    def asks(self) -> Amounts:
        """The resources that it requests: of its Workloads, else of its pods that have not ended."""
        if self.workloads:
            return total((requested(item), 1) for item in self._last_slices)
        # Pods alone would leave out those of a suspended job, which Kueue has not let be made.
        return total((of_pod(pod.spec), 1) for pod in self._current_pods)

    @property
    def holds(self) -> Amounts:
        """The resources that it has: the quota of its Workloads, else those of its pods that have a node."""
        if self.workloads:
            return total((reserved(item), 1) for item in self.workloads)
        return total((of_pod(pod.spec), 1) for pod in self._current_pods if pod.node)

    @property
    def accelerators(self) -> int:
        """The GPUs, partitions or Neuron devices that it holds; those that it requests while it holds nothing."""
        return accelerators(self.holds or self.asks)

    @property
    def size(self) -> Size:
        """Its pods: now, at least and at most."""
        if not self.workloads:
            current = len(self._current_pods)
            return self._bounded(sum(bool(pod.node) for pod in self._current_pods), current, current)
        most = sum(map(pods_requested, self._last_slices))
        # Each of several Workloads starts by itself; one may start with fewer pods than it requests.
        least = pods_least(self.workloads[0]) if len(self.workloads) == 1 else most
        return self._bounded(sum(map(pods_reserved, self.workloads)), least, most)

    @cached_property
    def growth(self) -> Growth | None:
        """The next size of a job of which some Workloads have quota and others wait; otherwise None."""
        waiting = sorted(self.waiting, key=_rank)
        if not waiting or len(waiting) == len(self.workloads):
            return None
        following, pods, needs = waiting[0], self.size.pods, requested(waiting[0])
        before = next((item for item in self.workloads if name_of(item) == slice_before(following)), None)
        if before is None:
            return Growth(following, pods + pods_requested(following), needs)
        # A slice takes the place of another one, whose quota it has already.
        has = reserved(before)
        more = {name: max(amount - has.get(name, 0), 0) for name, amount in needs.items()}
        return Growth(following, pods - pods_reserved(before) + pods_requested(following), more)

    @property
    def parts(self) -> list[Object]:
        """Its Workloads as plain data: the class, the priority and the quota of each."""
        return [
            {
                "workload": item["metadata"]["name"],
                "priority": item["spec"].get("priority"),
                "priority_class": (item["spec"].get("priorityClassRef") or {}).get("name", ""),
                "has_quota": not waits(item),
                "was_preempted": waits(item) and preemption(item) is not None,
                "pods": pods_requested(item) if waits(item) else pods_reserved(item),
                "accelerators": accelerators(requested(item) if waits(item) else reserved(item)),
            }
            for item in self.workloads
        ]

    @property
    def _last_slices(self) -> list[Object]:
        """Its Workloads without those whose place another one is about to take: that one requests all pods."""
        before = {slice_before(item) for item in self.workloads}
        return [item for item in self.workloads if name_of(item) not in before]

    @property
    def _current_pods(self) -> list[Pod]:
        return [pod for pod in self.pods if pod.phase not in ("Succeeded", "Failed")]

    def _bounded(self, pods: int, least: int, most: int) -> Size:
        """A size within the bounds that the job itself states."""
        policy = self.item.get("spec", {}).get("elasticPolicy") or {}
        return Size(pods, policy.get("minReplicas") or least, policy.get("maxReplicas") or most)

    @property
    def running_pods(self) -> int:
        """Pods that run."""
        return sum(pod.phase == "Running" for pod in self.pods)

    def _of_scheduler(self, key: str) -> Any:
        """A field of what is scheduled: the first Workload, else the pods that KAI and YuniKorn take one by one."""
        # An elastic job's further Workloads may have a lower class; the first one is the job without them.
        specs = [item["spec"] for item in self.workloads[:1]] or [pod.spec for pod in self.pods[:1]]
        return next((spec.get(key) for spec in specs), None)

    def to_json(self) -> Object:
        """The job as plain data."""
        return {
            "name": self.name,
            "kind": self.kind,
            "team": self.team,
            "namespace": self.namespace,
            "state": self.state,
            "queue": self.queue,
            "priority": self._of_scheduler("priority"),
            "priority_class": (self._of_scheduler("priorityClassRef") or {}).get("name")
            or self._of_scheduler("priorityClassName")
            or "",
            "accelerators": self.accelerators,
            "holds": counted(self.holds),
            "asks": counted(self.asks),
            "size": self.size._asdict(),
            "parts": self.parts,
            "pods": len(self.pods),
            "running_pods": self.running_pods,
            "created": self.created.isoformat() if self.created else None,
            "reason": self.reason,
        }


@dataclass(frozen=True)
class Cluster:
    """What was read of a cluster at one time."""

    jobs: tuple[ClusterJob, ...]
    items: tuple[Object, ...]
    hidden: tuple[str, ...]
    """Namespaces of teams that whoever asks may not read."""
    now: datetime
    free: Mapping[str, Amounts] = field(default_factory=dict)
    """The resources that are free on nodes, by flavor; empty where nodes cannot be read."""

    def kind(self, kind: str) -> list[Object]:
        """Objects of a kind."""
        return [item for item in self.items if item["kind"] == kind]

    def line_up(self, job: ClusterJob) -> list[Object]:
        """The Workloads that wait in the job's queue, in the order in which Kueue takes them."""
        same = [
            item
            for item in self.kind("Workload")
            if item["metadata"]["namespace"] == job.namespace and item["spec"].get("queueName") == job.queue
        ]
        return sorted(filter(waits, same), key=_rank)

    def position(self, job: ClusterJob) -> tuple[int, int] | None:
        """Its position in its queue and how many wait in it; None where it does not wait in one of Kueue's."""
        order = [item["metadata"]["uid"] for item in self.line_up(job)]
        own = [order.index(item["metadata"]["uid"]) for item in job.waiting if item["metadata"]["uid"] in order]
        return (min(own) + 1, len(order)) if own and len(own) == len(job.workloads) else None


def read_cluster(
    kubectl: Kubectl, environment: Environment, team: str | None = None, more: Sequence[str] = ()
) -> Cluster:
    """The jobs of an environment's teams, of one when it is named, and of namespaces that its jobs name.

    Args:
        kubectl: The way to Kubernetes.
        environment: The environment.
        team: Only this team's.
        more: Kinds that are read besides, by how kubectl names them.

    Raises:
        Refused: kubectl fails, and not because somebody may not read.
    """
    engine = engine_of(environment)
    names = {team_namespace(engine, name): name for name in environment.governance.teams if engine}
    own = {name for name in names if team in (None, names[name])}
    if team is None:
        own |= {job.namespace or "default" for job in environment.jobs.values() if not job.team}
    items, hidden = _read(kubectl, sorted(own), engine in ("hyperpod", "kueue"), team is None, more)
    items, now = with_verdicts(items), datetime.now(UTC)
    free = _free(environment, items)
    return Cluster(tuple(_jobs(items, names, now, free)), tuple(items), tuple(hidden), now, free)


def _free(environment: Environment, items: Sequence[Object]) -> dict[str, Amounts]:
    """The resources that are free on nodes, by flavor; empty where the nodes are not among the objects."""
    nodes = nodes_of_quotas(environment, items)
    if not nodes or not environment.governance.teams:
        return {}
    pods = [item for item in items if item["kind"] == "Pod"]
    flavors = environment_policy(environment, environment_types(environment.instance_types)).flavors
    return {name: free_on_nodes(nodes, pods, flavor.groups) for name, flavor in flavors.items()}


def nodes_of_quotas(environment: Environment, items: Iterable[Object]) -> list[Object]:
    """The nodes among objects that the quotas count; empty where another cluster has them."""
    if countable_groups(environment) is not environment.instance_groups:
        return []
    return [item for item in items if item["kind"] == "Node"]


def _read(
    kubectl: Kubectl, namespaces: Sequence[str], kueue: bool, everywhere: bool, more: Sequence[str]
) -> tuple[list[Object], list[str]]:
    """Objects, and the namespaces that may not be read."""
    served = set(kubectl.run("api-resources", "--no-headers", "--output=name").split())
    asked = ["pods", *JOBS, *(_KUEUE if kueue else ()), *more]
    kinds = ",".join(kind for kind in asked if kind in served)
    # One request for all namespaces where somebody may make it; people of one team mostly may not.
    if everywhere:
        try:
            return _everywhere(kubectl, kinds), []
        except Refused as refused:
            if _FORBIDDEN not in str(refused):
                raise
    kinds = _without_nodes(kinds)
    items: list[Object] = []
    hidden: list[str] = []
    for namespace in namespaces:
        try:
            items += kubectl.items(kinds, f"--namespace={namespace}")
        except Refused as refused:
            if _FORBIDDEN not in str(refused):
                raise
            hidden.append(namespace)
    return items, hidden


def _everywhere(kubectl: Kubectl, kinds: str) -> list[Object]:
    """Objects of all namespaces; without nodes for a role that may read everything else."""
    try:
        return kubectl.items(kinds, "--all-namespaces")
    except Refused as refused:
        if {*_NOT_LISTED.findall(str(refused))} != {_NODES}:
            raise
    return kubectl.items(_without_nodes(kinds), "--all-namespaces")


def _without_nodes(kinds: str) -> str:
    return ",".join(kind for kind in kinds.split(",") if kind != _NODES)


def _jobs(
    items: Sequence[Object], teams: Mapping[str, str], now: datetime, free: Mapping[str, Amounts]
) -> Iterator[ClusterJob]:
    """Jobs that no other of them owns, with the pods and Workloads that come from each."""
    kinds = {name.partition(".")[0].removesuffix("s"): kind for name, kind in JOBS.items()}
    owners = {item["metadata"]["uid"]: _owner(item) for item in items}
    tops = {
        item["metadata"]["uid"]: item
        for item in items
        if item["kind"].lower() in kinds and item["metadata"].get("namespace") != _SYSTEM
    }
    tops = {uid: item for uid, item in tops.items() if _owner(item) not in tops}
    names = {(item["metadata"].get("namespace"), item["metadata"]["name"]): uid for uid, item in tops.items()}
    parts: dict[str, list[Object]] = {uid: [] for uid in tops}
    for item in items:
        if item["kind"] in ("Pod", "Workload"):
            labels = item["metadata"].get("labels") or {}
            # What comes to a job by objects that nobody read carries its name, as all manifests of ours say.
            named = names.get((item["metadata"].get("namespace"), labels.get(_NAME_LABEL)))
            top = _top(item["metadata"]["uid"], owners, tops) or named
            parts.get(top or "", []).append(item)
    for uid, item in sorted(tops.items(), key=lambda pair: _sort_key(pair[1])):
        yield ClusterJob(
            item,
            kinds[item["kind"].lower()],
            teams.get(item["metadata"].get("namespace", ""), ""),
            sorted((part for part in parts[uid] if part["kind"] == "Workload" and not finished(part)), key=_created),
            [Pod(part, now) for part in sorted(parts[uid], key=pod_rank) if part["kind"] == "Pod"],
            free,
        )


def _sort_key(item: Object) -> tuple[str, str, str]:
    return item["metadata"].get("namespace", ""), _created(item), item["metadata"]["name"]


def _created(item: Object) -> str:
    return item["metadata"].get("creationTimestamp") or ""


def _owner(item: Object) -> str:
    references = item["metadata"].get("ownerReferences") or [{}]
    # Several objects may own one; the controller among them is the one that made it.
    controller = next((entry for entry in references if entry.get("controller")), references[0])
    return controller.get("uid", "")


def _top(uid: str, owners: Mapping[str, str], tops: Mapping[str, Object]) -> str:
    while uid and uid not in tops:
        uid = owners.get(uid, "")
    return uid


def pod_rank(item: Object) -> tuple[bool, int, int, str]:
    """Sorts pods as their ranks are numbered: what starts and heads first, then by part and number."""
    labels, name = item["metadata"].get("labels") or {}, item["metadata"]["name"]
    role = labels.get("training.kubeflow.org/replica-type") or labels.get("ray.io/node-type") or ""
    number = next(filter(None, map(labels.get, _NUMBERS)), None)
    part = next(filter(None, map(labels.get, _PARTS)), "0")
    # Where no label numbers it, its name does; KubeRay's and JobSet's end in five random characters.
    digits = re.search(r"-(\d+)(?:-[a-z0-9]{5})?$", f"-{number}" if number else name)
    return role.lower() not in _FIRST, int(part), int(digits[1]) if digits else 0, name


def waits(workload: Object) -> bool:
    """Whether a Workload has no quota and is not over."""
    return not finished(workload) and condition(workload.get("status"), "QuotaReserved").get("status") != "True"


def finished(workload: Object) -> bool:
    """Whether a Workload is over."""
    return condition(workload.get("status"), "Finished").get("status") == "True"


def _rank(workload: Object) -> tuple[int, str, str]:
    """The order of a queue: priority, then time; what lost its quota by a time-out or a check goes behind."""
    evicted = condition(workload.get("status"), "Evicted")
    behind = evicted.get("status") == "True" and evicted.get("reason") in ("PodsReadyTimeout", "AdmissionCheck")
    since = evicted["lastTransitionTime"] if behind else _created(workload)
    return -workload["spec"].get("priority", 0), since, workload["metadata"]["uid"]
