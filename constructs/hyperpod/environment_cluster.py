"""The HyperPod cluster of an environment, with the scripts and roles of its nodes."""

from collections.abc import Iterable, Mapping, Sequence

import aws_cdk as cdk
import jsii
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct, IDependable

from ...config.catalog.instance_types import Catalog
from ...config.settings.environment import Environment
from ...config.settings.groups import GroupBase
from ...planning.kubernetes.deployed_values import LustreValues
from ...planning.node.archives import LockedFile
from ...planning.node.environment_facts import (
    Addresses,
    DatabaseAddress,
    accounting,
    environment_facts,
    file_systems,
    slurm_parameters,
)
from ...planning.node.facts import NodeFacts
from ...planning.node.labels import labelled_groups
from ...planning.node.permissions import NodePermissions, node_permissions, volume_keys
from ..storage.lustre import ILustreFileSystem
from ..storage.openzfs import OpenZfsHome
from .cluster import ClusterResource
from .cluster_interface import ClusterAccess
from .execution_role import ExecutionRole
from .instance_group import GroupResources
from .karpenter_role import KarpenterRole
from .lifecycle_publication.construct import LifecyclePublication, archives_uri
from .orchestrator import Orchestrator


@jsii.implements(ec2.IConnectable)
class EnvironmentCluster(ClusterAccess, Construct):
    """A HyperPod cluster on a network, storage and control plane that are there.

    An environment file and a `HyperPodCluster` both end here, so what a cluster is made of does not depend on who says
    it. Decided for you: scripts and the facts that nodes read are published, and the role of the nodes has every
    permission, before the first node boots. Groups that name a role of their own add nothing to the common one.

    Example:
        from podwright.constructs.hyperpod.environment_cluster import EnvironmentCluster
        from podwright.constructs.hyperpod.orchestrator import Orchestrator
        from podwright.planning.rules.parts import Parts, complete
        groups = {"system": {"instance_type": "ml.m5.4xlarge", "count": 2}}
        made = complete(Parts(zones=["usw2-az2"], cluster={"name": "prod"}, instance_groups=groups))
        EnvironmentCluster(stack, "Cluster", environment=made.environment, types=made.types, vpc=vpc,
                           subnets={"usw2-az2": subnet}, security_groups=[nodes], key=key, lifecycle_bucket=bucket,
                           orchestrator=Orchestrator.eks(cluster, dependencies="installed", rules_exist=True))
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        types: Catalog,
        vpc: ec2.IVpc,
        subnets: Mapping[str, ec2.ISubnet],
        security_groups: Sequence[ec2.ISecurityGroup],
        key: kms.IKey,
        lifecycle_bucket: s3.IBucket,
        orchestrator: Orchestrator,
        lustre: Mapping[str, ILustreFileSystem] | None = None,
        home: OpenZfsHome | None = None,
        training_plan_arns: Mapping[str, str] | None = None,
        node_archives: Sequence[LockedFile] = (),
        more_subnets: Mapping[str, Sequence[ec2.ISubnet]] | None = None,
        scripts: LifecyclePublication | None = None,
        execution_role: iam.IRole | None = None,
        autoscaling_role: iam.IRole | None = None,
        requires: Sequence[IDependable] = (),
    ) -> None:
        """Defines the cluster.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            environment: The environment; rules have found no error in it.
            types: The instance catalog with the environment's overrides.
            vpc: The VPC of the nodes.
            subnets: Their subnets by zone id.
            security_groups: Their security groups, in which EFA works.
            key: KMS key of volumes, scripts and logs.
            lifecycle_bucket: Bucket for scripts, called sagemaker-….
            orchestrator: The EKS cluster or Slurm.
            lustre: Lustre file systems of the environment by name, open to the nodes.
            home: Home folders, open to the nodes.
            training_plan_arns: ARNs of the training plans by their name in the environment.
            node_archives: What nodes install software from.
            more_subnets: Further subnets of theirs by zone id, of zones with more nodes than one subnet holds.
            scripts: Published lifecycle scripts; published here when absent.
            execution_role: Role of the groups that name none, with every permission that they need; made here when
                absent.
            autoscaling_role: Role of Karpenter; made here when neither this nor the environment names one.
            requires: What else has to be there first.

        Raises:
            InvalidSettings: settings that cannot be built.
        """
        super().__init__(scope, construct_id)
        self._environment, self._types = environment, types
        self._vpc, self._key, self._bucket, self._orchestrator = vpc, key, lifecycle_bucket, orchestrator
        self._lustre, self._home, self._archives = lustre or {}, home, tuple(node_archives)
        self.cluster_name: str = environment.cluster.name
        """Name."""
        self.security_groups = list(security_groups)
        """Security groups of the nodes."""
        self.eks_cluster: eks.ICluster | None = orchestrator.eks_cluster
        """The EKS cluster that orchestrates it; None with Slurm."""
        self._addresses = self._storage_addresses()
        self._own_scripts = scripts is None
        self.scripts: LifecyclePublication = scripts or self._publish()
        """The published lifecycle scripts."""
        self._own_role: ExecutionRole | None = None
        self._role: iam.IRole | None = execution_role
        self._allow(environment.groups.values())

        self._cluster = ClusterResource(
            self,
            "Cluster",
            settings=environment.cluster,
            groups=labelled_groups(environment, types),
            restricted_groups=environment.restricted_instance_groups,
            resources=GroupResources(
                subnets=subnets,
                more_subnets=more_subnets or {},
                security_groups=self.security_groups,
                execution_role=self._role,
                scripts_uri=self.scripts.source_uri,
                volume_key=key,
                file_systems=file_systems(environment, self._addresses),
                training_plan_arns=training_plan_arns or {},
            ),
            default_subnets=[subnets[environment.cluster.zones[0]]],
            eks_cluster_arn=self.eks_cluster.cluster_arn if self.eks_cluster else None,
            accounting=accounting(environment, self._addresses),
            cluster_role=self._karpenter_role(autoscaling_role),
            requires=[*requires, self.scripts.resource],
            types=types,
        )
        self.resource = self._cluster.resource
        """The CloudFormation resource."""
        self.cluster_arn: str = self._cluster.cluster_arn
        """ARN; its last part is the cluster's id."""
        if self._own_role:
            self.resource.node.add_dependency(self._own_role)

    def add_group(self, name: str, environment: Environment) -> None:
        """Add the instance group `name` of `environment`, which is the former one with that group."""
        self._environment = environment
        self._allow([environment.instance_groups[name]])
        if self._own_role:
            self.resource.node.add_dependency(self._own_role)
        if self._own_scripts:
            self.scripts.set_node_facts(self._node_facts())
        self._cluster.set_groups(labelled_groups(environment, self._types), self._role)

    def _storage_addresses(self) -> Addresses:
        """What only a deployment knows of where the nodes are and of their storage, as tokens."""
        stack, database = cdk.Stack.of(self), self._orchestrator.accounting
        return Addresses(
            region=stack.region,
            dns_suffix=stack.url_suffix,
            lustre={
                name: LustreValues(made.file_system_id, made.dns_name, made.mount_name)
                for name, made in self._lustre.items()
            },
            home=self._home.dns_name if self._home else None,
            database=DatabaseAddress(database.host, database.port, database.user, database.secret_arn)
            if database
            else None,
            scripts_bucket=self._bucket.bucket_name,
            archives_uri=archives_uri(self._bucket, self.cluster_name),
        )

    def _node_facts(self) -> NodeFacts:
        return environment_facts(self._environment, self._types, self._archives, self._addresses)

    def _publish(self) -> LifecyclePublication:
        return LifecyclePublication(
            self,
            "Lifecycle",
            bucket=self._bucket,
            prefix=self.cluster_name,
            node_facts=self._node_facts(),
            provisioning_parameters=slurm_parameters(self._environment, self._addresses),
            archives=self._archives,
            key=self._key,
            protection=self._environment.protection,
        )

    @property
    def execution_role(self) -> iam.IRole | None:
        """Role of the groups that name none; None where all name one."""
        return self._role

    def _allow(self, groups: Iterable[GroupBase]) -> None:
        """Let the common role do what `groups` need that name none; make it for the first of them."""
        groups = [group for group in groups if group.role is None]
        needs = node_permissions(groups, self._types)
        if needs is None or (self._role and not self._own_role):
            return
        keys = [self._imported_key(arn) for arn in volume_keys(groups)]
        if self._own_role is None:
            self._own_role = self._make_role(keys, needs)
            self._role = self._own_role.role
            return
        for key in keys:
            self._own_role.grant_volumes(key)
        self._own_role.allow_groups(needs, cluster_name=self.cluster_name, bucket=self._bucket, key=self._key)

    def _make_role(self, keys: Sequence[kms.IKey], needs: NodePermissions) -> ExecutionRole:
        """The role with what all nodes need, and what the first groups need beyond that."""
        database, topic = self._orchestrator.accounting, self._environment.cluster.slurm.failover_topic
        role = ExecutionRole(
            self,
            "ExecutionRole",
            cluster_name=self.cluster_name,
            eks_cluster_arn=self.eks_cluster.cluster_arn if self.eks_cluster else None,
            vpc=self._vpc,
            security_groups=self.security_groups,
            volume_keys=[self._key, *keys],
            lustre=bool(self._lustre),
        )
        role.grant_read(self._bucket, self.cluster_name, self._key)
        role.allow_groups(needs, cluster_name=self.cluster_name, bucket=self._bucket, key=self._key)
        if database:
            role.grant_secret(database.secret_arn, database.key)
        if topic:
            role.grant_publish(topic)
        return role

    def _imported_key(self, arn: str) -> kms.IKey:
        construct_id = f"Key-{arn.rpartition('/')[2]}"
        known = self.node.try_find_child(construct_id)
        return known if isinstance(known, kms.Key) else kms.Key.from_key_arn(self, construct_id, arn)  # pyrefly: ignore[bad-return]

    def _karpenter_role(self, existing: iam.IRole | None) -> iam.IRole | None:
        """The role with which HyperPod scales for Karpenter; None where it does not."""
        settings = self._environment.cluster
        if settings.karpenter is None:
            return None
        if existing is not None:
            return existing
        if settings.autoscaling_role:
            return iam.Role.from_role_arn(self, "KarpenterRole", settings.autoscaling_role)
        named = volume_keys(self._environment.groups.values())
        return KarpenterRole(self, "KarpenterRole", volume_keys=[self._key, *map(self._imported_key, named)]).role
