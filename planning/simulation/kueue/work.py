"""Work that waits for quota or has it: what of a Workload decides."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from math import ceil
from typing import Any, Final, NamedTuple

from ...jobs.queue import REPLACEMENT
from ...quota.amounts import CPU, required_number

PODS: Final = "pods"
_GROUP: Final = "kueue.x-k8s.io/is-group-workload"
"""Annotation of a Workload that a group of Pods owns, however many are left of it."""
_POD: Final = [("v1", "Pod")]
TOPOLOGY_LABEL: Final = "kueue.x-k8s.io/tas"
"""Kueue puts it on the pods of work whose places it has chosen (constant TASLabel of its API v1beta2)."""


class TopologyRequest(NamedTuple):
    """How pods ask to lie together."""

    required: str | None = None
    preferred: str | None = None
    slice_level: str | None = None
    slice_size: int = 0
    group: str | None = None
    """Pod sets of one group, a leader and workers, are placed as one."""
    is_unconstrained: bool = False
    inner: tuple[tuple[str, int], ...] = ()
    """Levels below that of slices, and how many pods lie together in a domain of each."""

    @property
    def is_requested(self) -> bool:
        """Whether it asks for a place; a group alone does not."""
        return bool(self.required or self.preferred or self.slice_level or self.is_unconstrained)


@dataclass(slots=True)
class PodSet:
    """Equal pods of a job."""

    name: str
    count: int
    requests: dict[str, int]
    """Of one pod: CPU in thousandths, everything else in its unit."""
    least: int | None = None
    """The fewest pods that the job starts with."""
    selector: dict[str, str] = field(default_factory=dict)
    affinity: list[dict[str, Any]] = field(default_factory=list)
    """The terms of its required node affinity."""
    tolerations: list[dict[str, Any]] = field(default_factory=list)
    topology: TopologyRequest | None = None
    constraints: str = ""
    """What nodes they may go to, as one text."""
    shape: str = ""
    """Equal for pod sets that are equal. A text knows its hash, by which it is looked up often."""

    def __post_init__(self) -> None:
        self.constraints = repr((sorted(self.selector.items()), self.affinity, self.tolerations))
        requests = tuple(sorted(self.requests.items()))
        self.shape = repr((self.name, self.count, self.least, self.topology, requests, self.constraints))


class Placement(NamedTuple):
    """Pods of a pod set in a domain, by the value of each level from the top."""

    flavor: str
    domain: tuple[str, ...]
    pods: int
    requests: tuple[tuple[str, int], ...]
    """Of one pod."""
    pod_set: str = ""


@dataclass(slots=True, eq=False)
class Work:
    """A Workload."""

    uid: str
    namespace: str
    name: str
    queue: str
    """The cluster queue's name; empty where no queue leads to one."""
    priority: int
    created: float
    pod_sets: tuple[PodSet, ...]
    counts: tuple[int, ...] = ()
    """Pods of each set that it was admitted with."""
    flavors: tuple[dict[str, str], ...] = ()
    """By resource, of each pod set."""
    usage: dict[int, int] = field(default_factory=dict)
    """Quota that it holds by flavor-resource."""
    placements: tuple[Placement, ...] = ()
    reserved: float | None = None
    """Since when it holds quota."""
    is_admitted: bool = True
    """Whether its pods start with its quota; of what a cluster shows, checks may still have to be ready."""
    evicted: bool = False
    """Its pods are told to end, and hold their quota until they have."""
    ordered: float = 0.0
    """The time by which it waits: its creation, or a later one after it was sent back."""
    tried: tuple[dict[str, int], ...] = ()
    """Where the search for flavors stopped, by resource, of each pod set; -1 begins anew."""
    tried_in: int = -1
    """The cycle of that search."""
    freed: int = 0
    """How often quota had become free in its tree then."""
    shape: str = ""
    """Equal for work that only its name and its time tell apart."""
    is_pod: bool = False
    """Whether it is one Pod, which nobody makes anew where it is lost."""
    replaces: str = ""
    """`NAMESPACE/NAME` of the slice of the same elastic job whose place it takes; empty where it is no such slice."""

    def __post_init__(self) -> None:
        self.ordered = self.ordered or self.created
        self.prioritize(self.priority)

    def prioritize(self, priority: int) -> None:
        """Give it a priority; not while it waits in a queue, which is ordered by it."""
        self.priority = priority
        self.shape = repr((priority, *(item.shape for item in self.pod_sets)))

    @property
    def key(self) -> str:
        """`NAMESPACE/NAME`."""
        return f"{self.namespace}/{self.name}"

    @property
    def held_flavors(self) -> set[str]:
        """Flavors of which it holds something."""
        return {flavor for chosen in self.flavors for flavor in chosen.values()}

    def holds(self, frs: Collection[int], index: Mapping[tuple[str, str], int]) -> bool:
        """Whether its pods are of one of these flavor-resources."""
        return any(index[flavor, name] in frs for flavors in self.flavors for name, flavor in flavors.items())


