"""Policies and streams of jobs, made up by a seed: what the simulator and a real Kueue have to decide alike.

Each policy is a tree of cohorts of its own with its own flavors, queues and nodes, so many fit into one cluster. Orders
that Kueue leaves open do not occur: jobs of one policy come one at a time, and equal ones in different seconds. The
head of a strict queue tries flavors in turn forever, so strict queues have one flavor: of two, the next one would be a
matter of time.
"""

import copy
import random
from dataclasses import dataclass, field
from typing import Any, Final

Object = dict[str, Any]
REPLACEMENT: Final = "kueue.x-k8s.io/workload-slice-replacement-for"
_EVERY: Final = 4
"""Of so many policies one has jobs that grow, and another some with layers of slices."""
API: Final = "kueue.x-k8s.io/v1beta2"
NAMESPACE: Final = "default"
GPU: Final = "example.com/gpu"
POOL: Final = "example.com/pool"
BLOCK: Final = "example.com/block"
RACK: Final = "example.com/rack"
HOST: Final = "kubernetes.io/hostname"
_PRIORITIES: Final = (0, 10, 20, 30)
_HARD: Final = {"key": "example.com/kept", "value": "yes", "effect": "NoSchedule"}
_TOLERATED: Final = {"key": "example.com/kept", "operator": "Exists"}


@dataclass
class MadePolicy:
    """A policy, and what its jobs are made of."""

    seed: int
    name: str
    is_fair: bool
    chance: random.Random
    objects: list[Object] = field(default_factory=list)
    """Kueue's, in the order in which they are made."""
    nodes: list[Object] = field(default_factory=list)
    queues: list[str] = field(default_factory=list)
    flavors: list[str] = field(default_factory=list)
    levels: list[str] = field(default_factory=list)
    resources: list[str] = field(default_factory=list)
    jobs: int = 0

    @property
    def is_elastic(self) -> bool:
        """Whether its jobs grow."""
        return self.seed % _EVERY == 3

    @property
    def is_layered(self) -> bool:
        """Whether its jobs have slices within slices, where it has levels for them."""
        return self.seed % _EVERY == 2 and len(self.levels) > 1


def made_policy(seed: int, *, is_fair: bool, mark: str = "") -> MadePolicy:
    """The policy of a seed; a mark in its names tells it from the same one that a cluster has already."""
    result = MadePolicy(seed, f"{'f' if is_fair else 'c'}{seed}{mark}", is_fair, random.Random(f"{seed} {is_fair}"))
    chance = result.chance
    result.resources = ["cpu"] if chance.random() < 0.6 else ["cpu", GPU]
    by_topology = chance.random() < 0.35
    result.flavors = [f"{result.name}-{letter}" for letter in "abc"[: chance.choice((1, 1, 2, 3))]]
    if by_topology:
        result.levels = chance.choice(([BLOCK, RACK, HOST], [RACK, HOST], [BLOCK, RACK], [HOST]))
        result.objects.append(
            _object("Topology", result.name, {"levels": [{"nodeLabel": each} for each in result.levels]})
        )
    for number, name in enumerate(result.flavors):
        result.objects.append(_object("ResourceFlavor", name, _flavor(result, name, first=not number)))
    cohorts = _cohorts(result)
    for number in range(chance.randint(2, 5)):
        _queue(result, f"{result.name}-{number}", chance.choice(cohorts) if cohorts else None)
    return result


def job(made: MadePolicy) -> Object:
    """The next job: a Workload."""
    chance = made.chance
    made.jobs += 1
    pod_sets = [_pod_set(made, "main", chance.choice((1, 1, 2, 3, 4, 6)))]
    if chance.random() < 0.2:
        pod_sets.append(_pod_set(made, "more", chance.randint(1, 3)))
        if made.levels and chance.random() < 0.5:
            _group(made, pod_sets)
    elif pod_sets[0]["count"] > 1 and chance.random() < 0.25:
        # Of fewer pods than a slice has, Kueue writes an admission that the API server refuses, and tries it forever.
        request = pod_sets[0].get("topologyRequest", {})
        layers = request.get("podsetSliceRequiredTopologyConstraints", [{"size": 1}])
        least = request.get("podSetSliceSize", layers[0]["size"])
        pod_sets[0]["minCount"] = chance.randint(least, max(least, pod_sets[0]["count"] - 1))
    spec = {"queueName": chance.choice(made.queues), "priority": chance.choice(_PRIORITIES), "podSets": pod_sets}
    result = _object("Workload", f"{made.name}-job-{made.jobs}", spec)
    result["metadata"]["namespace"] = NAMESPACE
    return result


