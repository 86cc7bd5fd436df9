"""The HyperPod cluster and what orchestrates it: an EKS cluster, or Slurm."""

from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Discriminator, Field, StringConstraints, Tag

from .argo_cd import ArgoCd
from .base import Cidr, ClusterName, KmsKeyArn, RoleArn, SecurityGroupId, Settings, ZoneIds
from .benchmarks import Benchmarks
from .groups import GroupName, RestrictedLustre
from .jobs.patch import Patch
from .slurm import Slurm
from .software import NodeSoftware

EksVersion = Annotated[str, StringConstraints(pattern=r"^1\.[0-9]{2}$")]
AddonVersion = Annotated[str, StringConstraints(pattern=r"^v[0-9]+\.[0-9]+\.[0-9]+-eksbuild\.[0-9]+$", max_length=64)]
AddonName = Literal[
    "vpc-cni",
    "kube-proxy",
    "coredns",
    "eks-pod-identity-agent",
    "aws-fsx-csi-driver",
    "amazon-sagemaker-hyperpod-observability",
    "amazon-sagemaker-hyperpod-taskgovernance",
    "amazon-sagemaker-hyperpod-training-operator",
    "amazon-sagemaker-hyperpod-inference",
    "amazon-sagemaker-spaces",
    "cert-manager",
    "metrics-server",
    "aws-mountpoint-s3-csi-driver",
    "aws-ebs-csi-driver",
]
FurtherAddonName = Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z][A-Za-z0-9_-]*$", max_length=100)]
Lifecycle = Literal["tolerant", "strict"]
ControlPlaneLog = Literal["api", "audit", "authenticator", "controllerManager", "scheduler"]


class AdoptedEks(Settings):
    """An existing EKS cluster. One HyperPod cluster per EKS cluster."""

    name: Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z][A-Za-z0-9_-]*$", max_length=100)]
    """Its name."""
    security_group: SecurityGroupId
    """The cluster security group that EKS made for it."""
    authentication: Literal["API", "API_AND_CONFIG_MAP"] = "API"
    """Its authentication mode. HyperPod refuses CONFIG_MAP."""
    kubectl_role: RoleArn
    """Role with cluster-admin access that podwright's charts are applied with; Lambda has to be able to assume it."""
    node_rules: bool = False
    """true when its security group and an existing one of the nodes have their rules for each other already."""
    dependencies_installed: bool = False
    """true when the HyperPod dependencies chart is already installed and managed by you."""


class FurtherAddon(Settings):
    """An EKS add-on that no part of podwright needs. It comes after the first nodes."""

    version: AddonVersion | None = None
    """Its version. Default: the one that EKS has as its default on the day of the deployment."""
    configuration: Patch | None = None
    """Its configuration values as YAML text (`aws eks describe-addon-configuration` shows them); its own defaults when
    absent."""
    service_account_role: RoleArn | None = None
    """Role of its service account by the cluster's OIDC provider. Default: the role of the node."""


class Eks(Settings):
    """The EKS control plane."""

    version: EksVersion = "1.34"
    """Kubernetes version."""
    endpoint: Literal["private", "public_and_private"] = "private"
    """Reach of the Kubernetes API."""
    public_cidrs: tuple[Cidr, ...] = ()
    """Ranges that may reach a public endpoint."""
    admins: tuple[RoleArn, ...] = ()
    """Roles that get cluster-admin by access entry."""
    logs: tuple[ControlPlaneLog, ...] = ("api", "audit", "authenticator", "controllerManager", "scheduler")
    """Control-plane logs sent to CloudWatch."""
    secrets_key: KmsKeyArn | None = None
    """KMS key for Kubernetes secrets; the environment's key when absent."""
    addons: dict[AddonName, AddonVersion] = {}
    """Add-on versions that replace podwright's pins for this Kubernetes version."""
    addon_configurations: dict[AddonName, Patch] = {}
    """Configuration values of add-ons as YAML text, over those that podwright gives them."""
    further_addons: dict[FurtherAddonName, FurtherAddon] = {}
    """Further add-ons of EKS by name, such as eks-node-monitoring-agent."""
    authentication: Literal["API", "API_AND_CONFIG_MAP"] = "API"
    """Who may use the cluster is said by access entries alone, or by the ConfigMap aws-auth as well. EKS goes from
    API_AND_CONFIG_MAP to API and never back."""
    service_cidr: Cidr | None = None
    """Range of the cluster's services, /12 to /24. Default: EKS takes 10.100.0.0/16 or 172.20.0.0/16. A change replaces
    the cluster."""
    security_groups: tuple[SecurityGroupId, ...] = ()
    """Existing security groups that EKS's interfaces in the VPC have beside those that podwright and EKS make, such as
    one that lets an office network reach the API."""
    support: Literal["standard", "extended"] | None = None
    """What follows the end of standard support: an upgrade by EKS, or extended support at six times the price. EKS's
    default is extended."""
    deletion_protection: bool | None = None
    """Refuse deletion of the control plane. Default: follows `protection`."""
    argo_cd: ArgoCd | None = None
    """Argo CD as a capability of the cluster, for what a Git repository holds."""
    existing: AdoptedEks | None = None
    """An existing cluster to use instead of a new one."""


class TieredCheckpoints(Settings):
    """Managed tiered checkpointing: part of each node's memory holds recent checkpoints."""

    memory_percent: int = Field(default=20, ge=1, le=100)
    """Percent of instance memory."""


