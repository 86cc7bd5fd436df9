"""One environment: what a YAML file of `environments/` says, frozen and typed."""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, ValidationInfo, field_validator, model_validator

from ..catalog.prices import Price
from .approvals import ApprovedChanges
from .base import Account, InstanceTypeName, PolicyArn, QueueName, Region, Settings, Tags
from .cluster import Cluster
from .defaults import with_defaults
from .gates import Gates
from .governance.teams import Governance, UnixId, User, UserName
from .groups import GroupName, InstanceGroup, RestrictedInstanceGroup
from .jobs.jobs import Jobs
from .jobs.training import TrainingJob, TrainingJobName
from .network import Network
from .observability import Observability
from .plan_reminders import PlanReminders
from .plans import PlanName, TrainingPlan
from .platform import Platform, TrainingJobQueue
from .prices import OwnPrices
from .storage import Storage

EnvironmentName = Annotated[str, StringConstraints(pattern=r"^[a-z]([a-z0-9-]*[a-z0-9])?$", max_length=32)]


class Iam(Settings):
    """What every IAM role and policy that podwright creates carries."""

    permissions_boundary: PolicyArn | None = None
    """Managed policy set as permissions boundary. Default with a pipeline: the one that its `bootstrap` makes."""
    role_path: Annotated[str, StringConstraints(pattern=r"^/([A-Za-z0-9._-]+/)*$", max_length=128)] = "/"
    """Path of roles."""


class Acknowledgement(Settings):
    """A finding that somebody has looked at and accepts."""

    rule: Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}[0-9]{3}$")]
    """Id of the rule, such as NET003."""
    path: str = ""
    """Only findings at or below this path of the file; everywhere when empty."""
    reason: Annotated[str, StringConstraints(min_length=10)]
    """Why it is accepted; printed with every check."""


class Environment(Settings):
    """One environment: an account, a region, a network, storage and a HyperPod cluster."""

    name: EnvironmentName
    """Name of the environment; prefixes its stacks. Default: the file's name."""
    account: Account
    """AWS account id, twelve digits in quotes."""
    region: Region
    """AWS region."""
    protection: Literal["retain", "destroy"] = "retain"
    """retain: networks and data survive their stacks. destroy: for sandboxes."""
    tags: Tags = {}
    """Tags of every resource."""
    iam: Iam = Iam.model_construct()
    """Boundary and path of all roles."""
    network: Network
    """The VPC."""
    storage: Storage = Storage.model_construct()
    """File systems and buckets."""
    cluster: Cluster
    """The HyperPod cluster and its control plane. Default: every default of its own."""
    training_plans: dict[PlanName, TrainingPlan] = {}
    """Training plans by a name of your own."""
    plan_reminders: PlanReminders = PlanReminders.model_construct()
    """Who hears that training plans end."""
    instance_groups: dict[GroupName, InstanceGroup] = Field(max_length=100)
    """Instance groups by name. Order has no meaning. Default: none, only with `restricted_instance_groups`, or with
    `training_job_queues`; then there are a network and storage for training jobs, and no cluster."""
    restricted_instance_groups: dict[GroupName, RestrictedInstanceGroup] = Field(default={}, max_length=100)
    """Restricted instance groups by name, for customising Amazon Nova. They stand alone in their cluster."""
    governance: Governance = Governance.model_construct()
    """Teams, their quotas and the priorities of work."""
    platform: Platform = Platform.model_construct()
    """What runs on the cluster beside the work itself; only with EKS."""
    observability: Observability | None = None
    """What is measured, shown and told; nothing when absent."""
    training_job_queues: dict[QueueName, TrainingJobQueue] = Field(default={}, validate_default=True)
    """Queues of AWS Batch for SageMaker training jobs, by name."""
    training_jobs: dict[TrainingJobName, TrainingJob] = {}
    """Training jobs by name, which `podwright submit` hands to a queue of AWS Batch and a deployment does not."""
    jobs: Jobs = {}
    """Job templates by name, which `podwright submit` hands to the cluster and a deployment does not."""
    gates: Gates | None = None
    """What the environment has to prove before something continues to the next one; every default when absent."""
    users: dict[UserName, User] = {}
    """People with an account on Slurm's nodes."""
    user_groups: dict[UserName, UnixId] = {}
    """Unix groups of theirs by name, each with its id."""
    instance_types: dict[InstanceTypeName, dict[str, Any]] = {}
    """Facts that replace or complete those of the instance catalog, by type and field."""
    prices: OwnPrices = {}
    """US dollars that you pay, where that differs from the price lists: an hour of an instance type, or a unit of what
    `podwright cost` prints; with its day where `podwright prices fetch` found it."""
    approved_changes: ApprovedChanges = ()
    """Change sets that may be deployed although they replace, delete, buy or interrupt something: digests that
    `podwright diff` prints."""
    acknowledge: tuple[Acknowledgement, ...] = ()
    """Findings that are accepted, each with a reason."""

    @model_validator(mode="before")
    @classmethod
    # Before validation, so that what validates a field sees it as complete as everything after it.
    def _complete(cls, data: Any) -> Any:
        return with_defaults(data)

    @field_validator("training_job_queues", mode="after")
    @classmethod
    def _something(cls, queues: dict[str, TrainingJobQueue], info: ValidationInfo) -> dict[str, TrainingJobQueue]:
        if not queues and info.data.get("instance_groups") == {} and not info.data.get("restricted_instance_groups"):
            raise ValueError("an environment needs instance groups, or queues of training jobs")
        return queues

    @property
    def has_cluster(self) -> bool:
        """Whether it has a HyperPod cluster, rather than queues of training jobs alone."""
        return self.cluster.orchestrator != "none"

    @property
    def own_prices(self) -> dict[str, Price]:
        """Its own prices by name, which replace those of the lists."""
        return {
            name: Price(own.usd, "file", f"AWS Price List, {own.as_of}" if own.as_of else "set by the environment")
            for name, own in self.prices.items()
        }

    @property
    def groups(self) -> dict[str, InstanceGroup | RestrictedInstanceGroup]:
        """All instance groups, ordinary and restricted, by name."""
        return {**self.instance_groups, **self.restricted_instance_groups}
