"""The HyperPod cluster as CloudFormation has it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk.aws_sagemaker import CfnCluster
from constructs import Construct, IDependable

from ...config.catalog.instance_types import Catalog
from ...config.settings.cluster import Cluster, SharedRestrictedEnvironment
from ...config.settings.groups import InstanceGroup, RestrictedInstanceGroup
from ...planning.node.slurm_facts import AccountingFacts
from ...planning.rules import check
from .instance_group import GroupResources, instance_group, restricted_instance_group, restricted_lustre

_MODES = {True: "Enable", False: "Disable"}
_STRATEGIES = {"merge": "Merge", "managed": "Managed", "overwrite": "Overwrite"}


class ClusterResource(Construct):
    """`AWS::SageMaker::Cluster`, orchestrated by an EKS cluster or by Slurm, and nothing beside it.

    A `HyperPodCluster` makes it together with what it stands on.

    Decided for you: every group names its own subnets and security groups, and groups come in the order of their names,
    so that adding, removing or reordering groups and zones changes those groups only. The cluster's own `VpcConfig`
    (`default_subnets`), its name and its EKS cluster are create-only: a change of one replaces the cluster with all its
    nodes. Continuous provisioning unless the settings say otherwise: nodes then come after the cluster is InService,
    except that a Slurm cluster is in service only once a controller and a login node are.

    Source: AWS CloudFormation schema AWS::SageMaker::Cluster, 2026-10-20.

    Example:
        from podwright.config.settings.cluster import Cluster
        from podwright.config.settings.groups import InstanceGroup
        from podwright.constructs.hyperpod.cluster import ClusterResource
        from podwright.constructs.hyperpod.instance_group import GroupResources
        resources = GroupResources(subnets={"usw2-az2": subnet}, security_groups=[group], execution_role=role,
                                   scripts_uri="s3://sagemaker-given/prod")
        system = InstanceGroup(instance_type="ml.m5.4xlarge", count=2, zone="usw2-az2")
        settings = Cluster(name="prod", zones=("usw2-az2",), system_group="system")
        ClusterResource(stack, "Cluster", settings=settings, groups={"system": system}, resources=resources,
                        default_subnets=[subnet], eks_cluster_arn=cluster.cluster_arn)
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: Cluster,
        groups: Mapping[str, InstanceGroup],
        restricted_groups: Mapping[str, RestrictedInstanceGroup] | None = None,
        resources: GroupResources,
        default_subnets: Sequence[ec2.ISubnet],
        eks_cluster_arn: str | None = None,
        accounting: AccountingFacts | None = None,
        cluster_role: iam.IRole | None = None,
        requires: Sequence[IDependable] = (),
        types: Catalog | None = None,
    ) -> None:
        """Defines the cluster.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            settings: The cluster.
            groups: Instance groups by name.
            restricted_groups: Restricted instance groups by name.
            resources: What the groups refer to.
            default_subnets: Subnets of the cluster itself. Choose those that stay when zones come and go.
            eks_cluster_arn: ARN of the EKS cluster; only with orchestrator eks.
            accounting: Slurm's accounting database outside the controller, if there is one.
            cluster_role: Role of Karpenter; only with `autoscaling`.
            requires: What has to be there first: the HyperPod dependencies chart, the published scripts, the rules of
                the security groups, the endpoint of S3.
            types: The instance catalog; the shipped one when absent.

        Raises:
            InvalidSettings: settings that cannot be built.
            ValueError: autoscaling without a role, or orchestrator eks without an EKS cluster.
        """
        super().__init__(scope, construct_id)
        restricted = restricted_groups or {}
        for model in (settings, *groups.values(), *restricted.values()):
            check(model, types)
        scales = settings.karpenter is not None
        if scales and cluster_role is None:
            raise ValueError("autoscaling needs cluster_role, the role with which Karpenter adds and removes nodes")

        if settings.provisioning != "continuous":
            resources = replace(resources, volume_key=None)
        self._resources = resources = replace(resources, slurm_by_api=_slurm_by_api(settings))
        resource = CfnCluster(
            self,
            "Resource",
            cluster_name=settings.name,
            orchestrator=_orchestrator(settings, eks_cluster_arn, accounting),
            # Create-only: a list that followed the groups' zones would replace the cluster with all its nodes.
            vpc_config=CfnCluster.VpcConfigProperty(
                subnets=[subnet.subnet_id for subnet in default_subnets],
                security_group_ids=[group.security_group_id for group in resources.security_groups],
            ),
            instance_groups=self._properties(groups) or None,
            restricted_instance_groups=[
                restricted_instance_group(name, group, resources) for name, group in sorted(restricted.items())
            ]
            or None,
            restricted_instance_groups_config=_shared_environment(settings.restricted_environment),
            node_recovery={"automatic": "Automatic", "none": "None"}[settings.node_recovery],
            node_provisioning_mode="Continuous" if settings.provisioning == "continuous" else None,
            auto_scaling=CfnCluster.ClusterAutoScalingConfigProperty(mode=_MODES[scales], auto_scaler_type="Karpenter")
            if settings.autoscaling
            else None,
            cluster_role=cluster_role.role_arn if cluster_role else None,
            tiered_storage_config=CfnCluster.TieredStorageConfigProperty(
                mode=_MODES[settings.checkpoint_memory_percent > 0],
                instance_memory_allocation_percentage=settings.checkpoint_memory_percent or None,
            )
            if settings.tiered_checkpoints
            else None,
        )
        resource.node.add_dependency(*requires)
        _acknowledge(
            resource, "E3644", "AWS's list of instance types by region lags; a rule warns of types outside it."
        )
        _acknowledge(resource, "F3006", "AWS's list of regions lags too; a rule stops those outside it until accepted.")
        if any(group.image_release for group in groups.values()):
            reason = "The validator's schema lacks ImageReleaseVersion; the one of 2026-10-20 has it."
            _acknowledge(resource, "F3002", reason)

        self.resource = resource
        """The CloudFormation resource."""
        self.cluster_arn: str = resource.attr_cluster_arn
        """ARN; its last part is the cluster's id, which names its log group."""
        self.cluster_name = settings.name
        """Name."""

    def set_groups(self, groups: Mapping[str, InstanceGroup], execution_role: iam.IRole | None) -> None:
        """Replace the instance groups, and the role of those that name none."""
        self._resources = replace(self._resources, execution_role=execution_role)
        self.resource.instance_groups = self._properties(groups)

    def _properties(
        self, groups: Mapping[str, InstanceGroup]
    ) -> list[CfnCluster.ClusterInstanceGroupProperty | cdk.IResolvable]:
        return [instance_group(name, group, self._resources) for name, group in sorted(groups.items())]


