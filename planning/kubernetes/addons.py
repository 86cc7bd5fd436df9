"""EKS add-ons: which ones a cluster gets, and the version that podwright pins for each Kubernetes version."""

from functools import cache
from typing import Final, NamedTuple

from ...config.catalog.facts import Citation, cited, table
from ...config.settings.cluster import AddonName, Eks
from ...config.settings.environment import Environment
from ...config.settings.platform import (
    BLOCK_STORAGE_DRIVER,
    CERT_MANAGER,
    INFERENCE,
    METRICS_SERVER,
    S3_DRIVER,
    SPACES,
    TRAINING_OPERATOR,
)

NODE_ADDONS: Final[tuple[AddonName, ...]] = ("vpc-cni", "kube-proxy", "eks-pod-identity-agent")
"""DaemonSets that a node needs to become Ready. Without nodes they have nothing to run and count as healthy."""

WORKLOAD_ADDONS: Final[tuple[AddonName, ...]] = ("coredns", "aws-fsx-csi-driver")
"""Deployments. On a cluster without nodes they stay DEGRADED, so they come after the first nodes."""

GOVERNANCE_ADDONS: Final[tuple[AddonName, ...]] = ("amazon-sagemaker-hyperpod-taskgovernance",)
"""What engine hyperpod is; only with it."""

OBSERVABILITY_ADDON: Final[AddonName] = "amazon-sagemaker-hyperpod-observability"
"""Exporters and their collector; only with metrics."""

PLATFORM_ADDONS: Final[tuple[AddonName, ...]] = (
    CERT_MANAGER,
    TRAINING_OPERATOR,
    METRICS_SERVER,
    S3_DRIVER,
    INFERENCE,
    BLOCK_STORAGE_DRIVER,
    SPACES,
)
"""Parts of `platform`, each only where it is wanted."""


class AddonPin(NamedTuple):
    """The newest version that AWS documents for a Kubernetes version, on the day that the source was read."""

    addon: str
    kubernetes: str
    version: str
    sources: tuple[Citation, ...]


@cache
def addon_pins() -> tuple[AddonPin, ...]:
    """Every pin that podwright knows.

    AWS publishes no table for eks-pod-identity-agent and aws-fsx-csi-driver; the API alone lists them
    (`aws eks describe-addon-versions`).
    """
    return tuple(
        AddonPin(row["addon"], row["kubernetes"], row["version"], cited(row["source"])) for row in table("addons")
    )


def addon_version(addon: str, eks: Eks) -> str | None:
    """The version to install: the environment's, else podwright's pin, else None for EKS's own default."""
    stated: dict[str, str | None] = {name: item.version for name, item in eks.further_addons.items()}
    if version := (stated | {**eks.addons}).get(addon):
        return version
    return next((pin.version for pin in addon_pins() if (pin.addon, pin.kubernetes) == (addon, eks.version)), None)


def installed_addons(environment: Environment) -> tuple[str, ...]:
    """The add-ons that a deployment of `environment` installs, in no particular order.

    An existing cluster keeps those that its nodes and workloads have from its owner.
    """
    if environment.cluster.orchestrator != "eks":
        return ()
    names: tuple[str, ...] = ()
    if environment.cluster.eks.existing is None:
        lustre = bool(environment.storage.lustres)
        names = (*NODE_ADDONS, *(name for name in WORKLOAD_ADDONS if lustre or name != "aws-fsx-csi-driver"))
        names += tuple(sorted(environment.cluster.eks.further_addons))
    if environment.governance.engine == "hyperpod":
        names += GOVERNANCE_ADDONS
    if environment.observability and environment.observability.metrics != "off":
        names += (OBSERVABILITY_ADDON,)
    return (*names, *environment.platform.addons)


def unpinned_addons(eks: Eks) -> tuple[AddonName, ...]:
    """The add-ons whose version EKS chooses when they are created, because nobody pins one."""
    return tuple(addon for addon in (*NODE_ADDONS, *WORKLOAD_ADDONS) if addon_version(addon, eks) is None)
