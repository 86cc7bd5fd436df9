"""Holds the simulator to cases of Kueue's own tests, written out as JSON: `python tests/conformance/run.py FOLDER`.

Prints for each suite how many cases are equal, different, and unsupported with the reason; returns 1 where one differs.
"""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from podwright.planning.simulation.kueue import fair
from podwright.planning.simulation.kueue.admitted import domains, work_in
from podwright.planning.simulation.kueue.cycle import Scheduler, Status
from podwright.planning.simulation.kueue.feature_gates import feature_gates, is_simulated
from podwright.planning.simulation.kueue.flavors import Assigner, Mode, Rank
from podwright.planning.simulation.kueue.policy import Policy, policy
from podwright.planning.simulation.kueue.preemption import Target, classical
from podwright.planning.simulation.kueue.second_pass import has_delayed_places, has_other_node
from podwright.planning.simulation.kueue.topology import Domains, NoPlacement, Part
from podwright.planning.simulation.kueue.work import Placement, Work, pod_set, taken, work_of


class Unsupported(Exception):
    """A case needs what is not simulated."""


class Result(NamedTuple):
    """Of one case."""

    suite: str
    name: str
    difference: str
    """Empty where it is equal."""
    unsupported: str = ""


def _gates(case: Mapping[str, Any]) -> dict[str, Any]:
    """The gates of a case as a manager's configuration."""
    gates = case.get("featureGates") or {}
    for gate, value in gates.items():
        if not is_simulated(gate, value):
            raise Unsupported(f"gate {gate}: {'on' if value else 'off'}")
    return {"featureGates": gates}


def _kind(kind: str, items: Any) -> list[dict[str, Any]]:
    return [{"kind": kind, **item} for item in items or []]


def _work(item: Mapping[str, Any], decides: Policy) -> Work:
    """A Workload with what it holds."""
    if any(each["template"]["spec"]["containers"][0]["resources"].get("limits") for each in item["spec"]["podSets"]):
        raise Unsupported("limits of containers")
    return work_in(decides, item)


# ------------------------------------------------------------------------------------------- preemption


def preemption(data: Mapping[str, Any], *, is_fair: bool = False) -> str:
    case = data["tc"]
    _gates(case)
    objects = _kind("ClusterQueue", case["clusterQueues"]) + _kind("Cohort", case.get("cohorts"))
    objects += _kind("ResourceFlavor", data["flavors"])
    configuration = {"fairSharing": {"preemptionStrategies": case.get("strategies") or []}} if is_fair else {}
    decides = policy(objects, configuration)
    for item in case.get("admitted") or []:
        _work(item, decides)
    work = _work({**case["incoming"], "status": {}}, decides)
    work.queue = case["targetCQ"]
    if is_fair:
        assigned = [
            {"Flavors": {name: {"Mode": 1, "Name": "default"} for name in pods.requests}} for pods in work.pod_sets
        ]
    else:
        assigned = case["assignment"]["PodSets"]
    needed, requests = set[int](), dict[int, int]()
    for pods, each in zip(work.pod_sets, assigned, strict=True):
        for name, flavor in each["Flavors"].items():
            fr = decides.index[flavor["Name"], name]
            requests[fr] = requests.get(fr, 0) + pods.requests.get(name, 0) * pods.count
            if 0 < flavor.get("Mode", 0) < 3:
                needed.add(fr)
    decide: Callable[..., list[Target] | None] = fair.targets if is_fair else classical
    now = 1e12
    targets = decide(decides, work, needed, requests, now, lambda: True)
    actual = [
        f"{target.work.namespace}/{target.work.name}{':' if is_fair else '|'}{target.reason}"
        for target in targets or []
    ]
    expected = data.get("targetsInOrder") or []
    return "" if actual == expected else f"{actual}, not {expected}"


# -------------------------------------------------------------------------------------------- flavors


_POSSIBLE: Final = (Mode.NO_CANDIDATES, Mode.PREEMPT, Mode.RECLAIM)


