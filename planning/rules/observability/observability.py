"""Rules on observability: what can be measured of a cluster, how long it is kept, and who writes it."""

from ....config.catalog.instance_types import Catalog
from ....config.findings import listed
from ....config.settings.environment import Environment
from ....config.settings.observability import Observability
from ...monitoring.metric_levels import addon_levels
from ..framework.rule import ERROR, INFO, WARNING, Problem, Problems, rule
from ..groups.groups import known
from ..network.network import LOG_RETENTION

_SMALLEST_VCPU = 16
"""Of a 4xlarge, the smallest size of instance on which AWS says that the add-on's pods fit."""


@rule("OBS001", ERROR, on=Observability, source="log-retention", final=True)
def log_retention(settings: Observability) -> Problems:
    """Invalid log retention."""
    days = settings.log_retention_days
    if days not in LOG_RETENTION:
        nearest = min(LOG_RETENTION, key=lambda each: (abs(each - days), -each))
        yield Problem(
            "log_retention_days", f"log_retention_days is {days}; allowed: {listed(LOG_RETENTION)}", f"use {nearest}"
        )


@rule("OBS002", ERROR, on=Observability, source="", final=True)
def somebody_elses_workspace(settings: Observability) -> Problems:
    """Setting without effect on an existing workspace."""
    if settings.workspace is None:
        return
    default = type(settings)()
    for name in ("retention_days", "series_limits", "log_queries_above_samples"):
        if getattr(settings, name) != getattr(default, name):
            yield Problem(
                name,
                f"{name} is set, and podwright does not own the workspace {settings.workspace}",
                f"remove {name}, or remove workspace so that podwright creates one",
            )


@rule("OBS003", ERROR, on=Observability, source="hyperpod-metrics", final=True)
def levels(settings: Observability) -> Problems:
    """Invalid level for a metrics source."""
    for source, level in settings.levels.items():
        _, words = addon_levels()[source]
        if level != "off" and words[level] != level.upper():
            has = [each for each, word in words.items() if word == each.upper()] + ["off"]
            yield Problem(
                ("levels", source),
                f"{source} is {level}; HyperPod's collector has it {listed(dict.fromkeys(has))}",
                f"write {has[0]}, or remove it to follow `metrics`",
            )


@rule("OBS004", ERROR, on=Environment, source="", final=True)
def nothing_to_measure(environment: Environment) -> Problems:
    """Metrics settings without a cluster."""
    settings = environment.observability
    if (
        settings
        and settings.metrics != "off"
        and not environment.has_cluster
        and "metrics" in settings.model_fields_set
    ):
        yield Problem(
            ("observability", "metrics"),
            f"metrics is {settings.metrics}, and the environment has no cluster to measure",
            "remove metrics; the budget needs none",
        )


@rule("OBS005", ERROR, on=Environment, source="hyperpod-metrics", final=True)
def of_the_other_orchestrator(environment: Environment) -> Problems:
    """Metrics setting of the other orchestrator."""
    settings = environment.observability
    if settings is None:
        return
    orchestrator = environment.cluster.orchestrator
    only = {"eks": ("levels", "container_logs"), "slurm": ("slurm", "slurm_extension_version", "slurm_settings")}
    for other, names in only.items():
        for name in names if other != orchestrator else ():
            if name in settings.model_fields_set:
                yield Problem(
                    ("observability", name),
                    f"{name} is only for orchestrator {other}; this one is {orchestrator}",
                    f"remove {name}",
                )


@rule("OBS006", ERROR, on=Environment, source="cluster-extension", final=True)
def extension_needs_continuous(environment: Environment) -> Problems:
    """HyperPod extension without continuous provisioning."""
    settings, cluster = environment.observability, environment.cluster
    if settings is None or settings.metrics == "off" or cluster.orchestrator != "slurm":
        return
    if cluster.provisioning != "continuous":
        yield Problem(
            ("observability", "metrics"),
            f"metrics is {settings.metrics}; SageMaker measures Slurm clusters by an extension, which it installs only "
            f"with continuous provisioning, and this is {cluster.provisioning}",
            "provision continuously, or write `metrics: off`",
        )


@rule("OBS007", WARNING, on=Environment, source="hyperpod-observability-setup")
def collectors_fit_system_group(environment: Environment, types: Catalog) -> Problems:
    """System group too small for the collectors."""
    settings, cluster = environment.observability, environment.cluster
    group = environment.instance_groups.get(cluster.system_group)
    if not settings or settings.metrics == "off" or cluster.orchestrator != "eks" or not group:
        return
    for name in group.types:
        known = types.find(name)
        if known and known.vcpu < _SMALLEST_VCPU:
            yield Problem(
                ("instance_groups", cluster.system_group, "instance_type"),
                f"{name} has {known.vcpu} vCPU; AWS says that the pods of the observability add-on need a 4xlarge, "
                f"which has {_SMALLEST_VCPU}",
                "take a 4xlarge or larger, or accept this when other groups have room",
            )


@rule("OBS008", WARNING, on=Environment, source="hyperpod-observability-setup")
def roles_that_write(environment: Environment) -> Problems:
    """Custom role without permission to write metrics."""
    settings = environment.observability
    if not settings or settings.metrics == "off":
        return
    slurm = environment.cluster.orchestrator == "slurm"
    groups = environment.groups if slurm else environment.restricted_instance_groups
    section = dict.fromkeys(environment.instance_groups, "instance_groups")
    for name, group in groups.items():
        if group.role is not None:
            yield Problem(
                (section.get(name, "restricted_instance_groups"), name, "role"),
                f"the nodes of {name} write metrics with {group.role}, which podwright does not change",
                "let it aps:RemoteWrite on the workspace, then accept this",
            )


@rule("OBS009", INFO, on=Environment, source="hyperpod-metrics")
def errors_of_links(environment: Environment, types: Catalog) -> Problems:
    """Basic metrics do not measure EFA errors."""
    settings = environment.observability
    if not settings or settings.metrics == "off" or settings.level("network") == "advanced":
        return
    if environment.cluster.orchestrator != "eks":
        return
    fabric = dict.fromkeys(
        name
        for name, group in environment.instance_groups.items()
        for row in known(group, types)
        if group.count and row.efa_interfaces
    )
    if fabric:
        yield Problem(
            ("observability", "metrics"),
            f"metrics is {settings.metrics}, at which EFA is not measured: failed transfers of {listed(fabric, 'and')} "
            f"are not seen",
            "write `levels: {network: advanced}`; `docs/metrics.md` says what that costs",
        )
