"""Taints that nodes of several instance groups have alike."""

from collections.abc import Iterable

from ...config.settings.groups import InstanceGroup, Taint


def common_taints(groups: Iterable[InstanceGroup]) -> list[Taint]:
    """The taints that each of some groups has, in the order of the first; none of no groups."""
    first, *others = [group.taints for group in groups] or [()]
    common = set(first).intersection(*others)
    return [taint for taint in first if taint in common]
