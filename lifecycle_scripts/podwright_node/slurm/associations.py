"""Teams in Slurm's accounting: an account and QOS for what is guaranteed, another for what is borrowed.

A team `research` with a quota gets

- the account `research`, whose GrpTRES is the quota, with a QOS for each priority class (`research_training`, …) that
  carries the class's priority, and the quota as the largest job, so that a larger one is refused when it is submitted.
  The quota itself is not a limit of the QOS: it would take the place of the account's, and each class have it whole;
- if it may borrow, the account `research_borrow` with a QOS of that name, below all priorities, with the limit on
  borrowing as GrpTRES;
- if it has a budget, the account `research_budget` above both, whose GrpTRESMins is the budget in GPU-minutes. A job
  starts only if its whole time limit still fits (`safe`), so none is ended because the budget is used.

Guaranteed QOS preempt every borrow QOS: the job that borrowed goes back into the queue. Within a team, a class preempts
the lower ones if the team says so and nodes are short; where it is the quota that is used up, Slurm preempts nothing,
and the higher class goes first when something ends. What a job asks for decides: `sbatch -A research`, `--qos
research_training`, `-A research_borrow`. Without a class a job gets the lowest: nobody goes first without saying so.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ..runner.applies import Only
from ..runner.failure import Failure
from ..runner.node import Node
from ..runner.retry import wait_until
from ..runner.steps import Step
from . import control

MARK = "podwright"
"""Description of the QOS and organization of the accounts that are ours. Others are left alone."""
BORROW = "borrow"
BASE_PRIORITY = 100
"""Guaranteed work of the lowest class still stands this far above borrowed work."""
BUDGETED = "gres/gpu"
NOTHING = "podwright_none"
"""A QOS that no account has: what a QOS preempts that has nothing else to preempt."""
# Weights are multiplied with factors between 0 and 1, and the sums compared.
WEIGHTS = {"QOS": 1_000_000, "Fairshare": 4_000, "Age": 900}
"""One point of a priority class is at least 1,000,000 / 200: the order is class, then fair share, then age."""
START_SECONDS = 120
ROOT = "root"
"""The account above all others."""
RESETS = {"month": "MONTHLY", "quarter": "QUARTERLY"}
"""When Slurm begins the use of all accounts anew, by the period of budgets. Its own weeks begin on Sunday."""


@dataclass(frozen=True)
class Qos:
    """A quality of service as sacctmgr shows it."""

    priority: int
    limits: str
    """Of all its jobs together."""
    largest: str
    """Limits of a single job."""
    preempts: frozenset[str]
    flags: str = "DenyOnLimit"
    mode: str = "requeue"


@dataclass(frozen=True)
class Account:
    """An account as sacctmgr shows it."""

    limits: str
    share: int
    qos: frozenset[str]
    default: str
    users: frozenset[str]
    parent: str = ROOT
    minutes: str = ""
    """Limits on what all its jobs use in a period, in minutes."""


def settings(node: Node, present: dict[str, str]) -> dict[str, str]:
    """What slurm.conf has to say so that teams count."""
    slurm = node.facts["slurm"]
    if not slurm["teams"]:
        return {}
    # AccountingStorageTRES replaces the list, so what the image tracks has to stay in it.
    tracked = [*filter(None, present.get("accountingstoragetres", "").split(","))]
    kinds = sorted(
        {kind for team in slurm["teams"] for kind in team["quota"] if kind.startswith("gres/")}
        | ({BUDGETED} if slurm["budget_period"] else set())
    )
    kinds = [kind for kind in kinds if kind not in tracked]
    return {
        # Without `limits` the quotas are only counted, and without `qos` a job may ask for the QOS of another account.
        # Without `safe` a job that runs is ended when minutes are used up.
        "AccountingStorageEnforce": "associations,limits,qos" + (",safe" if slurm["budget_period"] else ""),
        **({"AccountingStorageTRES": ",".join([*tracked, *kinds])} if tracked or kinds else {}),
        "PreemptType": "preempt/qos",
        "PreemptMode": "REQUEUE",
        "PriorityType": "priority/multifactor",
        "PriorityWeightQOS": str(WEIGHTS["QOS"]),
        "PriorityWeightFairshare": str(WEIGHTS["Fairshare"] if slurm["fair_share"] else 0),
        "PriorityWeightAge": str(WEIGHTS["Age"]),
        **_counting(slurm["budget_period"]),
    }


def _counting(period: str | None) -> dict[str, str]:
    """How use is counted: for budgets all of it, until their period ends; else as Slurm does, which forgets slowly."""
    if period is None:
        return {}
    # As scontrol prints it: zero, never.
    return {"PriorityDecayHalfLife": "00:00:00", "PriorityUsageResetPeriod": RESETS[period]}


def wanted(slurm: dict[str, Any]) -> tuple[dict[str, Qos], dict[str, Account]]:
    """QOS and accounts by name.

    Raises:
        Failure: a class is called as what a team borrows with.
    """
    # In the order of weights, as a class preempts those below it.
    classes = sorted(slurm["priorities"].items(), key=lambda item: (item[1], item[0])) or [("guaranteed", 0)]
    if BORROW in slurm["priorities"]:
        raise Failure(f"a priority class is called {BORROW}, as what teams borrow with", "call the class otherwise")
    # Zero is a limit too; only a team without `borrow` gets no account for it.
    borrowing = {f"{team['name']}_{BORROW}": team for team in slurm["teams"] if team["borrow"] is not None}
    qos = {name: Qos(0, _limits(team["borrow"]), "", frozenset()) for name, team in borrowing.items()}
    accounts = {
        name: Account("", team["weight"], frozenset([name]), name, frozenset(team["users"]))
        for name, team in borrowing.items()
    }
    for team in slurm["teams"]:
        quota = _limits(team["quota"])
        lower: list[str] = []
        for label, weight in classes if quota else ():
            # A QOS without anything to preempt gets one that no job has, for the list must not be empty (below).
            preempts = [*borrowing, *(lower if team["preempt"] == "lower_priority" else [])] or [NOTHING]
            qos[f"{team['name']}_{label}"] = Qos(BASE_PRIORITY + weight, "", quota, frozenset(preempts))
            lower.append(f"{team['name']}_{label}")
        if quota:
            users = frozenset(team["users"])
            accounts[team["name"]] = Account(quota, team["weight"], frozenset(lower), lower[0], users)
        if team["budget_minutes"] is not None:
            accounts |= _under_budget(team, accounts)
    return {**qos, **({NOTHING: Qos(0, "", "", frozenset())} if qos else {})}, accounts


def _under_budget(team: dict[str, Any], accounts: dict[str, Account]) -> dict[str, Account]:
    """The accounts of a team below one that has its budget."""
    name = f"{team['name']}_budget"
    own = {key: accounts[key] for key in (team["name"], f"{team['name']}_{BORROW}") if key in accounts}
    first = next(iter(own.values()))
    above = Account(
        "",
        # Beside teams without a budget it weighs as much as its accounts did.
        sum(account.share for account in own.values()),
        frozenset().union(*(account.qos for account in own.values())),
        first.default,
        frozenset(),
        minutes=_limits({BUDGETED: team["budget_minutes"]}),
    )
    return {name: above, **{key: dataclasses.replace(account, parent=name) for key, account in own.items()}}


def _limits(tres: dict[str, int]) -> str:
    return ",".join(f"{kind}={count}" for kind, count in sorted(tres.items()))


def changes(node: Node) -> list[tuple[str, ...]]:
    """Arguments of the sacctmgr calls that make Slurm's database say what is wanted, in their order."""
    qos, accounts = wanted(node.facts["slurm"])
    now_qos, now_accounts = _present_qos(node), _present_accounts(node)
    # Last, when nothing refers to them any more.
    left = [
        *_unused(node, "account", now_accounts.keys() - accounts.keys()),
        *_unused(node, "qos", now_qos.keys() - qos.keys()),
    ]
    return [*_qos_changes(now_qos, qos), *_account_changes(now_accounts, accounts), *left]


