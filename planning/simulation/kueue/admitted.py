"""Work that holds quota already, as its Workload says."""

from collections.abc import Iterator, Mapping
from typing import Any

from ..traces.times import timestamp
from .policy import Policy
from .work import Placement, Work, amount, work_of


def work_in(policy: Policy, workload: Mapping[str, Any]) -> Work:
    """A Workload as work of a policy; what it holds, if anything, is in use from now on."""
    namespace = workload["metadata"].get("namespace", "")
    queue = policy.local_queues.get((namespace, workload["spec"].get("queueName", "")), "")
    status = workload.get("status") or {}
    reclaimable = status.get("reclaimablePods") or () if policy.gates["ReclaimablePods"] else ()
    done = {each["name"]: each["count"] for each in reclaimable}
    work = work_of(workload, queue, policy.excluded, policy.pod_sets, done)
    if not policy.gates["ElasticJobsViaWorkloadSlices"]:
        work.replaces = ""
    work.uid = work.uid or f"{namespace}/{work.name}"
    if created := workload["metadata"].get("creationTimestamp"):
        work.created = work.ordered = timestamp(created)
    conditions = {each["type"]: each for each in status.get("conditions") or [] if each["status"] == "True"}
    if (evicted := conditions.get("Evicted")) and evicted.get("reason") == "PodsReadyTimeout":
        work.ordered = timestamp(evicted["lastTransitionTime"])
    admission = status.get("admission")
    if admission and admission["clusterQueue"] in policy.queues:
        work.queue = admission["clusterQueue"]
        _assign(work, admission["podSetAssignments"], policy)
        if reserved := conditions.get("QuotaReserved"):
            work.reserved = timestamp(reserved["lastTransitionTime"])
        work.evicted = evicted is not None
        work.is_admitted = "Admitted" in conditions or not policy.queues[work.queue].is_checked(work.held_flavors)
        policy.hold(work)
    return work


def _assign(work: Work, assigned: list[dict[str, Any]], policy: Policy) -> None:
    """Take over counts, flavors, usage and places."""
    work.flavors = tuple(dict(each.get("flavors") or {}) for each in assigned)
    # An elastic job that shrinks has fewer pods than it was admitted with, and so has one of which some are done.
    work.counts = tuple(
        min(each.get("count", 0), pods.count) for each, pods in zip(assigned, work.pod_sets, strict=True)
    )
    for each, flavors, count in zip(assigned, work.flavors, work.counts, strict=True):
        whole = each.get("count", 0)
        for name, flavor in flavors.items():
            if (fr := policy.index.get((flavor, name))) is not None:
                value = amount(name, (each.get("resourceUsage") or {}).get(name, "0"))
                work.usage[fr] = work.usage.get(fr, 0) + (value // whole * count if count < whole else value)
    work.placements = tuple(_placements(work, assigned, policy))


def _placements(work: Work, assigned: list[dict[str, Any]], policy: Policy) -> Iterator[Placement]:
    for pods, each in zip(work.pod_sets, assigned, strict=True):
        named = [name for name in (each.get("flavors") or {}).values() if policy.flavors[name].topology]
        if not (topology := each.get("topologyAssignment")) or not named:
            continue
        for values, count in domains(topology):
            yield Placement(named[0], values, count, tuple(sorted(pods.requests.items())), pods.name)


def domains(topology: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], int]]:
    """Domains and pods of a TopologyAssignment, which writes what many have in common once."""
    for part in topology["slices"]:
        for number in range(part["domainCount"]):
            values = tuple(_of(level, number) for level in part["valuesPerLevel"])
            counts = part["podCounts"]
            yield values, counts["universal"] if "universal" in counts else counts["individual"][number]


def _of(level: Mapping[str, Any], number: int) -> str:
    if "universal" in level:
        return level["universal"]
    own = level["individual"]
    return f"{own.get('prefix', '')}{own['roots'][number]}{own.get('suffix', '')}"
