"""What Karpenter may add to a cluster, and what that would cost: no sum holds it, since nodes come while pods wait."""

import math
from dataclasses import dataclass

from ...config.catalog.instance_types import environment_types
from ...config.catalog.prices import Price, hourly
from ...config.findings import listed
from ...config.settings.cluster import Karpenter
from ...config.settings.environment import Environment

_UNITS = {"accelerators": "accelerators", "vcpu": "vCPUs", "memory_gib": "GiB of memory"}


@dataclass(frozen=True, slots=True)
class ScaledType:
    """One instance type that Karpenter may add."""

    instance_type: str
    groups: tuple[str, ...]
    nodes: int | None
    """How many fit into the limits when no other type is added; None where no limit is on what it has."""
    price: Price | None
    """Of one an hour on demand; None where nobody says. Spot costs what the market decides, and no more than this."""

    @property
    def hourly(self) -> float | None:
        """US dollars an hour of all of them; None where that has no end, or nobody says."""
        return None if self.price is None or self.nodes is None else self.price.usd * self.nodes


def scaled_types(environment: Environment) -> list[ScaledType]:
    """The types of the groups that Karpenter scales, in the order of their groups; none without Karpenter.

    A type that the catalog does not know is left out: a rule names it.
    """
    karpenter, types = environment.cluster.karpenter, environment_types(environment.instance_types)
    if karpenter is None:
        return []
    groups = {name: environment.instance_groups[name].types for name in karpenter.groups}
    results: list[ScaledType] = []
    for kind in dict.fromkeys(kind for kinds in groups.values() for kind in kinds):
        if row := types.find(kind):
            has = {"accelerators": row.accelerator_count, "vcpu": row.vcpu, "memory_gib": row.memory_gib}
            bounds = [value / has[limit] for limit, value in karpenter.limits.items() if has[limit]]
            of_kind = tuple(name for name, kinds in groups.items() if kind in kinds)
            price = hourly(kind, environment.region, environment.own_prices)
            results.append(ScaledType(kind, of_kind, math.floor(min(bounds)) if bounds else None, price))
    return results


def limit_words(karpenter: Karpenter) -> str:
    """The limits in words, such as `32 accelerators and 768 vCPUs`."""
    return listed([f"{value:,} {_UNITS[limit]}" for limit, value in karpenter.limits.items()], "and")
