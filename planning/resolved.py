"""An environment with everything that follows from it, computed once: what stacks are made of."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..config.catalog.charts import Chart
from ..config.catalog.images import Image
from ..config.catalog.instance_types import Catalog, environment_types
from ..config.findings import Finding, listed
from ..config.loading.artifacts import ChartArchive
from ..config.settings.environment import Environment
from .helm.wanted_charts import wanted_charts
from .monitoring.resolve import ResolvedMonitoring, resolve_monitoring
from .node.archives import LockedFile
from .quota.policy import QuotaPolicy, environment_policy


@dataclass(frozen=True, slots=True)
class InstalledChart:
    """A Helm chart that an environment installs."""

    chart: Chart
    """What it is."""
    values: Mapping[str, Any]
    """What it is installed with."""
    archive: ChartArchive
    """Where it lies."""


@dataclass(frozen=True, slots=True)
class ResolvedEnvironment:
    """One environment as stacks take it. Nothing in it is a token or comes from AWS."""

    environment: Environment
    """What the file says."""
    types: Catalog
    """The instance catalog with the environment's overrides."""
    tags: dict[str, str]
    """Tags of every resource."""
    charts: Mapping[str, InstalledChart]
    """The charts that it installs by name, in the order of their installation."""
    mirror: Mapping[str, Image]
    """Where mirrored images lie, by the original's name."""
    node_archives: tuple[LockedFile, ...]
    """What nodes install from."""
    quota_policy: QuotaPolicy | None
    """Who may use how much of what; None without a quota engine."""
    monitoring: ResolvedMonitoring | None
    """What is measured; None without `observability:`."""
    endpoint_zones: Mapping[str, Collection[str]]
    """Zone ids in which an endpoint service is offered, as far as anybody asked."""
    missing: tuple[Finding, ...]
    """What has to be fetched or built before it can be deployed."""


def resolve(
    environment: Environment,
    *,
    charts: Mapping[str, ChartArchive],
    mirror: Mapping[str, Image] | None = None,
    node_archives: Sequence[LockedFile] = (),
    endpoint_zones: Mapping[str, Collection[str]] | None = None,
    missing: Sequence[Finding] = (),
) -> ResolvedEnvironment:
    """Everything that follows from an environment.

    Args:
        environment: The environment; rules have found no error in it.
        charts: Archives of the Helm charts that it installs, or stand-ins for them, by name.
        mirror: Where mirrored images lie, by the original's name.
        node_archives: What nodes install from.
        endpoint_zones: Zone ids in which endpoint services are offered; a service that is not in it is taken to be in
            all zones.
        missing: What stands in the way of a deployment.

    Raises:
        ValueError: `charts` lacks one that the environment installs.
    """
    desired = wanted_charts(environment, mirror)
    if lacking := [item.chart.name for item in desired if item.chart.name not in charts]:
        raise ValueError(f"environment {environment.name} installs {listed(lacking, 'and')}, which charts= lacks")
    types = environment_types(environment.instance_types)
    return ResolvedEnvironment(
        environment=environment,
        types=types,
        tags={"podwright:environment": environment.name, **environment.tags},
        charts={item.chart.name: InstalledChart(item.chart, item.values, charts[item.chart.name]) for item in desired},
        mirror=mirror or {},
        node_archives=tuple(node_archives),
        quota_policy=environment_policy(environment, types) if environment.governance.engine else None,
        monitoring=resolve_monitoring(environment, types),
        endpoint_zones=endpoint_zones or {},
        missing=tuple(missing),
    )
