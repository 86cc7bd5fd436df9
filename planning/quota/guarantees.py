"""What is guaranteed beside what there is: quotas that add up to more than so many nodes hold."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ...config.catalog.mig import MIG_RESOURCE
from ...config.findings import listed
from .amounts import CPU, GPU, MEMORY, NEURON, in_words
from .policy import QuotaPolicy
from .stock import Flavor


class Beyond(NamedTuple):
    """More than there is, of one flavor."""

    flavor: str
    words: str
    """Who is guaranteed how much of it, and what there is."""


def leading(flavor: Flavor) -> list[str]:
    """The resources by which people count a flavor: accelerators and partitions, else vCPU and memory."""
    accelerators = [name for name in flavor.capacity if name in (GPU, NEURON) or name.startswith(MIG_RESOURCE)]
    return accelerators or [name for name in (CPU, MEMORY) if name in flavor.capacity]


def beyond(policy: QuotaPolicy, instances: Mapping[str, int]) -> Iterator[Beyond]:
    """The flavors of which more is guaranteed than there is.

    Args:
        policy: Who is guaranteed what.
        instances: How many there are, by group.
    """
    for name, flavor in policy.flavors.items():
        count = sum(instances.get(group, 0) for group in flavor.groups)
        for resource in leading(flavor):
            parts = {
                team: share.nominal
                for team, settings in policy.teams.items()
                if (share := settings.shares.get(name, {}).get(resource)) and share.nominal
            }
            have, total = flavor.capacity[resource] * count // max(flavor.instances, 1), sum(parts.values())
            if total <= have:
                continue
            sums = " + ".join(f"{in_words(resource, amount)} of {team}" for team, amount in parts.items())
            yield Beyond(
                name,
                f"{sums} = {in_words(resource, total)} of {listed(flavor.groups, 'and')} are guaranteed, and "
                f"{count} instances have {in_words(resource, have)}: not all teams can have theirs at once",
            )
            break