def work_of(
    workload: Mapping[str, Any],
    queue: str,
    excluded: tuple[str, ...],
    known: dict[str, tuple[PodSet, ...]],
    reclaimable: Mapping[str, int],
) -> Work:
    """What decides of a Workload.

    Args:
        workload: The object.
        queue: The cluster queue to which its local queue leads.
        excluded: Prefixes of resources that the manager does not count.
        known: Pod sets by what objects say of them. Of thousands that wait, most are alike, and have these in common.
        reclaimable: Pods that have done their part and need quota no more, by the name of their set.
    """
    from_metadata, spec = workload["metadata"], workload["spec"]
    annotations = from_metadata.get("annotations") or {}
    text = repr((spec["podSets"], reclaimable) if reclaimable else spec["podSets"])
    if text not in known:
        sets = [pod_set(item, excluded) for item in spec["podSets"]]
        known[text] = tuple(
            replace(pods, count=max(0, pods.count - reclaimable.get(pods.name, 0))) if reclaimable else pods
            for pods in sets
        )
    return Work(
        uid=from_metadata.get("uid", ""),
        namespace=from_metadata.get("namespace", ""),
        name=from_metadata["name"],
        queue=queue,
        priority=spec.get("priority") or 0,
        created=0.0,
        pod_sets=known[text],
        is_pod=[(each["apiVersion"], each["kind"]) for each in from_metadata.get("ownerReferences") or ()] == _POD
        and annotations.get(_GROUP) != "true",
        replaces=annotations.get(REPLACEMENT, ""),
    )


def pod_set(item: Mapping[str, Any], excluded: tuple[str, ...] = ()) -> PodSet:
    """What decides of a pod set."""
    pod = item["template"]["spec"]
    affinity = (pod.get("affinity") or {}).get("nodeAffinity") or {}
    terms = (affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms") or []
    return PodSet(
        name=item["name"],
        count=item.get("count", 1),
        requests=_requests(pod, excluded),
        least=item.get("minCount"),
        selector=dict(pod.get("nodeSelector") or {}),
        affinity=list(terms),
        tolerations=list(pod.get("tolerations") or []),
        topology=_topology(item.get("topologyRequest")),
    )


@cache
def amount(resource: str, text: str) -> int:
    """A quantity as an integer, rounded up as Kueue does: CPU in thousandths, everything else in its unit."""
    number = required_number(text)
    return ceil(number * 1000 if resource == CPU else number)


def taken(pods: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """What pods that have a node and have not ended take of it, by node, but for those of topology-aware work."""
    result: dict[str, dict[str, int]] = {}
    for pod in pods:
        node, labels = pod["spec"].get("nodeName"), pod["metadata"].get("labels") or {}
        has_ended = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        if node and not has_ended and TOPOLOGY_LABEL not in labels:
            used = result.setdefault(node, {})
            for name, value in {**_requests(pod["spec"], ()), PODS: 1}.items():
                used[name] = used.get(name, 0) + value
    return result


def _requests(pod: Mapping[str, Any], excluded: tuple[str, ...]) -> dict[str, int]:
    """Of a pod: the sum of its containers, or the largest of those that run before them."""
    result: dict[str, int] = {}
    for name, text in (each for item in pod.get("containers") or [] for each in _of_container(item)):
        result[name] = result.get(name, 0) + amount(name, text)
    for name, text in (each for item in pod.get("initContainers") or [] for each in _of_container(item)):
        result[name] = max(result.get(name, 0), amount(name, text))
    for name, text in (pod.get("overhead") or {}).items():
        result[name] = result.get(name, 0) + amount(name, text)
    return {name: value for name, value in result.items() if not name.startswith(excluded)}


def _of_container(container: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What it requests; a limit without a request is one."""
    resources = container.get("resources") or {}
    return list(((resources.get("limits") or {}) | (resources.get("requests") or {})).items())


def _topology(request: Mapping[str, Any] | None) -> TopologyRequest | None:
    """How pods ask to lie together, in the fields of one layer of slices or of several."""
    if not request:
        return None
    # Slices of one level have fields of their own; those of several are a list, the largest first.
    layers = [(each["topology"], each["size"]) for each in request.get("podsetSliceRequiredTopologyConstraints") or []]
    single = (request.get("podSetSliceRequiredTopology"), request.get("podSetSliceSize") or 0)
    first, *inner = layers or [single]
    return TopologyRequest(
        request.get("required"),
        request.get("preferred"),
        *first,
        request.get("podSetGroupName"),
        bool(request.get("unconstrained")),
        tuple(inner),
    )
