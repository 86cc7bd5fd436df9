"""What keeps budgets in a cluster of engine kueue: LocalQueues that are held, and Workloads of a lower priority.

Whatever is changed is noted beside it, and only that is undone: a queue that somebody else has stopped stays so.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from ...config.settings.environment import Environment
from ...planning.quota.budgets import BEFORE_BUDGET, BUDGET_ANNOTATION, Standing, noted
from ...planning.quota.team_names import team_namespace
from ..jobs.conditions import condition
from ..kubernetes.kubectl import Kubectl

_QUEUES: Final = "localqueues.kueue.x-k8s.io"
_WORKLOADS: Final = "workloads.kueue.x-k8s.io"
_ENGINE: Final = "kueue"
Object = Mapping[str, Any]


class Patch(NamedTuple):
    """A change of an object."""

    kind: str
    namespace: str
    name: str
    body: dict[str, Any]
    words: str
    """What it does; empty for a note alone."""


def keep_budgets(kubectl: Kubectl, environment: Environment, standings: Sequence[Standing]) -> list[str]:
    """Hold, demote, release and restore what budgets say. Returns what was changed, in words. Raises Refused."""
    names = {team_namespace(_ENGINE, team): team for team in environment.governance.teams}
    items = kubectl.items(f"{_QUEUES},{_WORKLOADS}", "--all-namespaces")
    notes = [note for item in items if (note := noted(item))]
    by_team = {standing.team: _never_less(standing, notes) for standing in standings}
    patches = list(patched(items, names, by_team, environment.governance.priorities))
    for patch in patches:
        where = (patch.name, f"--namespace={patch.namespace}", "--type=merge", f"--patch={json.dumps(patch.body)}")
        kubectl.run("patch", patch.kind, *where)
    return [patch.words for patch in patches if patch.words]


def patched(
    items: Sequence[Object], teams: Mapping[str, str], standings: Mapping[str, Standing], priorities: Mapping[str, int]
) -> Iterator[Patch]:
    """What is to be changed.

    Args:
        items: All LocalQueues and Workloads.
        teams: Teams by their namespaces.
        standings: Budgets by team.
        priorities: Values of priority classes.
    """
    for item in items:
        team = teams.get(item["metadata"].get("namespace", ""))
        if team is None:
            continue
        standing = standings.get(team)
        if item["kind"] == "LocalQueue":
            yield from _queue(item, team, standing)
        elif not condition(item.get("status"), "Finished"):
            most = _most(standing, priorities)
            yield from _workload(item, team, most)


def _never_less(standing: Standing, notes: Sequence[Object]) -> Standing:
    """What is used never shrinks within a period: metrics that are lost for a time free nobody."""
    used = [
        note["used"]
        for note in notes
        if note["team"] == standing.team and datetime.fromisoformat(note["begin"]) == standing.period.start
    ]
    return standing._replace(used=max([standing.used, *used]))


def _most(standing: Standing | None, priorities: Mapping[str, int]) -> int | None:
    """The priority that work of a team has at most; None without such a limit."""
    if standing is None or not standing.is_reached or standing.budget.when_reached != "demote":
        return None
    return priorities[standing.budget.demote_to or ""]


def _queue(item: Object, team: str, standing: Standing | None) -> Iterator[Patch]:
    """Note the budget at a queue, and hold or release it."""
    note, stop = noted(item), item["spec"].get("stopPolicy") or "None"
    is_ours = bool(note.get("held")) and stop == "Hold"
    holds = standing is not None and standing.is_reached and standing.budget.when_reached == "hold"
    if standing is None and not note:
        return
    text = json.dumps(standing.document() | {"held": holds and (is_ours or stop == "None")}) if standing else None
    body: dict[str, Any] = {"metadata": {"annotations": {BUDGET_ANNOTATION: text}}}
    name, words = f"{item['metadata']['namespace']}/{item['metadata']['name']}", ""
    if standing and holds and stop == "None":
        body["spec"] = {"stopPolicy": "Hold"}
        words = f"held queue {name} until {standing.period.end:%Y-%m-%d}: the budget of {team} is reached"
    elif is_ours and not holds:
        body["spec"] = {"stopPolicy": "None"}
        words = f"released queue {name}: the budget of {team} has hours left"
    yield _patch(_QUEUES, item, body, words)


def _workload(item: Object, team: str, most: int | None) -> Iterator[Patch]:
    """Give a Workload its priority: that of the budget, or its own again."""
    priority = item["spec"].get("priority") or 0
    before = (item["metadata"].get("annotations") or {}).get(BEFORE_BUDGET)
    own = priority if before is None else int(before)
    target = own if most is None else min(own, most)
    text = str(own) if target != own else None
    if target == priority and text == before:
        return
    verb = "demoted" if target < own else "restored"
    body = {"metadata": {"annotations": {BEFORE_BUDGET: text}}, "spec": {"priority": target}}
    words = f"{verb} {item['metadata']['name']} of {team}: priority {target} instead of {priority}"
    yield _patch(_WORKLOADS, item, body, words)


def _patch(kind: str, item: Object, body: dict[str, Any], words: str) -> Patch:
    return Patch(kind, item["metadata"]["namespace"], item["metadata"]["name"], body, words)
