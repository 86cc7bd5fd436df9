"""The tree of cohorts and cluster queues, what of their quotas is in use, and what is left for each.

The arithmetic is that of Kueue 0.19.2's resource nodes (`pkg/cache/scheduler/resource_node.go`, read 2026-11-23). What
a node lends to its parent is a function of its own usage alone, so usage can be added and removed in any order.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

Amounts = dict[int, int]
"""Amounts by flavor-resource, which is an index."""


class Quota(NamedTuple):
    """Of one flavor-resource."""

    nominal: int
    borrowing_limit: int | None = None
    lending_limit: int | None = None


class Node:
    """A cohort, or the part of a cluster queue that is the same."""

    def __init__(self, name: str, size: int, weight: float = 1.0) -> None:
        """A node without quota, for so many flavor-resources."""
        self.name = name
        self.weight = weight
        self.parent: Node | None = None
        self.cohorts: list[Node] = []
        self.queues: list[Node] = []
        self.subtree = [0] * size
        """Quota of everything below."""
        self.lending: list[int | None] = [None] * size
        """How much of `subtree` may be lent; None is all."""
        self.local = [0] * size
        """What of it the parent never sees."""
        self.borrowing: list[int | None] = [None] * size
        """How much may be borrowed beyond `subtree`; None is without limit."""
        self.usage = [0] * size
        self.beyond: dict[int, int] = {}
        """How much more than `subtree` is in use, where it is."""
        self.borrowers: dict[Node, None] = {}
        """Those right below that have more in use than their quota of anything."""
        self.height = 0
        self._most: dict[int, int] = {}
        self._lendable: dict[str, int] = {}

    def path(self) -> Iterator["Node"]:
        """The nodes above, from the parent to the root."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    def root(self) -> "Node":
        """The uppermost node above, or itself."""
        node = self
        while node.parent is not None:
            node = node.parent
        return node

    def available(self, fr: int) -> int:
        """What is left, borrowing included; below zero where quota was taken away."""
        parent, used = self.parent, self.usage[fr]
        if parent is None:
            return self.subtree[fr] - used
        above, local, limit = parent.available(fr), self.local[fr], self.borrowing[fr]
        if limit is not None:
            # Without `min` and `max`, here and below: this is where time goes.
            borrowable = self.subtree[fr] - (used if used > local else local) + limit
            if borrowable < above:
                above = borrowable
        return above + local - used if used < local else above

    def missing_above(self, fr: int, amount: int) -> int | None:
        """How much the parent needs to have left for an amount to be available here.

        Returns:
            None where no parent's would be enough, until something of the own usage changes.
        """
        above = amount - self.local_available(fr)
        if (limit := self.borrowing[fr]) is not None:
            lent, stored = self.subtree[fr] - self.local[fr], max(0, self.usage[fr] - self.local[fr])
            return above if above <= lent - stored + limit else None
        return above

    def local_available(self, fr: int) -> int:
        """What is left of the part that is not lent."""
        return max(0, self.local[fr] - self.usage[fr])

    def potential(self, fr: int) -> int:
        """What there could be if nothing were in use. Quotas do not change once the tree is settled."""
        if fr not in self._most:
            most = self.subtree[fr]
            if self.parent is not None:
                most = self.local[fr] + self.parent.potential(fr)
                limit = self.borrowing[fr]
                most = most if limit is None else min(most, self.subtree[fr] + limit)
            self._most[fr] = most
        return self._most[fr]

    def lendable(self, resource: str, frs: list[int]) -> int:
        """What there could be of a resource, over all its flavors."""
        if resource not in self._lendable:
            self._lendable[resource] = sum(self.potential(fr) for fr in frs)
        return self._lendable[resource]

    def add(self, fr: int, amount: int) -> None:
        """Put an amount in use here, and in what is above as far as it is not local."""
        node: Node | None = self
        while node is not None and amount > 0:
            used = node.usage[fr]
            free = node.local[fr] - used
            node._use(fr, used + amount)
            node = node.parent
            if free > 0:
                amount -= free

    def remove(self, fr: int, amount: int) -> None:
        """The opposite of `add`."""
        node: Node | None = self
        while node is not None and amount > 0:
            used = node.usage[fr]
            stored = used - node.local[fr]
            node._use(fr, used - amount)
            node = node.parent
            if stored < amount:
                amount = stored

    def _use(self, fr: int, used: int) -> None:
        self.usage[fr] = used
        beyond = used - self.subtree[fr]
        if beyond > 0:
            self.beyond[fr] = beyond
            if self.parent is not None:
                self.parent.borrowers[self] = None
        elif fr in self.beyond:
            del self.beyond[fr]
            if self.parent is not None and not self.beyond:
                del self.parent.borrowers[self]

    def is_within(self, frs: Iterable[int]) -> bool:
        """Whether no more than its quota is in use of each of these."""
        return self.beyond.keys().isdisjoint(frs)

    def limit(self, fr: int, quota: Quota) -> None:
        """Take a quota of its own."""
        self.subtree[fr], self.borrowing[fr], self.lending[fr] = quota


def settle(root: Node) -> int:
    """Sum up quotas from the leaves on, once all nodes are in place. Returns the height of the root."""
    heights = [settle(child) + 1 for child in root.cohorts]
    root.height = max(heights, default=1 if root.queues else 0)
    for child in (*root.cohorts, *root.queues):
        for fr, limit in enumerate(child.lending):
            if limit is not None:
                child.local[fr] = max(0, child.subtree[fr] - limit)
            root.subtree[fr] += child.subtree[fr] - child.local[fr]
    return root.height


class Share(NamedTuple):
    """The dominant resource share of a node among its siblings; zero for a root and for a node that does not borrow."""

    weighted: float
    """Infinite for a node without weight that borrows."""
    unweighted: float
    """By which nodes without weight are compared."""


def share(node: Node, resources: Mapping[str, list[int]]) -> Share:
    """The share of a node.

    Args:
        node: The node, with the usage that counts.
        resources: Flavor-resources by resource.
    """
    if node.parent is None or not node.beyond:
        return Share(0.0, 0.0)
    most = 0.0
    for resource, frs in resources.items():
        beyond = sum(node.beyond[fr] for fr in frs if fr in node.beyond)
        lendable = node.parent.lendable(resource, frs) if beyond else 0
        if lendable > 0:
            most = max(most, beyond * 1000 / lendable)
    if node.weight:
        return Share(most / node.weight, most)
    return Share(float("inf") if most else 0.0, most)