def larger(made: MadePolicy, before: Object) -> Object:
    """A slice of an elastic job that takes the place of the one before, with more pods in its first set."""
    made.jobs += 1
    result = _object("Workload", f"{made.name}-job-{made.jobs}", copy.deepcopy(before["spec"]))
    key = f"{NAMESPACE}/{before['metadata']['name']}"
    result["metadata"] |= {"namespace": NAMESPACE, "annotations": {REPLACEMENT: key}}
    result["spec"]["podSets"][0]["count"] += made.chance.randint(1, 3)
    return result


def _object(kind: str, name: str, spec: Object) -> Object:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _flavor(made: MadePolicy, name: str, *, first: bool) -> Object:
    """A flavor; those by topology bring their nodes."""
    chance = made.chance
    spec: Object = {"nodeLabels": {POOL: name}}
    if chance.random() < 0.15:
        spec["nodeTaints"] = [_HARD]
    if made.levels and (first or chance.random() < 0.6):
        spec["topologyName"] = made.name
        _nodes(made, name, spec.get("nodeTaints", []))
    return spec


def _nodes(made: MadePolicy, flavor: str, taints: list[Object]) -> None:
    """Nodes of different sizes in two blocks of two racks."""
    chance = made.chance
    for number in range(chance.randint(3, 8)):
        name = f"{flavor}-{number}"
        labels = {POOL: flavor, HOST: name, BLOCK: f"{flavor}-{number % 2}", RACK: f"{flavor}-{number % 4}"}
        amounts = {
            "cpu": str(chance.randint(2, 5)),
            GPU: str(chance.randint(2, 5)),
            "pods": str(chance.choice((3, 110))),
        }
        status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
        metadata = {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}}
        own = {"metadata": metadata, "spec": {"taints": taints}, "status": status}
        made.nodes.append({"apiVersion": "v1", "kind": "Node", **own})


def _cohorts(made: MadePolicy) -> list[str]:
    """Names of cohorts, in a tree of up to three levels; none where queues stand alone."""
    chance = made.chance
    if chance.random() < 0.08:
        return []
    names = [f"{made.name}-root"]
    for number in range(chance.choice((0, 0, 1, 2, 3))):
        above = chance.choice(names)
        spec: Object = {"parentName": above}
        if chance.random() < 0.4:
            spec["resourceGroups"] = _groups(made, most=3, limited=True)
        if made.is_fair:
            spec["fairSharing"] = {"weight": _weight(made)}
        names.append(f"{made.name}-mid-{number}")
        made.objects.append(_object("Cohort", names[-1], spec))
    if chance.random() < 0.2:
        made.objects.append(_object("Cohort", names[0], {"resourceGroups": _groups(made, most=4, limited=False)}))
    return names


def _weight(made: MadePolicy) -> str:
    return made.chance.choice(("1", "1", "2", "3", "700m", "1300m", "0"))


def _groups(made: MadePolicy, *, most: int, limited: bool) -> list[Object]:
    """Quotas of all flavors."""
    flavors = [
        {"name": name, "resources": [_quota(made, resource, most, limited=limited) for resource in made.resources]}
        for name in made.flavors
    ]
    return [{"coveredResources": made.resources, "flavors": flavors}]


def _quota(made: MadePolicy, resource: str, most: int, *, limited: bool) -> Object:
    chance = made.chance
    nominal = chance.randint(0, most)
    result: Object = {"name": resource, "nominalQuota": str(nominal)}
    if limited and chance.random() < 0.3:
        result["borrowingLimit"] = str(chance.randint(0, most))
    if limited and chance.random() < 0.3:
        result["lendingLimit"] = str(chance.randint(0, nominal))
    return result


