"""What runs on an EKS cluster beside the work itself: operators of jobs, GPU partitions, notebooks, model endpoints.

Each part is off until the file names it; an empty mapping turns it on as podwright pins it. Versions of EKS add-ons are
in `cluster.eks.addons`, versions of charts come with podwright and stand in `artifacts.lock`.
"""

from typing import Annotated, Final, Literal, Self

from pydantic import Field, StringConstraints

from .base import InstanceTypeName, RoleArn, S3Uri, Settings
from .cluster import AddonName
from .governance.teams import TeamName

CERT_MANAGER: Final = "cert-manager"
TRAINING_OPERATOR: Final = "amazon-sagemaker-hyperpod-training-operator"
INFERENCE: Final = "amazon-sagemaker-hyperpod-inference"
SPACES: Final = "amazon-sagemaker-spaces"
METRICS_SERVER: Final = "metrics-server"
S3_DRIVER: Final = "aws-mountpoint-s3-csi-driver"
BLOCK_STORAGE_DRIVER: Final = "aws-ebs-csi-driver"

KUBERAY: Final = "kuberay-operator"
"""Podwright's name of KubeRay's chart, and of its release."""
KUBEFLOW_TRAINER: Final = "kubeflow-trainer"
"""Podwright's name of the chart of Kubeflow Trainer, and of its release."""
LEADER_WORKER_SET: Final = "lws"
"""The name of LeaderWorkerSet's chart, and podwright's of its release."""

BucketName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$")]
OidcProviderArn = Annotated[
    str,
    StringConstraints(
        pattern=r"^arn:aws[a-z-]*:iam::[0-9]{12}:oidc-provider/oidc\.eks\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/id/[A-Za-z0-9]+$"
    ),
]
Registry = Annotated[str, StringConstraints(pattern=r"^[0-9]{12}\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com(\.cn)?$")]


class CertManager(Settings):
    """cert-manager, as an EKS add-on: certificates for the webhooks of operators."""


class TrainingOperator(Settings):
    """HyperPod's training operator, as an EKS add-on: HyperPodPyTorchJob. Needs `cert_manager`."""


class KubeRay(Settings):
    """KubeRay, from its own chart: RayCluster, RayJob, RayService."""

    cron_jobs: bool = False
    """Also RayCronJob, which KubeRay has as an alpha feature."""


class KubeflowTrainer(Settings):
    """Kubeflow Trainer, from its own chart: TrainJob."""


class LeaderWorkerSets(Settings):
    """The controller of LeaderWorkerSet, from its own chart."""


class GpuOperator(Settings):
    """NVIDIA's GPU operator, from HyperPod's chart: it partitions GPUs, and its device plugin replaces the chart's.

    Which layout the GPUs of a group have is the group's label `nvidia.com/mig.config`.
    """

    registry: Registry | None = None
    """ECR registry of its images. Default: AWS's own of the region, where AWS names one."""


class InferenceOperator(Settings):
    """HyperPod's inference operator, as an EKS add-on: model endpoints. Needs `cert_manager`.

    Its roles trust the OIDC provider of the EKS cluster. podwright makes the provider, and what is not named here.
    """

    execution_role: RoleArn | None = None
    """What the operator itself may, instead of a role that podwright makes."""
    tls_bucket: BucketName | None = None
    """Bucket for certificates of endpoints, instead of one that podwright makes. AWS's managed policy covers names
    that begin with hyperpod-tls."""
    load_balancer_role: RoleArn | None = None
    """Role of the AWS Load Balancer Controller that the add-on brings, instead of one that podwright makes."""
    autoscaler_role: RoleArn | None = None
    """Role of the KEDA that the add-on brings, instead of one that podwright makes."""
    s3_driver_role: RoleArn | None = None
    """Role of the Mountpoint for S3 driver, which reads models of endpoints, instead of one that podwright makes."""
    gated_models_role: RoleArn | None = None
    """Role that downloads gated models of JumpStart; endpoints have none of them without."""
    model_buckets: tuple[BucketName, ...] = ()
    """Further buckets that endpoints read models from. The environment's own for checkpoints and those of its jobs are
    among them anyway."""
    oidc_provider: OidcProviderArn | None = None
    """The OIDC provider of the EKS cluster, where the account has it already. podwright makes one for its own clusters
    when absent."""

    @property
    def lacks_roles(self) -> bool:
        """Whether any of the roles without which it does not run is left to podwright."""
        needed = (self.execution_role, self.load_balancer_role, self.autoscaler_role, self.s3_driver_role)
        return not all(needed)

    def completed(self, **absent: str) -> Self:
        """The settings with what they don't name."""
        return self.model_copy(update={name: value for name, value in absent.items() if getattr(self, name) is None})


