"""What follows from an environment's `observability:`, computed once for everything that is made of it."""

from collections.abc import Mapping
from dataclasses import dataclass

from ...config.catalog.instance_types import Catalog
from ...config.catalog.prices import hourly
from ...config.settings.environment import Environment
from ...config.settings.observability import Grafana, Observability
from .alerts import Watched, watched
from .collected import collected
from .dashboards import dashboards
from .dashboards.panel import Dashboard


@dataclass(frozen=True, slots=True)
class ResolvedMonitoring:
    """What is measured of an environment, and what is made of the measurements."""

    settings: Observability
    """What `observability:` says."""
    measured: bool
    """Whether there are metrics: there is a cluster, and they are not off."""
    nodes_write: bool
    """Whether nodes send metrics themselves, rather than a collector that runs beside their pods."""
    control_plane_logs: bool
    """Whether the log group of the EKS control plane is this environment's to keep."""
    prices: Mapping[str, float]
    """USD an hour by instance type, of the types whose price is known."""
    watched: Watched
    """The cluster as alerts see it."""
    pages: tuple[Dashboard, ...]
    """Dashboards, for Managed Grafana or else for CloudWatch."""
    grafana: Grafana | None
    """Settings of Managed Grafana where it shows the pages."""
    lustre_capacity: Mapping[str, int]
    """GiB of each Lustre file system that an alarm watches, by name."""


def resolve_monitoring(environment: Environment, types: Catalog) -> ResolvedMonitoring | None:
    """What follows from `observability:`, or None without it."""
    settings, cluster = environment.observability, environment.cluster
    if settings is None:
        return None
    on_eks = cluster.orchestrator == "eks"
    # Queues of training jobs have no nodes that could be measured.
    measured = settings.metrics != "off" and environment.has_cluster
    kinds = sorted({kind for group in environment.groups.values() for kind in group.types})
    prices = {kind: hourly(kind, environment.region, environment.own_prices) for kind in kinds}
    result = collected(environment, types)
    return ResolvedMonitoring(
        settings=settings,
        measured=measured,
        # On EKS the collectors write; elsewhere, and on restricted groups, nodes do it themselves.
        nodes_write=not on_eks or bool(environment.restricted_instance_groups),
        # Logs of an existing control plane are its owner's.
        control_plane_logs=on_eks and cluster.eks.existing is None and bool(cluster.eks.logs),
        prices={kind: price.usd for kind, price in prices.items() if price},
        watched=watched(environment, types),
        pages=dashboards(settings, cluster=cluster.name, metrics=result),
        # Grafana without metrics would have nothing to show.
        grafana=settings.managed_grafana if measured else None,
        lustre_capacity={
            name: lustre.capacity_gib
            for name, lustre in environment.storage.lustres.items()
            if lustre.existing is None and lustre.capacity_gib
        },
    )
