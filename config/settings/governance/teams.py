"""Teams and people: who may use how much of a cluster, what goes first, and the accounts of those who log in.

One specification serves every scheduler. What one of them cannot express is a finding, never silently dropped.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, SerializerFunctionWrapHandler, StringConstraints, model_serializer

from ..base import Settings
from ..plans import Instant
from .engines import KaiSettings, YuniKornSettings
from .kueue import Kueue
from .task_governance import ComputeQuota, TaskGovernance
from .team_access import TeamAccess

# HyperPod's pattern of team and priority class names with the upper bound that it means to set.
TeamName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9](-*[a-z0-9])*$", max_length=40)]
PriorityName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9](-*[a-z0-9])*$", max_length=40)]
DepartmentName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9](-*[a-z0-9])*$", max_length=40)]
OverrideName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9](-*[a-z0-9])*$", max_length=40)]
# What a quota counts: an instance group by its name, or an instance type wherever its instances are.
QuotaKey = Annotated[
    str, StringConstraints(pattern=r"^([a-zA-Z0-9](-*[a-zA-Z0-9])*|ml\.[a-z0-9-]+\.[a-z0-9]+)$", max_length=64)
]
# As compute quotas and NVIDIA's device plugin write a profile, such as mig-1g.18gb.
MigProfile = Annotated[str, StringConstraints(pattern=r"^mig-[1-7]g\.[1-9][0-9]{0,2}gb$")]
Engine = Literal["hyperpod", "kueue", "kai", "yunikorn"]
Sharing = Literal["lend_and_borrow", "lend", "dont_lend"]
# What useradd of Debian and of Amazon Linux both take (shadow-utils).
UserName = Annotated[str, StringConstraints(pattern=r"^[a-z_][a-z0-9_-]*$", max_length=32)]
# The types that OpenSSH 8.9 of Ubuntu 22.04 accepts as signatures, DSA left out.
SshKey = Annotated[
    str,
    StringConstraints(
        pattern=r"^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)|sk-(ssh-ed25519|ecdsa-sha2-nistp256)@openssh\.com)"
        r" [A-Za-z0-9+/]+={0,2}( [^\r\n]*)?$",
        max_length=4096,
    ),
]
# 1000 is the image's own user (ubuntu, ec2-user); the highest two mean "nobody" and "no change" to the kernel.
UnixId = Annotated[int, Field(ge=1001, le=4294967293)]
# Bounds of AWS::SageMaker::ComputeQuota, which no engine of ours has a reason to exceed.
_Count = Annotated[int, Field(ge=0, le=10_000_000)]
_Number = Annotated[float, Field(ge=0, le=10_000_000, allow_inf_nan=False)]


class Amount(Settings):
    """So much of an instance group or type: whole instances, or parts of them.

    Where accelerators, partitions, vCPU or memory are given and others of them are not, the others follow in the
    instance's own ratio, as task governance fills them in.
    """

    instances: Annotated[int, Field(ge=0, le=6758)] | None = None
    """Whole instances with everything that is in them. Alone."""
    accelerators: _Count | None = None
    """GPUs or Neuron devices."""
    mig: dict[MigProfile, _Count] = {}
    """Partitions of GPUs by profile, such as mig-1g.18gb, on nodes that are partitioned so."""
    vcpu: _Number | None = None
    """vCPUs. Alone it stands for no accelerators."""
    memory_gib: _Number | None = None
    """GiB. Alone it stands for no accelerators."""

    @model_serializer(mode="wrap")
    def _as_written(self, fields: SerializerFunctionWrapHandler) -> Any:
        parts = self.model_copy(update={"instances": None})
        return fields(self) if self.instances is None or parts != Amount() else self.instances


def _amount(value: Any) -> Any:
    if isinstance(value, dict | Amount):
        return value
    try:
        return {"instances": int(value)}
    except (TypeError, ValueError):
        raise ValueError("a number of instances, or amounts such as {accelerators: 8}") from None


# A plain number counts instances.
AmountOrInstances = Annotated[
    Amount, BeforeValidator(_amount, json_schema_input_type=Annotated[int, Field(ge=0, le=6758)] | Amount)
]


class TeamBudget(Settings):
    """Accelerator-hours that a team may hold in a period, within its quota and borrowed, and what happens then.

    Periods begin at midnight UTC: weeks on Monday, months and quarters of the calendar on their first day.
    """

    accelerator_hours: Annotated[float, Field(gt=0, le=1_000_000_000, allow_inf_nan=False)]
    """Hours of GPUs or Neuron devices in each period."""
    period: Literal["week", "month", "quarter"] = "month"
    """How long it lasts before it begins anew."""
    warn_at_percent: int = Field(default=80, ge=1, le=99)
    """The percentage of it at which an alert warns."""
    when_reached: Literal["warn", "demote", "hold"] = "warn"
    """What `podwright budgets --apply` does from then to the end of the period: nothing, give all work of the team the
    priority of `demote_to`, or admit no more of it; what runs keeps running."""
    demote_to: PriorityName | None = None
    """The priority class whose priority its work has then at most; only with demote."""


class Team(Settings):
    """A team with what it is guaranteed, and what it lends and borrows beyond that."""

    department: DepartmentName | None = None
    """A key of `departments`, within which it lends and borrows first."""
    quota: dict[QuotaKey, AmountOrInstances] = {}
    """What is guaranteed to it, by instance group or type: a number of instances, or amounts of what is in them. A team
    without any lives on what others leave idle."""
    share: Sharing = "lend_and_borrow"
    """What happens to idle capacity: lend its own and borrow that of others, only lend, or neither."""
    borrow_limit_percent: int = Field(default=50, ge=1, le=500)
    """How much it may borrow, in percent of its own quota; only with lend_and_borrow."""
    borrow_limits: dict[QuotaKey, AmountOrInstances] = {}
    """How much it may borrow of a group or type at most, in place of the percentage."""
    weight: int = Field(default=10, ge=0, le=100)
    """Its share of what several teams want to borrow at once, relative to the others' weights."""
    preempt: Literal["lower_priority", "never"] = "lower_priority"
    """Whether its own work of higher priority may stop its own work of lower priority."""
    min_runtime_seconds: Annotated[int, Field(ge=1, le=604800)] | None = None
    """Seconds that its work runs before others, or its own of higher priority, may stop it; only with engine kai."""
    budget: TeamBudget | None = None
    """Accelerator-hours that it may hold in a period; only with engines hyperpod and kueue."""
    compute_quota: ComputeQuota | None = None
    """Name, description and state of its compute quota; only with engine hyperpod."""
    users: tuple[UserName, ...] = ()
    """Its people: keys of `users`."""
    access: TeamAccess | None = None
    """Who and what works in its namespace, and what keeps it from the other teams; only on EKS."""


