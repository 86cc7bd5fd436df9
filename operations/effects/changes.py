"""The changes of a deployment: every resource that is touched, what of it, and what that does.

A change spreads: what refers to a replaced resource gets another value, and may be replaced by that in turn, in its own
stack and in those that import it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from ...planning.delivery.effects import (
    Change,
    ChangeFacts,
    Effect,
    change_facts,
    lasting_name,
    replacing,
    stateful,
    worst,
)
from ..kubernetes.applied_objects import APPLIED, objects_by_name
from .compare import MANIFEST, differences, same
from .references import Exports, Target, exports, references
from .templates import NESTED, Pair, resources

Action = Literal["create", "delete", "update", "replace"]
# Neither holds anything: the CDK's own version, and a handle that only has a name.
IGNORED: Final = ("AWS::CDK::Metadata", "AWS::CloudFormation::WaitConditionHandle")
_KEPT: Final = ("Retain", "RetainExceptOnCreate", "Snapshot")
_POLICIES: Final = ("DeletionPolicy", "UpdateReplacePolicy")
_LATER: Final = "known after the deployment"


@dataclass(frozen=True, slots=True)
class Row:
    """One property that changes, and what that does."""

    property: str
    pattern: str
    change: Change
    before: Any
    after: Any
    known: ChangeFacts
    follows: str = ""
    """The resource whose change this follows from; empty where the template itself differs."""
    certain: bool = True
    """Whether it is sure that the value changes at all."""

    @property
    def effect(self) -> Effect:
        """What it does."""
        return self.known.effect

    @property
    def group(self) -> str | None:
        """The instance group that it is about."""
        head, _, rest = self.property.partition("[")
        return rest.partition("]")[0] if head in ("InstanceGroups", "RestrictedInstanceGroups") else None


@dataclass(slots=True)
class ResourceChange:
    """One resource that is touched."""

    environment: str
    stack: str
    logical_id: str
    type: str
    path: str
    """Of the construct, as the CDK knows it."""
    action: Action
    rows: list[Row] = field(default_factory=list)
    known: ChangeFacts | None = None
    """What making or deleting it does; None for an update."""
    kept: bool = False
    """Whether what a deletion or a replacement leaves behind survives it."""
    old: Mapping[str, Any] = field(default_factory=dict)
    """Its properties before."""
    new: Mapping[str, Any] = field(default_factory=dict)
    """Its properties afterwards."""

    @property
    def name(self) -> str:
        """What approvals call it: stack and logical id, without the environment."""
        return f"{short(self.stack, self.environment)}/{self.logical_id}"

    @property
    def effect(self) -> Effect:
        """The worst that it does."""
        if self.action == "delete" and self.kept:
            return Effect.IN_PLACE
        whole = [self.known.effect] if self.known else []
        return worst([*whole, *(row.effect for row in self.rows)])

    @property
    def stateful(self) -> bool:
        """Whether it holds data, nodes or addresses."""
        return self.type in stateful()


def changes(pairs: Sequence[Pair], environment: str) -> list[ResourceChange]:
    """Every change of a deployment of that environment."""
    matches = [change for pair in pairs if pair.new is not None for change in _of_stack(pair, environment)]
    _spread(matches, pairs, environment)
    return matches


def short(stack: str, environment: str) -> str:
    """A stack's name without the environment's."""
    return stack.removeprefix(f"{environment}-")


def _of_stack(pair: Pair, environment: str) -> Iterator[ResourceChange]:
    old, new = dict(resources(pair.old)), dict(resources(pair.new))
    for logical_id in [*new, *(key for key in old if key not in new)]:
        was, now = old.get(logical_id), new.get(logical_id)
        change = _change(environment, pair.name, logical_id, was, now)
        if change is not None and change.type not in IGNORED:
            yield change


def _change(environment: str, stack: str, logical_id: str, was: Any, now: Any) -> ResourceChange | None:
    """What happens to a resource, which is None on the side that lacks it; None where nothing does."""
    one = now or was
    kind, path = one["Type"], one.get("Metadata", {}).get("aws:cdk:path", "")
    made = ResourceChange(environment, stack, logical_id, kind, path, "update")
    made.old, made.new = (was or {}).get("Properties", {}), (now or {}).get("Properties", {})
    # A resource of another logical id is another resource for CloudFormation, even with the same properties.
    if was is None or now is None:
        made.action = "create" if was is None else "delete"
        made.known = change_facts(kind, "", made.action)
        made.kept = was is not None and was.get("DeletionPolicy") in _KEPT
        return made
    if was["Type"] != now["Type"]:
        refused = ChangeFacts(Effect.REFUSED, what="CloudFormation does not change the type of a resource")
        made.rows.append(Row("Type", "Type", "modify", was["Type"], now["Type"], refused))
        return made
    made.rows += [
        _row(kind, item.path, item.pattern, item.change, item.before, item.after)
        for item in differences(_read(was), _read(now))
        # The templates that it holds are compared themselves; their URL is a digest of them.
        if not (kind == NESTED and item.pattern.startswith("TemplateURL"))
    ]
    made.rows += [
        Row(
            name,
            name,
            "modify",
            was.get(name),
            now.get(name),
            ChangeFacts(Effect.IN_PLACE, what=_policy_words(name, now)),
        )
        # Without a policy CloudFormation deletes.
        for name in _POLICIES
        if was.get(name, "Delete") != now.get(name, "Delete")
    ]
    if not made.rows:
        return None
    _settle(made, now)
    return made


def _read(resource: Mapping[str, Any]) -> Mapping[str, Any]:
    """The properties of a resource, those of Kubernetes with their objects instead of one text."""
    properties = resource.get("Properties", {})
    if resource["Type"] != APPLIED or MANIFEST not in properties:
        return properties
    return {**properties, MANIFEST: objects_by_name(properties[MANIFEST])}


def _policy_words(name: str, now: Mapping[str, Any]) -> str:
    what = "its stack is deleted" if name == "DeletionPolicy" else "it is replaced"
    return f"from now on it {'stays' if now.get(name) in _KEPT else 'goes'} when {what}"


def _settle(change: ResourceChange, now: Mapping[str, Any]) -> None:
    """Make an update a replacement where one of its rows says so."""
    if change.action == "update" and any(row.effect is Effect.REPLACES for row in change.rows):
        change.action = "replace"
        # The policy of the new template: CloudFormation applies it when it cleans up after the update.
        change.kept = now.get("UpdateReplacePolicy") in _KEPT
        name = lasting_name(change.type)
        # A name is unique in an account, and the new resource is made before the old one goes.
        if name and name in change.new and same(change.old.get(name), change.new[name]):
            words = f"CloudFormation does not replace a resource that keeps its {name}: rename it as well"
            retained = change.new[name]
            change.rows.append(Row(name, name, "modify", retained, retained, ChangeFacts(Effect.REFUSED, what=words)))


def _row(kind: str, path: str, pattern: str, change: Change, before: Any, after: Any) -> Row:
    replaces = replacing(kind, pattern)
    if replaces:
        words = "CloudFormation's schema: this property is set at creation"
        if replaces == "sometimes":
            words = "CloudFormation's schema: a change may replace the resource"
        return Row(path, pattern, change, before, after, ChangeFacts(Effect.REPLACES, what=words))
    return Row(path, pattern, change, before, after, change_facts(kind, pattern, change))


def _spread(resource_changes: list[ResourceChange], pairs: Sequence[Pair], environment: str) -> None:
    """Add what follows from replacements and from custom resources that run again."""
    specified = exports(pairs)
    refer = [
        (pair, logical_id, item, references(_read(item), pair.name, specified))
        for pair in pairs
        if pair.new is not None
        for logical_id, item in resources(pair.new)
        if item["Type"] not in IGNORED
    ]
    # Until nothing is added: what is replaced now may be what others refer to.
    while True:
        by_id = {(change.stack, change.logical_id): change for change in resource_changes}
        moving = {key: change for key, change in by_id.items() if change.action == "replace" or _runs_again(change)}
        before = len(resource_changes), sum(len(change.rows) for change in resource_changes)
        for pair, logical_id, item, targets in refer:
            # A resource that is new itself gets the new value from the beginning.
            if pair.old is None or logical_id not in pair.old.get("Resources", {}):
                continue
            hits = [target for target in targets if _moves(moving.get((target.stack, target.logical_id)), target)]
            if hits:
                _follow(environment, resource_changes, by_id, pair, logical_id, item, hits, moving)
        if before == (len(resource_changes), sum(len(change.rows) for change in resource_changes)):
            break
    _refuse_exports(resource_changes, pairs, specified, environment)


def _runs_again(change: ResourceChange) -> bool:
    """Whether a resource may answer with other attributes although it stays the same resource."""
    # A nested stack may have other outputs, and the answer of a custom resource other attributes.
    return change.action == "update" and (change.type.startswith("Custom::") or change.type == NESTED)


def _moves(change: ResourceChange | None, target: Target) -> bool:
    # Ref of a custom resource or a nested stack stays, for it is the same resource; attributes may change.
    return change is not None and (change.action == "replace" or target.attribute is not None)


def _follow(
    environment: str,
    resource_changes: list[ResourceChange],
    by_id: dict[tuple[str, str], ResourceChange],
    pair: Pair,
    logical_id: str,
    item: Mapping[str, Any],
    hits: Sequence[Target],
    moving: Mapping[tuple[str, str], ResourceChange],
) -> None:
    """Add rows to a resource that refers to replaced ones; each is as certain as the replacement that it follows."""
    change = by_id.get((pair.name, logical_id))
    if change is not None and change.action in ("create", "delete"):
        return
    if change is None:
        path = item.get("Metadata", {}).get("aws:cdk:path", "")
        was = (pair.old or {}).get("Resources", {})[logical_id].get("Properties", {})
        change = ResourceChange(environment, pair.name, logical_id, item["Type"], path, "update")
        change.old, change.new = was, item.get("Properties", {})
    known_paths = {row.property for row in change.rows}
    for target in hits:
        if target.path in known_paths:
            continue
        cause = moving[target.stack, target.logical_id]
        row = _row(item["Type"], target.path, target.pattern, "modify", "as it is", _LATER)
        # What follows from a replacement that only may happen is no surer than that one.
        certain = any(other.certain and other.effect is Effect.REPLACES for other in cause.rows)
        change.rows.append(replace(row, follows=cause.name, certain=certain))
        known_paths.add(target.path)
    if change.rows and change not in resource_changes:
        resource_changes.append(change)
        by_id[pair.name, logical_id] = change
    _settle(change, item)


def _refuse_exports(
    resource_changes: list[ResourceChange], pairs: Sequence[Pair], specified: Exports, environment: str
) -> None:
    """Mark what CloudFormation refuses: exports that change or go while a deployed stack imports them."""
    # The deployed templates say who imports: CloudFormation holds exports by what is deployed, not by what comes.
    by_id = {(change.stack, change.logical_id): change for change in resource_changes}
    before = exports(pairs, old=True)
    imported: dict[str, list[str]] = {}
    for pair in pairs:
        for target in references(dict(resources(pair.old)), pair.name, before):
            if target.export and short(pair.name, environment) not in imported.setdefault(target.export, []):
                imported[target.export].append(short(pair.name, environment))
    known_stacks = {pair.name for pair in pairs if pair.new is not None}
    for name, users in imported.items():
        target = before.get(name)
        if target is None or target.stack not in known_stacks:
            continue
        change = by_id.get((target.stack, target.logical_id))
        if name in specified and (change is None or change.action not in ("replace", "delete")):
            continue
        if change is None:
            change = ResourceChange(environment, target.stack, target.logical_id, "Export", "", "update")
            resource_changes.append(change)
        words = f"imported by {', '.join(users)}: CloudFormation refuses to change an export that is in use"
        output = f"Outputs.{name.rpartition(':')[2]}"
        change.rows.append(Row(output, "Outputs", "modify", name, None, ChangeFacts(Effect.REFUSED, what=words)))
