"""What decides, read from Kueue's objects as they are deployed: queues, cohorts, flavors, topologies, configuration."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, NamedTuple

from ....config.errors import InvalidValue
from ...kubernetes.durations import go_seconds
from .feature_gates import feature_gates
from .topology import Domains
from .tree import Node, Quota, settle
from .work import PodSet, Work, amount, taken

_NEVER: Final = "Never"
_NEWER: Final = "LowerOrNewerEqualPriority"


class Requeuing(NamedTuple):
    """When work waits again whose pods were not ready in time."""

    base_seconds: float = 60.0
    most_seconds: float = 3600.0
    tries: int | None = None
    """After the first; None tries forever."""
    by_eviction: bool = True
    """Whether it waits since then, rather than since its creation."""

    def backoff(self, times: int) -> float:
        """Seconds from an eviction until it waits again, after so many of them."""
        # No longer than the longest: a float has no power of two beyond a thousand.
        return min(self.base_seconds * 2.0 ** min(times - 1, 64), self.most_seconds)


class Group(NamedTuple):
    """Resources that take the same flavor, and the flavors in their order."""

    resources: tuple[str, ...]
    flavors: tuple[str, ...]


class Flavor(NamedTuple):
    """A ResourceFlavor."""

    name: str
    labels: dict[str, str]
    taints: list[dict[str, Any]]
    tolerations: list[dict[str, Any]]
    topology: str | None


class Check(NamedTuple):
    """An AdmissionCheck of a queue."""

    name: str
    flavors: tuple[str, ...]
    """For which it counts."""


class ClusterQueue(Node):
    """A ClusterQueue: its quotas are those of a node of the tree."""

    def __init__(self, name: str, size: int, spec: Mapping[str, Any]) -> None:
        """A queue as its spec has it, without its quotas."""
        super().__init__(name, size, _weight(spec))
        preemption, fungibility = spec.get("preemption") or {}, spec.get("flavorFungibility") or {}
        borrow_within = preemption.get("borrowWithinCohort") or {}
        self.groups = [_group(item) for item in spec.get("resourceGroups") or []]
        self.flavors = tuple(name for group in self.groups for name in group.flavors)
        self.is_strict = spec.get("queueingStrategy") == "StrictFIFO"
        self.within: str = preemption.get("withinClusterQueue") or _NEVER
        self.reclaim: str = preemption.get("reclaimWithinCohort") or ""
        self.counts_age = _NEWER in (self.within, self.reclaim)
        """Whether newer work of the same priority can be preempted."""
        self.borrows_within = borrow_within.get("policy", _NEVER) != _NEVER
        self.most_priority: int | None = borrow_within.get("maxPriorityThreshold")
        self.tries_beyond_borrowing = fungibility.get("whenCanBorrow") == "TryNextFlavor"
        self.tries_beyond_preempting = fungibility.get("whenCanPreempt") != "MayStopSearch"
        self.prefers_not_to_borrow = fungibility.get("preference") == "PreemptionOverBorrowing"
        self.checks = _checks(spec)
        self.selector: Mapping[str, Any] | None = spec.get("namespaceSelector")
        self.is_active = not _is_stopped(spec)
        self.is_below_cohort = False
        """Whether a Cohort is above that is more than a name."""
        self.work: dict[str, Work] = {}
        """Work that holds quota, by uid."""
        self.changes = 0
        """How often work has taken quota of it or left it."""
        self.changed_flavors: set[str] = set()
        """The flavors of that work, until somebody has looked at them."""

    def is_checked(self, flavors: Iterable[str]) -> bool:
        """Whether work with some of these flavors has quota before it is admitted, and waits for checks."""
        flavors = set(flavors)
        return any(not flavors.isdisjoint(check.flavors) for check in self.checks)

    def group_of(self, resource: str) -> Group | None:
        """The group that covers a resource."""
        return next((group for group in self.groups if resource in group.resources), None)


@dataclass
class Policy:
    """Everything that decides, and what is in use."""

    queues: dict[str, ClusterQueue]
    flavors: dict[str, Flavor]
    index: dict[tuple[str, str], int]
    """The flavor-resources."""
    resources: dict[str, list[int]]
    """Flavor-resources by resource."""
    local_queues: dict[tuple[str, str], str] = field(default_factory=dict)
    """Cluster queues by namespace and name of a local queue."""
    topologies: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Labels of levels from the top, by name."""
    namespaces: dict[str, dict[str, str]] | None = None
    """Labels of namespaces; None takes every namespace for one that a queue accepts."""
    fair_strategies: tuple[str, ...] = ()
    """How shares decide about preemption; empty without fair sharing."""
    provisioning: frozenset[str] = frozenset()
    """AdmissionChecks that provision nodes: before they are ready, nobody knows where pods go."""
    excluded: tuple[str, ...] = ()
    """Prefixes of resources that are not counted."""
    pod_sets: dict[str, tuple[PodSet, ...]] = field(default_factory=dict)
    """Of its work, by what objects say of them."""
    domains: Domains = field(default_factory=lambda: Domains({}, (), ()))
    """Where pods are placed."""
    ready_seconds: float | None = None
    """How long admitted work may lack pods; None does not look."""
    recovery_seconds: float | None = None
    """The same for work that has lost some after all were ready."""
    requeuing: Requeuing = field(default_factory=Requeuing)
    """What becomes of work that was not ready in time."""
    gates: Mapping[str, bool] = field(default_factory=feature_gates)
    """By name, whether each of Kueue's feature gates is on."""
    one_at_a_time: bool = False
    """Whether nothing is admitted until the last work is ready."""
    count: int = 0
    """How often any work has taken or left something."""
    changes: dict[str, int] = field(default_factory=dict)
    """By flavor, how often work has taken some of it or left it."""
    borrowings: dict[str, int] = field(default_factory=dict)
    """By flavor, how often that was work of a queue that still had more of it than its quota."""
    evictions: dict[str, int] = field(default_factory=dict)
    """By flavor, how often work that has some of it was told to end."""

    def hold(self, work: Work) -> None:
        """Put what `work` holds in use."""
        queue = self.queues[work.queue]
        queue.work[work.uid] = work
        for fr, value in work.usage.items():
            queue.add(fr, value)
        self.domains.hold(work.placements)

    def changed(self, work: Work) -> None:
        """Count that `work` has taken what it holds, or leaves it: for good, not to try what would be."""
        queue = self.queues[work.queue]
        queue.changes += 1
        self.count += 1
        borrows = not queue.is_within(work.usage)
        flavors = work.held_flavors
        queue.changed_flavors |= flavors
        for flavor in flavors:
            self.changes[flavor] = self.changes.get(flavor, 0) + 1
            self.borrowings[flavor] = self.borrowings.get(flavor, 0) + borrows

    def replaced(self, work: Work) -> Work | None:
        """The slice of the same elastic job whose place work takes, as long as that has quota of the same queue."""
        if not work.replaces:
            return None
        holding = self.queues[work.queue].work.values()
        return next((each for each in holding if each.key == work.replaces and each.namespace == work.namespace), None)

    def is_delayed(self, queue: str, flavor: str) -> bool:
        """Whether places of a flavor are chosen once a check of a queue is ready, and not with the quota."""
        return any(check.name in self.provisioning and flavor in check.flavors for check in self.queues[queue].checks)

    def evict(self, work: Work) -> None:
        """Tell `work` to end: from now on it is the first to be preempted."""
        work.evicted = True
        for flavor in work.held_flavors:
            self.evictions[flavor] = self.evictions.get(flavor, 0) + 1

    def release(self, work: Work) -> None:
        """Take back what it holds."""
        queue = self.queues[work.queue]
        del queue.work[work.uid]
        for fr, value in work.usage.items():
            queue.remove(fr, value)
        self.domains.hold(work.placements, -1)

    def become(self, other: "Policy") -> list[tuple[Work, set[tuple[str, ...]]]]:
        """Decide by `other` from now on, with what is in use.

        Both have the same queues, and their flavor-resources have the same numbers: see `also` of `policy`.

        Returns:
            Work whose nodes are no longer there, and those, in the order of its queues.
        """
        held = [work for queue in self.queues.values() for work in queue.work.values()]
        numbers = {name: self.changes.get(name, 0) + 1 for name in (*self.flavors, *other.flavors)}
        for each in fields(self):
            setattr(self, each.name, getattr(other, each.name))
        # Whatever was refused for want of something is to be decided about anew.
        self.changes = numbers
        for work in held:
            self.hold(work)
        return [(work, missing) for work in held if (missing := self.domains.missing(work.placements))]


