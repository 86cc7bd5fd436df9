"""The Helm charts that an environment installs, each with its values: the one list that every command goes by."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from ...config.catalog.charts import HYPERPOD_DEPENDENCIES, KAI, KUEUE, YUNIKORN, WantedChart, chart
from ...config.catalog.images import Image
from ...config.catalog.instance_types import Catalog, environment_types
from ...config.loading.artifacts import ChartArchive, chart_archive
from ...config.settings.environment import Environment
from ...config.settings.platform import KUBEFLOW_TRAINER, KUBERAY, LEADER_WORKER_SET
from ..kubernetes.kai_services import kai_services
from .chart_values import dependencies_values, system_placement
from .kueue_values import kueue_values
from .platform_values import kuberay_values, lws_values, trainer_values
from .scheduler_values import kai_values, yunikorn_namespaces, yunikorn_values


def wanted_charts(environment: Environment, mirror: Mapping[str, Image] | None = None) -> tuple[WantedChart, ...]:
    """The charts of an environment in the order in which they are installed; none with Slurm, which runs no pods.

    Args:
        environment: The environment.
        mirror: Where mirrored images lie, by the original's name (see `mirrors.mirror_of`).
    """
    if environment.cluster.orchestrator != "eks":
        return ()
    results: list[WantedChart] = []
    types = environment_types(environment.instance_types)
    existing = environment.cluster.eks.existing
    if existing is None or not existing.dependencies_installed:
        dependencies = chart(HYPERPOD_DEPENDENCIES)
        values = dependencies_values(
            dependencies,
            environment.groups.values(),
            types,
            region=environment.region,
            mirror=mirror,
            platform=environment.platform,
        )
        results.append(WantedChart(dependencies, values))
    platform = environment.platform
    if platform.kuberay or platform.kubeflow_trainer or platform.leader_worker_set:
        results += _platform(environment, mirror or {})
    if environment.governance.engine == "kueue":
        results.append(_kueue(environment, types, mirror))
    if environment.governance.engine == "kai":
        results.append(_kai(environment, mirror))
    if environment.governance.engine == "yunikorn" and not environment.governance.yunikorn.existing:
        results.append(_yunikorn(environment, mirror))
    return tuple(results)


def _platform(environment: Environment, mirror: Mapping[str, Image]) -> Iterator[WantedChart]:
    settings, placement = environment.platform, system_placement(environment.cluster, environment.instance_groups)
    if settings.kuberay:
        kuberay = chart(KUBERAY)
        values = kuberay_values(kuberay, settings.kuberay, environment.governance.engine, placement, mirror)
        yield WantedChart(kuberay, values)
    if settings.kubeflow_trainer:
        trainer = chart(KUBEFLOW_TRAINER)
        yield WantedChart(trainer, trainer_values(trainer, placement, mirror))
    if settings.leader_worker_set:
        lws = chart(LEADER_WORKER_SET)
        yield WantedChart(lws, lws_values(lws, placement, mirror))


def _kueue(environment: Environment, types: Catalog, mirror: Mapping[str, Image] | None) -> WantedChart:
    kueue, placement = chart(KUEUE), system_placement(environment.cluster, environment.instance_groups)
    rows = [types.find(name) for group in environment.groups.values() for name in group.types]
    neuron = any(row and row.accelerator_vendor == "neuron" for row in rows)
    values = kueue_values(kueue, environment.governance, placement, mirror=mirror, neuron=neuron)
    return WantedChart(kueue, values)


def _kai(environment: Environment, mirror: Mapping[str, Image] | None) -> WantedChart:
    kai, placement = chart(KAI), system_placement(environment.cluster, environment.instance_groups)
    services = kai_services(environment.instance_groups.values())
    return WantedChart(kai, kai_values(kai, environment.governance.kai, services, placement, mirror))


def _yunikorn(environment: Environment, mirror: Mapping[str, Image] | None) -> WantedChart:
    yunikorn, placement = chart(YUNIKORN), system_placement(environment.cluster, environment.instance_groups)
    return WantedChart(
        yunikorn, yunikorn_values(yunikorn, yunikorn_namespaces(environment.governance), placement, mirror)
    )


def chart_archives(root: Path, environment: Environment) -> dict[str, ChartArchive]:
    """The archives of an environment's charts in the project in `root`, by name.

    Raises:
        InvalidFile: one is not locked or not there.
    """
    return {desired.chart.name: chart_archive(root, desired.chart) for desired in wanted_charts(environment)}
