"""Kueue's arithmetic of quotas in a tree of cohorts, as an oracle for rendered queues.

It reads nothing but manifests, so it knows what they say to Kueue and not what they were rendered from.
Source: Kueue 0.19.2, quota tree of its scheduler cache (resource_node.go), restated.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

_UNITS = {"": Fraction(1), "m": Fraction(1, 1000), "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30)}
Item = tuple[str, str]
"""Flavor and resource."""


def amount(text: str | int) -> Fraction:
    """A Kubernetes quantity."""
    match = re.fullmatch(r"([0-9.]+)([a-zA-Z]*)", str(text))
    assert match, text
    return Fraction(match[1]) * _UNITS[match[2]]


@dataclass
class Node:
    """A cluster queue or a cohort."""

    name: str
    nominal: dict[Item, Fraction] = field(default_factory=dict)
    lending: dict[Item, Fraction] = field(default_factory=dict)
    borrowing: dict[Item, Fraction] = field(default_factory=dict)
    parent: "Node | None" = None
    children: "list[Node]" = field(default_factory=list)
    usage: dict[Item, Fraction] = field(default_factory=dict)

    def subtree(self, item: Item) -> Fraction:
        """Its own quota and what its children lend."""
        return self.nominal.get(item, Fraction(0)) + sum(
            (child.subtree(item) - child.kept(item) for child in self.children), Fraction(0)
        )

    def kept(self, item: Item) -> Fraction:
        """The part that nobody else ever sees."""
        return max(Fraction(0), self.subtree(item) - self.lending[item]) if item in self.lending else Fraction(0)

    def used(self, item: Item) -> Fraction:
        """What is used here; of children only what they do not keep."""
        return self.usage.get(item, Fraction(0)) + sum(
            (max(Fraction(0), child.used(item) - child.kept(item)) for child in self.children), Fraction(0)
        )

    def available(self, item: Item) -> Fraction:
        """What can still be used here without stopping anything."""
        if self.parent is None:
            return self.subtree(item) - self.used(item)
        own = max(Fraction(0), self.kept(item) - self.used(item))
        above = self.parent.available(item)
        if item in self.borrowing:
            lent, stored = self.subtree(item) - self.kept(item), max(Fraction(0), self.used(item) - self.kept(item))
            above = min(above, lent - stored + self.borrowing[item])
        return own + above


def tree(manifests: list[dict[str, Any]]) -> tuple[Node, dict[str, Node]]:
    """The root of all cohorts, and the queues by name."""
    cohorts = {item["metadata"]["name"]: item["spec"] for item in manifests if item["kind"] == "Cohort"}
    queues = {item["metadata"]["name"]: item["spec"] for item in manifests if item["kind"] == "ClusterQueue"}
    above = {name: _node(name, spec) for name, spec in cohorts.items()}
    below = {name: _node(name, spec) for name, spec in queues.items()}
    for nodes, specs, field_name in ((above, cohorts, "parentName"), (below, queues, "cohortName")):
        for name, node in nodes.items():
            if parent := specs[name].get(field_name):
                node.parent = above[parent]
                above[parent].children.append(node)
    (root,) = (node for node in above.values() if node.parent is None)
    return root, below


def _node(name: str, spec: dict[str, Any]) -> Node:
    node = Node(name)
    for item, quota in _quotas(spec):
        node.nominal[item] = amount(quota["nominalQuota"])
        if "lendingLimit" in quota:
            node.lending[item] = amount(quota["lendingLimit"])
        if "borrowingLimit" in quota:
            node.borrowing[item] = amount(quota["borrowingLimit"])
    return node


def _quotas(spec: dict[str, Any]) -> Iterator[tuple[Item, dict[str, Any]]]:
    for group in spec.get("resourceGroups", []):
        for flavor in group["flavors"]:
            for resource in flavor["resources"]:
                yield (flavor["name"], resource["name"]), resource
