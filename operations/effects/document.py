"""A change set as one document: what changes, what that does, what it needs, how long it takes and what it costs."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from ...config.settings.environment import Environment
from ...planning.cost.plan_prices import hours_by_group, paid_by_group
from ...planning.delivery.effects import Effect, change_facts, stateful
from ..aws.account import Account
from .approval import Need, answered, buys, entry, needs
from .changes import ResourceChange, Row, changes, short
from .compare import canonical
from .cost import Costs, costs
from .counts import CLUSTER, CountDecrease, falls, live_groups
from .permissions import permissions, text
from .templates import Pair, deployed, pairs, synthesized

SCHEMA: Final = "podwright.diff/1"
_DIGEST_LENGTH: Final = 32
_TIMED: Final = (Effect.ADDS_NODES, Effect.ROLLS_NODES, Effect.REMOVES_NODES, Effect.REPLACES, Effect.UNKNOWN)


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """Everything that a deployment would do."""

    environment: str
    account: str
    region: str
    changes: list[ResourceChange]
    falls: list[CountDecrease]
    costs: Costs
    strays: list[str]
    """Stacks that are deployed and no longer wanted; a deployment leaves them alone."""
    first: bool
    """Whether nothing is deployed yet."""
    approvals: list[Need]

    @property
    def digest(self) -> str:
        """Names this change set. The same change has the same digest, whenever and wherever it is looked at."""
        return digest_of(self.environment, self.account, self.region, self.changes, self.falls)

    @property
    def given(self) -> bool:
        """Whether it has all approvals that it needs."""
        return all(need.approved for need in self.approvals)


def digest_of(
    environment: str,
    account: str,
    region: str,
    resource_changes: Sequence[ResourceChange],
    lower: Sequence[CountDecrease],
) -> str:
    """The digest of a change set: of every changed value, and of the nodes that groups lose.

    Times, names of files and the order of things are not in it. The code of functions is: its asset's key is a value.
    """
    rows = sorted(
        canonical([change.stack, change.logical_id, change.type, change.action, change.kept, _values(change)])
        for change in resource_changes
    )
    nodes = sorted([decrease.group, decrease.before, decrease.after] for decrease in lower)
    body = canonical([environment, account, region, rows, nodes])
    return hashlib.sha256(body.encode()).hexdigest()[:_DIGEST_LENGTH]


def _values(change: ResourceChange) -> list[Any]:
    if change.action == "create":
        return [canonical(change.new)]
    return sorted(canonical([row.property, row.before, row.after]) for row in change.rows)


def change_set(
    environment: Environment,
    account: Account,
    project: Path,
    assembly: Path,
    allowed: Collection[str] = (),
    leaving: Mapping[str, int] | None = None,
) -> ChangeSet:
    """Compare what a synthesis wrote into `assembly` with what is deployed.

    `leaving` are the nodes of groups, in number, that go before the deployment and so are none that it takes away.
    """
    old = deployed(account, environment.name, project)
    return compared(environment, account, pairs(old, synthesized(assembly, environment.name)), allowed, leaving)


def compared(
    environment: Environment,
    account: Account,
    both: list[Pair],
    allowed: Collection[str] = (),
    leaving: Mapping[str, int] | None = None,
) -> ChangeSet:
    """The change set between two sides. AWS is asked for the nodes that run if the cluster is touched."""
    resource_changes = changes(both, environment.name)
    touched = any(change.type == CLUSTER and change.action in ("update", "replace") for change in resource_changes)
    live = live_groups(account, environment.cluster.name) if touched else {}
    for name, count in (leaving or {}).items():
        if name in live:
            live[name] = replace(live[name], target=live[name].target - count)
    lower = falls(resource_changes, live)
    digest = digest_of(environment.name, account.id, account.region, resource_changes, lower)
    desired = [change.new["Plan"] for change in resource_changes if buys(change)]
    upfront = sum(environment.training_plans[name].max_upfront_usd or 0 for name in desired)
    return ChangeSet(
        environment.name,
        account.id,
        account.region,
        resource_changes,
        lower,
        costs(
            both,
            environment.region,
            {**environment.own_prices, **paid_by_group(environment)},
            upfront,
            hours_by_group(environment),
        ),
        [pair.name for pair in both if pair.new is None and "/" not in pair.name],
        not any(pair.old is not None for pair in both),
        answered(needs(resource_changes, lower), digest, environment.approved_changes, allowed),
    )


def document(result: ChangeSet) -> dict[str, Any]:
    """The change set as plain data, in the form that `--json` prints."""
    stacks: dict[str, list[dict[str, Any]]] = {}
    for change in result.changes:
        stacks.setdefault(change.stack, []).append(_plain(change))
    return {
        "schema": SCHEMA,
        "environment": result.environment,
        "account": result.account,
        "region": result.region,
        "digest": result.digest,
        "first_deployment": result.first,
        "approval": {
            "needed": bool(result.approvals),
            "given": result.given,
            "refused": any(need.refused and not need.approved for need in result.approvals),
            "reasons": [asdict(need) | {"refused": need.refused} for need in result.approvals],
            "entry": entry(result.approvals, result.digest) if not result.given else None,
        },
        "stacks": [{"name": name, "changes": changes} for name, changes in stacks.items()],
        "left_alone": result.strays,
        "permissions": permissions(result.changes),
        "nodes_restarted": nodes_restarted(result),
        "data_at_risk": data_at_risk(result),
        "duration": duration(result),
        "cost": asdict(result.costs) | {"change": result.costs.after - result.costs.before, "currency": "USD a month"},
    }


def _plain(change: ResourceChange) -> dict[str, Any]:
    """A change as plain data; `property` is the first row that has the effect of the whole, None where none does."""
    worst_row = next((row for row in change.rows if row.effect is change.effect), None)
    return {
        "logical_id": change.logical_id,
        "name": change.name,
        "type": change.type,
        "path": change.path,
        "action": change.action,
        "property": worst_row.property if worst_row else None,
        "effect": change.effect,
        "stateful": change.stateful,
        "kept": change.kept,
        "what": change.known.what if change.known else "",
        "rows": [_plain_row(row) for row in change.rows],
    }


def _plain_row(row: Row) -> dict[str, Any]:
    return {
        "property": row.property,
        "change": row.change,
        "before": row.before if isinstance(row.before, str | int | float | None) else text(row.before),
        "after": row.after if isinstance(row.after, str | int | float | None) else text(row.after),
        "effect": row.effect,
        "what": row.known.what,
        "minutes": row.known.minutes,
        "follows": row.follows or None,
        "certain": row.certain,
        "sources": [str(source) for source in row.known.sources],
    }


def nodes_restarted(result: ChangeSet) -> list[dict[str, Any]]:
    """The nodes that are renewed or go, by group."""
    rows = []
    for change in (change for change in result.changes if change.type == CLUSTER):
        if change.action in ("replace", "delete"):
            words = "the cluster is replaced" if change.action == "replace" else "the cluster is deleted"
            rows += [
                {"group": group["InstanceGroupName"], "nodes": group["InstanceCount"], "what": words}
                for group in (*change.old.get("InstanceGroups", ()), *change.old.get("RestrictedInstanceGroups", ()))
            ]
            continue
        counts = {group["InstanceGroupName"]: group["InstanceCount"] for group in change.new.get("InstanceGroups", ())}
        rows += [
            {"group": row.group, "nodes": counts.get(row.group), "what": row.known.what}
            for row in change.rows
            if row.effect is Effect.ROLLS_NODES and row.group
        ]
        rows += [
            {"group": decrease.group, "nodes": decrease.before - decrease.after, "what": "goes"}
            for decrease in result.falls
        ]
    return rows


def data_at_risk(result: ChangeSet) -> list[dict[str, Any]]:
    """What would be deleted, or left behind where nothing uses it."""
    rows = []
    for change in result.changes:
        held = stateful().get(change.type)
        if change.action in ("replace", "delete") and held:
            rows.append({"name": change.name, "type": change.type, "holds": held.holds, "kept": change.kept})
        elif change.effect is Effect.DELETES_DATA:
            words = next((row.known.what for row in change.rows if row.effect is Effect.DELETES_DATA), None)
            words = words or (change.known.what if change.known else "")
            rows.append({"name": change.name, "type": change.type, "holds": words, "kept": False})
    return rows


def duration(result: ChangeSet) -> dict[str, Any]:
    """Minutes from and to: within a stack the longest counts, and stacks come one after the other.

    Only what the effect table times is in it; what takes time that nobody published is named.
    """
    low = high = 0
    unknown: list[str] = []
    for stack in dict.fromkeys(change.stack.partition("/")[0] for change in result.changes):
        spans = []
        for change in (change for change in result.changes if change.stack.partition("/")[0] == stack):
            anew = change_facts(change.type, "", "create") if change.action == "replace" else None
            parts = list(filter(None, (change.known, anew, *(row.known for row in change.rows))))
            spans += [item.minutes for item in parts if item.minutes]
            open_ended = any(item.effect in _TIMED and not item.minutes for item in parts)
            if open_ended and change.stateful and not (anew and anew.minutes):
                unknown.append(change.name)
        low, high = (
            low + max((span[0] for span in spans), default=0),
            high + max((span[1] for span in spans), default=0),
        )
    return {"minutes": [low, high], "unknown": unknown}


def without_environment(result: ChangeSet, stack: str) -> str:
    """A stack's name as people of one environment know it."""
    return short(stack, result.environment)
