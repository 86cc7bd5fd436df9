"""The Kubernetes objects of an environment, as `cdk deploy` applies them: what its charts say, put together once more.

A test holds this list to the templates: for each environment both have the same objects.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ...cdk8s_charts.deployment_readers import deployment_readers
from ...cdk8s_charts.image_pulls import image_pulls
from ...cdk8s_charts.kai import kai_objects
from ...cdk8s_charts.kueue import kueue_objects
from ...cdk8s_charts.lustre_volumes import lustre_claims
from ...cdk8s_charts.namespace_readers import TEAM_NAMESPACE_READERS, namespace_readers
from ...cdk8s_charts.priority_classes import priority_classes
from ...cdk8s_charts.team import team_namespaces, team_objects, team_roles
from ...cdk8s_charts.team_folders import team_folders
from ...cdk8s_charts.team_guard import team_guard
from ...cdk8s_charts.training_runtime import torch_runtime
from ...cdk8s_charts.yunikorn import yunikorn_objects
from ...config.catalog.images import Image
from ...config.catalog.instance_types import Catalog, environment_types
from ...config.catalog.kubernetes_groups import (
    KAI_CONTROLLER,
    KAI_READERS,
    KUEUE_READERS,
    NAMESPACE_READERS,
    TEAM_LABEL,
)
from ...config.settings.environment import Environment
from ...config.settings.governance.task_governance import CONTROLLER
from ...config.settings.governance.teams import Engine
from ...planning.helm.chart_values import system_placement
from ...planning.jobs.queue import pod_priorities
from ...planning.kubernetes.deployed_values import DeployedValues
from ...planning.kubernetes.isolation import awaited_namespaces, pod_freedoms
from ...planning.quota.policy import countable_groups, environment_policy

Object = dict[str, Any]


def rendered(environment: Environment, values: DeployedValues, mirror: Mapping[str, Image]) -> Iterator[Object]:
    """Every object of an environment; none with Slurm. Helm charts are not among them (see `config.wanted_charts`).

    Args:
        environment: The environment.
        values: What a deployment knows.
        mirror: Where mirrored images lie, by the original's name.
    """
    if environment.cluster.orchestrator != "eks":
        return
    types = environment_types(environment.instance_types)
    yield from _cluster(environment, types, mirror)
    yield from lustre_claims(environment.storage.lustres, values.lustre)
    yield from image_pulls(environment.instance_groups, mirror)
    if environment.platform.kubeflow_trainer:
        yield torch_runtime()
    governance = environment.governance
    if engine := governance.engine:
        if engine != "hyperpod" or governance.teams:
            placement = system_placement(environment.cluster, environment.instance_groups)
            yield from team_roles()
            yield from team_folders(governance.teams, values, placement, mirror)
            yield from team_namespaces(engine, governance.teams)
            yield from team_objects(engine, governance.teams, values)
            yield from team_guard(engine, pod_freedoms(governance, environment.jobs.values()))
        yield from _ENGINES[engine](environment, types)
        if priorities := pod_priorities(governance, environment.jobs.values()):
            yield from priority_classes(priorities)


def _cluster(environment: Environment, types: Catalog, mirror: Mapping[str, Image]) -> Iterator[Object]:
    """The objects of charts that every EKS cluster gets, whatever its teams."""
    import cdk8s

    from ...cdk8s_charts.benchmark_labels.chart import BenchmarkLabels
    from ...cdk8s_charts.device_plugins import NeuronDevicePlugin
    from ...cdk8s_charts.node_readers import NodeMarkers, NodeReaders

    groups = environment.groups.values()
    app = cdk8s.App()
    quarantines = environment.observability and environment.observability.quarantines
    for chart in (
        NodeReaders(app, "node-readers"),
        *([NodeMarkers(app, "node-markers")] if quarantines else []),
        NeuronDevicePlugin(app, "neuron", groups=groups, types=types, mirror=mirror),
        BenchmarkLabels(app, "benchmark-labels", groups=environment.instance_groups, mirror=mirror),
    ):
        yield from chart.to_json()


def _hyperpod(environment: Environment, types: Catalog) -> Iterator[Object]:
    """Quotas are CloudFormation's; Kubernetes only has who may watch the add-on and the teams' namespaces."""
    yield from deployment_readers("podwright-kueue-readers", group=KUEUE_READERS, deployment=CONTROLLER)
    if names := awaited_namespaces(environment.governance):
        yield from namespace_readers(TEAM_NAMESPACE_READERS, group=NAMESPACE_READERS, namespaces=names)


def _kueue(environment: Environment, types: Catalog) -> Iterator[Object]:
    governance = environment.governance
    yield from kueue_objects(
        environment_policy(environment, types), governance.kueue, countable_groups(environment), types
    )


def _kai(environment: Environment, types: Catalog) -> Iterator[Object]:
    governance = environment.governance
    yield from deployment_readers("podwright-kai-readers", group=KAI_READERS, deployment=KAI_CONTROLLER)
    yield from kai_objects(environment_policy(environment, types), governance.kai, types, governance.wait_for_pods)


def _yunikorn(environment: Environment, types: Catalog) -> Iterator[Object]:
    yield from yunikorn_objects(environment_policy(environment, types), environment.governance.yunikorn)


_ENGINES: Mapping[Engine, Callable[[Environment, Catalog], Iterator[Object]]] = {
    "hyperpod": _hyperpod,
    "kueue": _kueue,
    "kai": _kai,
    "yunikorn": _yunikorn,
}


def placed(objects: Iterable[Object]) -> dict[str, list[Object]]:
    """Objects by the file that they stand in: one for each team, and one for each other object."""
    files: dict[str, list[Object]] = {}
    for item in objects:
        metadata = item["metadata"]
        team = metadata.get("labels", {}).get(TEAM_LABEL)
        name = ".".join(filter(None, (item["kind"], metadata.get("namespace"), metadata["name"])))
        files.setdefault(f"teams/{team}.yaml" if team else f"shared/{name}.yaml", []).append(item)
    return files
