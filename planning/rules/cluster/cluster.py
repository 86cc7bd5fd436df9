"""Rules on the EKS control plane and on cluster-wide settings of HyperPod."""

from ipaddress import IPv4Network
from typing import Final, get_args

from ....config.catalog.eks_versions import eks_versions
from ....config.catalog.instance_types import Catalog
from ....config.catalog.limits import limits
from ....config.catalog.software_matrix import number
from ....config.findings import listed
from ....config.settings.cluster import AUTOSCALING_EXAMPLE, AddonName, Cluster, Eks
from ....config.settings.environment import Environment
from ....config.settings.groups import InstanceGroup
from ...kubernetes.addons import addon_pins, installed_addons, unpinned_addons
from ..capacity.zones import sections
from ..framework.rule import ERROR, INFO, WARNING, Problem, Problems, rule
from ..groups.groups import accelerated
from ..network.network import PRIVATE, UNROUTED

_ALL_LOGS = ("api", "audit", "authenticator", "controllerManager", "scheduler")


@rule("CLU001", ERROR, on=Eks, source="eks-versions")
def known_version(eks: Eks) -> Problems:
    """Unknown Kubernetes version."""
    # An existing cluster has whatever version its owner chose.
    if eks.existing is None and eks.version not in eks_versions():
        yield Problem(
            "version",
            f"version is {eks.version}; known are {listed(eks_versions(), 'and')}",
            f"use {_newest_documented()}",
        )


@rule("CLU002", WARNING, on=Eks, source="hyperpod-eks eks-versions")
def documented_version(eks: Eks) -> Problems:
    """Kubernetes version not documented for HyperPod."""
    known = eks_versions().get(eks.version)
    if eks.existing is None and known and known.hyperpod != "documented":
        observed = (
            "only seen in AWS's own samples"
            if known.hyperpod == "seen"
            else "neither documented nor seen in AWS's samples"
        )
        yield Problem(
            "version",
            f"version is {eks.version}: with HyperPod it is {observed}, and EKS rolls a control plane back "
            f"for a few days only",
            f"use {_newest_documented()}",
        )


@rule("CLU003", ERROR, on=Eks, source="eks-endpoint")
def open_endpoint(eks: Eks) -> Problems:
    """Kubernetes API open to the whole internet."""
    if eks.existing or eks.endpoint == "private":
        return
    if not eks.public_cidrs:
        yield Problem(
            "public_cidrs",
            "public_cidrs is empty, which EKS reads as 0.0.0.0/0",
            "list the ranges of your offices or VPN",
        )
    for index, cidr in enumerate(eks.public_cidrs):
        # Open to everybody: the token alone would stand between them and the API.
        if IPv4Network(cidr).prefixlen == 0:
            yield Problem(("public_cidrs", index), f"{cidr} is everybody", "list the ranges of your offices or VPN")


@rule("CLU004", WARNING, on=Eks, source="eks-endpoint")
def ranges_without_endpoint(eks: Eks) -> Problems:
    """Public ranges on a private endpoint."""
    if eks.existing is None and eks.endpoint == "private" and eks.public_cidrs:
        yield Problem(
            "public_cidrs", "public_cidrs has no effect: endpoint is private", "remove it, or set public_and_private"
        )


@rule("CLU005", ERROR, on=Eks, source="eks-endpoint", final=True)
def private_range(eks: Eks) -> Problems:
    """Private or reserved range for public access."""
    for index, cidr in enumerate(eks.public_cidrs):
        # EKS looks at the public address of a caller, and nobody comes from a private one.
        if eks.endpoint != "private" and any(IPv4Network(cidr).subnet_of(block) for block in UNROUTED):
            yield Problem(
                ("public_cidrs", index),
                f"{cidr} is a private or reserved range; no request from the internet has such an address",
                "give the public addresses of your gateways",
            )


@rule("CLU006", WARNING, on=Environment, source="eks-access")
def admins(environment: Environment) -> Problems:
    """EKS cluster without an administrator."""
    eks = environment.cluster.eks
    if environment.cluster.orchestrator != "eks":
        return
    # A sandbox that may be destroyed needs nobody who repairs it.
    if eks.existing is None and not eks.admins and environment.protection == "retain":
        yield Problem(
            ("cluster", "eks", "admins"),
            "admins is empty: no person can use kubectl on this cluster",
            "list the roles of your platform team",
        )


@rule("CLU007", WARNING, on=Eks, source="eks-logs")
def logs(eks: Eks) -> Problems:
    """Missing control-plane logs."""
    if eks.existing is None and (missing := [name for name in _ALL_LOGS if name not in eks.logs]):
        yield Problem(
            "logs",
            f"logs leave out {listed(missing, 'and')}; they cannot be had for the past",
            "leave logs out and all are kept, or accept this",
        )


# Add-ons that podwright installs on it follow the version that the file says it has.
_TAKEN_OF_EXISTING: Final = {
    *("existing", "admins", "deletion_protection"),
    *("version", "addons", "addon_configurations"),
}


