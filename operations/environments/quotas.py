"""What each team is guaranteed, lends and may borrow: as plain data, and as lines for people."""

from collections.abc import Iterator
from typing import Any, Final

from ...config.settings.environment import Environment
from ...planning.quota.amounts import CPU, EFA, GPU, MEMORY, NEURON
from ...planning.quota.policy import QuotaPolicy, Share, TeamPolicy
from ..output.columns import columns

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
        "KAI lends whatever is idle, that of dont_lend too, and counts neither EFA interfaces nor Neuron devices: "
        "those numbers are what goes with the GPUs.",
    ),
    "yunikorn": (
        "YuniKorn lends whatever is idle, that of dont_lend too. It has no weights, and stops no work for other work "
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
            {"flavor": flavor, "resource": resource, "unit": _unit(resource)[0], "amount": _number(resource, amount)}
            for flavor, amounts in policy.unallocated.items()
            for resource, amount in amounts.items()
            if amount and (engine or resource in _OF_SLURM)
        ],
        "notes": list(_NOTES.get(engine, ())) if any(team.shares for team in teams) else [],
    }


def _team(team: TeamPolicy, policy: QuotaPolicy, engine: str | None) -> dict[str, Any]:
    """A team with its quotas by flavor and resource; of Slurm's those alone that it adds up."""
    return {
        "team": team.name,
        "department": team.department,
        "weight": team.weight,
        "share": team.share,
        "preempt": team.preempt,
        "quotas": [
            {"flavor": flavor, "resource": resource, "unit": _unit(resource)[0]}
            | _amounts(resource, share, policy.most(team.name, flavor, resource))
            for flavor, shares in team.shares.items()
            for resource, share in shares.items()
            if engine or resource in _OF_SLURM
        ],
    }


def lines(result: dict[str, Any]) -> list[str]:
    """The report for people."""
    if not any(team["quotas"] for team in result["teams"]):
        return [f"{result['environment']} has no teams that share a cluster"]
    order = _IDLE.get(result["engine"]) or ("by weight" if result["fair_share"] else "to who asks first")
    rows = [("team", "of", "resource", "guaranteed", "lends", "borrows", "at most"), *_rows(result)]
    return [
        f"{result['environment']}: quotas are kept by {_ENGINES[result['engine']]}; what is idle goes {order}",
        *_priorities(result["priorities"]),
        "",
        *columns(rows, right=(3, 4, 5, 6)),
        "",
        *_teams(result["teams"], result["engine"]),
        "",
        "at most: while no other team uses anything.",
        *(["*: filled in by the instance's ratio; the file does not say it."] if _filled(result) else []),
        *result["notes"],
    ]


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


def _teams(teams: list[dict[str, Any]], engine: str | None) -> list[str]:
    words = {"lower_priority": "its own lower priorities", "never": "nothing of its own"}
    if engine == "yunikorn":
        words["lower_priority"] = words["never"]
    rows = [("team", "department", "share", "weight", "may stop")]
    rows += [
        (team["team"], team["department"] or "", team["share"], str(team["weight"]), words[team["preempt"]])
        for team in teams
    ]
    return columns(rows, right=(3,))


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


def _unit(resource: str) -> tuple[str, int]:
    return _UNITS.get(resource) or (_NAMES.get(resource, resource.rpartition("/")[2]), 1)


def _number(resource: str, amount: int) -> int | float:
    unit = _unit(resource)[1]
    return amount // unit if amount % unit == 0 else amount / unit