class Spaces(Settings):
    """SageMaker Spaces, as an EKS add-on: JupyterLab and Code Editor on the cluster, reached from a local editor."""


class Mlflow(Settings):
    """A serverless MLflow app of SageMaker. It records runs; models and files go to S3."""

    artifacts: S3Uri | None = None
    """Where it keeps files. Default: `mlflow/` in the environment's bucket for checkpoints."""
    register_models: bool = False
    """Also put models that runs log into SageMaker's model registry."""
    maintenance: Annotated[
        str, StringConstraints(pattern=r"^(Mon|Tue|Wed|Thu|Fri|Sat|Sun):([01][0-9]|2[0-3]):[0-5][0-9]$")
    ] = "Sun:03:00"
    """When SageMaker may update it: day and time in UTC."""


class Platform(Settings):
    """What runs on the cluster beside the work itself."""

    cert_manager: CertManager | None = None
    """Certificates for webhooks; a prerequisite of other parts."""
    training_operator: TrainingOperator | None = None
    """HyperPodPyTorchJob: restarts without new pods, hang detection, elastic training."""
    kuberay: KubeRay | None = None
    """RayJob and its relatives."""
    kubeflow_trainer: KubeflowTrainer | None = None
    """TrainJob, Kubeflow's successor of PyTorchJob."""
    leader_worker_set: LeaderWorkerSets | None = None
    """LeaderWorkerSet: groups of pods with a leader, for models that are larger than a node."""
    gpu_operator: GpuOperator | None = None
    """Partitions of GPUs (MIG)."""
    inference: InferenceOperator | None = None
    """Model endpoints."""
    spaces: Spaces | None = None
    """Notebooks and editors."""
    mlflow: Mlflow | None = None
    """Records of experiments."""
    pytorch_jobs: bool = True
    """Kubeflow's training operator of HyperPod's chart: PyTorchJob and its relatives, with HyperPod's auto-resume."""
    mpi_jobs: bool = True
    """The MPI operator of HyperPod's chart: MPIJob."""

    @property
    def addons(self) -> tuple[AddonName, ...]:
        """The EKS add-ons that its parts are, in the order in which they are installed."""
        parts: tuple[tuple[AddonName, object], ...] = (
            (CERT_MANAGER, self.cert_manager),
            (TRAINING_OPERATOR, self.training_operator),
            (METRICS_SERVER, self.inference),
            (S3_DRIVER, self.inference),
            (INFERENCE, self.inference),
            (BLOCK_STORAGE_DRIVER, self.spaces),
            (SPACES, self.spaces),
        )
        return tuple(name for name, desired in parts if desired is not None)

    @property
    def stands_alone(self) -> bool:
        """Whether any part is installed after the nodes, rather than with HyperPod's chart before them."""
        others = (self.kuberay, self.kubeflow_trainer, self.leader_worker_set, self.mlflow)
        return bool(self.addons) or any(part is not None for part in others)


Capacity = Annotated[dict[InstanceTypeName, Annotated[int, Field(ge=1, le=6758)]], Field(min_length=1)]
"""Instances by type."""


class TrainingJobQueue(Settings):
    """A queue of AWS Batch for SageMaker training jobs, which bring their own instances and need no cluster.

    Teams share it as they share a cluster: whether a team lends and borrows, how much, and whether its own work stops
    its own, is what `governance.teams` says of it.
    """

    capacity: Capacity
    """Instances by type that its jobs run on at once."""
    quota: dict[TeamName, Capacity] = Field(min_length=1)
    """What is guaranteed to each team of `governance.teams`, in instances by type. Only these teams use the queue."""
    at_the_head: Annotated[int, Field(ge=600, le=86400)] | None = None
    """Seconds that a job may stand at the head of the queue without capacity before it is terminated; forever when
    absent."""
    state: Literal["enabled", "disabled"] = "enabled"
    """disabled: no new jobs, those that are in it finish."""