def policy(
    objects: Iterable[Mapping[str, Any]],
    configuration: Mapping[str, Any] | None = None,
    also: Iterable[Mapping[str, Any]] = (),
) -> Policy:
    """The policy of Kueue's objects.

    Args:
        objects: The objects.
        configuration: That of Kueue's manager.
        also: The objects of all times, where some change: flavor-resources then have the same numbers at each.
    """
    objects, configuration = list(objects), configuration or {}
    by_kind: dict[str, list[Mapping[str, Any]]] = {}
    for item in objects:
        by_kind.setdefault(item["kind"], []).append(item)
    limited = [*by_kind.get("ClusterQueue", []), *by_kind.get("Cohort", [])]
    others = [item for item in also if item["kind"] in ("ClusterQueue", "Cohort")]
    # In an order of their own where several policies have them in common.
    pairs = dict.fromkeys(pair for item in (others or limited) for pair, _ in _quotas(item))
    index = {pair: number for number, pair in enumerate(pairs)}
    resources: dict[str, list[int]] = {}
    for (_, resource), fr in index.items():
        resources.setdefault(resource, []).append(fr)
    queues = {_name(item): _cluster_queue(item, index) for item in by_kind.get("ClusterQueue", [])}
    _grow(queues, by_kind, index)
    flavors = {_name(item): _flavor(item) for item in by_kind.get("ResourceFlavor", [])}
    for queue in queues.values():
        known = all(name in flavors for group in queue.groups for name in group.flavors)
        # One flavor that is not there stops a queue as a whole, also for its other flavors.
        queue.is_active = queue.is_active and known
    topologies = {_name(item): _levels(item) for item in by_kind.get("Topology", [])}
    fair = configuration.get("fairSharing") or {}
    wait = configuration.get("waitForPodsReady") or {}
    standard = ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]
    return Policy(
        queues,
        flavors,
        index,
        resources,
        {
            (item["metadata"].get("namespace", ""), _name(item)): item["spec"]["clusterQueue"]
            for item in by_kind.get("LocalQueue", [])
            if not _is_stopped(item["spec"])
        },
        topologies,
        domains=Domains(
            topologies,
            [(each.name, each.labels, each.topology) for each in flavors.values()],
            by_kind.get("Node", []),
            taken(by_kind.get("Pod", [])),
        ),
        fair_strategies=tuple(fair.get("preemptionStrategies") or standard) if fair else (),
        provisioning=frozenset(
            _name(item)
            for item in by_kind.get("AdmissionCheck", [])
            if item["spec"]["controllerName"] == "kueue.x-k8s.io/provisioning-request"
        ),
        excluded=tuple((configuration.get("resources") or {}).get("excludeResourcePrefixes") or ()),
        ready_seconds=go_seconds(wait["timeout"]) if wait.get("timeout") else None,
        recovery_seconds=_recovery(wait),
        requeuing=_requeuing(wait.get("requeuingStrategy") or {}),
        gates=feature_gates(configuration),
        one_at_a_time=bool(wait.get("blockAdmission")),
    )


