"""Observability: what is measured of an environment, for how long it is kept, and who is told.

Everything here is off until the file has an `observability:`.
"""

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, StringConstraints, Tag, model_validator

from .base import RoleArn, Settings
from .jobs.patch import Patch
from .plan_reminders import Email

Level = Literal["off", "basic", "advanced"]
"""How much is measured. basic is what health and use need; advanced adds counters of parts and links of a node."""

Source = Literal["training", "inference", "task_governance", "scaling", "cluster", "node", "accelerated", "network"]
"""What HyperPod's collector measures by a level of its own (`data/metric_levels.csv`)."""

WorkspaceId = Annotated[str, StringConstraints(pattern=r"^ws-[a-f0-9-]{36}$")]
LabelName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$", max_length=128)]
LabelValue = Annotated[str, StringConstraints(min_length=1, max_length=256)]
HttpsAddress = Annotated[str, StringConstraints(pattern=r"^https://[^\s]+$", max_length=2048)]


class SeriesLimit(Settings):
    """The most series that a set of labels may have, so that one team or exporter cannot fill the workspace."""

    labels: dict[LabelName, LabelValue] = Field(min_length=1)
    """Labels that a series carries to be counted here."""
    max_series: int = Field(ge=1)
    """Series that are taken; more are refused."""


class Saml(Settings):
    """An identity provider of your own, by SAML 2.0."""

    metadata_url: HttpsAddress
    """Where its metadata stand."""
    role_attribute: Annotated[str, StringConstraints(min_length=1, max_length=256)] = "role"
    """Attribute of an assertion that names a person's role."""
    admin_roles: Annotated[tuple[LabelValue, ...], Field(min_length=1)]
    """Values of it that make somebody an administrator of Grafana."""
    editor_roles: tuple[LabelValue, ...] = ()
    """Values of it that make somebody an editor."""


# Source: Identity Store API model, botocore 1.44.5.
GroupId = Annotated[
    str, StringConstraints(pattern=r"^([0-9a-f]{10}-)?[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$")
]


class ExistingGrafana(Settings):
    """A workspace of Amazon Managed Grafana that is there, with teams and dashboards of others in it."""

    id: Annotated[str, StringConstraints(pattern=r"^g-[0-9a-f]{10}$")]
    """Its id."""
    role: RoleArn
    """Its role, which gets the permissions to read the environment's metrics, alerts and logs."""


class Grafana(Settings):
    """An Amazon Managed Grafana workspace with our data sources and dashboards."""

    existing: ExistingGrafana | None = None
    """A workspace that is there, to which data sources and dashboards are delivered. It keeps its version and the ways
    in which people sign in."""

    saml: Saml | None = None
    """How people sign in. Default: IAM Identity Center of the organization."""
    version: Annotated[str, StringConstraints(pattern=r"^[0-9]+\.[0-9]+$")] = "10.4"
    """Version of Grafana. A later one is an update in place; an earlier one is refused."""
    admins: tuple[GroupId, ...] = ()
    """Ids of groups of IAM Identity Center whose people administer the workspace; with SAML its roles say that."""
    editors: tuple[GroupId, ...] = ()
    """Ids of groups whose people make dashboards of their own."""
    viewers: tuple[GroupId, ...] = ()
    """Ids of groups whose people look at dashboards."""

    @model_validator(mode="after")
    def _one_directory(self) -> Self:
        if self.saml and (self.admins or self.editors or self.viewers):
            raise ValueError(
                "admins, editors and viewers are groups of IAM Identity Center; with saml, its roles say it"
            )
        named = (*self.admins, *self.editors, *self.viewers)
        if len(set(named)) < len(named):
            raise ValueError("a group stands twice in admins, editors and viewers; it has one role")
        return self

    @property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """Groups by role, as Amazon Managed Grafana calls roles."""
        return {"ADMIN": self.admins, "EDITOR": self.editors, "VIEWER": self.viewers}


class SlackChannel(Settings):
    """A channel of Slack, whose workspace somebody has authorized once in the console of the chat service."""

    workspace: Annotated[str, StringConstraints(pattern=r"^[0-9A-Z]{1,255}$")]
    """Id of the workspace, such as T07EA123LEP."""
    channel: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9]+$", max_length=256)]
    """Id of the channel, such as C0123456789."""


class TeamsChannel(Settings):
    """A channel of Microsoft Teams, whose tenant somebody has authorized once in the console of the chat service."""

    tenant: Annotated[str, StringConstraints(pattern=r"^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$")]
    """Id of the tenant."""
    team: Annotated[str, StringConstraints(pattern=r"^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$")]
    """Id of the team."""
    channel: Annotated[str, StringConstraints(min_length=1, max_length=2048)]
    """Id of the channel as its link has it."""


class Chat(Settings):
    """Channels that alerts go to."""

    slack: SlackChannel | None = None
    """A channel of Slack."""
    teams: TeamsChannel | None = None
    """A channel of Microsoft Teams."""


AlertName = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Za-z0-9]*$", max_length=64)]


