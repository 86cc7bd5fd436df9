"""The gates: what each asks, how long it may take, which calls it makes, and which environments it applies to.

The gates themselves are in `operations/gates/`, which alone talks to AWS.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, cast, get_args

from ...config.catalog.facts import Citation, cited, table
from ...config.catalog.instance_types import Catalog
from ...config.settings.benchmarks import benchmark_policy
from ...config.settings.environment import Environment
from ...config.settings.gates import GateName, Gates


@dataclass(frozen=True, slots=True)
class Gate:
    """One gate."""

    name: GateName
    title: str
    """What is so when it passes."""
    minutes: int
    """How long it may take unless the file or the command line says otherwise."""
    uses: tuple[str, ...]
    """Ways to the cluster that it may take: kubernetes, slurm."""
    actions: tuple[str, ...]
    """IAM actions of its own, without those of the ways."""
    sources: tuple[Citation, ...]
    """Where the facts behind it can be read."""


@cache
def gate_table() -> dict[GateName, Gate]:
    """Every gate by name, in the order in which they are run."""
    rows = {row["name"]: row for row in table("gates") if row["kind"] == "gate"}
    return {
        name: Gate(
            cast(GateName, name),
            (row := rows[name])["title"],
            int(row["minutes"]),
            tuple(row["uses"].split()),
            tuple(row["actions"].split()),
            cited(row["source"]),
        )
        for name in get_args(GateName)
    }


def settings_of(environment: Environment) -> Gates:
    """The gates of an environment; every default where its file says nothing."""
    return environment.gates or Gates()


def gate_actions(environment: Environment, names: Iterable[GateName] | None = None) -> tuple[str, ...]:
    """IAM actions for running gates of an environment and keeping their evidence, sorted; for all gates without names.

    A role that runs them in CI gets these. Kubernetes has its own permissions: the role needs an access entry.
    """
    ways = {row["name"]: row["actions"].split() for row in table("gates") if row["kind"] == "way"}
    way = "kubernetes" if environment.cluster.orchestrator == "eks" else "slurm"
    actions = set(ways["evidence"])
    for name in gate_table() if names is None else names:
        gate = gate_table()[name]
        actions |= {*gate.actions, *(ways[way] if way in gate.uses else ())}
    return tuple(sorted(actions))


def why_not(environment: Environment, types: Catalog, name: GateName) -> str:
    """Why a gate does not apply to an environment; empty where it does."""
    if not environment.has_cluster:
        return "the environment has no cluster"
    settings = settings_of(environment)
    if reason := settings.skip.get(name):
        return f"gates.skip.{name} says: {reason}"
    match name:
        case "verdicts":
            measured = any(benchmark_policy(group, types) != "skip" for group in environment.instance_groups.values())
            return "" if measured else "no group measures its nodes"
        case "quotas":
            teams = environment.governance.teams
            return "" if teams else "the environment has no teams"
        case "metrics":
            observed = environment.observability
            return "" if observed and observed.metrics != "off" else "the environment measures nothing"
        case "nccl":
            if not nccl_groups(environment, types):
                return "no group has NVIDIA GPUs, EFA and two nodes"
            if environment.cluster.orchestrator == "eks" and not nccl_image(environment):
                return "nothing names an image with nccl-tests: set gates.nccl.image, or have a job of kind nccl_test"
    return ""


def nccl_groups(environment: Environment, types: Catalog) -> tuple[str, ...]:
    """The groups whose nodes NCCL is measured over."""
    if chosen := settings_of(environment).nccl.groups:
        return chosen
    return tuple(name for name, group in environment.instance_groups.items() if can_measure_nccl(group, types))


def can_measure_nccl(group: Any, types: Catalog) -> bool:
    """Whether a group has two nodes, and NVIDIA GPUs and EFA in all its types."""
    rows = [types.find(name) for name in group.types]
    fast = all(row and row.accelerator_vendor == "nvidia" and row.efa_interfaces for row in rows)
    return bool(rows) and fast and group.count >= 2


def nccl_image(environment: Environment) -> str:
    """The image that NCCL is measured with on EKS; empty where nothing names one."""
    tests = [job.image for job in environment.jobs.values() if job.kind == "nccl_test"]
    return settings_of(environment).nccl.image or next(iter(tests), "")
