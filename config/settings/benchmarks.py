"""Benchmark kernels on boot: how long they take, and how many nodes they may have replaced."""

from typing import Literal

from pydantic import Field

from ..catalog.instance_types import Catalog
from .base import Settings
from .groups import BenchmarkPolicy, InstanceGroup


class Benchmarks(Settings):
    """What nodes of all groups measure when they boot, and what a bad measurement may cost."""

    mode: Literal["quick", "thorough"] = "quick"
    """quick: within a minute on a node of eight GPUs. thorough: larger sizes, longer runs and more pairs."""
    programs: Literal["shipped", "compile"] = "shipped"
    """Where the programs that measure NVIDIA GPUs come from. shipped: `podwright kernels build` made them, and nodes
    measure no GPUs without them. compile: nodes compile them with the CUDA toolkit of their image."""
    max_replacements: int = Field(default=2, ge=0, le=1000)
    """Nodes of a group that `gate` may have replaced within `window_days`; 0 replaces none. Nodes beyond it stay, with
    their verdict reported, so that thresholds that are wrong cannot take the group away."""
    window_days: int = Field(default=7, ge=1, le=365)
    """Days after which a replacement no longer counts."""


def benchmark_policy(group: InstanceGroup, types: Catalog) -> BenchmarkPolicy:
    """What a group does with the verdict on a node; `report` with accelerators and `skip` without, unless it says.

    A group with scripts of its own runs none of ours, and so no benchmarks.
    """
    if group.lifecycle is not None:
        return "skip"
    if group.benchmarks is not None:
        return group.benchmarks
    return "report" if any((row := types.find(name)) and row.accelerator_count for name in group.types) else "skip"
