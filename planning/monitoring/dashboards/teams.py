"""Teams: what each is guaranteed, what it takes, and what it makes of it."""

from ....config.settings.observability import Targets
from ..priority_recordings import NAMESPACE_TEAM
from .panel import Choice, Dashboard, Panel, Row

_TEAM = '{$cluster, team=~"$team"}'
_NAME = "{{team}}"


def define(targets: Targets) -> Dashboard:
    """The dashboard."""
    return Dashboard(
        name="teams",
        title="Teams",
        says="What each team is guaranteed, what it takes, and what it makes of it.",
        needs=("team:quota:sum", "team:pods_running:sum"),
        rows=(
            Row("Allocation against utilization", _two_sides(targets)),
            Row("Borrowed and lent", _exchange()),
            Row("Waiting and preemption", _waiting(targets)),
            Row("What pods of teams hold", _of_pods(targets)),
            Row("Hours of the last day", _hours()),
        ),
        choices=(Choice("team", "team", "team:quota:sum"), Choice("team", "team", "team:pods_running:sum")),
        hours=24,
    )


def _sum(recording: str) -> str:
    """Over flavors and kinds of accelerators."""
    return f"sum by (team) ({recording}{_TEAM})"


def _of_namespaces(recording: str, teams: str = "team:quota:sum") -> str:
    """What is recorded by namespace, by team, of the teams that another recording names."""
    named = f'label_replace({recording}{{$cluster}}, "team", "$1", "namespace", "{NAMESPACE_TEAM}")'
    return f"sum by (team) ({named} and on (cluster_name, team) sum by (cluster_name, team) ({teams}{_TEAM}))"


def _two_sides(targets: Targets) -> tuple[Panel, ...]:
    """What each team has allocated, and how well it uses that."""
    good = targets.gpu_utilization_percent / 100
    return (
        Panel(
            "bars",
            "Allocated now",
            "fraction",
            {_NAME: f"{_sum('team:used:sum')} / ({_sum('team:quota:sum')} > 0)"},
            "What a team holds as a share of its guarantee; above 100 % it borrows. Beside it stands what it makes of "
            "it: a team that is full on the left and empty on the right does not need more GPUs.",
            {0: "blue", 1.001: "purple"},
        ),
        Panel(
            "bars",
            "Used now",
            "fraction",
            {_NAME: _of_namespaces("namespace:gpu_utilization:avg")},
            "How much of the time the GPUs that a team holds do anything; coloured by the environment's target.",
            {0: "red", good / 2: "orange", good: "green"},
            most=1,
        ),
        Panel(
            "lines",
            "Allocated",
            "fraction",
            {_NAME: f"{_sum('team:used:sum')} / ({_sum('team:quota:sum')} > 0)"},
            "What a team holds as a share of its guarantee, over time.",
        ),
        Panel(
            "lines",
            "Used",
            "fraction",
            {_NAME: _of_namespaces("namespace:gpu_utilization:avg")},
            "How much of the time the GPUs that a team holds do anything.",
            {good: "orange"},
            most=1,
        ),
    )


def _exchange() -> tuple[Panel, ...]:
    """What teams hold of their guarantees, lend and borrow."""
    return (
        Panel(
            "stacked",
            "Held of the guarantee",
            "count",
            {_NAME: _sum("team:in_quota:sum")},
            "Accelerators that teams hold of their own guarantees.",
            width=8,
        ),
        Panel(
            "stacked",
            "Borrowed",
            "count",
            {_NAME: _sum("team:borrowed:sum")},
            "Accelerators beyond the guarantee. Their owners take them back whenever they want.",
            width=8,
        ),
        Panel(
            "stacked",
            "Lent",
            "count",
            {_NAME: _sum("team:lent:sum")},
            "Accelerators of a guarantee that others hold. Kueue does not say whose an accelerator is, so what is "
            "borrowed is shared out over what is unused.",
            width=8,
        ),
        Panel(
            "lines",
            "Distance from the fair share",
            "count",
            {"{{cluster_queue}}": "kueue_cluster_queue_weighted_share{$cluster} < 1e6"},
            "How far a queue is above its fair share, as Kueue counts it: the highest is preempted first.",
            may_be_empty=True,
        ),
        Panel(
            "table",
            "Guarantees",
            "count",
            {
                "guaranteed": f"sum by (team, flavor, resource) (team:quota:sum{_TEAM})",
                "held": f"sum by (team, flavor, resource) (team:used:sum{_TEAM})",
                "borrowed": f"sum by (team, flavor, resource) (team:borrowed:sum{_TEAM})",
                "lent": f"sum by (team, flavor, resource) (team:lent:sum{_TEAM})",
            },
            "What each team is guaranteed, holds, has borrowed and has lent, by flavor.",
        ),
    )