def _recovery(wait: Mapping[str, Any]) -> float | None:
    """Kueue's recoveryTimeout, by default the other one: Kueue 0.19.2, apis/config/v1beta2/defaults.go."""
    text = wait.get("recoveryTimeout") or wait.get("timeout")
    return go_seconds(text) if text else None


def _requeuing(strategy: Mapping[str, Any]) -> Requeuing:
    """Kueue's requeuingStrategy. Source of the defaults: Kueue 0.19.2, apis/config/v1beta2/defaults.go."""
    known = Requeuing()
    return Requeuing(
        strategy.get("backoffBaseSeconds", known.base_seconds),
        strategy.get("backoffMaxSeconds", known.most_seconds),
        strategy.get("backoffLimitCount"),
        strategy.get("timestamp", "Eviction") == "Eviction",
    )


def check(policy: Policy) -> None:
    """Raise InvalidValue for what Kueue's webhooks refuse of a queue, with its reason."""
    for name, queue in policy.queues.items():
        covered = [resource for group in queue.groups for resource in group.resources]
        if len(covered) != len(set(covered)):
            raise InvalidValue(f"ClusterQueue {name} covers a resource in two groups, which Kueue refuses")
        if queue.borrows_within and queue.reclaim in ("", _NEVER):
            raise InvalidValue(
                f"ClusterQueue {name} has borrowWithinCohort without reclaimWithinCohort, which Kueue refuses"
            )
        if queue.parent is None and any(limit is not None for limit in queue.borrowing):
            raise InvalidValue(f"ClusterQueue {name} has a borrowingLimit and no cohort, which Kueue refuses")


