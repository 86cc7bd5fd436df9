"""Places for work that has its quota already: Kueue 0.19.2 calls it the second pass.

Where an AdmissionCheck provisions nodes, they are chosen once it is ready. And a node that is lost is replaced, while
all others stay (gate TASFailedNodeReplacement, on), where the lowest domains are nodes. Pods that had to lie together
still have to: what is lost of a slice, or of pods that need one domain, comes into the domain of the rest.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from .policy import Policy
from .topology import HOSTNAME, Domains, NoPlacement, Part
from .work import Placement, PodSet, TopologyRequest, Work

_Rest = Sequence[tuple[tuple[str, ...], int]]
"""Where the other pods are, by the value of each level, and how many."""


def parts_of(policy: Policy, assigned: Iterable[tuple[PodSet, int, dict[str, str]]]) -> list[Part]:
    """What is placed by topology of pod sets, how many pods of each there are, and their flavors by resource."""
    parts = []
    for pods, count, chosen in assigned:
        named = [name for name in chosen.values() if policy.flavors[name].topology in policy.topologies]
        if named and count:
            parts.append(Part(pods, count, named[0]))
    return parts


def has_delayed_places(policy: Policy, work: Work) -> bool:
    """Place the pods of admitted work that have none yet. Nothing changes where there is no room."""
    known = {each.pod_set for each in work.placements}
    parts = parts_of(policy, zip(work.pod_sets, work.counts, work.flavors, strict=True))
    try:
        placements = policy.domains.place([part for part in parts if part.pods.name not in known])
    except NoPlacement:
        return False
    policy.domains.hold(placements)
    work.placements = (*work.placements, *placements)
    return True


def has_other_node(policy: Policy, work: Work, node: str) -> bool:
    """Put the pods of work that a lost node had on others, if there is room. Nothing changes where there is none.

    A Pod alone keeps its node, since it ends with it (gate SkipReassignmentForPodOwnedWorkloads).
    """
    if work.is_pod and policy.gates["SkipReassignmentForPodOwnedWorkloads"]:
        return True
    domains, before = policy.domains, work.placements
    for pods in work.pod_sets:
        held = tuple(each for each in work.placements if each.pod_set == pods.name)
        if all(each.domain[-1] != node for each in held):
            continue
        try:
            placements = _replaced(domains, pods, held, node)
        except NoPlacement:
            domains.hold(work.placements, -1)
            domains.hold(before)
            work.placements = before
            return False
        domains.hold(held, -1)
        domains.hold(placements)
        work.placements = (*(each for each in work.placements if each.pod_set != pods.name), *placements)
    return True


def _replaced(domains: Domains, pods: PodSet, held: Sequence[Placement], node: str) -> tuple[Placement, ...]:
    """All places of a pod set that has lost a node. Raises NoPlacement."""
    flavor, levels = held[0].flavor, domains.levels(held[0].flavor)
    if levels[-1] != HOSTNAME:
        raise NoPlacement(f"the lowest level is {levels[-1]}, no node")
    rest = [(domains.position(each), each.pods) for each in held if each.domain[-1] != node]
    if not all(position for position, _ in rest):
        raise NoPlacement("another of its nodes is gone too")
    lost = sum(each.pods for each in held) - sum(count for _, count in rest)
    asked, within = _confined(pods.topology or TopologyRequest(), lost, rest, levels)
    placements = domains.place([Part(replace(pods, topology=asked), lost, flavor)], within=within)
    counts = Counter[tuple[str, ...]](dict(rest))
    counts.update({each.domain: each.pods for each in placements})
    requests = tuple(sorted(pods.requests.items()))
    return tuple(Placement(flavor, domain, count, requests, pods.name) for domain, count in sorted(counts.items()))


def _confined(
    asked: TopologyRequest, lost: int, rest: _Rest, levels: Sequence[str]
) -> tuple[TopologyRequest, tuple[str, ...]]:
    """How so many lost pods have to lie together, and in which domain."""
    layers = [(asked.slice_level, asked.slice_size), *asked.inner] if asked.slice_level else []
    if layers and lost % layers[0][1]:
        level, size = next((level, size) for level, size in reversed(layers) if lost % size)
        within = _incomplete(rest, levels.index(level) + 1, size, lost)
        if within:
            whole = next(((level, size) for level, size in reversed(layers) if not lost % size), (None, 0))
            asked = asked._replace(slice_level=whole[0], slice_size=whole[1], inner=())
        return asked, within
    if asked.required and rest:
        return asked, rest[0][0][: levels.index(asked.required) + 1]
    return asked, ()


def _incomplete(rest: _Rest, depth: int, size: int, lost: int) -> tuple[str, ...]:
    """The domain in which the lost pods make slices whole; empty without one."""
    counts: Counter[tuple[str, ...]] = Counter()
    for position, count in rest:
        counts[position[:depth]] += count
    return next((domain for domain, count in counts.items() if (count + lost) % size == 0), ())
