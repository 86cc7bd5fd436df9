"""Teams: what each is guaranteed, what it takes, and what it makes of it."""

from ....config.settings.observability import Targets
from .panel import Choice, Dashboard, Panel, Row

_TEAM = '{$cluster, team=~"$team"}'
_NAME = "{{team}}"


def define(targets: Targets) -> Dashboard:
    """The dashboard."""
    return Dashboard(
        name="teams",
        title="Teams",
        says="What each team is guaranteed, what it takes, and what it makes of it.",
        needs="team:quota:sum",
        rows=(
            Row("Allocation against utilization", _two_sides(targets)),
            Row("Borrowed and lent", _exchange()),
            Row("Waiting and preemption", _waiting(targets)),
            Row("Hours of the last day", _hours()),
        ),
        choices=(Choice("team", "team", "team:quota:sum"),),
        hours=24,
    )


def _sum(recording: str) -> str:
    """Over flavors and kinds of accelerators."""
    return f"sum by (team) ({recording}{_TEAM})"


def _of_namespaces(recording: str) -> str:
    """What is recorded by namespace, by team: with task governance its namespace is hyperpod-ns-<team>."""
    named = f'label_replace({recording}{{$cluster}}, "team", "$1", "namespace", "(?:hyperpod-ns-)?(.+)")'
    return f"sum by (team) ({named} and on (cluster_name, team) sum by (cluster_name, team) (team:quota:sum{_TEAM}))"


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
            "Jobs that lost their place within the hour",
            "count",
            {"{{team}} {{reason}}": f"team_reason:evictions:increase1h{_TEAM} > 0"},
            "Preempted: a higher priority, or the owner of what was borrowed, took it. PodsReadyTimeout: the pods did "
            "not come up in time.",
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
