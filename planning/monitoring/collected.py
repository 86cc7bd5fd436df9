"""Which metrics an environment has: those of the exporters that run there, at the levels that it wants."""

import re
from collections.abc import Mapping
from typing import Final

from ...config.catalog.instance_types import Catalog
from ...config.catalog.metrics import Exporter, metrics
from ...config.settings.benchmarks import benchmark_policy
from ...config.settings.environment import Environment
from ...config.settings.observability import Source
from ..quota.budgets import budgets
from .recordings import recordings

# Whose level decides over an exporter's metrics; the others have none.
_SOURCES: Final[Mapping[Exporter, Source]] = {
    "dcgm": "accelerated",
    "neuron_monitor": "accelerated",
    "efa": "network",
    "node": "node",
    "cadvisor": "node",
    "kube_state": "cluster",
    "kubernetes_api": "cluster",
    "kueue": "task_governance",
    "training_operator": "training",
    "inference": "inference",
}
_KUBERNETES: Final[tuple[Exporter, ...]] = ("cadvisor", "kube_state", "kubernetes_api")
_KUEUE_ENGINES: Final = ("hyperpod", "kueue")
_ENGINES_OF_PODS: Final = ("kai", "yunikorn")
_SELECTED: Final = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)\{")


def exporters(environment: Environment, types: Catalog) -> frozenset[Exporter]:
    """What exports metrics on an environment's cluster, as far as its file says; none without a cluster."""
    if not environment.has_cluster:
        return frozenset()
    known = [
        instance_type
        for group in environment.groups.values()
        for name in group.types
        if (instance_type := types.find(name))
    ]
    platform = environment.platform
    existing: dict[Exporter, bool] = {
        "node": True,
        "collector": True,
        "podwright": True,
        "dcgm": any(item.accelerator_vendor == "nvidia" for item in known),
        "neuron_monitor": any(item.accelerator_vendor == "neuron" for item in known),
        "efa": any(item.efa_interfaces for item in known),
        "slurm": environment.cluster.orchestrator == "slurm",
        "kueue": environment.governance.engine in _KUEUE_ENGINES,
        "training_operator": platform.training_operator is not None,
        "inference": platform.inference is not None,
        **dict.fromkeys(_KUBERNETES, environment.cluster.orchestrator == "eks"),
    }
    return frozenset(name for name, runs in existing.items() if runs)


def collected(environment: Environment, types: Catalog) -> frozenset[str]:
    """Names of the metrics that reach the workspace, and of all that can be recorded of them."""
    settings = environment.observability
    if settings is None or settings.metrics == "off":
        return frozenset()
    running = exporters(environment, types)
    levels = {name: settings.level(source) for name, source in _SOURCES.items()}
    missing = _missing(environment, types)
    names = {
        # An exporter without a level of its own is either there or not.
        metric.name
        for metric in metrics().values()
        if metric.exporter in running
        and levels.get(metric.exporter, "advanced") in ("advanced", metric.level)
        and not metric.name.startswith(missing)
    }
    # In their order, since a later recording may read an earlier one.
    for recording in recordings():
        # A recording whose metrics are not all there has no values.
        if names_in(recording.expression) <= names and not recording.name.startswith(missing):
            names.add(recording.name)
    return frozenset(names)


def _missing(environment: Environment, types: Catalog) -> tuple[str, ...]:
    """How metrics begin of which there is nothing to measure."""
    existing = {
        "podwright_plan_": bool(environment.training_plans),
        "team:budget_": environment.cluster.orchestrator == "eks" and bool(budgets(environment.governance.teams)),
        "podwright_benchmark_": any(
            benchmark_policy(group, types) != "skip" for group in environment.instance_groups.values()
        ),
        # HyperPod puts health and faults on nodes of Kubernetes; Slurm's nodes have a state instead.
        "podwright_node_health": environment.cluster.orchestrator == "eks",
        "podwright_node_fault": environment.cluster.orchestrator == "eks",
        # With Kueue the class is the workload's, and its pods name none.
        "namespace_pod:priority_class": environment.governance.engine in _ENGINES_OF_PODS,
    }
    return tuple(prefix for prefix, measured in existing.items() if not measured)


def names_in(expression: str) -> frozenset[str]:
    """The metrics and recordings that a query selects: every selector of ours has braces."""
    return frozenset(_SELECTED.findall(expression))
