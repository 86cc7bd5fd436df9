"""Roles of an environment, from its templates: who takes them, what they may do, each wildcard with its reason."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from .assembly import Assembly, Resource

Data = dict[str, Any]
_NAMES: Final = {
    # What hands on permissions, or makes whoever may do it somebody else.
    "hands on": re.compile(
        r"^(PassRole|AssumeRole|CreateGrant|CreateServiceLinkedRole|PutRolePolicy|AttachRolePolicy|TagSession)"
    ),
    "reads": re.compile(r"^(Get|List|Describe|BatchGet|BatchCheck|Head|Query|Scan|View|Search|Lookup|Select|Test)"),
    "deletes": re.compile(r"^(Delete|Terminate|Remove|BatchDelete|Cancel|Stop|Revoke|Abort)"),
}
KINDS: Final = ("reads", "changes", "deletes", "hands on")
"""What an action may be."""
_ACCOUNT: Final = re.compile(r"(?<!\d)\d{12}(?!\d)")
_POLICIES: Final = {
    "AWS::S3::BucketPolicy": "PolicyDocument",
    "AWS::KMS::Key": "KeyPolicy",
    "AWS::SNS::TopicPolicy": "PolicyDocument",
    "AWS::SQS::QueuePolicy": "PolicyDocument",
    "AWS::SecretsManager::ResourcePolicy": "ResourcePolicy",
    "AWS::ECR::Repository": "RepositoryPolicyText",
}


def roles(assembly: Assembly) -> list[Data]:
    """Every role that the templates make, in the order of stacks and names."""
    policies: dict[tuple[str, str], list[tuple[str, Any]]] = {}
    for policy in assembly.of("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"):
        for role in policy.properties.get("Roles", ()):
            if target := assembly.target(policy.stack, role):
                result = (policy.path, (policy, policy.properties["PolicyDocument"]))
                policies.setdefault((target.stack, target.id), []).append(result)
    return [_role(assembly, role, policies.get((role.stack, role.id), [])) for role in assembly.of("AWS::IAM::Role")]


def foreigners(assembly: Assembly, account: str) -> list[Data]:
    """Whatever lets another account in: roles and resource policies that allow a principal outside `account`."""
    allowed = [
        (resource, statement, _many(statement.get("Action", ())))
        for resource, document in _documents(assembly)
        for statement in _statements(document)
        if statement["Effect"] == "Allow" and not _is_narrowed(statement, account)
    ]
    return [
        {"what": resource.path, "stack": resource.stack, "type": resource.type, "who": who, "actions": actions}
        for resource, statement, actions in allowed
        for who in _principals(assembly, resource.stack, statement)
        if _is_foreign(who, account)
    ]


def _documents(assembly: Assembly) -> Iterator[tuple[Resource, Any]]:
    for role in assembly.of("AWS::IAM::Role"):
        yield role, role.properties["AssumeRolePolicyDocument"]
    for resource in assembly.of(*_POLICIES):
        if document := resource.properties.get(_POLICIES[resource.type]):
            yield resource, document


def _is_foreign(who: str, account: str) -> bool:
    """Whether a principal is of no service and of another account."""
    if who.endswith((".amazonaws.com", ".amazonaws.com.cn", "}")):
        return False
    numbers = _ACCOUNT.findall(who)
    return who == "*" or who.startswith("cognito") or any(number != account for number in numbers)


def _is_narrowed(statement: Mapping[str, Any], account: str) -> bool:
    """Whether conditions keep an open principal within the account."""
    conditions = json.dumps(statement.get("Condition", {}))
    keys = ("aws:PrincipalAccount", "aws:SourceAccount", "kms:CallerAccount", "aws:SourceOwner")
    return any(key in conditions for key in keys) and set(_ACCOUNT.findall(conditions)) <= {account}


def _role(assembly: Assembly, role: Resource, policies: list[tuple[str, Any]]) -> Data:
    """A role with who takes it, its statements, and what they allow by service."""
    properties = role.properties
    trust = properties["AssumeRolePolicyDocument"]
    inline = [(role.path, (role, policy["PolicyDocument"])) for policy in properties.get("Policies", ())]
    statements = [
        _statement(assembly, path, resource, statement)
        for path, (resource, document) in [*inline, *sorted(policies, key=lambda item: item[0])]
        for statement in _statements(document)
    ]
    managed = [assembly.text(role.stack, arn).rpartition("/")[2] for arn in properties.get("ManagedPolicyArns", ())]
    boundary = properties.get("PermissionsBoundary")
    return {
        "name": _name(role),
        "stack": role.stack,
        "description": properties.get("Description", ""),
        "trusted": [who for statement in _statements(trust) for who in _principals(assembly, role.stack, statement)],
        "managed": managed,
        "boundary": assembly.text(role.stack, boundary) if boundary else "",
        "may": _may(statements),
        "statements": statements,
    }


def _name(role: Resource) -> str:
    """The construct path without the stack, and without the words that every role has."""
    parts = [part for part in role.path.split("/")[1:] if part not in ("Resource", "Default")]
    return "/".join(parts) or role.id


def _statement(assembly: Assembly, path: str, resource: Resource, statement: Mapping[str, Any]) -> Data:
    actions = _many(statement.get("Action", ()))
    targets = statement.get("Resource", ())
    targets = targets if isinstance(targets, list) else [targets]
    flat = [(assembly.text(resource.stack, target), _as_finding(target)) for target in targets]
    wildcards = [(shown, f"Resource::{key}") for shown, key in flat if "*" in key]
    wildcards += [(action, f"Action::{action}") for action in actions if "*" in action]
    return {
        "effect": statement["Effect"],
        "actions": actions,
        "resources": [shown for shown, _ in flat],
        "conditions": _conditions(assembly, resource.stack, statement.get("Condition", {})),
        "wildcards": [{"on": shown, "reason": assembly.reason(path, key)} for shown, key in wildcards],
    }


def _conditions(assembly: Assembly, stack: str, conditions: Mapping[str, Any]) -> list[str]:
    return [
        f"{operator} {key} {', '.join(map(partial(assembly.text, stack), _several(values)))}"
        for operator, keys in conditions.items()
        for key, values in keys.items()
    ]


def _may(statements: Iterable[Data]) -> Data:
    """Actions by service and kind; those that are denied are not among them."""
    allowed = (statement["actions"] for statement in statements if statement["effect"] == "Allow")
    parts = {action.partition(":") for actions in allowed for action in actions}
    results: Data = {}
    for service, _, name in sorted(parts, key=lambda part: (part[0], KINDS.index(_kind(part[2])), part[2])):
        results.setdefault(service, {}).setdefault(_kind(name), []).append(name)
    return results


def _kind(name: str) -> str:
    return next((kind for kind, names in _NAMES.items() if names.match(name)), "changes")


def _as_finding(value: Any) -> str:
    """A resource as cdk-nag writes it into the id of its finding."""
    match value:
        case {"Fn::Join": [delimiter, parts]}:
            return delimiter.join(map(_as_finding, parts))
        case {"Fn::GetAtt": [resource, attribute]}:
            return f"<{resource}.{attribute}>"
        case {"Fn::ImportValue": name}:
            return _as_finding(name)
        case {"Ref": name}:
            return f"<{name}>"
    return str(value)


def _principals(assembly: Assembly, stack: str, statement: Mapping[str, Any]) -> list[str]:
    principal = statement.get("Principal", {})
    if not isinstance(principal, dict):
        return [str(principal)]
    return [assembly.text(stack, who) for values in principal.values() for who in _several(values)]


def _statements(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    result = document.get("Statement", [])
    return result if isinstance(result, list) else [result]


def _many(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _several(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