def _queue(made: MadePolicy, name: str, cohort: str | None) -> None:
    """A queue, and the local one that leads to it."""
    chance = made.chance
    most = 12 // len(made.flavors)
    spec: Object = {"namespaceSelector": {}, "resourceGroups": _groups(made, most=most, limited=cohort is not None)}
    if chance.random() < 0.3:
        # The order of flavors is the queue's own.
        chance.shuffle(spec["resourceGroups"][0]["flavors"])
    is_strict = len(made.flavors) == 1 and chance.random() < 0.4
    spec["queueingStrategy"] = "StrictFIFO" if is_strict else "BestEffortFIFO"
    preemption: Object = {
        "withinClusterQueue": chance.choice(("Never", *("LowerPriority", "LowerOrNewerEqualPriority") * 2)),
        "reclaimWithinCohort": chance.choice(("Never", *("LowerPriority", "Any") * 2)),
    }
    if not made.is_fair and preemption["reclaimWithinCohort"] != "Never" and chance.random() < 0.5:
        within: Object = {"policy": "LowerPriority"}
        if chance.random() < 0.5:
            within["maxPriorityThreshold"] = chance.choice(_PRIORITIES)
        preemption["borrowWithinCohort"] = within
    spec["preemption"] = preemption
    fungibility = {
        "whenCanBorrow": chance.choice(("MayStopSearch", "TryNextFlavor")),
        "whenCanPreempt": chance.choice(("MayStopSearch", "TryNextFlavor")),
    }
    if set(fungibility.values()) == {"TryNextFlavor"} and chance.random() < 0.6:
        fungibility["preference"] = chance.choice(("BorrowingOverPreemption", "PreemptionOverBorrowing"))
    spec["flavorFungibility"] = fungibility
    if cohort:
        spec["cohortName"] = cohort
        spec |= {"fairSharing": {"weight": _weight(made)}} if made.is_fair else {}
    local = _object("LocalQueue", name, {"clusterQueue": name})
    local["metadata"]["namespace"] = NAMESPACE
    made.objects += [_object("ClusterQueue", name, spec), local]
    made.queues.append(name)


def _pod_set(made: MadePolicy, name: str, count: int) -> Object:
    chance = made.chance
    requests = {"cpu": chance.choice(("1", "1", "2", "1500m"))}
    if GPU in made.resources and chance.random() < 0.8:
        requests[GPU] = str(chance.randint(1, 2))
    pod: Object = {
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "none", "resources": {"requests": requests}}],
    }
    if chance.random() < 0.4:
        pod["tolerations"] = [_TOLERATED]
    if chance.random() < 0.15:
        pod["nodeSelector"] = {POOL: chance.choice(made.flavors)}
    result: Object = {"name": name, "count": count, "template": {"spec": pod}}
    if made.levels and chance.random() < 0.7:
        result["topologyRequest"] = _topology(made, count)
    return result


def _topology(made: MadePolicy, count: int) -> Object:
    """How pods ask to lie together."""
    chance = made.chance
    kind = chance.choice(("required", "preferred", "unconstrained"))
    if kind == "unconstrained":
        return {"unconstrained": True}
    level = chance.randrange(len(made.levels))
    result: Object = {kind: made.levels[level]}
    if made.is_layered and level < len(made.levels) - 1 and count in (4, 6):
        outer = chance.randrange(level, len(made.levels) - 1)
        layers = [(made.levels[outer], count // chance.choice((1, 2))), (made.levels[-1], chance.choice((1, 2)))]
        if layers[0][1] % layers[1][1] == 0:
            result["podsetSliceRequiredTopologyConstraints"] = [
                {"topology": label, "size": size} for label, size in layers
            ]
            return result
    sizes = [size for size in (2, 3) if count % size == 0]
    if sizes and chance.random() < 0.4:
        result["podSetSliceRequiredTopology"] = chance.choice(made.levels[level:])
        result["podSetSliceSize"] = chance.choice(sizes)
    return result


def _group(made: MadePolicy, pod_sets: list[Object]) -> None:
    """A leader and workers, which lie together."""
    leader, workers = pod_sets[1], pod_sets[0]
    leader["count"] = 1
    request = {made.chance.choice(("required", "preferred")): made.chance.choice(made.levels)}
    for each in (leader, workers):
        each["topologyRequest"] = {**request, "podSetGroupName": "together"}