@rule("CLU008", WARNING, on=Eks, source="")
def existing(eks: Eks) -> Problems:
    """Setting without effect on an existing EKS cluster."""
    if eks.existing:
        for field in sorted(eks.model_fields_set - _TAKEN_OF_EXISTING):
            if getattr(eks, field) not in (None, (), {}):
                yield Problem(
                    field,
                    f"{field} has no effect: {eks.existing.name} exists and is only used",
                    "remove it; change the cluster where it was made",
                )


@rule("CLU009", ERROR, on=Environment, source="hyperpod-eks", final=True)
def existing_network(environment: Environment) -> Problems:
    """Existing EKS cluster outside the network."""
    existing = environment.cluster.eks.existing
    if existing and environment.network.vpc is None:
        yield Problem(
            ("cluster", "eks", "existing"),
            f"{existing.name} is in its own VPC, and this network would be another one",
            "adopt its VPC under `network: {vpc: …}`",
        )


@rule("CLU010", ERROR, on=Cluster, source="hyperpod-karpenter", final=True)
def karpenter(cluster: Cluster) -> Problems:
    """Karpenter without continuous provisioning or automatic recovery."""
    needs = {"provisioning": "continuous", "node_recovery": "automatic"}
    for field, value in needs.items():
        if cluster.karpenter and getattr(cluster, field) != value:
            yield Problem(
                field, f"{field} is {getattr(cluster, field)}; HyperPod's Karpenter needs {value}", f"set {value}"
            )


@rule("CLU011", WARNING, on=Cluster, source="cfn-cluster")
def karpenter_role(cluster: Cluster) -> Problems:
    """Karpenter role without Karpenter."""
    if cluster.autoscaling_role and cluster.karpenter is None:
        yield Problem(
            "autoscaling_role",
            "autoscaling_role has no effect: autoscaling is off",
            f"add `autoscaling: {AUTOSCALING_EXAMPLE}`, or remove it",
        )


@rule("CLU013", ERROR, on=Environment, source="hyperpod-scaling hyperpod-spot")
def continuous(environment: Environment) -> Problems:
    """Setting that needs continuous provisioning."""
    if environment.cluster.provisioning == "continuous":
        return
    for path, group in sections(environment):
        if isinstance(group, InstanceGroup):
            used = {
                "min_count": group.min_count is not None,
                "capacity": group.capacity == "spot",
                "instance_types": bool(group.instance_types),
            }
            for field in (name for name, is_used in used.items() if is_used):
                yield Problem(
                    (*path, field),
                    f"{field} needs continuous provisioning, and cluster.provisioning is all_or_nothing",
                    f"set `provisioning: continuous`, or remove {field}",
                )


@rule("CLU014", WARNING, on=Environment, source="eks-delete")
def deletion_protection(environment: Environment) -> Problems:
    """Deletion protection with protection: destroy."""
    if environment.protection == "destroy" and environment.cluster.eks.deletion_protection:
        yield Problem(
            ("cluster", "eks", "deletion_protection"),
            "deletion_protection is true and protection is destroy: deleting the stack fails at the control plane",
            "remove it, or use `protection: retain`",
        )


@rule("CLU015", ERROR, on=Eks, source="hyperpod-eks")
def cni(eks: Eks) -> Problems:
    """VPC CNI too old for HyperPod."""
    specified, needed = eks.addons.get("vpc-cni"), limits().eks.vpc_cni_from
    # Versions of add-ons end with a build of EKS's own.
    if specified and number(specified[1:]) < number(needed):
        yield Problem(
            ("addons", "vpc-cni"),
            f"vpc-cni is {specified}; HyperPod needs v{needed} or newer",
            "remove it and use podwright's pin",
        )


@rule("CLU019", WARNING, on=Eks, source="eks-addon-vpc-cni")
def pinned_addons(eks: Eks) -> Problems:
    """Add-on version not pinned."""
    pinned_elsewhere = {pin.addon for pin in addon_pins()}
    loose = [name for name in unpinned_addons(eks) if name in pinned_elsewhere]
    if eks.existing is None and loose:
        yield Problem(
            "version",
            f"podwright pins no version of {listed(loose, 'and')} for Kubernetes {eks.version}, so EKS chooses one on "
            "the day of the deployment",
            f"pin them under `addons:`, or use {_newest_documented()}",
        )


@rule("CLU016", WARNING, on=Environment, source="cfn-cluster")
def restricted(environment: Environment) -> Problems:
    """Restricted settings without restricted groups."""
    if environment.cluster.restricted_environment and not environment.restricted_instance_groups:
        yield Problem(
            ("cluster", "restricted_environment"),
            "restricted_environment has no effect: there is no restricted group",
            "remove it, or add restricted_instance_groups",
        )


@rule("CLU017", INFO, on=Environment, source="cfn-cluster")
def recovery(environment: Environment, types: Catalog) -> Problems:
    """Automatic node recovery is off."""
    if environment.cluster.node_recovery == "none" and any(
        accelerated(group, types) for _, group in sections(environment)
    ):
        yield Problem(
            ("cluster", "node_recovery"),
            "node_recovery is none: HyperPod labels a faulty accelerated node and leaves it there",
            "use automatic, unless you replace nodes by hand",
        )