def flavors(data: Mapping[str, Any]) -> str:
    case = data["tc"]
    gates = _gates(case)
    queues = [case["clusterQueue"], *filter(None, [case.get("secondaryClusterQueue")])]
    objects = _kind("ClusterQueue", queues) + _kind("ResourceFlavor", data["resourceFlavors"].values())
    objects += [
        {"kind": "Topology", "metadata": {"name": name}, "spec": {"levels": [{"nodeLabel": "kubernetes.io/hostname"}]}}
        for name in ("tas-topo-a", "tas-topo-b")
    ]
    decides = policy(objects, gates | ({"fairSharing": {"enable": True}} if case.get("enableFairSharing") else {}))
    queue = decides.queues[case["clusterQueue"]["metadata"]["name"]]
    for key, used in (("clusterQueueUsage", queue), ("secondaryClusterQueueUsage", None)):
        holder = used or next((each for each in decides.queues.values() if each is not queue), None)
        for text, value in (case.get(key) or {}).items():
            pair = json.loads(text)
            if holder is not None and (pair["Flavor"], pair["Resource"]) in decides.index:
                holder.add(decides.index[pair["Flavor"], pair["Resource"]], value.get("value", 0))
    simulated = {
        decides.index[pair["Flavor"], pair["Resource"]]: Rank(
            _POSSIBLE[each.get("preemptionPossiblity", 0)], each.get("borrowingAfterSimulation", 0)
        )
        for text, each in (case.get("simulationResult") or {}).items()
        for pair in [json.loads(text)]
    }
    work = Work("wl", "", "wl", queue.name, 0, 0.0, tuple(pod_set(item) for item in case["wlPods"]))
    counts = [pods.count for pods in work.pod_sets]
    replaced = _slice(case["preemptWorkloadSlice"], work) if case.get("preemptWorkloadSlice") else None
    assigner = Assigner(decides, lambda queue, work, fr, value: simulated.get(fr))
    assignment = assigner.assign(work, counts, replaced=replaced)
    mode = ("NoFit", "Preempt", "Preempt", "Preempt", "Fit")[assignment.mode]
    if mode != data["gotMode"]:
        return f"{mode}, not {data['gotMode']}: {assignment.reason}"
    if mode == "NoFit":
        return ""
    expected = [{name: each["Name"] for name, each in pods["Flavors"].items()} for pods in data["got"]["PodSets"]]
    if assignment.flavors != expected:
        return f"{assignment.flavors}, not {expected}"
    borrowing = data["got"].get("Borrowing", 0)
    return "" if assignment.borrowing == borrowing else f"borrowing {assignment.borrowing}, not {borrowing}"


def _slice(info: Mapping[str, Any], work: Work) -> Work:
    """A slice that holds what Kueue knows of it."""
    totals = [{each["name"]: each["value"] for each in item["Requests"]} for item in info["TotalRequests"]]
    pod_sets = [replace(pods, count=1, requests=total) for pods, total in zip(work.pod_sets, totals, strict=True)]
    flavors = tuple(item["Flavors"] for item in info["TotalRequests"])
    return Work("old", "", "old", work.queue, 0, 0.0, tuple(pod_sets), tuple(1 for _ in pod_sets), flavors)


# --------------------------------------------------------------------------------------------- cycles

_NAMESPACES: Final = {
    name: {"dep": "sales" if name == "sales" else ("eng" if name.startswith("eng") else name)}
    for name in ("sales", "eng-alpha", "eng-beta", "eng-gamma", "lend", "default")
}


def cycle(data: Mapping[str, Any], *, is_fair: bool = False, by_topology: bool = False) -> str:
    case = data["tc"]
    gates = _gates(case)
    if case.get("admissionError") or case.get("objects") or case.get("patchStatusErr"):
        raise Unsupported("errors of the API server and limit ranges")
    for field in ("multiKueueWorkloads", "disableLendingLimit"):
        if case.get(field):
            raise Unsupported(f"field {field}")
    queues = [*(data.get("clusterQueues") or []), *(case.get("clusterQueues") or [])]
    queues += case.get("additionalClusterQueues") or []
    local = [*(data.get("queues") or []), *(case.get("queues") or []), *(case.get("additionalLocalQueues") or [])]
    objects = _kind("ClusterQueue", queues) + _kind("LocalQueue", local) + _kind("Cohort", case.get("cohorts"))
    objects += _kind("ResourceFlavor", [*(data.get("resourceFlavors") or []), *(case.get("resourceFlavors") or [])])
    objects += _kind("Topology", case.get("topologies")) + _kind("Node", case.get("nodes"))
    objects += _kind("Pod", case.get("pods")) + _kind("AdmissionCheck", case.get("admissionChecks"))
    fairly = is_fair or case.get("enableFairSharing")
    decides = policy(objects, gates | ({"fairSharing": {"enable": True}} if fairly else {}))
    if not by_topology:
        decides.namespaces = _NAMESPACES
    waiting: dict[str, list[Work]] = {}
    works: dict[str, Work] = {}
    for item in case["workloads"]:
        if "schedulingGates" in json.dumps(item):
            raise Unsupported("pods behind gates")
        work = _work(item, decides)
        works[f"{work.namespace}/{work.name}"] = work
        if work.reserved is None and work.queue and item["spec"].get("active", True):
            waiting.setdefault(work.queue, []).append(work)
    again, stopped = _second_passes(case["workloads"], works, decides)
    heads = [min(each, key=lambda item: (-item.priority, item.ordered, item.uid)) for each in waiting.values()]
    entries = Scheduler(decides).cycle(heads, 1e12)
    expected = case.get("wantAssignments") or case.get("wantNewAssignments") or {}
    actual: dict[str, Any] = {name: _admission(works[name]) for name in again}
    for entry in entries:
        if entry.status is Status.ADMITTED:
            actual[f"{entry.work.namespace}/{entry.work.name}"] = _admission(entry.work)
    if case.get("wantAssignments") is not None:
        before = {name: work for name, work in works.items() if work.reserved is not None and name not in actual}
        actual |= {name: _admission(work) for name, work in before.items()}
    admissions = {name: _expected(item) for name, item in expected.items()}
    events = {
        f"{item['Key'].get('Namespace', '')}/{item['Key']['Name']}"
        for item in case.get("wantEvents") or []
        if item["Reason"] == "Preempted"
    }
    preempted = sorted(
        f"{target.work.namespace}/{target.work.name}"
        for entry in entries
        if entry.status is Status.PREEMPTING
        for target in entry.victims
        if not target.work.evicted
    )
    expected_victims = sorted(
        _preempted(case["wantWorkloads"]) - _preempted(case["workloads"]) if case.get("wantWorkloads") else events
    )
    evicted = {
        f"{item['Key'].get('Namespace', '')}/{item['Key']['Name']}"
        for item in case.get("wantEvents") or []
        if item["Reason"] == "EvictedDueToNodeFailures"
    }
    if stopped != evicted:
        return f"stops {stopped}, not {evicted}"
    if actual != admissions:
        return f"{actual}, not {admissions}"
    return "" if preempted == expected_victims else f"preempts {preempted}, not {expected_victims}"