def _waiting(targets: Targets) -> tuple[Panel, ...]:
    """Jobs that wait, for how long, and how often work is preempted."""
    return (
        Panel(
            "lines",
            "Jobs that wait",
            "count",
            {_NAME: _sum("team:pending:sum")},
            "Jobs of a team that want a place.",
            width=8,
        ),
        Panel(
            "lines",
            "Time until a job starts",
            "seconds",
            {_NAME: f"team:admission_wait_seconds:p90{_TEAM}"},
            "How long nine of ten jobs that were admitted within the hour had waited at most; the dashed line is the "
            "environment's target.",
            {targets.queue_wait_minutes * 60: "orange"},
            width=8,
            may_be_empty=True,
        ),
        Panel(
            "bars",
            "Jobs evicted within the hour",
            "count",
            {"{{team}} {{reason}}": f"team_reason:evictions:increase1h{_TEAM} > 0"},
            "Preempted: a higher priority, or the owner of what was borrowed, took it. PodsReadyTimeout: the pods did "
            "not come up in time.",
            width=8,
            may_be_empty=True,
        ),
    )


def _of_pods(targets: Targets) -> tuple[Panel, ...]:
    """Teams by their pods: with KAI and YuniKorn, of whose queues no metric is collected."""
    running = "team:pods_running:sum"
    return (
        Panel(
            "stacked",
            "GPUs held",
            "count",
            {_NAME: f"team:gpus_held:sum{_TEAM}"},
            "GPUs that running pods of a team hold. What the scheduler guarantees to it is in no metric that is "
            "collected: `podwright quotas ENV` prints it.",
            width=8,
        ),
        Panel(
            "lines",
            "Use of what is held",
            "fraction",
            {_NAME: _of_namespaces("namespace:gpu_utilization:avg", running)},
            "How much of the time the GPUs that a team holds do anything; the dashed line is the environment's target.",
            {targets.gpu_utilization_percent / 100: "orange"},
            width=8,
            most=1,
        ),
        Panel(
            "bars",
            "GPU hours held and idle",
            "GPU hours",
            {_NAME: _of_namespaces("namespace:gpu_idle_hours:sum1d", running)},
            "GPU-hours of the last day that a team held and did nothing with.",
            width=8,
            may_be_empty=True,
        ),
        Panel("stacked", "Pods that run", "count", {_NAME: f"{running}{_TEAM}"}, "Pods of a team that run.", width=8),
        Panel(
            "stacked",
            "Pods that wait",
            "count",
            {_NAME: f"team:pods_waiting:sum{_TEAM} > 0"},
            "Pods of a team that wait for a place, or for their image.",
            width=8,
            may_be_empty=True,
        ),
        Panel(
            "lines",
            "Longest wait",
            "seconds",
            {_NAME: f"team:waiting_seconds:max{_TEAM} > 0"},
            "How long the pod of a team has waited that waits longest; the dashed line is the environment's target.",
            {targets.queue_wait_minutes * 60: "orange"},
            width=8,
            may_be_empty=True,
        ),
    )


def _hours() -> tuple[Panel, ...]:
    """GPU hours by team, within the guarantee and beyond it."""
    return (
        Panel(
            "bars",
            "Within the guarantee",
            "GPU hours",
            {_NAME: _sum("team:in_quota_hours:sum1d")},
            "Accelerator-hours that a team held of its guarantee.",
            width=6,
        ),
        Panel(
            "bars",
            "Over the guarantee",
            "GPU hours",
            {_NAME: _sum("team:over_quota_hours:sum1d")},
            "Accelerator-hours that a team had borrowed.",
            width=6,
        ),
        Panel(
            "bars",
            "Guaranteed",
            "GPU hours",
            {_NAME: _sum("team:quota_hours:sum1d")},
            "Accelerator-hours that were a team's to take, taken or not.",
            width=6,
        ),
        Panel(
            "bars",
            "Held and idle",
            "GPU hours",
            {_NAME: _of_namespaces("namespace:gpu_idle_hours:sum1d")},
            "GPU-hours that a team held and did nothing with: money that nobody had anything of.",
            width=6,
            may_be_empty=True,
        ),
    )
