"""Values of the charts of KAI and YuniKorn."""

from collections.abc import Iterable, Mapping
from typing import Any

from ...config.catalog.charts import Chart
from ...config.catalog.images import Image
from ...config.settings.governance.engines import KaiSettings
from ...config.settings.governance.teams import Governance
from ..kubernetes.kai_services import KaiService
from ..quota.team_names import team_namespace
from .chart_values import SystemPlacement, set_mirrored


def kai_values(
    chart: Chart,
    settings: KaiSettings,
    services: Mapping[str, KaiService],
    placement: SystemPlacement,
    mirror: Mapping[str, Image] | None = None,
) -> dict[str, Any]:
    """Values of KAI's chart.

    Decided for you: KAI runs on the system group; no queue exists but podwright's, so no pod runs outside of a quota;
    topologies of Kueue are not copied, since podwright brings KAI's own; and pods that share a GPU get no runtime
    class, because nodes of HyperPod run GPU pods without one, and the chart's would have to be there.
    Source: KAI Scheduler 0.17, values of its chart.

    Args:
        chart: KAI's chart.
        settings: KAI's settings.
        services: Its parts by name (see `kai_services`).
        placement: Where it runs.
        mirror: Where mirrored images lie, by the original's name (see `mirrors.mirror_of`).
    """
    values: dict[str, Any] = {
        "global": {
            "gpuSharing": settings.gpu_sharing,
            "nodeSelector": placement.node_selector,
            "tolerations": list(placement.tolerations),
        },
        "defaultQueue": {"createDefaultQueue": False},
        "topologyMigration": {"enabled": False},
        **{name: {"resources": service.as_resources()} for name, service in services.items()},
    }
    values["admission"]["gpuFractionRuntimeClassName"] = ""
    set_mirrored(values, chart, mirror or {})
    return values


def yunikorn_values(
    chart: Chart, namespaces: Iterable[str], placement: SystemPlacement, mirror: Mapping[str, Image] | None = None
) -> dict[str, Any]:
    """Values of YuniKorn's chart.

    Decided for you: YuniKorn runs on the system group, with two admission controllers that leave the node's network
    alone; it schedules pods of `namespaces` and of no other, so other projects on the cluster keep Kubernetes' own
    scheduler; queues come after the release, in a ConfigMap that its admission controller checks.
    Sources: YuniKorn documentation, service configuration; YuniKorn 1.9.0, values of its chart.

    Args:
        chart: YuniKorn's chart.
        namespaces: The namespaces whose pods it schedules.
        placement: Where it runs.
        mirror: Where mirrored images lie, by the original's name (see `mirrors.mirror_of`).
    """
    on_system = {"nodeSelector": placement.node_selector, "tolerations": list(placement.tolerations)}
    values: dict[str, Any] = {
        **on_system,
        # On the node's network two replicas on one node would ask for the same port.
        "admissionController": {**on_system, "replicaCount": 2, "hostNetwork": False},
        "yunikornDefaults": yunikorn_filters(namespaces),
    }
    set_mirrored(values, chart, mirror or {})
    return values


def yunikorn_namespaces(governance: Governance) -> tuple[str, ...]:
    """The namespaces whose pods YuniKorn schedules: those of the teams, and those of other queues."""
    others = (name for queue in governance.yunikorn.other_queues.values() for name in queue.namespaces)
    return (*(team_namespace("yunikorn", team) for team in sorted(governance.teams)), *sorted(others))


def yunikorn_filters(namespaces: Iterable[str]) -> dict[str, str]:
    """The part of YuniKorn's configuration that says whose pods it schedules: those of `namespaces`."""
    return {
        # Patterns: without ^ and $ team a would take the namespaces of team ab as well.
        "admissionController.filtering.processNamespaces": ",".join(f"^{name}$" for name in namespaces),
        "admissionController.filtering.bypassNamespaces": "^kube-system$",
    }
