"""What each team is guaranteed, lends and may borrow: as plain data, and as lines for people."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ...config.settings.environment import Environment
from ...planning.purchase.words import shown
from ...planning.quota.amounts import CPU, EFA, GPU, MEMORY, NEURON
from ...planning.quota.budgets import budgets
from ...planning.quota.policy import QuotaPolicy, Share, TeamPolicy
from ...planning.quota.queue_shares import Share as QueueShare
from ...planning.quota.queue_shares import queue_shares
from ..output.tables import Block, Table, new_table

_ENGINES: Final = {
    None: "Slurm",
    "hyperpod": "task governance (engine hyperpod)",
    "kueue": "Kueue (engine kueue)",
    "kai": "KAI (engine kai)",
    "yunikorn": "YuniKorn (engine yunikorn)",
}
_UNITS: Final = {CPU: ("vCPU", 1000), MEMORY: ("GiB", 1024)}
_NAMES: Final = {GPU: "GPU", NEURON: "Neuron device", EFA: "EFA"}
# Slurm's quotas are sums of these.
_OF_SLURM: Final = (CPU, GPU)
# Who gets what is idle where weights or the order of asking do not say it.
_IDLE: Final = {"yunikorn": "to the team that uses the least of its guarantee", None: "to who used less of its share"}
_NOTES: Final = {
    "hyperpod": (
        "As we read it: a limit of borrowing is a percentage of the team's own quota of a type. AWS publishes no "
        "formula for it, nor how it weighs teams against each other, rounds what it fills in, or counts a partition.",
    ),
    "kai": (
        "KAI lends all idle resources, also with dont_lend, and counts neither EFA interfaces nor Neuron devices: "
        "their numbers are derived from the GPUs.",
    ),
    "yunikorn": (
        "YuniKorn lends all idle resources, also with dont_lend. It has no weights, and stops no work for other work "
        "of the same team.",
    ),
    None: (
        "Slurm adds up a team's quota over all groups and limits what it borrows of the sum; all lend what is idle.",
    ),
}


def report(environment: Environment, policy: QuotaPolicy) -> dict[str, Any]:
    """Teams, their quotas and what is nobody's, as plain data; vCPU and memory in vCPUs and GiB."""
    engine, teams = environment.governance.engine, policy.teams.values()
    return {
        "environment": environment.name,
        "engine": engine,
        "fair_share": policy.fair_share,
        "priorities": policy.priorities,
        "teams": [_team(team, policy, engine) for team in teams],
        "unallocated": [
            {"flavor": flavor, "resource": resource, "unit": unit(resource)[0], "amount": _number(resource, amount)}
            for flavor, amounts in policy.unallocated.items()
            for resource, amount in amounts.items()
            if amount and (engine or resource in _OF_SLURM)
        ],
        "queues": queues(environment),
        "overrides": [
            {"override": name, "begin": shown(each.begin), "end": shown(each.end), "teams": sorted(each.teams)}
            for name, each in sorted(environment.governance.overrides.items(), key=lambda item: item[1].begin)
        ],
        "notes": [*(_NOTES.get(engine, ()) if any(team.shares for team in teams) else ()), *_budgets(environment)],
    }


def _budgets(environment: Environment) -> list[str]:
    """What Slurm does with budgets, which are limits there beside the quotas."""
    if environment.cluster.orchestrator != "slurm":
        return []
    return [
        f"{team} starts nothing whose time limit does not fit into what is left of its {budget.accelerator_hours:,g} "
        f"GPU-hours a {budget.period}."
        for team, budget in budgets(environment.governance.teams).items()
    ]


def _team(team: TeamPolicy, policy: QuotaPolicy, engine: str | None) -> dict[str, Any]:
    """A team with its quotas by flavor and resource; of Slurm's those alone that it adds up."""
    return {
        "team": team.name,
        "department": team.department,
        "weight": team.weight,
        "share": team.share,
        "preempt": team.preempt,
        "quotas": [
            {"flavor": flavor, "resource": resource, "unit": unit(resource)[0]}
            | _amounts(resource, share, policy.most(team.name, flavor, resource))
            for flavor, shares in team.shares.items()
            for resource, share in shares.items()
            if engine or resource in _OF_SLURM
        ],
    }


