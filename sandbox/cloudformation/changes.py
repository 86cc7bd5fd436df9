"""What an update would change: the change list of a change set, and the early check of the new properties."""

import json
from dataclasses import dataclass, field
from typing import Any

from ..protocol.json_objects import JsonObject
from . import parameters, schemas
from .evaluate import KNOWN_AFTER_APPLY, Evaluator
from .graph import order
from .scope import DeployedScope, PlannedScope
from .stack import Resource, Stack, StackRequest
from .template import TemplateError
from .validation import Failure, validate_properties


@dataclass
class Plan:
    """The announced changes, what the early validation refuses, and whether anything at all would change."""

    changes: list[JsonObject] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    empty: bool = False


def plan(stack: Stack, request: StackRequest, deployed: DeployedScope) -> Plan:
    """Compare a stack with a request; raises TemplateError where the template itself is wrong."""
    scope = PlannedScope(request.template, stack.region, deployed)
    values = parameters.typed(request.template, request.parameters, deployed.ssm)
    evaluator = Evaluator(request.template, values, stack.pseudo(), scope)
    parameters.check_rules(evaluator)
    result, ordered = Plan(), order(evaluator)
    retyped = [
        name
        for name, item in request.template["Resources"].items()
        if name in stack.resources and stack.resources[name].resource_type != item["Type"]
    ]
    if retyped:
        raise TemplateError(
            "Update of resource type is not permitted. The new template modifies resource type of the following "
            f"resources: [{', '.join(retyped)}]"
        )
    for logical_id in ordered:
        definition = request.template["Resources"][logical_id]
        properties = schemas.with_stack_tags(
            definition["Type"], stack.region, request.tags, evaluator.resolve(definition.get("Properties", {}))
        )
        old = stack.resources.get(logical_id)
        # One without a physical id is the rest of a creation that failed.
        if old is None or not old.physical_id:
            result.changes.append(_change("Add", logical_id, definition, after=properties))
        else:
            change = _modification(old, definition, properties, stack.region)
            if change is None:
                continue
            # A replacement has another id and other attributes, which nobody knows before it is made.
            if change["ResourceChange"].get("Replacement") != "False":
                scope.unknown.add(logical_id)
            result.changes.append(change)
        result.failures += validate_properties(definition["Type"], properties, stack.region, logical_id)
    # In the order of their deletion: what was made last goes first.
    for logical_id, old in reversed(stack.resources.items()):
        if logical_id not in ordered:
            result.changes.append(_change("Remove", logical_id, old.definition, before=old))
    # Outputs and tags are no changes of resources, and an update that has only these is carried out.
    result.empty = (
        not result.changes
        and request.tags == stack.request.tags
        and (request.template.get("Outputs", {}) == stack.request.template.get("Outputs", {}))
    )
    return result


def _modification(old: Resource, definition: JsonObject, properties: JsonObject, region: str) -> JsonObject | None:
    """What an update would do to a resource, property by property; None where nothing differs."""
    replaced_by = schemas.changed_create_only(old.resource_type, region, old.properties, properties)
    details, scopes = list[JsonObject](), list[str]()
    for name in dict.fromkeys([*old.properties, *properties]):
        before, after = old.properties.get(name), properties.get(name)
        if before != after:
            always = any(path.split("/")[0] == name for path in replaced_by)
            unknown = KNOWN_AFTER_APPLY in json.dumps(after)
            changed = "Remove" if after is None else "Modify"
            # A value that is not known yet may turn out to be the one that is there.
            recreation = "Conditionally" if unknown else "Always"
            scopes.append("Properties")
            details.append(
                {
                    "Target": {
                        "Attribute": "Properties",
                        "Name": name,
                        "Path": f"/Properties/{name}",
                        "RequiresRecreation": recreation if always else "Never",
                        "AttributeChangeType": "Add" if before is None else changed,
                        **({} if before is None else {"BeforeValue": _text(before)}),
                        **({} if after is None else {"AfterValue": _text(after)}),
                    },
                    "Evaluation": "Dynamic" if unknown else "Static",
                    "ChangeSource": "ResourceReference" if unknown else "DirectModification",
                }
            )
    for key in ("Metadata", "UpdatePolicy", "CreationPolicy", "DeletionPolicy", "UpdateReplacePolicy"):
        if definition.get(key) != old.definition.get(key):
            scopes.append(key)
            details.append(
                {
                    "Target": {"Attribute": key, "RequiresRecreation": "Never"},
                    "Evaluation": "Static",
                    "ChangeSource": "DirectModification",
                }
            )
    if not details:
        return None
    recreations = {detail["Target"]["RequiresRecreation"] for detail in details}
    perhaps = "Conditional" if "Conditionally" in recreations else "False"
    replacement = "True" if "Always" in recreations else perhaps
    change = _change("Modify", old.logical_id, definition, old, properties)
    change["ResourceChange"] |= {"Replacement": replacement, "Scope": list(dict.fromkeys(scopes)), "Details": details}
    if replacement != "False":
        retain = definition.get("UpdateReplacePolicy") == "Retain"
        change["ResourceChange"]["PolicyAction"] = "ReplaceAndRetain" if retain else "ReplaceAndDelete"
    return change


def _change(
    action: str,
    logical_id: str,
    definition: JsonObject,
    before: Resource | None = None,
    after: JsonObject | None = None,
) -> JsonObject:
    """One change in the form of DescribeChangeSet."""
    change: JsonObject = {
        "Action": action,
        "LogicalResourceId": logical_id,
        "ResourceType": definition["Type"],
        "Scope": [],
        "Details": [],
    }
    if before is not None:
        change["PhysicalResourceId"] = before.physical_id
        change["BeforeContext"] = _context(before.properties, before.definition)
    if after is not None:
        change["AfterContext"] = _context(after, definition)
    if action == "Remove":
        retain = definition.get("DeletionPolicy") in ("Retain", "RetainExceptOnCreate")
        change["PolicyAction"] = "Retain" if retain else "Delete"
    return {"Type": "Resource", "ResourceChange": change}


def _context(properties: JsonObject, definition: JsonObject) -> str:
    return json.dumps(
        {"Properties": properties, **{key: definition[key] for key in ("Metadata",) if key in definition}}
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
