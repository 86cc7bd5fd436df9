"""The policies of the role that CloudFormation works with: what the resources of the templates need, and no more."""

import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from ...config.catalog.facts import DATA

Template = Mapping[str, Any]

# IAM User Guide, "IAM and AWS STS quotas", 2026-11: characters of a managed policy without white space.
MAX_CHARACTERS: Final = 6144
# Of the same page: managed policies of one role.
MAX_POLICIES: Final = 10
# Every custom resource is a Lambda function's work; what the CDK adds is no resource at all.
_CUSTOM: Final = ("Custom::", "AWS::CloudFormation::CustomResource")
_NO_RESOURCE: Final = "AWS::CDK::Metadata"
# Resources with names that begin with their stack's: roles and policies are the way to more permissions.
_NAMED_ACTIONS: Final = ("iam:",)
_ROLE: Final = re.compile(r"arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]+")
_LINKED_ROLES: Final = "iam:CreateServiceLinkedRole"


@dataclass(frozen=True, slots=True)
class Needed:
    """What templates need of CloudFormation's role."""

    actions: frozenset[str]
    """IAM actions."""
    unknown: frozenset[str]
    """Types of resources of which no schema says what they need."""
    roles: frozenset[str]
    """ARNs of existing roles that the templates name."""


@cache
def _handlers() -> Mapping[str, list[str]]:
    document = json.loads((DATA / "handler_permissions.json").read_text(encoding="utf-8"))
    return document["schemas"] | document["legacy"]


def needed(templates: Sequence[Template]) -> Needed:
    """The actions that the handlers of the templates' resources call, by the schemas of CloudFormation."""
    types = {resource["Type"] for template in templates for resource in template.get("Resources", {}).values()}
    # Without it not even an empty stack is deployed.
    actions = {"ssm:GetParameters"}  # CloudFormation resolves the parameter of the bootstrap's version
    unknown = set()
    for resource_type in types - {_NO_RESOURCE}:
        if resource_type.startswith(_CUSTOM):
            actions.add("lambda:InvokeFunction")
        elif resource_type in _handlers():
            actions |= set(_handlers()[resource_type])
        else:
            unknown.add(resource_type)
    # Found in the text of the template, as properties of many types name roles.
    roles = {arn for template in templates for arn in _ROLE.findall(json.dumps(template))}
    return Needed(frozenset(actions), frozenset(unknown), frozenset(roles))


def documents(
    actions: Iterable[str], *, partition: str, account: str, prefixes: Iterable[str], existing: Iterable[str] = ()
) -> list[dict[str, Any]]:
    """Policy documents that allow these actions, each short enough for a managed policy.

    Actions of IAM are allowed on what bears the name of one of the stacks alone; the role of CloudFormation could
    otherwise make itself any other. Existing roles that the templates name may be passed on, and nothing else.

    Args:
        actions: IAM actions.
        partition: aws, aws-cn or another.
        account: Account of the role.
        prefixes: What the names of stacks, and so of roles, begin with.
        existing: ARNs of roles that the templates name.
    """
    desired = sorted(set(actions) - {_LINKED_ROLES})
    named = [action for action in desired if action.startswith(_NAMED_ACTIONS)]
    others = [action for action in desired if not action.startswith(_NAMED_ACTIONS)]
    kinds = ("role", "policy", "instance-profile")
    # A role may have a path before its name, and each form is a pattern of its own.
    own = [
        f"arn:{partition}:iam::{account}:{kind}/{path}{prefix}-*"
        # The asterisk in `*/` stands for any path.
        for prefix, kind, path in itertools.product(sorted(prefixes), kinds, ("", "*/"))
    ]
    statements: list[dict[str, Any]] = []
    if named:
        statements.append({"Effect": "Allow", "Action": named, "Resource": own})
    if passed := sorted(existing):
        statements.append({"Effect": "Allow", "Action": ["iam:GetRole", "iam:PassRole"], "Resource": passed})
    # Linked roles have a path of AWS's own, which names of ours never have.
    if _LINKED_ROLES in set(actions):
        linked = f"arn:{partition}:iam::{account}:role/aws-service-role/*"
        statements.append({"Effect": "Allow", "Action": [_LINKED_ROLES], "Resource": [linked]})
    statements += [{"Effect": "Allow", "Action": part, "Resource": ["*"]} for part in _parts(others)]
    return [{"Version": "2012-10-17", "Statement": group} for group in _groups(statements)]


def policies_template(result: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """A CloudFormation template with a managed policy for each document, called NAME-1, NAME-2 and so on."""
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": "What CloudFormation may do for podwright's stacks, for cdk bootstrap",
        "Resources": {
            f"Policy{number}": {
                "Type": "AWS::IAM::ManagedPolicy",
                "Properties": {"ManagedPolicyName": f"{name}-{number}", "PolicyDocument": document},
            }
            for number, document in enumerate(result, start=1)
        },
    }


def _parts(actions: list[str]) -> Iterable[list[str]]:
    """Lists of actions, each a statement of no more than half a policy."""
    part: list[str] = []
    for action in actions:
        # Half, so that two of them fit a policy whatever the rest of it is.
        if _size([*part, action]) > MAX_CHARACTERS // 2:
            yield part
            part = []
        part.append(action)
    if part:
        yield part


def _groups(statements: list[dict[str, Any]]) -> Iterable[list[dict[str, Any]]]:
    """Lists of statements that fit one policy."""
    group: list[dict[str, Any]] = []
    for statement in statements:
        if group and _size({"Version": "2012-10-17", "Statement": [*group, statement]}) > MAX_CHARACTERS:
            yield group
            group = []
        group.append(statement)
    if group:
        yield group


def _size(value: Any) -> int:
    # IAM counts no white space.
    return len(json.dumps(value, separators=(",", ":")))