def _qos_changes(present: dict[str, Qos], wanted_qos: dict[str, Qos]) -> Iterator[tuple[str, ...]]:
    """The commands of sacctmgr that make the QOS what the facts say."""
    # What is preempted comes before what preempts it.
    for name, entry in sorted(wanted_qos.items(), key=lambda item: (item[1].priority, item[0])):
        now = present.get(name, Qos(-1, "", "", frozenset(), "", ""))
        # An impossible entry, so that everything of a new QOS counts as a difference.
        settings = (
            f"Priority={entry.priority}",
            f"PreemptMode={entry.mode}",
            f"Flags={entry.flags}",
            # Never an empty list: Slurm 22.05 then sees loops where none are.
            *([f"Preempt={','.join(sorted(entry.preempts))}"] if entry.preempts != now.preempts else []),
            *_tres("GrpTRES", now.limits, entry.limits),
            *_tres("MaxTRES", now.largest, entry.largest),
        )
        if name not in present:
            yield "add", "qos", name, f"Description={MARK}", *settings
        elif now != entry:
            yield "modify", "qos", name, "set", *settings


def _account_changes(present: dict[str, Account], wanted_accounts: dict[str, Account]) -> Iterator[tuple[str, ...]]:
    """The commands of sacctmgr that make accounts, their limits and members what the facts say."""
    joins: dict[str, list[str]] = {}
    # Those above others first.
    for name, entry in sorted(wanted_accounts.items(), key=lambda item: (item[1].parent != ROOT, item[0])):
        now = present.get(name, Account("", 0, frozenset(), "", frozenset()))
        settings = (
            f"QosLevel={','.join(sorted(entry.qos))}",
            f"DefaultQOS={entry.default}",
            f"Fairshare={entry.share}",
            *_tres("GrpTRES", now.limits, entry.limits),
            *_tres("GrpTRESMins", now.minutes, entry.minutes),
            *([f"Parent={entry.parent}"] if entry.parent != now.parent else []),
        )
        if name not in present:
            yield "add", "account", name, f"Description={MARK}", f"Organization={MARK}", *settings
        # Members are associations of their own, which `modify account` does not change.
        elif dataclasses.replace(now, users=entry.users) != entry:
            yield "modify", "account", name, "set", *settings
        for user in entry.users - now.users:
            joins.setdefault(user, []).append(name)
        for user in sorted(now.users - entry.users):
            yield "remove", "user", user, "where", f"Account={name}"
    for user, names in sorted(joins.items()):
        yield "add", "user", user, f"Account={','.join(names)}"


