"""Partitions of NVIDIA GPUs (MIG): how many a GPU gives, and what a node's label makes of its GPUs."""

import re
from collections import Counter
from collections.abc import Collection, Mapping
from functools import cache
from typing import Final

from .facts import table
from .instance_type import InstanceType

MIG_LABEL: Final = "nvidia.com/mig.config"
"""The node label from which NVIDIA's MIG manager takes the layout of all GPUs of the node."""
MIG_RESOURCE: Final = "nvidia.com/mig-"
"""Before a profile such as 1g.18gb: the resource of NVIDIA's device plugin, with its strategy `mixed`."""

# As HyperPod's chart writes a mixed layout: mixed-1-3g.71gb-2-2g.35gb.
_MIXED: Final = re.compile(r"-([1-7])-([1-7]g\.[0-9]+gb)")


@cache
def chart_layouts() -> tuple[str, ...]:
    """The layouts that HyperPod's chart gives the MIG manager, in place of NVIDIA's own."""
    return tuple(row["layout"] for row in table("mig_layouts"))


def partitions_per_gpu(profile: str, profiles: Collection[str]) -> int:
    """How many partitions of `profile` (`1g.18gb`) a GPU with such `profiles` gives when it gives no others.

    A GPU has seven slices of compute and eight of memory, of which its largest profile takes all. Source: NVIDIA's MIG
    user guide. 0 when the GPU has no such profile.
    """
    if profile not in profiles:
        return 0
    compute, memory = _slices(profile, profiles)
    return min(7 // compute, 8 // memory)


def common_profiles(rows: Collection[InstanceType]) -> tuple[str, ...]:
    """The profiles that GPUs of each of these types have."""
    counts = Counter(profile for row in rows for profile in row.mig_profiles)
    # A profile that only some types have cannot be promised for the group.
    return tuple(profile for profile, count in counts.items() if count == len(rows))


def _slices(profile: str, profiles: Collection[str]) -> tuple[int, int]:
    # Of seven of compute, and of eight of memory.
    return _compute(profile), max(round(8 * _memory(profile) / max(map(_memory, profiles))), 1)


def partitions(labels: Mapping[str, str], profiles: Collection[str]) -> dict[str, int] | None:
    """Partitions of each GPU by profile, as a node's labels lay its GPUs out. Empty when its GPUs are whole.

    Known are the layouts of NVIDIA's MIG manager (`all-<profile>`, `all-balanced` and `all-disabled`) and those
    that HyperPod's chart adds (`mixed-<count>-<profile>-…`). None for any other, because only the cluster knows it.
    """
    if (mixed := labels.get(MIG_LABEL, "")).startswith("mixed-"):
        parts = {profile: int(count) for count, profile in _MIXED.findall(mixed)}
        # A profile that the GPU lacks means that another GPU was meant.
        return parts if parts and parts.keys() <= set(profiles) else None
    layout = labels.get(MIG_LABEL, "all-disabled").removeprefix("all-")
    if layout == "disabled" or not profiles:
        return {}
    if layout == "balanced":
        # Of several profiles of one width, the one with the least memory comes last and so stays.
        smallest = {_compute(name): name for name in sorted(profiles, key=_memory, reverse=True)}
        # NVIDIA's own `all-balanced` divides every GPU so.
        return {smallest[1]: 2, smallest[2]: 1, smallest[3]: 1}
    count = partitions_per_gpu(layout, profiles)
    return {layout: count} if count else None


def _compute(profile: str) -> int:
    return int(profile.partition("g.")[0])


def _memory(profile: str) -> int:
    return int(profile.partition("g.")[2].removesuffix("gb"))
