"""A HyperPod cluster with everything that it stands on, made of what a person decides."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import aws_cdk as cdk
import jsii
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct, IDependable

from ...config.catalog.charts import HYPERPOD_DEPENDENCIES, chart
from ...config.catalog.names import lifecycle_bucket_name
from ...config.settings.benchmarks import Benchmarks
from ...config.settings.cluster import ClusterAutoscaling, SharedRestrictedEnvironment, TieredCheckpoints
from ...config.settings.groups import InstanceGroup, RestrictedInstanceGroup
from ...config.settings.observability import Observability
from ...config.settings.software import NodeSoftware
from ...config.settings.storage import Buckets, Storage
from ...planning.helm.chart_values import dependencies_values
from ...planning.node.archives import LockedFile
from ...planning.rules.parts import Completed, Parts, complete, plain
from ..common.arguments import annotate, checked, refusal
from ..common.protection import Protection
from ..eks.control_plane import API, TO_NODES
from ..eks.helm_release import HelmRelease
from ..network.node_security_group import NodeSecurityGroup
from ..network.traffic import Traffic
from ..storage.buckets import LifecycleBucket
from ..storage.key import EnvironmentKey
from ..storage.lustre import ILustreFileSystem
from ..storage.openzfs import OpenZfsHome
from .cluster_interface import ClusterAccess, IHyperPodCluster, ImportedCluster
from .environment_cluster import EnvironmentCluster
from .lifecycle_publication.construct import LifecyclePublication
from .nodes_ready.waiter import KubernetesApiAccess
from .orchestrator import Orchestrator
from .training_plan.reference import TrainingPlanReference


@jsii.implements(ec2.IConnectable, iam.IGrantable)
class HyperPodCluster(ClusterAccess, Construct):
    """A SageMaker HyperPod cluster on EKS or with Slurm, and what has to be there before its first node boots.

    Decided for you, and made in this order: a security group in which EFA works, or the rules that the given one lacks;
    rules between nodes and the EKS control plane; a bucket with the lifecycle scripts and the facts that nodes read;
    an execution role that may do what these nodes do and no more; HyperPod's dependencies chart; then the cluster.
    Derived defaults and refusals are those of an environment file: a group without a zone is in the first one, the
    system group is `system` or the first without accelerators, and what a file would be stopped for is raised here.
    Warnings become annotations with the same ids.

    What runs on the cluster (add-ons for workloads, `TeamQuotas`, `ClusterObservability`) has constructs of its own.

    Example:
        from podwright.constructs.hyperpod.hyperpod_cluster import HyperPodCluster
        from podwright.constructs.hyperpod.orchestrator import Orchestrator
        eks_cluster = Orchestrator.eks(cluster, dependencies="installed", rules_exist=True)
        prod = HyperPodCluster(stack, "Cluster", vpc=vpc, subnets={"usw2-az2": subnet}, orchestrator=eks_cluster,
                               instance_groups={"system": InstanceGroup(instance_type="ml.m5.4xlarge", count=2)})
        prod.add_instance_group("gpus", InstanceGroup(instance_type="ml.p5.48xlarge", count=4))
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        orchestrator: Orchestrator,
        instance_groups: Mapping[str, InstanceGroup],
        restricted_instance_groups: Mapping[str, RestrictedInstanceGroup] | None = None,
        subnets: Mapping[str, ec2.ISubnet] | None = None,
        more_subnets: Mapping[str, Sequence[ec2.ISubnet]] | None = None,
        cluster_name: str | None = None,
        system_group: str | None = None,
        security_group: ec2.ISecurityGroup | None = None,
        security_group_complete: bool = False,
        execution_role: iam.IRole | None = None,
        scripts: LifecyclePublication | None = None,
        lifecycle_bucket: s3.IBucket | None = None,
        key: kms.IKey | None = None,
        lustre: Mapping[str, ILustreFileSystem] | None = None,
        home: OpenZfsHome | None = None,
        training_plans: Mapping[str, TrainingPlanReference] | None = None,
        node_recovery: Literal["automatic", "none"] = "automatic",
        provisioning: Literal["continuous", "all_or_nothing"] = "continuous",
        autoscaling: ClusterAutoscaling | Literal["off"] | None = None,
        autoscaling_role: iam.IRole | None = None,
        tiered_checkpoints: TieredCheckpoints | Literal["off"] | None = None,
        restricted_environment: SharedRestrictedEnvironment | None = None,
        node_software: NodeSoftware | None = None,
        node_archives: Sequence[LockedFile] = (),
        benchmarks: Benchmarks | None = None,
        instance_types: Mapping[str, Mapping[str, Any]] | None = None,
        requires: Sequence[IDependable] = (),
        protection: Protection = "retain",
        acknowledge: Mapping[str, str] | None = None,
    ) -> None:
        """Defines the cluster.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            vpc: The VPC of the nodes.
            orchestrator: `Orchestrator.eks(...)` or `Orchestrator.slurm(...)`.
            instance_groups: Instance groups by name. Further ones may be added later.
            restricted_instance_groups: Restricted instance groups by name.
            subnets: Private subnets of nodes by zone id; the cluster's own is the first. By default the VPC's private
                subnets, where these carry zone ids, as those of podwright's networks do.
            more_subnets: Further private subnets of nodes by zone id, of zones with more nodes than one subnet holds.
            cluster_name: Its name; made from the construct's path when absent. A change replaces the cluster.
            system_group: The group that system pods run on.
            security_group: Security group of the nodes; a new one when absent.
            security_group_complete: Whether the given one has EFA's two rules already.
            execution_role: Role of the groups that name none, with every permission that they need; a new one with
                exactly these when absent.
            scripts: Published lifecycle scripts; published here when absent.
            lifecycle_bucket: Bucket for scripts, called sagemaker-…; a new one when absent.
            key: KMS key of volumes, bucket and logs; a new one when absent.
            lustre: Lustre file systems that nodes mount, by name. They are opened to the nodes.
            home: Home folders that nodes mount. It has to be open to the nodes.
            training_plans: Training plans that groups name.
            node_recovery: Replace or reboot faulty nodes, or only label them.
            provisioning: continuous: groups fill as capacity comes. all_or_nothing: HyperPod's older mode.
            autoscaling: HyperPod's managed Karpenter with its groups; `cdk8s_charts.karpenter` renders what Kubernetes
                needs for it. Absent leaves the cluster as it is.
            autoscaling_role: Role of Karpenter; a new one when absent.
            tiered_checkpoints: Managed tiered checkpointing. Absent leaves the cluster as it is.
            restricted_environment: What restricted groups share.
            node_software: EFA, NCCL and what belongs to them on the nodes.
            node_archives: What nodes install that from.
            benchmarks: Benchmark kernels when nodes boot.
            instance_types: Facts that replace or complete those of the catalog, by type and field.
            requires: What else has to be there first.
            protection: Whether bucket and key survive the stack.
            acknowledge: Findings that are accepted: reasons by rule id.

        Raises:
            InvalidSettings: what the same settings in an environment file would be refused for.
        """
        super().__init__(scope, construct_id)
        self._subnets = subnets if subnets is not None else _subnets_of(vpc)
        self._vpc, self._orchestrator = vpc, orchestrator
        self.lustre: Mapping[str, ILustreFileSystem] = lustre or {}
        """The Lustre file systems that its nodes mount, by name."""
        self._home = home
        self._plans = training_plans or {}
        name = cluster_name or cdk.Names.unique_resource_name(self, max_length=40, separator="-")
        stack = cdk.Stack.of(self)
        cluster: dict[str, Any] = {
            "name": name,
            "orchestrator": orchestrator.kind,
            "slurm": orchestrator.settings if orchestrator.kind == "slurm" else None,
            "system_group": system_group,
            "node_recovery": node_recovery,
            "provisioning": provisioning,
            "autoscaling": autoscaling,
            "tiered_checkpoints": tiered_checkpoints,
            "restricted_environment": restricted_environment,
            "node_software": node_software,
            "benchmarks": benchmarks,
        }
        self._parts = Parts(
            zones=list(self._subnets),
            cluster={field: value for field, value in cluster.items() if value is not None},
            instance_groups=instance_groups,
            restricted_instance_groups=restricted_instance_groups or {},
            storage=self._storage(),
            training_plans={name: _plan(name, plan) for name, plan in self._plans.items()},
            instance_types=instance_types or {},
            region=_known(stack.region),
            account=_known(stack.account),
            protection=protection,
            acknowledge=acknowledge or {},
        )
        self.cluster_name: str = name
        """Name."""
        self._completed = completed = complete(self._parts)
        annotate(self, self._completed.findings)

        self.key: kms.IKey = key or EnvironmentKey(self, "Key", settings=Storage(), protection=protection).key
        """Encrypts volumes, scripts and logs."""
        nodes = NodeSecurityGroup(
            self, "Nodes", vpc=vpc, existing=security_group, complete=security_group_complete, protection=protection
        )
        self.security_groups = [nodes.security_group]
        """Security groups of the nodes."""
        first: list[IDependable] = [*requires, *([nodes.rules] if nodes.rules else [])]
        first += self._open()
        self.lifecycle_bucket: s3.IBucket = lifecycle_bucket or self._bucket(name, protection)
        """Holds the lifecycle scripts."""
        self.dependencies: HelmRelease | None = self._dependencies()
        """HyperPod's dependencies chart, if it is installed here."""
        first += [self.dependencies] if self.dependencies else []
        self._cluster = EnvironmentCluster(
            self,
            "Default",
            environment=completed.environment,
            types=completed.types,
            vpc=vpc,
            subnets=self._subnets,
            more_subnets=more_subnets or {},
            security_groups=self.security_groups,
            key=self.key,
            lifecycle_bucket=self.lifecycle_bucket,
            orchestrator=orchestrator,
            lustre=self.lustre,
            home=home,
            training_plan_arns=self.training_plan_arns,
            node_archives=node_archives,
            scripts=scripts,
            execution_role=execution_role,
            autoscaling_role=autoscaling_role,
            requires=first,
        )
        self.scripts = self._cluster.scripts
        """The published lifecycle scripts."""
        self.resource = self._cluster.resource
        """The CloudFormation resource."""
        self.cluster_arn: str = self._cluster.cluster_arn
        """ARN; its last part is the cluster's id."""
        self.eks_cluster: eks.ICluster | None = orchestrator.eks_cluster
        """The EKS cluster that orchestrates it; None with Slurm."""

    @staticmethod
    @checked
    def from_cluster_attributes(
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        cluster_arn: str,
        security_groups: Sequence[ec2.ISecurityGroup] = (),
        eks_cluster: eks.ICluster | None = None,
        execution_role: iam.IRole | None = None,
    ) -> IHyperPodCluster:
        """A cluster that is made elsewhere, by its attributes (see `ImportedCluster`)."""
        return ImportedCluster(
            scope,
            construct_id,
            cluster_name=cluster_name,
            cluster_arn=cluster_arn,
            security_groups=security_groups,
            eks_cluster=eks_cluster,
            execution_role=execution_role,
        )

    @property
    def instance_groups(self) -> Mapping[str, InstanceGroup]:
        """Its instance groups by name, with every derived default."""
        return self._completed.environment.instance_groups

    @property
    def training_plan_arns(self) -> dict[str, str]:
        """ARNs of the training plans that its groups may draw on, by name."""
        return {name: plan.training_plan_arn for name, plan in self._plans.items()}

    @property
    def execution_role(self) -> iam.IRole | None:
        """Role of the groups that name none; None where all name one."""
        return self._cluster.execution_role

    @checked
    def add_instance_group(self, name: str, group: InstanceGroup) -> None:
        """Add an instance group, as if it had been given to the constructor.

        Raises:
            InvalidSettings: the cluster cannot have it. The cluster is then as it was.
        """
        if name in self._parts.instance_groups:
            raise refusal("name", f"there is an instance group {name} already", "choose another name", "ENV013")
        parts = replace(self._parts, instance_groups={**self._parts.instance_groups, name: group})
        self._completed, self._parts = complete(parts), parts
        annotate(self, self._completed.findings)
        self._cluster.add_group(name, self._completed.environment)
        if self.dependencies:
            self.dependencies.set_values(self._chart_values())

    @checked
    def with_observability(self, settings: Observability) -> Completed:
        """The settings of this cluster, completed together with those of what watches it.

        Raises:
            InvalidSettings: what a file with both would be refused for.
        """
        return complete(replace(self._parts, observability=settings))

    @property
    def api_access(self) -> KubernetesApiAccess | None:
        """Where functions reach its Kubernetes API: among its nodes; None with Slurm."""
        if self.eks_cluster is None:
            return None
        (nodes,), subnets = self.security_groups, tuple(self._subnets.values())
        return KubernetesApiAccess(self.eks_cluster, self._vpc, subnets, nodes, self.key)

    def _storage(self) -> dict[str, Any]:
        """The file systems as the section of an environment file."""
        named = {name: plain(result.settings) for name, result in self.lustre.items()}
        storage: dict[str, Any] = {"lustre": named.pop("lustre", None), "additional_lustre": named}
        if self._home is not None:
            storage["home"] = {"openzfs": plain(self._home.settings)}
        return {section: value for section, value in storage.items() if value}

    def _open(self) -> list[Traffic]:
        """Rules between the nodes and the control plane, and the way to the file systems."""
        (nodes,) = self.security_groups
        for value in self.lustre.values():
            value.open_to(self, nodes)
        cluster = self._orchestrator.eks_cluster
        if cluster is None or self._orchestrator.rules_exist:
            return []
        control_plane = cluster.cluster_security_group
        to_api = Traffic(
            self, "NodesToApi", source=nodes, target=control_plane, ports=[API], description="Kubernetes API"
        )
        to_nodes = Traffic(
            self, "ApiToNodes", source=control_plane, target=nodes, ports=TO_NODES, description="kubelets and webhooks"
        )
        return [to_api, to_nodes]

    def _bucket(self, name: str, protection: Protection) -> s3.IBucket:
        stack = cdk.Stack.of(self)
        return LifecycleBucket(
            self,
            "LifecycleBucket",
            settings=Buckets(),
            name=lifecycle_bucket_name(name.lower(), stack.account, stack.region),
            key=self.key,
            protection=protection,
        ).bucket

    def _dependencies(self) -> HelmRelease | None:
        cluster, archive = self._orchestrator.eks_cluster, self._orchestrator.dependencies
        if cluster is None or archive is None:
            return None
        return HelmRelease(
            self,
            "Dependencies",
            cluster=cluster,
            chart=chart(HYPERPOD_DEPENDENCIES),
            archive=archive,
            values=self._chart_values(),
        )

    def _chart_values(self) -> dict[str, Any]:
        groups = self._completed.environment.groups.values()
        desired, region = chart(HYPERPOD_DEPENDENCIES), cdk.Stack.of(self).region
        return dependencies_values(desired, groups, self._completed.types, region=region)


def _known(value: str) -> str | None:
    """A value of the stack, unless only a deployment knows it."""
    return None if cdk.Token.is_unresolved(value) else value


def _plan(name: str, plan: TrainingPlanReference) -> dict[str, Any]:
    """A training plan as its section in an environment file. One whose ARN only a deployment knows has another."""
    settings = plan.settings
    if settings.state == "wanted":
        arn = f"arn:aws:sagemaker:us-west-2:111122223333:training-plan/{name}"
        return plain(settings.model_copy(update={"arn": arn}))
    return plain(settings)


def _subnets_of(vpc: ec2.IVpc) -> dict[str, ec2.ISubnet]:
    """The private subnets of a VPC by zone id, where the VPC knows zone ids."""
    results = {subnet.availability_zone: subnet for subnet in vpc.private_subnets}
    if not results or any("-az" not in zone or cdk.Token.is_unresolved(zone) for zone in results):
        raise refusal(
            "subnets",
            "the VPC's private subnets carry zone names or none, which mean another zone in each account",
            'pass subnets={"usw2-az2": subnet, ...} by zone id, the first one for the cluster itself',
            "ENV002",
        )
    return results