def _second_passes(
    items: Iterable[Mapping[str, Any]], works: Mapping[str, Work], decides: Policy
) -> tuple[list[str], set[str]]:
    """Work that has quota and whose places are chosen now, and what of it is stopped instead."""
    again, stopped = [], set()
    for item in items:
        name, status = f"{item['metadata'].get('namespace', '')}/{item['metadata']['name']}", item.get("status") or {}
        lost = [each["name"] for each in status.get("unhealthyNodes") or []]
        assigned = (status.get("admission") or {}).get("podSetAssignments") or []
        if any(each.get("delayedTopologyRequest") == "Pending" for each in assigned):
            again.append(name)
            if not has_delayed_places(decides, works[name]):
                raise Unsupported("a second pass that is tried again")
        elif lost:
            again.append(name)
            before = [each for each in works[name].placements if each.domain[-1] in lost]
            if len(lost) > 1 or not has_other_node(decides, works[name], *lost):
                stopped.add(name)
            else:
                # Kueue gives a lost node back once the cycle is over; here it may still be among those that are ready.
                decides.domains.hold(before)
    return again, stopped


def _preempted(workloads: Any) -> set[str]:
    return {
        f"{item['metadata'].get('namespace', '')}/{item['metadata']['name']}"
        for item in workloads
        if any(each["type"] == "Preempted" for each in (item.get("status") or {}).get("conditions") or [])
    }


def _admission(work: Work) -> Any:
    result = []
    for pods, count, chosen in zip(work.pod_sets, work.counts, work.flavors, strict=True):
        placed = sorted((each.domain, each.pods) for each in work.placements if each.pod_set == pods.name)
        result.append((pods.name, count, chosen, _short(placed)))
    return work.queue, result


def _expected(item: Mapping[str, Any]) -> Any:
    result = []
    for each in item["podSetAssignments"]:
        topology = each.get("topologyAssignment")
        placed = sorted(domains(topology)) if topology else []
        result.append((each["name"], each.get("count", 0), each.get("flavors") or {}, _short(placed)))
    return item["clusterQueue"], result


def _short(placed: list[tuple[tuple[str, ...], int]]) -> list[tuple[str, int]]:
    """A domain by its last value, as Kueue writes nodes."""
    return sorted((values[-1], count) for values, count in placed)


# ------------------------------------------------------------------------------------------- topology


