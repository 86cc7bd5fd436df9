"""Which running work to move so that a whole topology domain is free: nodes behind one switch, or one node.

Work moves as a whole, since a stopped job starts again with all of its pods. It stays on its flavor, so nobody's quota
changes, and its own wishes of topology hold where it goes.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..kueue.policy import Policy
from ..kueue.topology import Domains, NoPlacement, Part
from ..kueue.work import Placement, Work


class Move(NamedTuple):
    """Of one job."""

    work: Work
    before: tuple[Placement, ...]
    after: tuple[Placement, ...]

    @property
    def pods(self) -> int:
        """How many pods start again."""
        return sum(placement.pods for placement in self.before)


class Freed(NamedTuple):
    """A domain that can be free, and what that takes."""

    flavor: str
    domain: tuple[str, ...]
    """Its value of each level from the top."""
    nodes: int
    moves: tuple[Move, ...]
    """None where it is free already."""

    @property
    def pods(self) -> int:
        """How many pods start again for it."""
        return sum(move.pods for move in self.moves)


class Stuck(NamedTuple):
    """A domain that cannot be free."""

    flavor: str
    domain: tuple[str, ...]
    work: Work
    """The job that finds no other place."""
    reason: str


def defragment(policy: Policy, level: str) -> Iterator[Freed | Stuck]:
    """What it takes to free each domain of a level, over all flavors with that level; those with the fewest pods first.

    Args:
        policy: What decides, with everything that runs in use. It is the same afterwards.
        level: The node label of the level.
    """
    results = [
        _freed(policy, name, domain)
        for name, flavor in policy.flavors.items()
        if flavor.topology and level in policy.topologies.get(flavor.topology, ())
        for domain in _domains(policy.domains, name, policy.topologies[flavor.topology].index(level))
    ]
    free = [each for each in results if isinstance(each, Freed)]
    yield from sorted(free, key=lambda each: (each.pods, len(each.moves), -each.nodes, each.flavor, each.domain))
    yield from (each for each in results if isinstance(each, Stuck))


def _domains(domains: Domains, flavor: str, level: int) -> list[tuple[str, ...]]:
    return sorted({values[: level + 1] for values in domains.free(flavor)})


def _freed(policy: Policy, flavor: str, domain: tuple[str, ...]) -> Freed | Stuck:
    """What it takes to free one domain."""
    held = [work for queue in policy.queues.values() for work in queue.work.values()]
    inside = [work for work in held if _is_inside(policy.domains, work, flavor, domain)]
    # The largest first: it has the fewest other places.
    inside.sort(key=lambda work: (-sum(placement.pods for placement in work.placements), work.uid))
    domains, closed, moves = policy.domains, list[Placement](), list[Move]()
    for work in inside:
        domains.hold(work.placements, -1)
    for values, free in domains.free(flavor).items():
        if values[: len(domain)] == domain:
            closed.append(Placement(flavor, values, 1, tuple(free.items())))
    domains.hold(closed)
    try:
        for work in inside:
            after = domains.place(_parts(work))
            domains.hold(after)
            moves.append(Move(work, work.placements, after))
    except NoPlacement as refused:
        return Stuck(flavor, domain, inside[len(moves)], str(refused))
    finally:
        for move in moves:
            domains.hold(move.after, -1)
        domains.hold(closed, -1)
        for work in inside:
            domains.hold(work.placements)
    return Freed(flavor, domain, len(closed), tuple(moves))


def _is_inside(domains: Domains, work: Work, flavor: str, domain: tuple[str, ...]) -> bool:
    """Whether pods of work are in a domain."""
    own = [placement for placement in work.placements if placement.flavor == flavor]
    return any(domains.position(placement)[: len(domain)] == domain for placement in own)


def _parts(work: Work) -> Sequence[Part]:
    """The pod sets of work as it runs, each on its flavor."""
    by_set = {placement.pod_set: placement.flavor for placement in work.placements}
    pairs = zip(work.pod_sets, work.counts, strict=True)
    return [Part(pods, count, by_set[pods.name]) for pods, count in pairs if count and pods.name in by_set]
