"""What HyperPod's own collectors are told: a level for each source of metrics (`data/metric_levels.csv`).

Some sources have one level only. Task governance then counts as basic, because shares of teams rest on it and it has
few series; scaling and EFA count as advanced.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, cast

from ...config.catalog.facts import table
from ...config.settings.jobs.patch import patch_of
from ...config.settings.observability import Level, Observability, Source

AddonLevel = Literal["DISABLED", "BASIC", "ADVANCED"]
EXTENSION = "sagemaker-observability"
"""HyperPod's extension for Slurm clusters. Source: SageMaker API Reference, CreateClusterExtension, 2026-11."""


@cache
def addon_levels() -> Mapping[Source, tuple[str, Mapping[Level, AddonLevel]]]:
    """For each source its key in the add-on's configuration, and the add-on's word for each level of ours."""
    return {
        cast(Source, row["source"]): (
            row["addon_key"],
            {"off": "DISABLED", "basic": cast(AddonLevel, row["basic"]), "advanced": cast(AddonLevel, row["advanced"])},
        )
        for row in table("metric_levels")
    }


def metrics_provider(settings: Observability) -> dict[str, Any]:
    """The part `metricsProvider` of the add-on's configuration."""
    return {
        key: {"level": words[settings.level(source)], "scrapeInterval": settings.scrape_seconds}
        for source, (key, words) in addon_levels().items()
    }


def addon_configuration(settings: Observability, workspace_arn: str, endpoint: str) -> dict[str, Any]:
    """The configuration of the EKS add-on.

    Source: HyperPod EKS Terraform module, awslabs/awsome-distributed-ai, 2026-07. The schema of a version is what
    `aws eks describe-addon-configuration` prints.
    """
    return {
        # Without the slash at its end: the add-on appends its own path.
        "ampWorkspace": {"arn": workspace_arn, "prometheusEndpoint": endpoint.rstrip("/")},
        "metricsProvider": metrics_provider(settings),
        "logging": {"enabled": settings.container_logs},
    }


def extension_configuration(settings: Observability) -> dict[str, Any]:
    """The configuration of the Slurm extension, of which one setting is documented: the level of node metrics.

    `slurm_settings` holds the others; `aws sagemaker describe-cluster-extension` prints those of an extension that is
    there. Source: SageMaker API Reference, CreateClusterExtension, 2026-11.
    """
    _, words = addon_levels()["node"]
    known = {"metricsProvider": {"nodeMetrics": {"level": words[settings.level("node")]}}}
    return _merged(known, patch_of(settings.slurm_settings)) if settings.slurm_settings else known


def _merged(known: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    both = {
        key: _merged(known[key], more[key])
        if isinstance(known[key], dict) and isinstance(more[key], dict)
        else more[key]
        for key in known.keys() & more.keys()
    }
    return {**known, **more, **both}