def _name(item: Mapping[str, Any]) -> str:
    return item["metadata"]["name"]


def _group(item: Mapping[str, Any]) -> Group:
    return Group(tuple(item.get("coveredResources") or ()), tuple(flavor["name"] for flavor in item["flavors"]))


def _levels(topology: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(level["nodeLabel"] for level in topology["spec"]["levels"])


def _checks(spec: Mapping[str, Any]) -> tuple[Check, ...]:
    """The checks of a queue; one that names no flavors counts for all."""
    every = tuple(flavor["name"] for group in spec.get("resourceGroups") or [] for flavor in group["flavors"])
    listed = (spec.get("admissionChecksStrategy") or {}).get("admissionChecks") or []
    return tuple(Check(each["name"], tuple(each.get("onFlavors") or every)) for each in listed)


def _is_stopped(spec: Mapping[str, Any]) -> bool:
    return (spec.get("stopPolicy") or "None") != "None"


def _weight(spec: Mapping[str, Any]) -> float:
    weight = (spec.get("fairSharing") or {}).get("weight")
    # A quantity, such as 500m.
    return 1.0 if weight is None else amount("cpu", str(weight)) / 1000


def _quotas(item: Mapping[str, Any]) -> list[tuple[tuple[str, str], Quota]]:
    """The quotas that an object has, by flavor and resource."""
    flavors = [flavor for group in item["spec"].get("resourceGroups") or [] for flavor in group["flavors"]]
    return [
        ((flavor["name"], resource["name"]), _quota(resource))
        for flavor in flavors
        for resource in flavor.get("resources") or []
    ]


def _quota(resource: Mapping[str, Any]) -> Quota:
    def limit(key: str) -> int | None:
        return amount(resource["name"], resource[key]) if key in resource else None

    nominal = amount(resource["name"], resource["nominalQuota"])
    return Quota(nominal, limit("borrowingLimit"), limit("lendingLimit"))


def _cluster_queue(item: Mapping[str, Any], index: Mapping[tuple[str, str], int]) -> ClusterQueue:
    """A queue without its place in the tree."""
    name, spec = _name(item), item["spec"]
    queue = ClusterQueue(name, len(index), spec)
    for pair, quota in _quotas(item):
        queue.limit(index[pair], quota)
    return queue


def _grow(
    queues: Mapping[str, ClusterQueue], by_kind: Mapping[str, list[Mapping[str, Any]]], index: Mapping[Any, int]
) -> None:
    """Connect queues and cohorts. A cohort that is only named has no quota; queues of a circle are inactive."""
    cohorts: dict[str, Node] = {}
    for item in by_kind.get("Cohort", []):
        node = cohorts[_name(item)] = Node(_name(item), len(index), _weight(item["spec"]))
        for pair, quota in _quotas(item):
            node.limit(index[pair], quota)

    def cohort(name: str) -> Node:
        return cohorts.setdefault(name, Node(name, len(index)))

    for item in by_kind.get("Cohort", []):
        if above := item["spec"].get("parentName") or item["spec"].get("parent"):
            node = cohorts[_name(item)]
            node.parent = cohort(above)
            node.parent.cohorts.append(node)
    for item in by_kind.get("ClusterQueue", []):
        if above := item["spec"].get("cohortName") or item["spec"].get("cohort"):
            queue = queues[_name(item)]
            queue.parent = cohort(above)
            queue.parent.queues.append(queue)
    roots = [node for node in cohorts.values() if node.parent is None]
    reached = [node for root in roots for node in _below(root)]
    for root in roots:
        settle(root)
    for queue in queues.values():
        if queue.parent is not None and queue.parent not in reached:
            queue.is_active = False
            queue.parent = None
    made = {cohorts[_name(item)] for item in by_kind.get("Cohort", [])}
    for queue in queues.values():
        queue.is_below_cohort = not made.isdisjoint(queue.path())


def _below(node: Node) -> list[Node]:
    return [node, *(each for child in node.cohorts for each in _below(child))]


def _flavor(item: Mapping[str, Any]) -> Flavor:
    spec = item.get("spec") or {}
    return Flavor(
        _name(item),
        dict(spec.get("nodeLabels") or {}),
        list(spec.get("nodeTaints") or []),
        list(spec.get("tolerations") or []),
        spec.get("topologyName"),
    )