KarpenterLimit = Literal["accelerators", "vcpu", "memory_gib"]


class Karpenter(Settings):
    """HyperPod's managed Karpenter: it adds nodes to groups while pods wait for them, and takes them away again."""

    groups: tuple[GroupName, ...] = Field(min_length=1, max_length=10)
    """Instance groups that it scales, each with `count: 0`. HyperPod's node class takes ten at most."""
    limits: dict[KarpenterLimit, Annotated[int, Field(ge=1)]] = Field(min_length=1)
    """What its nodes may hold together, so that pods do not add nodes without end: accelerators (GPUs and Neuron
    devices each), vCPUs, GiB of memory."""
    consolidation: Literal["when_empty", "when_underutilized"] = "when_empty"
    """Which nodes go: those without pods, or also those whose pods fit elsewhere, which restarts these pods."""
    consolidate_after_seconds: int = Field(default=300, ge=0, le=86400)
    """Seconds that a node stays so before it goes."""


class ClusterAutoscaling(Settings):
    """Who scales instance groups."""

    karpenter: Karpenter
    """HyperPod's managed Karpenter."""


def _autoscaling(value: Any) -> Any:
    if isinstance(value, ClusterAutoscaling | dict) or value in (None, "off"):
        return value
    raise ValueError(f"off, or the groups that Karpenter scales, such as {AUTOSCALING_EXAMPLE}")


AUTOSCALING_EXAMPLE: Final = "{karpenter: {groups: [burst], limits: {accelerators: 32}}}"
"""How a file turns autoscaling on."""


class SharedRestrictedEnvironment(Settings):
    """Scratch file system that all restricted groups share."""

    lustre: RestrictedLustre | None = None
    """Its size."""
    lustre_deletion: Literal["keep", "delete_if_not_used"] = "keep"
    """What happens to it when the last restricted group goes."""


class Cluster(Settings):
    """The HyperPod cluster."""

    name: ClusterName
    """Cluster name. Default: the environment's name. A change replaces the cluster."""
    zones: ZoneIds = Field(min_length=1)
    """Zones of the control plane's interfaces; the cluster's own default subnet is in the first of them. EKS takes no
    other zones later, and a change of the first replaces the cluster. Default: the first two zones of the network."""
    orchestrator: Literal["eks", "slurm", "none"] = "eks"
    """What schedules the work. A change replaces the cluster. none: there is no cluster; the default of an environment
    that has queues of training jobs and no instance groups."""
    eks: Eks = Eks.model_construct()
    """The EKS control plane; only with orchestrator eks."""
    slurm: Slurm = Slurm.model_construct()
    """Slurm; only with orchestrator slurm."""
    system_group: GroupName
    """Instance group whose nodes a deployment waits for, because add-ons and system pods run there. Default: `system`,
    else the first group by name that has no accelerators; the controllers with orchestrator slurm."""
    node_recovery: Literal["automatic", "none"] = "automatic"
    """Replace or reboot faulty nodes, or only label them."""
    provisioning: Literal["continuous", "all_or_nothing"] = "continuous"
    """continuous: groups fill as capacity comes. all_or_nothing: HyperPod's older mode, fails as a whole."""
    autoscaling: (
        Annotated[
            Annotated[Literal["off"], Tag("off")] | Annotated[ClusterAutoscaling, Tag("settings")],
            Discriminator(lambda value: "off" if isinstance(value, str) else "settings"),
            BeforeValidator(_autoscaling, json_schema_input_type=Literal["off"] | ClusterAutoscaling),
        ]
        | None
    ) = None
    """HyperPod's managed Karpenter, with the groups that it scales. Absent leaves the cluster as it is; `off` turns off
    what was on."""
    autoscaling_role: RoleArn | None = None
    """Existing role for Karpenter; created when absent."""
    tiered_checkpoints: (
        Annotated[
            Annotated[Literal["off"], Tag("off")] | Annotated[TieredCheckpoints, Tag("settings")],
            Discriminator(lambda value: "off" if isinstance(value, str) else "settings"),
        ]
        | None
    ) = None
    """Managed tiered checkpointing. Absent leaves the cluster as it is; `off` turns off what was on."""
    restricted_environment: SharedRestrictedEnvironment | None = None
    """Shared settings of restricted groups."""
    lifecycle: Lifecycle = "tolerant"
    """What a failed step of a node's set-up costs. tolerant: a step without which the node is of no use for its role
    costs the node, and any other marks it degraded. strict: every step costs it."""
    node_software: NodeSoftware = NodeSoftware.model_construct()
    """EFA, NCCL and what belongs to them on the nodes."""
    benchmarks: Benchmarks = Benchmarks.model_construct()
    """Benchmark kernels when nodes boot; each group's own `benchmarks` says what follows from them."""

    @property
    def karpenter(self) -> Karpenter | None:
        """Karpenter's settings; None where nothing scales the groups."""
        return self.autoscaling.karpenter if isinstance(self.autoscaling, ClusterAutoscaling) else None

    @property
    def checkpoint_memory_percent(self) -> int:
        """Percent of instance memory that tiered checkpoints take; 0 without them."""
        return self.tiered_checkpoints.memory_percent if isinstance(self.tiered_checkpoints, TieredCheckpoints) else 0