class Alerts(Settings):
    """Who is told, and of what. A list of mail addresses alone means the same as `emails`."""

    emails: tuple[Email, ...] = ()
    """Addresses. Each gets a mail once, and confirms with a click that it wants more."""
    chat: Chat = Chat.model_construct()
    """Channels."""
    thresholds: dict[AlertName, Annotated[float, Field(ge=0, allow_inf_nan=False)]] = {}
    """Thresholds that replace podwright's own, by the name of the alert, each in the alert's own unit."""
    silenced: tuple[AlertName, ...] = ()
    """Alerts that this environment does not want."""


class Targets(Settings):
    """What the environment is meant to reach. Dashboards show it, alerts fire below it, drills are measured by it."""

    goodput_percent: float = Field(default=90, gt=0, le=100)
    """Productive share of the wall time of jobs."""
    gpu_utilization_percent: float = Field(default=40, gt=0, le=100)
    """Utilization of GPUs that are allocated."""
    gpu_idle_minutes: int = Field(default=30, ge=1)
    """Minutes that an allocated GPU may do nothing."""
    queue_wait_minutes: int = Field(default=60, ge=1)
    """Minutes that a job within its team's quota may wait."""
    detection_seconds: int = Field(default=60, ge=1)
    """From a fault to the node's label. AWS's field notes say 5 to 30 seconds."""
    reboot_minutes: int = Field(default=10, ge=1)
    """From label to a node that is back after a reboot. AWS's field notes say 1 to 3 minutes."""
    replacement_minutes: int = Field(default=45, ge=1)
    """From label to a new node that is ready. AWS's field notes say 20 to 30 minutes."""
    resume_minutes: int = Field(default=10, ge=1)
    """From a ready node to a job that runs again."""


class Quarantine(Settings):
    """When a node that fails again and again is taken out of work. With Slurm people are told, and do it."""

    faults: int = Field(default=3, ge=2, le=100)
    """Faults of one instance within the time. A fault after which HyperPod replaces the instance counts for nothing, as
    another machine comes."""
    within_hours: int = Field(default=24, ge=1, le=168)
    """Hours in which they fall."""


def _emails(value: object) -> object:
    emails = [value] if isinstance(value, str) else value
    return {"emails": emails} if isinstance(emails, list | tuple) else value


class Observability(Settings):
    """What is measured, shown, told and paid of an environment."""

    metrics: Level = "basic"
    """How much is measured: basic, advanced, or off for neither metrics nor what is made of them."""
    levels: dict[Source, Level] = {}
    """Another level for one source."""
    scrape_seconds: int = Field(default=30, ge=5, le=300)
    """Seconds between two samples of a series. Half of it is twice the samples, and twice their price."""
    retention_days: int = Field(default=150, ge=1, le=1095)
    """Days that metrics are kept."""
    workspace: WorkspaceId | None = None
    """An existing workspace of Amazon Managed Service for Prometheus. Default: one of the environment's own."""
    series_limits: tuple[SeriesLimit, ...] = ()
    """Limits by label; only with a workspace of the environment's own."""
    log_queries_above_samples: int | None = Field(default=None, ge=0)
    """Queries that read more samples than this are logged, because they are what querying costs; none when absent."""
    log_retention_days: int = Field(default=90, ge=1, le=3653)
    """Days that logs of the cluster, its control plane and of the workspace are kept: one of those that CloudWatch Logs
    takes."""
    container_logs: bool = False
    """Whether the add-on sends the logs of containers to the cluster's log group; only with EKS."""
    slurm_extension_version: Annotated[str, StringConstraints(pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$")] | None = None
    """Version of HyperPod's own extension that measures Slurm clusters. Default: the latest when it is installed."""
    slurm_settings: Patch | None = None
    """Settings of that extension as its own documentation has them, as YAML text, over those that podwright makes."""
    grafana: Annotated[
        Annotated[bool, Tag("switch")] | Annotated[Grafana, Tag("settings")],
        Discriminator(lambda value: "settings" if isinstance(value, dict | Grafana) else "switch"),
    ] = False
    """Amazon Managed Grafana. false: dashboards are CloudWatch's, and JSON files for a Grafana of your own."""
    alerts: Annotated[Alerts, BeforeValidator(_emails, json_schema_input_type=Alerts | tuple[Email, ...] | Email)] = (
        Alerts.model_construct()
    )
    """Who is told of what."""
    budget_usd_per_month: int | None = Field(default=None, ge=1)
    """US dollars a month; AWS's billing tells of it with a delay of up to a day."""
    targets: Targets = Targets.model_construct()
    """What the environment is meant to reach."""
    quarantine: Annotated[
        Annotated[Literal["off"], Tag("off")] | Annotated[Quarantine, Tag("settings")],
        Discriminator(lambda value: "off" if isinstance(value, str) else "settings"),
    ] = Quarantine.model_construct()
    """A node that fails again and again takes no new work, and people are told: by default after three faults within a
    day, which is podwright's own choice, as AWS names none."""
    drills: bool = False
    """true allows `podwright drill`, which breaks nodes on purpose."""

    def level(self, source: Source) -> Level:
        """The level of one source: its own, else that of all."""
        return self.levels.get(source, self.metrics)

    @property
    def quarantines(self) -> Quarantine | None:
        """When a node that fails again and again is taken out of work; None for never."""
        return None if self.quarantine == "off" else self.quarantine

    @property
    def managed_grafana(self) -> Grafana | None:
        """The settings of Managed Grafana where it is wanted."""
        return Grafana() if self.grafana is True else self.grafana or None