@rule("CLU018", WARNING, on=Environment, source="hyperpod-tiered")
def tiered_memory(environment: Environment, types: Catalog) -> Problems:
    """Tiered checkpoints use most of the memory."""
    percent = environment.cluster.checkpoint_memory_percent
    if percent <= 50:
        return
    # The smallest node decides what is left for the work.
    smallest = min(
        (row.memory_gib for _, group in sections(environment) for name in group.types if (row := types.find(name))),
        default=0,
    )
    if smallest:
        retained = smallest * (100 - percent) / 100
        yield Problem(
            ("cluster", "tiered_checkpoints", "memory_percent"),
            f"memory_percent is {percent} of every node: of the "
            f"smallest node's {smallest:g} GiB, {retained:g} GiB are left for everything else",
            "set 20 to 50 percent, which hold one checkpoint of most jobs; measure before you set more",
        )


@rule("CLU020", ERROR, on=Environment, source="eks-ultraserver")
def ultraserver_version(environment: Environment, types: Catalog) -> Problems:
    """Kubernetes version too old for UltraServers."""
    eks, needed = environment.cluster.eks, limits().eks.ultraserver_from
    members = {unit.instance_type for unit in types.ultraservers.values()}
    used = sorted(members & {name for _, group in sections(environment) for name in group.types})
    if (
        environment.cluster.orchestrator == "eks"
        and eks.existing is None
        and used
        and number(eks.version) < number(needed)
    ):
        yield Problem(
            ("cluster", "eks", "version"),
            f"version is {eks.version}; {listed(used, 'and')} needs dynamic resource allocation, from "
            f"Kubernetes {needed} on",
            f"use {_newest_documented()}",
        )


@rule("CLU021", ERROR, on=Environment, source="")
def addons_of_nothing(environment: Environment) -> Problems:
    """Version for an add-on that is not installed."""
    installed = installed_addons(environment)
    for name in environment.cluster.eks.addons:
        if name not in installed:
            yield Problem(
                ("cluster", "eks", "addons", name),
                f"{name} has a version here, and nothing in this environment installs it; what is installed is "
                f"{listed(sorted(installed), 'and') or 'nothing'}",
                "turn on the part that needs it, or remove the version",
            )


@rule("CLU025", ERROR, on=Environment, source="")
def addon_settings_of_nothing(environment: Environment) -> Problems:
    """Configuration for an add-on that is missing or named twice."""
    eks, installed = environment.cluster.eks, installed_addons(environment)
    for name in eks.addon_configurations:
        if name not in installed:
            yield Problem(
                ("cluster", "eks", "addon_configurations", name),
                f"{name} has a configuration here, and nothing in this environment installs it",
                "turn on the part that needs it, or remove the configuration",
            )
    for name in eks.further_addons:
        if name in get_args(AddonName):
            yield Problem(
                ("cluster", "eks", "further_addons", name),
                f"podwright installs {name} itself, where a part of the environment needs it",
                "take it out; `addons` holds another version, and `addon_configurations` values of it",
            )


@rule("CLU026", ERROR, on=Environment, source="eks-api", final=True)
def service_range(environment: Environment) -> Problems:
    """Invalid service range."""
    path, eks, network = ("cluster", "eks", "service_cidr"), environment.cluster.eks, environment.network
    if eks.existing or eks.service_cidr is None or environment.cluster.orchestrator != "eks":
        return
    block, (widest, narrowest) = IPv4Network(eks.service_cidr), limits().eks.service_prefix
    if not widest <= block.prefixlen <= narrowest:
        yield Problem(
            path,
            f"service_cidr is {block}; allowed: /{widest} to /{narrowest}",
            "a /16 holds more services than a cluster can have",
        )
    if not any(block.subnet_of(private) for private in PRIVATE):
        yield Problem(
            path,
            f"service_cidr is {block}; allowed: a part of {listed(map(str, PRIVATE))}",
            "choose a private range that nothing else uses",
        )
    ranges = [network.vpc.cidr] if network.vpc else [network.cidr, *network.secondary_cidrs]
    for text in ranges:
        if block.overlaps(IPv4Network(text)):
            yield Problem(
                path,
                f"service_cidr is {block}, which overlaps {text} of the VPC: services would hide its addresses",
                "choose a range outside of the VPC",
            )


@rule("CLU027", WARNING, on=Eks, source="eks-access")
def second_list_of_people(eks: Eks) -> Problems:
    """Users named only in aws-auth."""
    if eks.existing is None and eks.authentication != "API":
        yield Problem(
            "authentication",
            f"authentication is {eks.authentication}: the ConfigMap aws-auth gives rights too, which neither this file "
            "nor `podwright drift` shows",
            "leave it out, or use it while you move people to access entries",
        )


def _newest_documented() -> str:
    # The table goes from old to new.
    return [name for name, known in eks_versions().items() if known.hyperpod == "documented"][-1]
