"""Values of the charts of platform parts."""

from collections.abc import Mapping
from typing import Any, Final

from ...config.catalog.charts import Chart
from ...config.catalog.images import Image
from ...config.settings.governance.teams import Engine
from ...config.settings.platform import KubeRay
from .chart_values import SystemPlacement, set_mirrored

# By quota engine: the scheduler that KubeRay makes pod groups for. Kueue takes whole RayClusters before any pod exists.
# Source: values of KubeRay's chart, batchScheduler.
_BATCH_SCHEDULERS: Final[dict[Engine, str]] = {"kai": "kai-scheduler", "yunikorn": "yunikorn"}
# The chart's limit of 100m CPU and 512 MiB is, by its own comment, spent at about 500 Ray pods.
_KUBERAY_RESOURCES: Final = {"requests": {"cpu": "100m", "memory": "512Mi"}, "limits": {"memory": "2Gi"}}


def kuberay_values(
    chart: Chart, settings: KubeRay, engine: Engine | None, placement: SystemPlacement, mirror: Mapping[str, Image]
) -> dict[str, Any]:
    """Values of KubeRay's chart.

    Decided for you: the operator runs on the system group and has memory for a few thousand Ray pods; with engine kai
    or yunikorn it makes pod groups for that scheduler, so that a Ray cluster starts as a gang.
    """
    values: dict[str, Any] = {
        "nodeSelector": placement.node_selector,
        "tolerations": list(placement.tolerations),
        "resources": _KUBERAY_RESOURCES,
        "batchScheduler": {"name": _BATCH_SCHEDULERS.get(engine, "") if engine else ""},
    }
    if settings.cron_jobs:
        # Helm replaces a list as a whole, so the chart's own gates stand here too.
        on = (
            "RayClusterStatusConditions",
            "RayJobDeletionPolicy",
            "RayMultiHostIndexing",
            "RayServiceIncrementalUpgrade",
        )
        values["featureGates"] = [{"name": name, "enabled": True} for name in (*on, "RayCronJob")]
    set_mirrored(values, chart, mirror)
    return values


def trainer_values(chart: Chart, placement: SystemPlacement, mirror: Mapping[str, Image]) -> dict[str, Any]:
    """Values of Kubeflow Trainer's chart.

    Decided for you: its manager and JobSet's run on the system group; the chart's runtimes stay off, because its job
    for them fetches kubectl from the internet when it runs (see `cdk8s_charts.training_runtime`).
    """
    placed = {"nodeSelector": placement.node_selector, "tolerations": list(placement.tolerations)}
    values: dict[str, Any] = {"manager": placed, "jobset": {"controller": placed}}
    set_mirrored(values, chart, mirror)
    return values


def lws_values(chart: Chart, placement: SystemPlacement, mirror: Mapping[str, Image]) -> dict[str, Any]:
    """Values of LeaderWorkerSet's chart.

    Decided for you: its manager runs on the system group; its webhooks have certificates of its own making, so it needs
    no cert-manager.
    """
    values: dict[str, Any] = {"nodeSelector": placement.node_selector, "tolerations": list(placement.tolerations)}
    set_mirrored(values, chart, mirror)
    return values


def cert_manager_values(placement: SystemPlacement) -> dict[str, Any]:
    """Configuration of the cert-manager add-on: its three Deployments run on the system group."""
    placed = {"nodeSelector": placement.node_selector, "tolerations": list(placement.tolerations)}
    return {**placed, "webhook": placed, "cainjector": placed}
