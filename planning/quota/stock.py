"""What quotas are parts of: the instances of each group, and the flavors that an engine tells apart."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from ...config.catalog.instance_types import Catalog
from ...config.settings.governance.teams import Amount, Engine
from ...config.settings.groups import InstanceGroup
from .amounts import Node, Quantities, least, node, quantities, times


class Flavor(NamedTuple):
    """Instances that quotas do not tell apart: those of one group, or of one type with engine hyperpod."""

    name: str
    """Name of the group in lower case, as Kubernetes takes it; or the instance type."""
    groups: tuple[str, ...]
    """The groups that hold its instances, sorted."""
    types: tuple[str, ...]
    """Their instance types."""
    instances: int
    """How many there are when every group is complete."""
    one: Quantities
    """What one instance brings, at least."""
    capacity: Quantities
    """What all bring together. A partitioned group has partitions in place of whole GPUs; a resource of which only the
    cluster knows how much there is stands nowhere."""


def _flavor_name(engine: Engine | None, group: str, types: Sequence[str]) -> str:
    # Task governance knows no groups, and Kubernetes refuses capital letters in a name.
    """Task governance counts instance types; the other engines' flavors are Kubernetes names, in lower case."""
    if engine == "hyperpod" and len(types) == 1:
        return types[0]
    return group.lower() if engine else group


class _Part(NamedTuple):
    """What one group has of an amount."""

    group: str
    quantities: Quantities
    filled: frozenset[str]
    """Resources that were filled in by ratio."""


class Stock:
    """The instances of an environment's groups, by flavor, and what one instance of each group brings."""

    def __init__(self, groups: Mapping[str, InstanceGroup], types: Catalog, engine: Engine | None = None) -> None:
        """Groups of the same single type are one flavor of engine hyperpod, because task governance counts types.

        Without an engine flavors are called exactly as groups are.
        """
        self._groups = {name: group for name, group in sorted(groups.items()) if group.types}
        self.nodes = {
            name: node(map(types.get, group.types), group.labels, group.threads_per_core)
            for name, group in self._groups.items()
        }
        """What one instance brings, by group."""
        self._flavor_of = {name: _flavor_name(engine, name, group.types) for name, group in self._groups.items()}
        self._groups_of = {name: [name] for name in self._groups}
        for name, group in self._groups.items():
            if len(group.types) == 1:
                self._groups_of.setdefault(group.types[0], []).append(name)
        capacities = self.capacities()
        self.flavors: dict[str, Flavor] = {}
        """By name, sorted."""
        for flavor in sorted(set(self._flavor_of.values())):
            members = {name: group for name, group in self._groups.items() if self._flavor_of[name] == flavor}
            capacity: Counter[str] = Counter()
            for name in members:
                capacity.update(capacities[name])
            types_of = dict.fromkeys(type_name for group in members.values() for type_name in group.types)
            count = sum(group.count for group in members.values())
            one = least(self.nodes[name] for name in members).brings
            self.flavors[flavor] = Flavor(flavor, tuple(members), tuple(types_of), count, one, dict(capacity))

    def capacities(self) -> dict[str, Quantities]:
        """What all instances of each group bring."""
        return {name: times(group.count, self.nodes[name].brings) for name, group in self._groups.items()}

    def groups_of(self, key: str) -> list[str]:
        """The groups that a key of a quota means: the one of that name, or those that hold nothing but that type."""
        return self._groups_of.get(key, [])

    def flavors_of(self, key: str) -> set[str]:
        """The flavors of those groups."""
        return {self._flavor_of[name] for name in self.groups_of(key)}

    def left(self, quotas: Iterable[Mapping[str, Amount]]) -> dict[str, Quantities]:
        """What each group has beyond the amounts that name the group itself."""
        left = self.capacities()
        for amounts in quotas:
            # A quota that names a group has its part of that group before those that name only the type.
            for name in amounts.keys() & self._groups.keys():
                _take(left[name], quantities(amounts[name], self.nodes[name])[0])
        return left

    def divided(
        self, amounts: Mapping[str, Amount], left: Mapping[str, Quantities]
    ) -> dict[str, dict[str, tuple[int, bool]]]:
        """`amounts` by flavor and resource, each with whether part of it was filled in by ratio.

        An amount of a type that several groups hold goes to what is `left` in each, which it lowers; what fits nowhere
        goes to the last of them.

        Raises:
            LookupError: a key means no group.
        """
        results: dict[str, dict[str, tuple[int, bool]]] = {}
        for key, amount in sorted(amounts.items()):
            for part in self._parts(key, amount, left):
                held = results.setdefault(self._flavor_of[part.group], {})
                if key != part.group:
                    _take(left[part.group], part.quantities)
                for resource, count in part.quantities.items():
                    before, was_filled = held.get(resource, (0, False))
                    held[resource] = before + count, was_filled or resource in part.filled
        return results

    def _parts(self, key: str, amount: Amount, left: Mapping[str, Quantities]) -> list[_Part]:
        """How an amount is divided over the groups that it names, as far as each has any left. Raises LookupError."""
        named = self.groups_of(key)
        # An amount of partitions goes to groups that have such partitions, where any has.
        groups = [name for name in named if _has(self.nodes[name], amount)] or named
        if not groups:
            raise LookupError(f"{key} is neither a group nor an instance type of one")
        rest, filled = quantities(amount, least(self.nodes[name] for name in groups))
        # Instances, accelerators and partitions stay whole.
        pieces = max(amount.instances or 0, amount.accelerators or 0, sum(amount.mig.values())) or max(rest.values())
        parts = []
        for name in groups[:-1]:
            fitting = min(
                # Fractions: a rounded division could give one instance too few.
                (Fraction(left[name].get(result, 0), count) for result, count in rest.items() if count),
                default=0,
            )
            taken = min(max(int(fitting * pieces), 0), pieces)
            part = {result: count * taken // pieces if pieces else 0 for result, count in rest.items()}
            parts.append(_Part(name, part, filled))
            rest = {result: count - part[result] for result, count in rest.items()}
            pieces -= taken
        # The last one takes what is left, so that nothing of a promise is lost; a rule says where that is too much.
        return [*parts, _Part(groups[-1], rest, filled)]


def _take(left: Quantities, part: Quantities) -> None:
    for resource, count in part.items():
        left[resource] = left.get(resource, 0) - count


def _has(result: Node, amount: Amount) -> bool:
    return (amount.accelerators is None or result.accelerator in result.brings) and all(
        not result.layout_known or f"nvidia.com/{profile}" in result.brings for profile in amount.mig
    )