def _unused(node: Node, kind: str, names: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Removals of what is ours and no longer wanted, once no job uses it: Slurm keeps what has jobs."""
    for name in sorted(names):
        if not control.command(node, "squeue", "--noheader", f"--{kind}={name}").strip():
            yield "remove", kind, name


def _tres(limit: str, old: str, new: str) -> tuple[str, ...]:
    """A limit as an argument; -1 lifts what it had for a kind."""
    kinds = [entry.partition("=")[0] for entry in old.split(",") if entry]
    retained = [entry.partition("=")[0] for entry in new.split(",") if entry]
    lifted = [f"{kind}=-1" for kind in kinds if kind not in retained]
    text = ",".join([*filter(None, [new]), *lifted])
    return (f"{limit}={text}",) if text else ()


def _present_qos(node: Node) -> dict[str, Qos]:
    rows = _show(node, "qos", "Name,Description,Priority,GrpTRES,MaxTRES,Preempt,Flags,PreemptMode")
    return {
        name: Qos(int(priority or 0), _sorted(limits), _sorted(largest), _set(preempts), flags, mode)
        for name, description, priority, limits, largest, preempts, flags, mode in rows
        if description == MARK
    }


def _present_accounts(node: Node) -> dict[str, Account]:
    """The accounts of ours in the database. What others made there is left alone."""
    columns = "Account,Organization,User,GrpTRES,Share,QOS,DefaultQOS,ParentName,GrpTRESMins"
    # Another cluster may share the database.
    cluster = control.running(node)["clustername"]
    users: dict[str, set[str]] = {}
    accounts: dict[str, Account] = {}
    for name, owner, user, limits, share, qos, default, parent, minutes in _show(
        node, "account", columns, "withassoc", "where", f"Cluster={cluster}"
    ):
        if owner == MARK and user:
            users.setdefault(name, set()).add(user)
        elif owner == MARK:
            accounts[name] = Account(
                _sorted(limits),
                int(share) if share.isdigit() else 0,
                _set(qos),
                default,
                frozenset(),
                parent,
                _sorted(minutes),
            )
    return {name: dataclasses.replace(entry, users=frozenset(users.get(name, ()))) for name, entry in accounts.items()}


def _show(node: Node, what: str, columns: str, *conditions: str) -> list[list[str]]:
    text = control.command(
        node, "sacctmgr", "--noheader", "--parsable2", "show", what, *conditions, f"format={columns}"
    )
    return [line.split("|") for line in text.splitlines() if line]


def _set(text: str) -> frozenset[str]:
    return frozenset(filter(None, text.split(",")))


def _sorted(text: str) -> str:
    return ",".join(sorted(filter(None, text.split(","))))


def are_there(node: Node) -> bool:
    """Whether Slurm's database says what is wanted."""
    return control.database_answers(control.controllers(node)[0][1]) and not changes(node)


def make(node: Node) -> None:
    """Change what differs, when slurmctld has told the database of this cluster."""
    wait_until(
        node,
        lambda: bool(_show(node, "cluster", "Cluster")),
        seconds=START_SECONDS,
        what="slurmctld is registered with slurmdbd",
        next_step="see `journalctl -u slurmctld -u slurmdbd`",
    )
    for arguments in changes(node):
        # --immediate: sacctmgr would ask whether to commit, and nobody answers.
        control.command(node, "sacctmgr", "--immediate", *arguments)


STEP = Step(
    "slurm-associations",
    applies_to=Only(orchestrator="slurm", roles=("controller",)),
    check=are_there,
    apply=make,
    needs=("slurm-daemons", "slurm-configuration"),
    attempts=3,
)
