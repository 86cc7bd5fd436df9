"""The EKS control plane: a new one, or an existing one with what podwright needs to work with it."""

from collections.abc import Mapping, Sequence
from typing import Final, cast

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk.lambda_layer_kubectl_v35 import KubectlV35Layer
from constructs import Construct, IConstruct

from ...config.settings.cluster import AdoptedEks, ControlPlaneLog, Eks
from ...planning.rules import check
from ..common.arguments import checked, refusal
from ..common.custom_resource import allow_network_interfaces
from ..network.traffic import Ports, Traffic

API: Final = Ports("tcp", 443, 443)
"""What nodes reach of the control plane."""
# The kubelet (10250) and the ports on which webhooks in pods listen. Source: aws-cdk-lib 2.275.0, aws-eks-v2,
# connectAutoScalingGroupCapacity; Amazon EKS User Guide, "Security group requirements", 2026-11.
TO_NODES: Final = (API, Ports("tcp", 1025, 65535))
"""What the control plane reaches of nodes."""
_LOGS: dict[ControlPlaneLog, eks.ClusterLoggingTypes] = {
    "api": eks.ClusterLoggingTypes.API,
    "audit": eks.ClusterLoggingTypes.AUDIT,
    "authenticator": eks.ClusterLoggingTypes.AUTHENTICATOR,
    "controllerManager": eks.ClusterLoggingTypes.CONTROLLER_MANAGER,
    "scheduler": eks.ClusterLoggingTypes.SCHEDULER,
}

# No other managed policy: the role is the control plane's, and nodes have their own.
_CONTROL_PLANE_POLICY = "AmazonEKSClusterPolicy"