class Department(Settings):
    """Teams that belong together: they share among each other before they share with the rest."""

    parent: DepartmentName | None = None
    """The department that it is a part of, if any."""
    weight: int = Field(default=10, ge=0, le=100)
    """Its share of what several departments want to borrow at once, relative to the others' weights."""


class WaitForPods(Settings):
    """Gang scheduling: a job whose pods do not all get ready in time gives its quota back and waits again."""

    timeout_seconds: int = Field(default=3600, ge=1, le=86400)
    """Seconds from admission until all pods have to be ready. An hour is more than a node's replacement (30 minutes)
    and the pull of a large image after it."""
    recovery_timeout_seconds: int | None = Field(default=None, ge=0, le=86400)
    """Seconds that a pod lost later has to come back in; 0 waits forever. As long as the timeout when absent."""
    one_at_a_time: bool = False
    """Admit no further job until the pods of the last one are ready."""
    backoff_base_seconds: int = Field(default=60, ge=0, le=3600)
    """Seconds until the first try after a timeout; doubled with each further one."""
    backoff_max_seconds: int = Field(default=3600, ge=0, le=86400)
    """Seconds between tries at most."""
    tries: int | None = Field(default=None, ge=0, le=1000)
    """Tries after a timeout before the job is set aside; without end when absent."""


class TeamOverride(Settings):
    """What is otherwise with a team for a time. What is left out stays as the team has it."""

    quota: dict[QuotaKey, AmountOrInstances] = {}
    """Amounts in place of the team's own, by instance group or type; what is not named stays."""
    share: Sharing | None = None
    """What happens to idle capacity."""
    borrow_limit_percent: Annotated[int, Field(ge=1, le=500)] | None = None
    """How much it may borrow, in percent of its own quota."""
    borrow_limits: dict[QuotaKey, AmountOrInstances] = {}
    """Limits in place of the team's own, by instance group or type; what is not named stays."""
    weight: Annotated[int, Field(ge=0, le=100)] | None = None
    """Its share of what several teams want to borrow at once."""


class Override(Settings):
    """Other quotas from a moment to another. A deployment in between has them; `pipeline:` deploys at both moments."""

    begin: Instant
    """From when on."""
    end: Instant
    """Until when."""
    teams: dict[TeamName, TeamOverride] = Field(min_length=1)
    """What is otherwise, by team."""


class Governance(Settings):
    """Quotas of teams and the order of their work."""

    engine: Engine | None = None
    """Who keeps the quotas on EKS: hyperpod (task governance), or a scheduler of your own. Default: hyperpod on EKS
    once teams or priorities are given. Slurm has its own and takes none."""
    priorities: dict[PriorityName, Annotated[int, Field(ge=0, le=100)]] = Field(default={}, max_length=10)
    """Priority classes that jobs name, each with its weight; the highest goes first."""
    fair_share: bool = True
    """Give idle capacity by the teams' weights; first come, first served when off."""
    idle_resource_sharing: bool = True
    """Let teams borrow capacity that no quota holds."""
    task_governance: TaskGovernance = TaskGovernance.model_construct()
    """What is special to engine hyperpod."""
    kueue: Kueue = Kueue.model_construct()
    """What is special to engine kueue."""
    kai: KaiSettings = KaiSettings.model_construct()
    """What is special to engine kai."""
    yunikorn: YuniKornSettings = YuniKornSettings.model_construct()
    """What is special to engine yunikorn."""
    wait_for_pods: WaitForPods | None = None
    """Gang scheduling. Absent: engine kueue has it with these defaults, other engines what they do by themselves."""
    departments: dict[DepartmentName, Department] = {}
    """Departments by name, each a part of the whole or of another one."""
    teams: dict[TeamName, Team] = {}
    """Teams by name. Order has no meaning."""
    overrides: dict[OverrideName, Override] = {}
    """Quotas that are others for a time, by name."""


class User(Settings):
    """A person with an account on the nodes. Ids are fixed here, so files keep their owners on whatever node."""

    uid: UnixId
    """User id, and the id of the user's own group of the same name."""
    groups: tuple[UserName, ...] = ()
    """Further groups: keys of `user_groups`, or `docker` and `sudo`, which the image has."""
    ssh_keys: tuple[SshKey, ...] = ()
    """Public keys that may log in, each as a line of authorized_keys without options."""
