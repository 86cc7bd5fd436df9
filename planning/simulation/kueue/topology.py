"""Where pods go among nodes: Kueue 0.19.2's topology-aware scheduling.

A request names a level of which its pods have to lie in one domain (required), should (preferred), or none. Domains are
chosen at that level first, and then down to the nodes. Balanced placement and preferred affinity, which are off by
default in 0.19.2, are not simulated.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from ....config.errors import PodwrightError
from .matching import selects, untolerated
from .work import PODS, Placement, PodSet, TopologyRequest, amount

HOSTNAME: Final = "kubernetes.io/hostname"
Amounts = dict[str, int]


class Part(NamedTuple):
    """Pods that are to be placed."""

    pods: PodSet
    count: int
    flavor: str


class Free(Amounts):
    """What is left of a lowest domain."""

    __slots__ = ("_content",)

    def __init__(self, amounts: Amounts) -> None:
        super().__init__(amounts)
        self._content: frozenset[tuple[str, int]] | None = None

    def take(self, requests: Iterable[tuple[str, int]], pods: int) -> None:
        """Put so many pods in use, or take them back where the number is below zero."""
        for name, value in requests:
            self[name] = self.get(name, 0) - value * pods
        self[PODS] = self.get(PODS, 0) - pods
        self._content = None

    @property
    def content(self) -> frozenset[tuple[str, int]]:
        """It as a key, which knows its hash."""
        if self._content is None:
            self._content = frozenset(self.items())
        return self._content


@dataclass(slots=True, eq=False)
class Domain:
    """A domain, and how much of the current request it holds."""

    values: tuple[str, ...]
    """Of each level, from the top."""
    children: "list[Domain]" = field(default_factory=list)
    whole: Amounts = field(default_factory=dict)
    """Of a lowest domain: what nodes have, without what no topology-aware work takes."""
    free: Free = field(default_factory=lambda: Free({}))
    """What of it is left. A node has it in common with the same node in other flavors."""
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: list[dict[str, Any]] = field(default_factory=list)
    pods: int = 0
    pods_beside: int = 0
    """Where the leader is placed too."""
    slices: int = 0
    slices_beside: int = 0
    leads: int = 0
    """1 where the leader finds a place, or has it."""


class NoPlacement(PodwrightError):
    """The pods find no place."""


@dataclass(frozen=True, slots=True)
class _Request:
    """One pod set, or a leader and workers."""

    workers: Part
    leader: Part | None
    level: int
    is_required: bool
    is_free: bool
    """Without any level, or with none but that of slices: the least free domains are taken first."""
    goes_up: bool
    slice_level: int
    slice_size: int
    inner: Mapping[int, int]
    """How many pods lie together in a domain of a level below that of slices."""


class Domains:
    """The domains of all flavors with a topology, and what is in use of them."""

    def __init__(
        self,
        topologies: Mapping[str, tuple[str, ...]],
        flavors: Iterable[tuple[str, Mapping[str, str], str | None]],
        nodes: Sequence[Mapping[str, Any]],
        others: Mapping[str, Amounts] | None = None,
    ) -> None:
        """Makes the domains.

        Args:
        topologies: Labels of levels from the top, by name.
        flavors: Name, node labels and topology of each flavor.
        nodes: The Nodes.
        others: What pods take that no topology-aware work owns, by node.
        """
        self._levels: dict[str, tuple[str, ...]] = {}
        self._trees: dict[str, list[list[Domain]]] = {}
        self._leaves: dict[tuple[str, tuple[str, ...]], Domain] = {}
        self._able: dict[tuple[str, str], list[Domain]] = {}
        self._empty: dict[tuple[object, ...], tuple[Placement, ...] | NoPlacement] = {}
        self._beside: dict[str, set[str]] = {}
        nodes_free: dict[str, Free] = {}
        on_node: dict[str, set[str]] = {}
        for name, labels, topology in flavors:
            if topology not in topologies:
                continue
            levels = self._levels[name] = topologies[topology]
            tree = self._trees[name] = _tree(levels, labels, nodes, others or {})
            for leaf in tree[-1]:
                self._leaves[name, leaf.values] = leaf
                leaf.free = Free(leaf.whole)
                if levels[-1] == HOSTNAME:
                    leaf.free = nodes_free.setdefault(leaf.values[-1], leaf.free)
                    on_node.setdefault(leaf.values[-1], set()).add(name)
        for names in on_node.values():
            for name in names:
                self._beside.setdefault(name, {name}).update(names)

    def beside(self, flavor: str) -> Collection[str]:
        """A flavor and those that have nodes in common with it."""
        return self._beside.get(flavor, (flavor,))

    def _leaf(self, flavor: str, domain: tuple[str, ...]) -> Domain | None:
        """A lowest domain; work that was placed elsewhere may name a node alone."""
        leaf = self._leaves.get((flavor, domain))
        if leaf is None and self._levels[flavor][-1] == HOSTNAME:
            leaf = next((each for each in self._trees[flavor][-1] if each.values[-1] == domain[-1]), None)
        return leaf

    def hold(self, placements: Iterable[Placement], sign: int = 1) -> None:
        """Put what pods take in use, or take it back."""
        for placement in placements:
            leaf = self._leaf(placement.flavor, placement.domain) if placement.flavor in self._levels else None
            if leaf is None:
                continue
            leaf.free.take(placement.requests, placement.pods * sign)

    def holds(self, placements: Iterable[Placement]) -> bool:
        """Whether placements that were chosen before are still free, each for itself, as Kueue looks at them."""
        pairs = ((self._leaf(placement.flavor, placement.domain), placement) for placement in placements)
        return all(leaf is not None and _is_enough(leaf, placement) for leaf, placement in pairs)

    def free(self, flavor: str) -> dict[tuple[str, ...], Amounts]:
        """What is left of each lowest domain of a flavor, by its value of each level; nothing without domains."""
        return {leaf.values: dict(leaf.free) for leaf in self._trees.get(flavor, [[]])[-1]}

    def situation(self, flavors: Iterable[str]) -> object:
        """What is left of all domains of some flavors, as a key."""
        return tuple(
            [leaf.free.content for flavor in flavors if flavor in self._trees for leaf in self._trees[flavor][-1]]
        )

    def position(self, placement: Placement) -> tuple[str, ...]:
        """The values of all levels where pods are, also where their work names a node alone; empty without a node."""
        leaf = self._leaf(placement.flavor, placement.domain) if placement.flavor in self._levels else None
        return leaf.values if leaf else ()

    def levels(self, flavor: str) -> tuple[str, ...]:
        """Labels of the levels of a flavor with domains, from the top."""
        return self._levels[flavor]

    def missing(self, placements: Iterable[Placement]) -> set[tuple[str, ...]]:
        """The domains of placements that do not exist; a flavor without domains is not looked at."""
        known = [placement for placement in placements if placement.flavor in self._levels]
        return {each.domain for each in known if self._leaf(each.flavor, each.domain) is None}

    def place_empty(self, parts: Sequence[Part]) -> tuple[Placement, ...]:
        """Places for pods if nodes were empty but for what no topology-aware work owns, which never changes.

        Raises:
            NoPlacement: some find none.
        """
        key = tuple((part.pods.shape, part.count, part.flavor) for part in parts)
        if key not in self._empty:
            try:
                self._empty[key] = self.place(parts, empty=True)
            except NoPlacement as refused:
                self._empty[key] = refused
        result = self._empty[key]
        if isinstance(result, NoPlacement):
            raise result
        return result

    def place(
        self, parts: Sequence[Part], *, empty: bool = False, within: tuple[str, ...] = ()
    ) -> tuple[Placement, ...]:
        """Places for pods.

        Args:
            parts: The pod sets; those of one group lie together.
            empty: Whether to take nodes for empty but for what no topology-aware work owns.
            within: The domain in which all have to lie, by its value of each level; anywhere without.

        Raises:
            NoPlacement: some find none.
        """
        result: list[Placement] = []
        try:
            for flavor in sorted({part.flavor for part in parts}):
                for group in _groups([part for part in parts if part.flavor == flavor]):
                    placements = list(self._place(flavor, group, empty=empty, within=within))
                    # The next group finds the place taken.
                    self.hold(placements)
                    result += placements
        finally:
            # Nothing is admitted here: all is given back, also when a later group finds no place.
            self.hold(result, -1)
        return tuple(result)

    def _place(
        self, flavor: str, group: Sequence[Part], *, empty: bool, within: tuple[str, ...]
    ) -> Iterator[Placement]:
        """Places of one pod set, or of a leader and workers."""
        levels, tree = self._levels[flavor], self._trees[flavor]
        request = _request(group, levels)
        if not tree or not tree[0]:
            raise NoPlacement(f"no topology domains at level: {levels[request.level]}")
        eligible = self._eligible(flavor, request.workers.pods)
        if within:
            eligible = [leaf for leaf in eligible if leaf.values[: len(within)] == within]
        if len(eligible) < len(tree[-1]):
            for leaf in tree[-1]:
                leaf.pods = leaf.pods_beside = leaf.slices = leaf.slices_beside = leaf.leads = 0
        _count_leaves(eligible, request, empty=empty, at_slices=request.slice_level == len(levels) - 1)
        for number in range(len(levels) - 2, -1, -1):
            for domain in tree[number]:
                _count(domain, request, request.inner.get(number + 1, 1), at_slices=number == request.slice_level)
        yield from _placements(_Choice(request).choose(tree), request)

    def _eligible(self, flavor: str, pods: PodSet) -> list[Domain]:
        """Lowest domains to which pods may go; of nodes that is decided one by one."""
        key = flavor, pods.constraints
        if key not in self._able:
            leaves, checks = self._trees[flavor][-1], self._levels[flavor][-1] == HOSTNAME
            self._able[key] = [
                leaf
                for leaf in leaves
                if not checks or (not untolerated(pods.tolerations, leaf.taints) and selects(pods, leaf.labels))
            ]
        return self._able[key]


def _is_enough(leaf: Domain, placement: Placement) -> bool:
    """Whether a domain has what pods request left."""
    return all(leaf.free.get(name, 0) >= value * placement.pods for name, value in placement.requests)


def _groups(parts: Sequence[Part]) -> list[list[Part]]:
    groups: dict[object, list[Part]] = {}
    for number, part in enumerate(parts):
        group = part.pods.topology.group if part.pods.topology else None
        groups.setdefault(group or number, []).append(part)
    return list(groups.values())


def _request(group: Sequence[Part], levels: Sequence[str]) -> _Request:
    """What a group asks for. Raises NoPlacement where its topology does not have that."""
    workers, leader = group[0], None
    if len(group) > 1:
        # The pod set with fewer pods leads; of two alike the second one.
        leader, workers = sorted(group[:2], key=lambda part: part.count)
        if leader.count == workers.count:
            workers, leader = group[0], group[1]
    asked = workers.pods.topology or TopologyRequest()
    for level in (asked.required, asked.preferred, asked.slice_level):
        if level and level not in levels:
            raise NoPlacement(f"no requested topology level: {level}")
    named = asked.required or asked.preferred
    sliced = asked.slice_level is not None
    # Slices alone may lie anywhere below the top; without any wish each node stands for itself.
    unnamed = 0 if sliced else len(levels) - 1
    level = levels.index(named) if named else unnamed
    slice_level = levels.index(asked.slice_level) if asked.slice_level else len(levels) - 1
    size = asked.slice_size if sliced else 1
    # Pods that do not fill a slice, which partial admission leaves over, are nowhere: Kueue places whole slices. Where
    # there is none, the API server refuses what it writes, and it tries forever.
    if size <= 0 or level > slice_level or workers.count < size:
        raise NoPlacement("slices are of no pods, of more than there are, or of a level above that of the pods")
    return _Request(
        workers, leader, level, bool(asked.required), not named, bool(asked.preferred) or (sliced and not named),
        slice_level, size, _inner(asked, levels, slice_level),
    )  # fmt: skip


def _inner(asked: TopologyRequest, levels: Sequence[str], level: int) -> dict[int, int]:
    """Pods that lie together, by level: those of an inner layer also in the levels between it and the one above."""
    result: dict[int, int] = {}
    size = asked.slice_size
    for label, smaller in asked.inner:
        below = levels.index(label) if label in levels else -1
        if below <= level or smaller <= 0 or size % smaller:
            raise NoPlacement(f"slices of {smaller} pods in {label} do not divide those of {size} above them")
        result |= dict.fromkeys(range(level + 1, below + 1), smaller)
        level, size = below, smaller
    return result


def _tree(
    levels: Sequence[str], labels: Mapping[str, str], nodes: Sequence[Mapping[str, Any]], others: Mapping[str, Amounts]
) -> list[list[Domain]]:
    """Domains by level from the top, of the nodes that are ready and of a flavor."""
    tree: list[dict[tuple[str, ...], Domain]] = [{} for _ in levels]
    for node in nodes:
        own = node["metadata"].get("labels") or {}
        if not _is_ready(node) or any(own.get(key) != value for key, value in labels.items()):
            continue
        if any(level not in own for level in levels):
            continue
        values = tuple(own[level] for level in levels)
        for number in range(len(levels)):
            part = values[: number + 1]
            if part not in tree[number]:
                tree[number][part] = Domain(part)
                if number:
                    tree[number - 1][part[:-1]].children.append(tree[number][part])
        leaf = tree[-1][values]
        for name, text in (node.get("status", {}).get("allocatable") or {}).items():
            leaf.whole[name] = leaf.whole.get(name, 0) + amount(name, text)
        leaf.whole = _minus(leaf.whole, others.get(node["metadata"]["name"], {}))
        leaf.labels, leaf.taints = own, list((node.get("spec") or {}).get("taints") or [])
    return [list(domains.values()) for domains in tree]


def _is_ready(node: Mapping[str, Any]) -> bool:
    if (node.get("spec") or {}).get("unschedulable"):
        return False
    conditions = node.get("status", {}).get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _minus(amounts: Amounts, taken: Mapping[str, int]) -> Amounts:
    if not taken:
        return amounts
    return {name: value - taken.get(name, 0) for name, value in amounts.items()}


def _times(free: Mapping[str, int], requests: Iterable[tuple[str, int]]) -> int:
    """How many pods fit that request something of each."""
    most = free.get(PODS, 0)
    for name, value in requests:
        fitting = free.get(name, 0) // value
        # Without `min`, which takes twice as long: this is where time goes with many nodes.
        if fitting < most:
            most = fitting
    return most if most > 0 else 0


def _requested(part: Part) -> list[tuple[str, int]]:
    return [(name, value) for name, value in part.pods.requests.items() if value > 0]


def _count_leaves(leaves: Iterable[Domain], request: _Request, *, empty: bool, at_slices: bool) -> None:
    """What the lowest domains hold as they are, or would hold if they were empty."""
    each, size = _requested(request.workers), request.slice_size if at_slices else 0
    first = _requested(request.leader) if request.leader else []
    for leaf in leaves:
        free = leaf.whole if empty else leaf.free
        pods = beside = _times(free, each)
        leads = 0
        if request.leader is not None and _times(free, first) > 0:
            leads, beside = 1, _times(_minus(free, {**request.leader.pods.requests, PODS: 1}), each)
        leaf.pods, leaf.pods_beside, leaf.leads = pods, beside, leads
        leaf.slices, leaf.slices_beside = (pods // size, beside // size) if size else (0, 0)


def _count_slices(domain: Domain, size: int) -> None:
    domain.slices, domain.slices_beside = domain.pods // size, domain.pods_beside // size


def _count(domain: Domain, request: _Request, unit: int, *, at_slices: bool) -> None:
    """Sum up what is below, where so many pods lie together in each domain."""
    children = domain.children
    if unit > 1:
        for each in children:
            each.pods, each.pods_beside = each.pods // unit * unit, each.pods_beside // unit * unit
    domain.pods, domain.slices = sum(each.pods for each in children), sum(each.slices for each in children)
    able = [each for each in children if each.leads or request.leader is None]
    domain.leads = max((each.leads for each in children), default=0)
    domain.pods_beside = domain.pods - min((each.pods - each.pods_beside for each in able), default=0)
    domain.slices_beside = domain.slices - min((each.slices - each.slices_beside for each in able), default=0)
    if at_slices:
        _count_slices(domain, request.slice_size)


class _Choice:
    """Of domains for one request."""

    def __init__(self, request: _Request) -> None:
        self.request = request
        self.best_fit = not request.is_free

    def choose(self, tree: Sequence[list[Domain]]) -> list[Domain]:
        """The lowest domains with pods."""
        request = self.request
        need = request.workers.count // request.slice_size
        leads = 0 if request.leader is None else 1
        level, chosen = self._top(tree, request.level, need, leads)
        chosen = self._shrink(chosen, need, leads, request.slice_size, in_slices=True)
        for _ in range(level, min(request.slice_level, len(tree) - 1)):
            below = sorted((each for domain in chosen for each in domain.children), key=self._order)
            chosen = self._shrink(below, need, leads, request.slice_size, in_slices=True)
            level += 1
        for below in range(level + 1, len(tree)):
            unit = request.inner.get(below, 1)
            chosen = [each for domain in chosen for each in self._within(domain, unit)]
        return chosen

    def _within(self, domain: Domain, unit: int) -> list[Domain]:
        """Domains right below one, with its pods, so many of which lie together."""
        # In the order that they have without slices, as Kueue sorts them before it counts those of an inner layer.
        ordered = sorted(domain.children, key=self._order)
        for each in ordered if unit > 1 else ():
            _count_slices(each, unit)
        return self._shrink(ordered, domain.pods // unit, domain.leads, unit, in_slices=unit > 1)

    def _order(self, domain: Domain) -> tuple[object, ...]:
        return (-domain.slices if self.best_fit else domain.slices, domain.pods, domain.values)

    def _order_with_leader(self, domain: Domain) -> tuple[object, ...]:
        slices = domain.slices_beside
        return (-domain.leads, -slices if self.best_fit else slices, domain.pods_beside, domain.values)

    def _top(self, tree: Sequence[list[Domain]], level: int, need: int, leads: int) -> tuple[int, list[Domain]]:
        """The level at which domains are chosen first, and those. Raises NoPlacement."""
        request = self.request
        listed = sorted(tree[level], key=self._order_with_leader)
        holding = [each for each in listed if each.leads >= leads and _capacity(each, leads, in_slices=True) >= need]
        if self.best_fit and holding and holding[0] is listed[0]:
            return level, [_best(listed, need, leads, in_slices=True)]
        if not self.best_fit and holding:
            return level, [holding[0]]
        if request.is_required:
            most = max((_capacity(each, leads, in_slices=True) for each in listed), default=0)
            raise NoPlacement(
                f"topology allows to fit only {most * request.slice_size} out of {request.workers.count} pods"
            )
        if request.goes_up and level > 0:
            return self._top(tree, level - 1, need, leads)
        return level, self._several(listed, need, leads)

    def _several(self, listed: list[Domain], need: int, leads: int) -> list[Domain]:
        """Domains that hold it together."""
        chosen: list[Domain] = []
        listed, rest = _leader_first(listed, need, leads, in_slices=True), need
        while leads and listed:
            domain = listed[0]
            if self.best_fit and domain.slices_beside >= rest:
                domain = _best(listed, rest, leads, in_slices=True)
            listed.remove(domain)
            chosen.append(domain)
            rest, leads = rest - domain.slices_beside, leads - domain.leads
        listed.sort(key=self._order)
        while rest > 0 and listed and not leads:
            domain = listed[0]
            if self.best_fit and domain.slices >= rest:
                domain = _best(listed, rest, 0, in_slices=True)
            listed.remove(domain)
            chosen.append(domain)
            rest -= domain.slices
        if rest > 0 or leads:
            raise NoPlacement(
                f"topology allows to fit only {(need - rest) * self.request.slice_size} out of "
                f"{self.request.workers.count} pods"
            )
        return chosen

    def _shrink(self, listed: Sequence[Domain], need: int, leads: int, size: int, *, in_slices: bool) -> list[Domain]:
        """As many of these domains as it takes, each with its part."""
        left, rest = _leader_first(list(listed), need, leads, in_slices=in_slices), need
        chosen: list[Domain] = []
        while left and (rest > 0 or leads):
            domain = left[0]
            if self.best_fit and domain.leads >= leads and _capacity(domain, leads, in_slices=in_slices) >= rest:
                domain = _best(left, rest, leads, in_slices=in_slices)
            left.remove(domain)
            capacity = _capacity(domain, leads, in_slices=in_slices)
            taken = min(capacity, rest)
            domain.leads = min(leads, domain.leads)
            domain.pods = domain.pods_beside = taken * size
            rest, leads = rest - taken, leads - domain.leads
            chosen.append(domain)
        if rest > 0 or leads:
            raise NoPlacement(f"{rest * size} pods find no place below the domains that hold them")
        return chosen


def _capacity(domain: Domain, leads: int, *, in_slices: bool) -> int:
    if in_slices:
        return domain.slices_beside if leads else domain.slices
    return domain.pods_beside if leads else domain.pods


def _best(listed: Sequence[Domain], need: int, leads: int, *, in_slices: bool) -> Domain:
    """The smallest domain that holds it; the first where none does."""
    holding = [each for each in listed if each.leads >= leads and _capacity(each, leads, in_slices=in_slices) >= need]
    return min(holding, key=lambda each: _capacity(each, leads, in_slices=in_slices), default=listed[0])


def _leader_first(listed: list[Domain], need: int, leads: int, *, in_slices: bool) -> list[Domain]:
    """The first domain goes to the front whose place for the leader costs no more than is to spare."""
    if not leads:
        return listed
    spare = sum(_capacity(each, 0, in_slices=in_slices) for each in listed) - need
    for domain in listed:
        cost = _capacity(domain, 0, in_slices=in_slices) - _capacity(domain, 1, in_slices=in_slices)
        if domain.leads and cost <= spare:
            listed.remove(domain)
            return [domain, *listed]
    return listed


def _placements(chosen: Sequence[Domain], request: _Request) -> Iterator[Placement]:
    for domain in sorted(chosen, key=lambda each: each.values):
        parts = [(request.workers, domain.pods)]
        if request.leader is not None and domain.leads:
            parts.append((request.leader, 1))
        for part, count in parts:
            if count:
                requests = tuple(sorted(part.pods.requests.items()))
                yield Placement(part.flavor, domain.values, count, requests, part.pods.name)
