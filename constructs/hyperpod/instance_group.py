"""Instance groups as properties of AWS::SageMaker::Cluster. Pure mapping: no construct is made here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk.aws_sagemaker import CfnCluster

from ...config.settings.groups import (
    GroupBase,
    InstanceGroup,
    Patching,
    RestrictedInstanceGroup,
    RestrictedLustre,
    Rollout,
)
from ...planning.node.facts import FileSystems

ENTRY_POINT: Final = "on_create.sh"
"""The script of ours that HyperPod runs on a new node, which then sets the whole node up."""
AFTER_THE_IMAGE: Final = "on_init_complete.sh"
"""The script of ours that HyperPod runs once its image has set up Slurm by what the API says."""
_DEEP_CHECKS: Final = {"stress": "InstanceStress", "connectivity": "InstanceConnectivity"}
_NODE_TYPES: Final = {"controller": "Controller", "login": "Login", "compute": "Compute"}
_PATCHING: Final = {"when_idle": "WhenIdle", "when_all_idle": "WhenAllIdle"}


@dataclass(frozen=True)
class GroupResources:
    """What instance groups refer to, resolved by whoever composes a cluster."""

    subnets: Mapping[str, ec2.ISubnet]
    """Subnet of the nodes by zone id."""
    security_groups: Sequence[ec2.ISecurityGroup]
    """Security groups of every node: 1 to 5, each open to itself in both directions when a group uses EFA."""
    scripts_uri: str
    """S3 prefix that holds `on_create.sh`, for the groups without scripts of their own."""
    execution_role: iam.IRole | None = None
    """Role of the groups that name none."""
    volume_key: kms.IKey | None = None
    """KMS key of further volumes whose settings name none. HyperPod takes customer-managed keys with continuous
    provisioning only, and none for restricted groups (SageMaker Developer Guide, "Customer managed AWS KMS key
    encryption for SageMaker HyperPod", 2026-11)."""
    file_systems: FileSystems = field(default_factory=lambda: FileSystems(lustre={}, home=None))
    """What a group that asks for it mounts on the host."""
    more_subnets: Mapping[str, Sequence[ec2.ISubnet]] = field(default_factory=dict)
    """Further subnets of nodes by zone id, of zones with more nodes than one subnet holds. A group is given all subnets
    of its zones."""
    training_plan_arns: Mapping[str, str] = field(default_factory=dict)
    """Training plans by their name in the settings."""
    slurm_by_api: bool = False
    """Whether HyperPod learns from the groups what their nodes are to Slurm, and sets it up before our scripts run."""

    # A cluster may have a hundred groups, and each check of an id asks Node.
    @cached_property
    def subnet_ids(self) -> Mapping[str, list[str]]:
        """Ids of all subnets by zone id, the first of each zone first."""
        subnets = {zone: (subnet, *self.more_subnets.get(zone, ())) for zone, subnet in self.subnets.items()}
        return {zone: _ids(each) for zone, each in subnets.items()}

    @cached_property
    def security_group_ids(self) -> list[str]:
        """Ids of `security_groups`."""
        return [group.security_group_id for group in self.security_groups]


def instance_group(
    name: str, settings: InstanceGroup, resources: GroupResources
) -> CfnCluster.ClusterInstanceGroupProperty:
    """An instance group of that name.

    Raises:
        KeyError: the settings name a zone or a training plan that `resources` lacks.
        ValueError: neither the settings nor `resources` name a role.
    """
    partitions = [settings.slurm.partition] if settings.slurm and settings.slurm.partition else None
    return CfnCluster.ClusterInstanceGroupProperty(
        instance_group_name=name,
        instance_count=settings.count,
        min_instance_count=settings.min_count,
        instance_type=settings.instance_type,
        instance_requirements=CfnCluster.InstanceRequirementsProperty(instance_types=list(settings.instance_types))
        if settings.instance_types
        else None,
        execution_role=_role_arn(name, settings, resources),
        capacity_requirements=_capacity(settings),
        training_plan_arn=_plan_arn(settings, resources),
        threads_per_core=settings.threads_per_core,
        image_id=settings.image_id,
        image_release_version=settings.image_release,
        instance_storage_configs=[
            *_volumes(settings, resources.volume_key),
            *_root_volume(settings),
            *_mounts(settings, resources),
        ]
        or None,
        kubernetes_config=_kubernetes(settings),
        life_cycle_config=_lifecycle(settings, resources),
        network_interface=CfnCluster.ClusterNetworkInterfaceProperty(interface_type=settings.network_interface)
        if settings.network_interface
        else None,
        on_start_deep_health_checks=_deep_checks(settings),
        # Capacity is bound to a zone: a group in another one is told that there is none, though there is.
        override_vpc_config=_placement(settings.subnet_ids or _subnet_ids(settings.zone_ids, resources), resources),
        auto_patch_config=_patching(settings.patching),
        slurm_config=CfnCluster.ClusterSlurmConfigProperty(
            node_type=_NODE_TYPES[settings.slurm.node_type], partition_names=partitions
        )
        if settings.slurm and resources.slurm_by_api
        else None,
        scheduled_update_config=CfnCluster.ScheduledUpdateConfigProperty(
            schedule_expression=settings.scheduled_update.schedule,
            deployment_config=_deployment(settings.scheduled_update),
        )
        if settings.scheduled_update
        else None,
    )


def restricted_instance_group(
    name: str, settings: RestrictedInstanceGroup, resources: GroupResources
) -> CfnCluster.ClusterRestrictedInstanceGroupProperty:
    """A restricted instance group of that name. HyperPod sets its nodes up, so no script of ours runs there.

    Raises:
        KeyError: the settings name a zone or a training plan that `resources` lacks.
        ValueError: the settings name no instance type, or nobody names a role.
    """
    if settings.instance_type is None:
        raise ValueError(f"restricted instance group {name} needs an instance_type")
    return CfnCluster.ClusterRestrictedInstanceGroupProperty(
        instance_group_name=name,
        instance_count=settings.count,
        instance_type=settings.instance_type,
        execution_role=_role_arn(name, settings, resources),
        training_plan_arn=_plan_arn(settings, resources),
        threads_per_core=settings.threads_per_core,
        instance_storage_configs=_volumes(settings, None) or None,
        on_start_deep_health_checks=_deep_checks(settings),
        override_vpc_config=_placement(_subnet_ids(settings.zone_ids, resources), resources),
        environment_config=CfnCluster.EnvironmentConfigProperty(f_sx_lustre_config=restricted_lustre(settings.lustre))
        if settings.lustre
        else None,
    )


def restricted_lustre(settings: RestrictedLustre) -> CfnCluster.FSxLustreConfigProperty:
    """The Lustre scratch that HyperPod manages for restricted groups."""
    return CfnCluster.FSxLustreConfigProperty(
        size_in_gib=settings.capacity_gib, per_unit_storage_throughput=settings.throughput
    )


def _ids(subnets: Sequence[ec2.ISubnet]) -> list[str]:
    return [subnet.subnet_id for subnet in subnets]


def _role_arn(name: str, settings: GroupBase, resources: GroupResources) -> str:
    if settings.role:
        return settings.role
    if resources.execution_role is None:
        raise ValueError(f"instance group {name} names no role, and there is no execution role for all groups")
    return resources.execution_role.role_arn


def _capacity(settings: InstanceGroup) -> CfnCluster.ClusterCapacityRequirementsProperty | None:
    # On demand is HyperPod's default; said aloud, so that leaving spot is a change of a value and not of a silence.
    # Capacity of the account team has no id: SageMaker draws on it for whatever the account asks for in its zone.
    match settings.capacity:
        case "on_demand" | "account_team":
            return CfnCluster.ClusterCapacityRequirementsProperty(on_demand={})
        case "spot":
            return CfnCluster.ClusterCapacityRequirementsProperty(spot={})
        case _:
            return None


def _plan_arn(settings: GroupBase, resources: GroupResources) -> str | None:
    return resources.training_plan_arns[settings.plan] if settings.plan else None


def _volumes(settings: GroupBase, key: kms.IKey | None) -> list[CfnCluster.ClusterInstanceStorageConfigProperty]:
    return [
        CfnCluster.ClusterInstanceStorageConfigProperty(
            ebs_volume_config=CfnCluster.ClusterEbsVolumeConfigProperty(
                volume_size_in_gb=volume.size_gib, volume_kms_key_id=volume.kms_key or (key.key_arn if key else None)
            )
        )
        for volume in settings.volumes
    ]


def _root_volume(settings: InstanceGroup) -> list[CfnCluster.ClusterInstanceStorageConfigProperty]:
    # Its size is HyperPod's, so an entry without a key would say nothing.
    return (
        [
            CfnCluster.ClusterInstanceStorageConfigProperty(
                ebs_volume_config=CfnCluster.ClusterEbsVolumeConfigProperty(
                    root_volume=True, volume_kms_key_id=settings.root_kms_key
                )
            )
        ]
        if settings.root_kms_key
        else []
    )


def _mounts(
    settings: InstanceGroup, resources: GroupResources
) -> list[CfnCluster.ClusterInstanceStorageConfigProperty]:
    """File systems that HyperPod itself mounts, where the group says so; the others are left to the scripts."""
    mounts = [
        CfnCluster.ClusterInstanceStorageConfigProperty(
            fsx_lustre_config=CfnCluster.ClusterFsxLustreConfigProperty(
                dns_name=lustre.dns_name, mount_name=lustre.mount_name, mount_path=lustre.path
            )
        )
        for _, lustre in sorted(resources.file_systems.lustre.items())
        if settings.mount_lustre
    ]
    home = resources.file_systems.home
    if settings.mount_home and home is not None:
        mounts.append(
            CfnCluster.ClusterInstanceStorageConfigProperty(
                fsx_open_zfs_config=CfnCluster.ClusterFsxOpenZfsConfigProperty(
                    dns_name=home.dns_name, mount_path=home.path
                )
            )
        )
    return mounts


def _kubernetes(settings: InstanceGroup) -> CfnCluster.ClusterKubernetesConfigProperty | None:
    if not settings.labels and not settings.taints:
        return None
    return CfnCluster.ClusterKubernetesConfigProperty(
        labels=dict(sorted(settings.labels.items())) or None,
        taints=[
            CfnCluster.ClusterKubernetesTaintProperty(key=taint.key, value=taint.value, effect=taint.effect)
            for taint in settings.taints
        ]
        or None,
    )


def _lifecycle(settings: InstanceGroup, resources: GroupResources) -> CfnCluster.ClusterLifeCycleConfigProperty:
    kind, own = CfnCluster.ClusterLifeCycleConfigProperty, settings.lifecycle
    if own:
        return kind(source_s3_uri=own.source, on_create=own.on_create, on_init_complete=own.on_init_complete)
    if resources.slurm_by_api:
        return kind(source_s3_uri=resources.scripts_uri, on_init_complete=AFTER_THE_IMAGE)
    return kind(source_s3_uri=resources.scripts_uri, on_create=ENTRY_POINT)


def _deep_checks(settings: GroupBase) -> list[str] | None:
    return [_DEEP_CHECKS[check] for check in sorted(set(settings.deep_health_checks))] or None


def _subnet_ids(zone_ids: Sequence[str], resources: GroupResources) -> list[str]:
    return [subnet_id for zone in sorted(zone_ids) for subnet_id in resources.subnet_ids[zone]]


def _placement(subnet_ids: Sequence[str], resources: GroupResources) -> CfnCluster.VpcConfigProperty:
    return CfnCluster.VpcConfigProperty(subnets=list(subnet_ids), security_group_ids=resources.security_group_ids)


def _patching(settings: Patching | None) -> CfnCluster.AutoPatchConfigProperty | None:
    if settings is None:
        return None
    return CfnCluster.AutoPatchConfigProperty(
        patching_strategy=_PATCHING[settings.strategy], deployment_config=_deployment(settings)
    )


def _deployment(settings: Rollout) -> CfnCluster.DeploymentConfigProperty:
    return CfnCluster.DeploymentConfigProperty(
        rolling_update_policy=CfnCluster.RollingUpdatePolicyProperty(
            maximum_batch_size=_batch(settings.batch),
            rollback_maximum_batch_size=_batch(settings.rollback_batch or settings.batch),
        ),
        wait_interval_in_seconds=settings.wait_seconds,
        auto_rollback_configuration=[
            CfnCluster.AlarmDetailsProperty(alarm_name=alarm) for alarm in settings.rollback_alarms
        ]
        or None,
    )


def _batch(size: str) -> CfnCluster.CapacitySizeConfigProperty:
    kind = "CAPACITY_PERCENTAGE" if size.endswith("%") else "INSTANCE_COUNT"
    return CfnCluster.CapacitySizeConfigProperty(type=kind, value=int(size.removesuffix("%")))