class EksControlPlane(Construct):
    """An EKS control plane without any nodes of its own: HyperPod brings those.

    Decided for you: access by access entries, and by nothing else unless the settings say so; nobody becomes admin by
    creating the cluster; no EKS Auto Mode, no node group, no self-managed add-ons (see `addons.py`);
    Kubernetes secrets encrypted with the environment's key; rules both ways between the control plane and the nodes.
    Manifests and charts are applied by the CDK's kubectl provider, which runs in the control-plane subnets and whose
    role has no AWS permissions beyond what that takes. Its kubectl is 1.35, which fits clusters of 1.34 to 1.36.

    An existing cluster (`settings.existing`) keeps its settings; only rules, access entries and the provider are added.
    The provider then runs with `kubectl_role`, which Lambda has to be able to assume.

    Example:
        from podwright.config.settings.cluster import Eks
        subnets = {"usw2-az1": vpc.private_subnets[0], "usw2-az2": vpc.private_subnets[1]}
        EksControlPlane(stack, "Eks", settings=Eks(version="1.34"), vpc=vpc, control_plane_subnets=subnets,
                        node_security_group=nodes, key=key)
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: Eks,
        vpc: ec2.IVpc,
        control_plane_subnets: Mapping[str, ec2.ISubnet],
        node_security_group: ec2.ISecurityGroup,
        key: kms.IKey,
        open_node_rules: bool = True,
    ) -> None:
        """Defines the control plane.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            settings: The control plane's settings.
            vpc: VPC of the cluster.
            control_plane_subnets: Subnets of the control plane's interfaces and of its helpers, by zone id.
            node_security_group: Security group of the nodes.
            key: Encrypts Kubernetes secrets unless the settings name another key.
            open_node_rules: Whether to add the rules between control plane and nodes. False when both groups exist
                already and have them: EC2 refuses a rule that is there.

        Raises:
            InvalidSettings: settings that cannot be built, or no subnets.
        """
        super().__init__(scope, construct_id)
        check(settings)
        if not control_plane_subnets:
            hint = "pass one at least: the kubectl provider reaches the API from it"
            raise refusal("control_plane_subnets", "control_plane_subnets is empty", hint)

        # In the order of zones and not of the mapping, so that the template does not change with the file's order.
        subnets = [control_plane_subnets[zone] for zone in sorted(control_plane_subnets)]
        tools = KubectlV35Layer(self, "Kubectl")
        self._functions: list[lambda_.CfnFunction] = []
        layer = cast(lambda_.ILayerVersion, tools)
        if settings.existing is None:
            cluster = self._create(settings, vpc, subnets, key, layer)
        else:
            cluster = self._adopt(settings.existing, vpc, subnets, key, layer)
        self._admins(cluster, settings.admins)
        self.rules = self._open(cluster, node_security_group) if open_node_rules else []
        """Rules between nodes and control plane; what runs in the control plane's group comes after them."""
        for function in self._functions:
            for rule in self.rules:
                # What it applies may be checked by a webhook, whose pods run on nodes.
                function.add_resource_dependency(rule)

        self.cluster = cluster
        """The cluster; charts and manifests are added to it."""
        self.issuer = cluster.cluster_open_id_connect_issuer_url if isinstance(cluster, eks.Cluster) else None
        """URL of the issuer of its tokens for pods; None for an existing cluster."""
        self.security_group = cluster.cluster_security_group
        """The group that EKS made for the control plane; its members reach the API."""
        self.subnets = subnets
        """Subnets in which helpers of the control plane run."""
        self.tools = tools
        """Lambda layer with kubectl and helm."""

    def _open(self, cluster: eks.ICluster, nodes: ec2.ISecurityGroup) -> list[cdk.CfnResource]:
        """Let nodes reach the API, and the API kubelets and webhooks; returns the rules."""
        control_plane = cluster.cluster_security_group
        to_api = Traffic(
            self, "NodesToApi", source=nodes, target=control_plane, ports=[API], description="Kubernetes API"
        )
        to_nodes = Traffic(
            self, "ApiToNodes", source=control_plane, target=nodes, ports=TO_NODES, description="kubelets and webhooks"
        )
        return [*to_api.rules, *to_nodes.rules]

    def _create(
        self, settings: Eks, vpc: ec2.IVpc, subnets: Sequence[ec2.ISubnet], key: kms.IKey, layer: lambda_.ILayerVersion
    ) -> eks.ICluster:
        """A control plane of its own, whose secrets are encrypted and whose kubectl handler runs in the VPC."""
        access = eks.EndpointAccess.PRIVATE
        if settings.endpoint == "public_and_private":
            access = eks.EndpointAccess.PUBLIC_AND_PRIVATE.only_from(*settings.public_cidrs)
        role = iam.Role(
            self,
            "Role",
            assumed_by=_service("eks.amazonaws.com"),
            description="EKS control plane",
            managed_policies=[iam.ManagedPolicy.from_aws_managed_policy_name(_CONTROL_PLANE_POLICY)],
        )
        _acknowledge(
            role,
            f"IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/{_CONTROL_PLANE_POLICY}]",
            "EKS requires this policy, and AWS keeps it in step with what the control plane does.",
        )
        secrets_key = kms.Key.from_key_arn(self, "SecretsKey", settings.secrets_key) if settings.secrets_key else key
        kubectl_role = iam.Role(
            self, "KubectlRole", assumed_by=_service("lambda.amazonaws.com"), description="Applies manifests and charts"
        )
        cluster = eks.Cluster(
            self,
            "Cluster",
            version=eks.KubernetesVersion.of(settings.version),
            vpc=vpc,
            vpc_subnets=[ec2.SubnetSelection(subnets=subnets)],
            endpoint_access=access,
            role=cast(iam.IRole, role),
            secrets_encryption_key=secrets_key,
            cluster_logging=[_LOGS[log] for log in settings.logs] or None,
            # With no default capacity at all, aws_eks_v2 turns EKS Auto Mode on.
            default_capacity_type=eks.DefaultCapacityType.NODEGROUP,
            default_capacity=0,
            # Otherwise whoever deploys first is admin for good, and nothing in the file says so.
            bootstrap_cluster_creator_admin_permissions=False,
            # Add-ons that EKS installs unmanaged would stand in the way of those that `addons.py` installs.
            bootstrap_self_managed_addons=False,
            kubectl_provider_options=eks.KubectlProviderOptions(
                kubectl_layer=layer, role=cast(iam.IRole, kubectl_role), private_subnets=subnets
            ),
        )
        resource = cast(eks.CfnCluster, cluster.node.default_child)
        resource.deletion_protection = bool(settings.deletion_protection)
        if settings.authentication != "API":
            resource.add_property_override("AccessConfig.AuthenticationMode", settings.authentication)
        if settings.service_cidr:
            resource.add_property_override("KubernetesNetworkConfig.ServiceIpv4Cidr", settings.service_cidr)
        if settings.security_groups:
            own = cast(ec2.SecurityGroup, cluster.node.find_child("ControlPlaneSecurityGroup"))
            # The CDK's class takes one group.
            groups = [own.security_group_id, *settings.security_groups]
            resource.add_property_override("ResourcesVpcConfig.SecurityGroupIds", groups)
        if settings.support:
            resource.upgrade_policy = eks.CfnCluster.UpgradePolicyProperty(support_type=settings.support.upper())
        self._trim(cluster.node.find_child("KubectlProvider"), key)
        if settings.endpoint == "public_and_private":
            _acknowledge(cluster, "EKS1", "The environment opens the API to the ranges that it names.")
        if len(settings.logs) < len(_LOGS):
            _acknowledge(cluster, "EKS2", "The environment leaves some control-plane logs out.")
        cdk.Annotations.of(cluster).acknowledge_warning(
            "@aws-cdk/aws-eks:clusterMustManuallyTagSubnet", "the network tags its subnets for load balancers"
        )
        return cast(eks.ICluster, cluster)

    def _adopt(
        self,
        adopted: AdoptedEks,
        vpc: ec2.IVpc,
        subnets: Sequence[ec2.ISubnet],
        key: kms.IKey,
        layer: lambda_.ILayerVersion,
    ) -> eks.ICluster:
        """An existing cluster, with a kubectl handler that acts as the role that the settings name."""
        role = iam.Role.from_role_arn(self, "KubectlRole", adopted.kubectl_role)
        cdk.Annotations.of(role).acknowledge_warning(
            "@aws-cdk/aws-iam:IRoleCantBeUsedWithIManagedPolicy", "what the managed policies allow is added inline"
        )
        # Twice, because a provider is made for a cluster, and the cluster that charts are added to needs the provider.
        bare = eks.Cluster.from_cluster_attributes(
            self, "Existing", cluster_name=adopted.name, vpc=vpc, cluster_security_group_id=adopted.security_group
        )
        provider = eks.KubectlProvider(
            self,
            "KubectlProvider",
            cluster=bare,
            kubectl_layer=layer,
            role=role,
            private_subnets=subnets,
            security_groups=[bare.cluster_security_group],
        )
        self._trim(provider, key)
        return eks.Cluster.from_cluster_attributes(
            self,
            "Cluster",
            cluster_name=adopted.name,
            vpc=vpc,
            cluster_security_group_id=adopted.security_group,
            kubectl_provider=cast(eks.IKubectlProvider, provider),
        )

    def _trim(self, provider: IConstruct, key: kms.IKey) -> None:
        """Takes from the CDK's kubectl provider what it does not need here, and keeps its logs as we keep ours.

        The CDK attaches AWS's own policies for Lambda and for pulling charts from ECR, the latter under a template
        condition on the partition. Our charts come from S3.
        """
        log_group = logs.LogGroup(
            self,
            "KubectlLogs",
            retention=logs.RetentionDays.THREE_MONTHS,
            encryption_key=key,
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        # Without ECR nothing reads the condition any more, and a condition that nobody reads is noise in each
        # difference.
        self.node.try_remove_child("HasEcrPublic")
        for function in provider.node.find_all():
            if not isinstance(function, lambda_.Function):
                continue
            role = cast(iam.IRole, function.role)
            allow_network_interfaces(role)
            log_group.grant_write(role)
            if isinstance(role.node.default_child, iam.CfnRole):
                role.node.default_child.managed_policy_arns = None
            # The CDK would make a second log group, without key and retention.
            function.node.try_remove_child("LogGroup")
            resource = cast(lambda_.CfnFunction, function.node.default_child)
            resource.add_property_override("LoggingConfig.LogGroup", log_group.log_group_name)
            self._functions.append(resource)
        self._acknowledge_provider(provider)

    def _acknowledge_provider(self, provider: IConstruct) -> None:
        """What cdk-nag finds in the CDK's own code, which is not ours to change."""
        handler = cast(lambda_.Function, provider.node.find_child("Handler"))
        versions = cdk.Stack.of(self).get_logical_id(cast(cdk.CfnElement, handler.node.default_child))
        framework = cast(lambda_.Function, provider.node.find_child("Provider").node.find_child("framework-onEvent"))
        _acknowledge(handler, "L1", "The CDK chooses the Python that its kubectl handler is tested with.")
        _acknowledge(
            cast(iam.Role, framework.role),
            f"IAM5[Resource::<{versions}.Arn>:*]",
            "The CDK's provider framework may invoke every version of the one kubectl handler.",
        )

    def _admins(self, cluster: eks.ICluster, admins: Sequence[str]) -> None:
        entries = Construct(self, "Admins")
        policy = eks.AccessPolicy.from_access_policy_name(
            "AmazonEKSClusterAdminPolicy", access_scope_type=eks.AccessScopeType.CLUSTER
        )
        for arn in admins:
            # The id is the role's account and path, so that adding an admin leaves the others alone.
            eks.AccessEntry(
                entries,
                arn.split(":", 4)[4].replace("/", "-"),
                cluster=cluster,
                principal=arn,
                access_policies=[policy],
            )


def _service(name: str) -> iam.IPrincipal:
    return cast(iam.IPrincipal, iam.ServicePrincipal(name))


def _acknowledge(construct: IConstruct, rule: str, reason: str) -> None:
    cdk.Validations.of(construct).acknowledge(
        cdk.Acknowledgment(id=f"AwsSolutions::AwsSolutions-{rule}", reason=reason)
    )