def lines(result: dict[str, Any]) -> list[Block]:
    """The report for people."""
    if not any(team["quotas"] for team in result["teams"]):
        return list(_queues(result)) or [f"{result['environment']} has no teams that share a cluster"]
    order = _IDLE.get(result["engine"]) or ("by weight" if result["fair_share"] else "to who asks first")
    names = ("team", "of", "resource", "guaranteed", "lends", "borrows", "at most")
    return [
        f"{result['environment']}: quotas are kept by {_ENGINES[result['engine']]}; what is idle goes {order}",
        *_priorities(result["priorities"]),
        "",
        new_table("", names, _rows(result), right=names[3:]),
        "",
        _teams(result["teams"], result["engine"]),
        "",
        "at most: while no other team uses anything.",
        *(["*: filled in by the instance's ratio; the file does not say it."] if _filled(result) else []),
        *result["notes"],
        *map(_override, result["overrides"]),
        *(["", *_queues(result)] if result["queues"] else []),
    ]


def _override(override: dict[str, Any]) -> str:
    """When a team has other quotas than these."""
    teams = ", ".join(override["teams"])
    return f"From {override['begin']} to {override['end']} {teams} have others (override {override['override']})."


def queues(environment: Environment) -> list[dict[str, Any]]:
    """The queues of training jobs with the shares that teams have of them, in instances."""
    teams, named = environment.governance.teams, environment.training_job_queues.items()
    return [
        {"queue": name, "capacity": dict(queue.capacity), "shares": _shares(queue_shares(queue, teams))}
        for name, queue in named
    ]


def _shares(shares: Mapping[str, QueueShare]) -> list[dict[str, Any]]:
    return [
        {
            "team": team,
            "capacity": share.capacity,
            "strategy": share.strategy,
            "borrow_limit_percent": share.borrow_limit,
            "preempts": share.preempts,
        }
        for team, share in shares.items()
    ]


def _queues(result: dict[str, Any]) -> Iterator[Block]:
    """A table of shares for each queue of training jobs."""
    for queue in result["queues"]:
        capacity = ", ".join(f"{count:,} {name}" for name, count in queue["capacity"].items())
        rows = []
        for share in queue["shares"]:
            limit, first = share["borrow_limit_percent"] or 0, share["team"]
            for name, count in share["capacity"].items():
                idle = share["strategy"].lower().replace("_", " ")
                stops = "its own lower priorities" if share["preempts"] else "nothing of its own"
                borrowed = f"{count * limit // 100:,}"
                rows.append((first, name, f"{count:,}", borrowed, idle if first else "", stops if first else ""))
                first = ""
        yield f"Queue {queue['queue']} of AWS Batch: {capacity}"
        names = ("team", "of", "guaranteed", "borrows", "idle capacity", "may stop")
        yield from ("", new_table("", names, rows, right=(2, 3)), "")


def _rows(result: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for team in result["teams"]:
        name = team["team"]
        for quota in team["quotas"]:
            borrows = "no limit" if quota["borrows"] is None else f"{quota['borrows']:,g}"
            mark = "*" if quota["filled"] else " "
            guaranteed, lends, most = (f"{quota[key]:,g}" for key in ("guaranteed", "lends", "at_most"))
            yield name, quota["flavor"], quota["unit"], f"{guaranteed}{mark}", lends, borrows, most
            name = ""
    for item in result["unallocated"]:
        yield "(no quota)", item["flavor"], item["unit"], "", f"{item['amount']:,g}", "", ""


def _priorities(priorities: dict[str, int]) -> list[str]:
    classes = ", ".join(f"{name} {weight}" for name, weight in priorities.items())
    return [f"Priorities, highest first: {classes}"] if classes else []


def _teams(teams: list[dict[str, Any]], engine: str | None) -> Table:
    words = {"lower_priority": "its own lower priorities", "never": "nothing of its own"}
    if engine == "yunikorn":
        words["lower_priority"] = words["never"]
    rows = (
        (team["team"], team["department"] or "", team["share"], str(team["weight"]), words[team["preempt"]])
        for team in teams
    )
    return new_table("", ("team", "department", "share", "weight", "may stop"), rows)


def _filled(result: dict[str, Any]) -> bool:
    return any(quota["filled"] for team in result["teams"] for quota in team["quotas"])


def _amounts(resource: str, share: Share, most: int) -> dict[str, Any]:
    return {
        "guaranteed": _number(resource, share.nominal),
        "lends": _number(resource, share.lendable),
        "borrows": None if share.borrowable is None else _number(resource, share.borrowable),
        "at_most": _number(resource, most),
        "filled": share.filled,
    }


def unit(resource: str) -> tuple[str, int]:
    """The word for a resource, and how many of Kubernetes' units one of it is."""
    return _UNITS.get(resource) or (_NAMES.get(resource, resource.rpartition("/")[2]), 1)


def _number(resource: str, amount: int) -> int | float:
    size = unit(resource)[1]
    return amount // size if amount % size == 0 else amount / size