def placement(data: Mapping[str, Any]) -> str:
    case = data["tc"]
    gates = _gates(case)
    text = json.dumps(case["podSets"])
    for field in ("previousAssignment", "PreviousAssignment"):
        if field in text:
            raise Unsupported(f"field {field}")
    levels = tuple(case["levels"])
    own = ("f", case.get("nodeLabels") or {}, "t")
    tree = Domains({"t": levels}, [own], case["nodes"], taken(case.get("pods") or []))
    if case.get("aggregatedDomainUsages"):
        raise Unsupported("usage of domains")
    for each in case.get("priorOwnUsage") or []:
        requests = tuple((part["name"], part["value"]) for part in each["SinglePodRequests"])
        tree.hold([Placement("f", tuple(each["Values"]), each["Count"], requests)])
    parts, lost = [], (case.get("workload") or {}).get("status", {}).get("unhealthyNodes")
    for number, item in enumerate(case["podSets"]):
        template = {
            "spec": {"containers": [], "tolerations": item.get("tolerations"), "nodeSelector": item.get("nodeSelector")}
        }
        template["spec"] |= {"affinity": item["affinity"]} if item.get("affinity") else {}
        raw = {
            "name": item.get("podSetName") or str(number),
            "template": template,
            "topologyRequest": item.get("topologyRequest"),
        }
        pods = pod_set({**raw, "count": item["count"]})
        if item.get("podSetGroupName") and pods.topology:
            pods.topology = pods.topology._replace(group=item["podSetGroupName"])
        pods.requests = {name: int(value) for name, value in item["requests"].items()}
        parts.append(Part(pods, item["count"], "f"))
    expected = [each for pods in case["podSets"] for each in [_wanted(pods)]]
    try:
        placed = _replaced(case["workload"], parts, lost[0]["name"], tree, gates) if lost else tree.place(parts)
    except NoPlacement as refused:
        return "" if all(each is None for each in expected) else f"refused: {refused}; not {expected}"
    actual = [
        sorted(
            (each.domain[-1:] if levels[-1] == "kubernetes.io/hostname" else each.domain, each.pods)
            for each in placed
            if each.pod_set == part.pods.name
        )
        for part in parts
    ]
    return "" if actual == expected else f"{actual}, not {expected}"


def _replaced(
    workload: Mapping[str, Any], parts: Sequence[Part], node: str, tree: Domains, gates: Mapping[str, Any]
) -> tuple[Placement, ...]:
    """Where pods are after their work has lost a node. Raises NoPlacement."""
    work = work_of(workload, "", (), {}, {})
    work.pod_sets = tuple(part.pods for part in parts)
    assigned = {each["name"]: each for each in workload["status"]["admission"]["podSetAssignments"]}
    work.placements = tuple(
        Placement("f", values, count, tuple(sorted(part.pods.requests.items())), part.pods.name)
        for part in parts
        for values, count in domains(assigned[part.pods.name]["topologyAssignment"])
    )
    tree.hold(work.placements)
    if not has_other_node(Policy({}, {}, {}, {}, domains=tree, gates=feature_gates(gates)), work, node):
        raise NoPlacement("no other node")
    return work.placements


def _wanted(item: Mapping[str, Any]) -> list[tuple[tuple[str, ...], int]] | None:
    assignment = item.get("wantAssignment")
    return sorted((tuple(each["Values"]), each["Count"]) for each in assignment["Domains"]) if assignment else None


SUITES: Final[dict[str, Callable[[Mapping[str, Any]], str]]] = {
    "TestPreemption": preemption,
    "TestHierarchicalPreemptions": preemption,
    "TestFairPreemptions": lambda data: preemption(data, is_fair=True),
    "TestAssignFlavors": flavors,
    "TestSchedule": cycle,
    "TestScheduleForFairSharing": lambda data: cycle(data, is_fair=True),
    "TestScheduleForTAS": lambda data: cycle(data, by_topology=True),
    "TestScheduleForTASCohorts": lambda data: cycle(data, by_topology=True),
    "TestScheduleForTASPreemption": lambda data: cycle(data, by_topology=True),
    "TestFindTopologyAssignments": placement,
}


def results(folder: Path) -> Iterator[Result]:
    """What comes of each case in a folder."""
    for file in sorted(folder.glob("*.json")):
        suite, _, name = file.name.partition("__")
        name = name.removesuffix(".json")
        if suite not in SUITES:
            yield Result(suite, name, "", "suite of a gate that is off by default")
            continue
        try:
            yield Result(suite, name, SUITES[suite](json.loads(file.read_text(encoding="utf-8"))["data"]))
        except Unsupported as reason:
            yield Result(suite, name, "", str(reason))


def main(folder: str) -> int:
    counts: dict[str, Counter[str]] = {}
    reasons: Counter[str] = Counter()
    for result in results(Path(folder)):
        kind = "unsupported" if result.unsupported else "different" if result.difference else "equal"
        counts.setdefault(result.suite, Counter())[kind] += 1
        reasons.update(filter(None, [result.unsupported]))
        if result.difference:
            print(f"{result.suite} {result.name}\n    {result.difference[:600]}")
    for suite, count in sorted(counts.items()):
        kinds = ("equal", "different", "unsupported")
        print(f"{suite:40}", *(f"{kind} {count[kind]:3} " for kind in kinds))
    print(*(f"unsupported, {count} times: {reason}" for reason, count in reasons.most_common()), sep="\n")
    return int(any(count["different"] for count in counts.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
