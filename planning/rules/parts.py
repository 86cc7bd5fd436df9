"""The parts of a cluster as Python gives them, completed and checked as an environment file would be.

Derived defaults and most rules look at a whole environment. Whoever builds a cluster in Python has its parts: so they
are put into an environment around which everything else is a stand-in, and findings about the stand-ins are dropped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ...config.catalog.instance_types import Catalog, environment_types
from ...config.catalog.regions import InvalidZoneId, zone
from ...config.errors import InvalidFile, InvalidSettings
from ...config.findings import Finding, Level, errors
from ...config.loading.load import environment_from
from ...config.loading.source import Source
from ...config.settings.base import Settings
from ...config.settings.environment import Environment
from .run import findings

_ACCOUNT: Final = "111122223333"
_REGION: Final = "us-west-2"
# An EKS cluster that is there: how a new one is laid out is none of the parts' business.
_EKS: Final = {
    "name": "given",
    "security_group": "sg-00000000",
    "kubectl_role": f"arn:aws:iam::{_ACCOUNT}:role/given",
    "dependencies_installed": True,
}
# Rules that hold ARNs against the account, which may be unknown.
_OF_THE_ACCOUNT: Final = ("ENV023", "ENV024")
# What the parts say; the rest of the environment is made up.
_OURS: Final = (
    "acknowledge",
    "cluster",
    "governance",
    "instance_groups",
    "instance_types",
    "network.zones",
    "observability",
    "restricted_instance_groups",
    "storage",
    "training_plans",
)


@dataclass(frozen=True)
class Parts:
    """What is known of a cluster. Each mapping is the section of an environment file of that name."""

    zones: Sequence[str]
    """Zone ids in which there are subnets for nodes."""
    cluster: Mapping[str, Any]
    instance_groups: Any
    restricted_instance_groups: Any = field(default_factory=dict)
    storage: Mapping[str, Any] = field(default_factory=dict)
    training_plans: Mapping[str, Any] = field(default_factory=dict)
    governance: Any = field(default_factory=dict)
    observability: Any = None
    instance_types: Mapping[str, Any] = field(default_factory=dict)
    region: str | None = None
    """None where only a deployment knows it; then it is that of the first zone."""
    account: str | None = None
    """None where only a deployment knows it; then nobody's ARN is held against it."""
    protection: str = "retain"
    acknowledge: Mapping[str, str] = field(default_factory=dict)
    """Rules whose findings are accepted, each with its reason."""


@dataclass(frozen=True)
class Completed:
    """The same with every derived default, and what remains to be said about it."""

    environment: Environment
    """Around the parts everything is made up, so only what they say may be read of it."""
    types: Catalog
    findings: Sequence[Finding]
    """Warnings, and errors that are accepted."""


def complete(parts: Parts) -> Completed:
    """Complete and check the parts of a cluster.

    Raises:
        InvalidSettings: what a file with the same settings would be refused for. It carries every finding.
    """
    if parts.instance_groups == {}:
        hint = "give the cluster a group for its system pods, such as two ml.m5.4xlarge"
        message = "there are no instance groups, and so no system group"
        raise InvalidSettings([Finding("GRP040", Level.ERROR, "instance_groups", message, hint)])
    try:
        environment = environment_from(Source("python", _data(parts), {}), "python").environment
    except InvalidFile as error:
        raise InvalidSettings(_about_parts(error.findings) or _bare(error.findings)) from None
    resolved_findings = _about_parts(findings(environment))
    if parts.account is None:
        resolved_findings = [item for item in resolved_findings if item.id not in _OF_THE_ACCOUNT]
    if refused := errors(resolved_findings):
        raise InvalidSettings(refused)
    return Completed(environment, environment_types(environment.instance_types), resolved_findings)


def plain(value: Any) -> Any:
    """Settings as a file would write them, inside mappings and lists too. What is neither stays as it is."""
    if isinstance(value, Settings):
        return value.model_dump(mode="json", by_alias=True, exclude_unset=True)
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def _data(parts: Parts) -> dict[str, Any]:
    """A whole environment as a file would have it, with an invented account, VPC and EKS cluster around the parts."""
    cluster = dict(plain(parts.cluster))
    if cluster.get("orchestrator") != "slurm":
        cluster["eks"] = {"existing": _EKS}
    zones = list(parts.zones)
    return {
        "account": parts.account or _ACCOUNT,
        "region": parts.region or _region_of(zones),
        "protection": parts.protection,
        "network": {"zones": zones, "vpc": _network(zones)},
        "cluster": cluster,
        "instance_groups": plain(parts.instance_groups),
        "restricted_instance_groups": plain(parts.restricted_instance_groups),
        "storage": plain(parts.storage),
        "training_plans": plain(parts.training_plans),
        "governance": plain(parts.governance),
        "observability": plain(parts.observability),
        "instance_types": plain(parts.instance_types),
        "acknowledge": [{"rule": rule, "reason": reason} for rule, reason in parts.acknowledge.items()],
    }


def _network(zones: Sequence[str]) -> dict[str, Any]:
    """A VPC with room for any number of nodes in each zone."""
    subnets = {
        name: {"nodes": f"subnet-{number:08x}", "nodes_cidr": f"10.{number}.0.0/16"}
        for number, name in enumerate(zones)
    }
    return {"id": "vpc-00000000", "cidr": "10.0.0.0/16", "subnets": subnets}


def _region_of(zones: Sequence[str]) -> str:
    try:
        return zone(str(zones[0])).region or _REGION if zones else _REGION
    except InvalidZoneId:
        return _REGION


def _about_parts(result: Sequence[Finding]) -> list[Finding]:
    return [item for item in _bare(result) if _is_ours(item.path)]


def _is_ours(path: str) -> bool:
    # The EKS cluster is made up as well: parts do not say which it is.
    return not path.startswith("cluster.eks") and any(
        path == part or path.startswith((f"{part}.", f"{part}[")) for part in _OURS
    )


def _bare(result: Sequence[Finding]) -> list[Finding]:
    """Without positions, which are those of a file that nobody wrote."""
    return [replace(item, place=None) for item in result]