def _acknowledge(resource: CfnCluster, finding: str, reason: str) -> None:
    cdk.Validations.of(resource).acknowledge(
        cdk.Acknowledgment(id=f"CloudFormation-Validate::{finding}", reason=reason)
    )


def _slurm_by_api(settings: Cluster) -> bool:
    return settings.orchestrator == "slurm" and settings.slurm.configuration == "api"


def _orchestrator(
    settings: Cluster, eks_cluster_arn: str | None, accounting: AccountingFacts | None
) -> CfnCluster.OrchestratorProperty | None:
    """What orchestrates; None leaves Slurm to provisioning_parameters.json."""
    if settings.orchestrator == "eks":
        if eks_cluster_arn is None:
            raise ValueError("orchestrator is eks; eks_cluster_arn has to name the EKS cluster")
        return CfnCluster.OrchestratorProperty(
            eks=CfnCluster.ClusterOrchestratorEksConfigProperty(cluster_arn=eks_cluster_arn)
        )
    if not _slurm_by_api(settings):
        return None
    # HyperPod always merges with continuous provisioning, and refuses a request that says so.
    merges = settings.provisioning == "continuous"
    return CfnCluster.OrchestratorProperty(
        slurm=CfnCluster.ClusterOrchestratorSlurmConfigProperty(
            slurm_config_strategy=None if merges else _STRATEGIES[settings.slurm.strategy],
            accounting_database=CfnCluster.ClusterAccountingDatabaseProperty(
                endpoint=accounting.host,
                port=accounting.port,
                name=accounting.database,
                secret_arn=accounting.secret_arn,
            )
            if accounting
            else None,
        )
    )


def _shared_environment(
    settings: SharedRestrictedEnvironment | None,
) -> CfnCluster.RestrictedInstanceGroupsConfigProperty | None:
    if settings is None:
        return None
    return CfnCluster.RestrictedInstanceGroupsConfigProperty(
        shared_environment_config=CfnCluster.SharedEnvironmentConfigProperty(
            f_sx_lustre_deletion_policy={"keep": "Keep", "delete_if_not_used": "DeleteIfNotUsed"}[
                settings.lustre_deletion
            ],
            f_sx_lustre_config=restricted_lustre(settings.lustre) if settings.lustre else None,
        )
    )
