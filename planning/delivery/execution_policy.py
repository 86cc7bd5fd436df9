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
_ROLE: Final = re.compile(r"arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]+")
# Roles and policies are the way to more permissions: these actions are allowed on what the stacks make alone.
_NAMED_ACTIONS: Final = ("iam:",)
# Of IAM's, these know no resource. Source: Service Authorization Reference, IAM; a test compares.
_ACCOUNT_WIDE: Final = frozenset({"iam:ListOpenIDConnectProviders", "iam:ListRoles"})
# The schema of inline policies names them too, and no template of ours has users or groups.
_NOT_OURS: Final = ("User", "Group")
# Without a boundary a role could be given any power.
_FREEING: Final = "iam:DeleteRolePermissionsBoundary"
# Each takes the condition. Source: Service Authorization Reference, IAM, `iam:PermissionsBoundary`; a test compares.
POWER: Final = frozenset(
    {"iam:AttachRolePolicy", "iam:CreateRole", "iam:PutRolePermissionsBoundary", "iam:PutRolePolicy"}
)
"""Actions that make a role or give it power."""
# A boundary that its own roles could rewrite would be none.
_REWRITING: Final = ("CreatePolicyVersion", "DeletePolicy", "DeletePolicyVersion", "SetDefaultPolicyVersion")
_PROVIDERS: Final = ("oidc.eks.*", "token.actions.githubusercontent.com")
_PROVIDER_ACTION: Final = "OpenIDConnectProvider"
_LINKED_ROLES: Final = "iam:CreateServiceLinkedRole"
# FSx gives its linked role the right to the bucket of an association with the caller's permissions. Source: FSx for
# Lustre User Guide, "Using service-linked roles", 2026-11.
_LINKED_POWER: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "AWS::FSx::DataRepositoryAssociation": (
        "s3.data-source.lustre.fsx.amazonaws.com",
        ("iam:AttachRolePolicy", "iam:PutRolePolicy"),
    )
}


@dataclass(frozen=True, slots=True)
class Needed:
    """What templates need of CloudFormation's role."""

    actions: frozenset[str]
    """IAM actions."""
    unknown: frozenset[str]
    """Types of resources of which no schema says what they need."""
    roles: frozenset[str]
    """ARNs of existing roles that the templates name."""
    named: frozenset[str] = frozenset()
    """Names that templates give roles themselves."""
    extended: frozenset[str] = frozenset()
    """Names of existing roles that templates give a policy."""
    linked: frozenset[str] = frozenset()
    """Services to whose linked roles CloudFormation gives power."""


@cache
def _handlers() -> Mapping[str, list[str]]:
    document = json.loads((DATA / "handler_permissions.json").read_text(encoding="utf-8"))
    return document["schemas"] | document["legacy"]


def needed(templates: Sequence[Template]) -> Needed:
    """The actions that the handlers of the templates' resources call, by the schemas of CloudFormation."""
    resources = [resource for template in templates for resource in template.get("Resources", {}).values()]
    types = {resource["Type"] for resource in resources}
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
    names = {str(_properties(item).get("RoleName", "")) for item in resources if item["Type"] == "AWS::IAM::Role"}
    policies = [_properties(item).get("Roles", []) for item in resources if item["Type"] == "AWS::IAM::Policy"]
    return Needed(
        frozenset(actions),
        frozenset(unknown),
        frozenset(roles),
        named=frozenset(names - {""}),
        extended=frozenset(role for held in policies for role in held if isinstance(role, str)),
        linked=frozenset(service for kind, (service, _) in _LINKED_POWER.items() if kind in types),
    )


def documents(
    desired: Needed, *, partition: str, account: str, prefixes: Iterable[str], boundaries: Iterable[str]
) -> list[dict[str, Any]]:
    """Policy documents that allow what is needed, each short enough for a managed policy.

    Actions of IAM are allowed on what bears the name of one of the stacks, or one that a template gives it; a role is
    made, and given power, with a boundary alone. The role of CloudFormation could otherwise make itself any other.
    Existing roles that the templates name may be passed on, those that a template gives a policy may get it, and
    nothing else.

    Args:
        desired: What the templates need.
        partition: aws, aws-cn or another.
        account: Account of the role.
        prefixes: What the names of stacks, and so of roles, begin with.
        boundaries: ARNs of the managed policies that roles may have as their boundary.
    """
    arn, actions = f"arn:{partition}:iam::{account}", desired.actions - {_FREEING}
    own = own_names(f"{arn}:role", prefixes, desired.named)
    iam = sorted(action for action in actions if action.startswith(_NAMED_ACTIONS) and not _is_for_users(action))
    wide = sorted({*(action for action in actions if not action.startswith(_NAMED_ACTIONS)), *_ACCOUNT_WIDE & actions})
    specific = [action for action in iam if action not in {*_ACCOUNT_WIDE, _LINKED_ROLES}]
    providers = [action for action in specific if _PROVIDER_ACTION in action]
    power = [action for action in specific if action in POWER]
    others = [action for action in specific if action not in {*providers, *power}]
    bounded = sorted(boundaries)
    statements: list[dict[str, Any]] = []
    if others:
        policies = own_names(f"{arn}:policy", prefixes, ()) + own_names(f"{arn}:instance-profile", prefixes, ())
        statements.append(_allow(others, [*own, *policies]))
    if power:
        condition = {"StringEquals": {"iam:PermissionsBoundary": bounded}}
        statements.append(_allow(power, own) | {"Condition": condition})
        rewriting = [f"iam:{verb}" for verb in _REWRITING]
        statements.append(_allow(rewriting, bounded) | {"Effect": "Deny"})
    if providers:
        statements.append(_allow(providers, [f"{arn}:oidc-provider/{host}" for host in _PROVIDERS]))
    statements += _on_existing(desired, arn)
    # Linked roles have a path of AWS's own, which names of ours never have.
    if _LINKED_ROLES in actions:
        statements.append(_allow([_LINKED_ROLES, "iam:GetRole"], [f"{arn}:role/aws-service-role/*"]))
    statements += [_allow(part, ["*"]) for part in _parts(wide)]
    return [{"Version": "2012-10-17", "Statement": group} for group in _groups(statements)]


def own_names(kind: str, prefixes: Iterable[str], named: Iterable[str]) -> list[str]:
    """Patterns of ARNs: names that begin with one of the prefixes, or are one of `named`, below any path.

    Args:
        kind: The ARN up to the slash, such as arn:aws:iam::111122223333:role.
        prefixes: What names begin with, before a hyphen.
        named: Other names.
    """
    known = sorted(prefixes)
    starts = tuple(f"{prefix}-" for prefix in known)
    others = sorted(name for name in named if not name.startswith(starts))
    names = [*(f"{start}*" for start in starts), *others]
    # A role may have a path before its name, and each form is a pattern of its own; the asterisk is any path.
    return [f"{kind}/{path}{name}" for name, path in itertools.product(names, ("", "*/"))]


def _on_existing(desired: Needed, arn: str) -> Iterable[dict[str, Any]]:
    """Statements about roles that no template makes."""
    if desired.roles:
        yield _allow(["iam:GetRole", "iam:PassRole"], sorted(desired.roles))
    if desired.extended:
        roles = own_names(f"{arn}:role", (), desired.extended)
        yield _allow(["iam:DeleteRolePolicy", "iam:GetRolePolicy", "iam:PutRolePolicy"], roles)
    for service, actions in _LINKED_POWER.values():
        if service in desired.linked:
            yield _allow(actions, [f"{arn}:role/aws-service-role/{service}/*"])


def _allow(actions: Iterable[str], resources: Sequence[str]) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": list(actions), "Resource": list(resources)}


def _is_for_users(action: str) -> bool:
    return any(kind in action for kind in _NOT_OURS)


def _properties(resource: Mapping[str, Any]) -> Mapping[str, Any]:
    return resource.get("Properties", {})


def policies_template(
    result: list[dict[str, Any]], name: str, boundary: tuple[str, dict[str, Any]] | None = None
) -> dict[str, Any]:
    """A CloudFormation template with a managed policy for each document, called NAME-1, NAME-2 and so on.

    With `boundary`, a name and a document, it holds that of the roles that CloudFormation makes, too.
    """
    named = [(f"Policy{number}", f"{name}-{number}", document) for number, document in enumerate(result, start=1)]
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": "What CloudFormation may do for podwright's stacks, for cdk bootstrap",
        "Resources": {
            logical_id: {
                "Type": "AWS::IAM::ManagedPolicy",
                "Properties": {"ManagedPolicyName": policy, "PolicyDocument": document},
            }
            for logical_id, policy, document in [*named, *([("Boundary", *boundary)] if boundary else [])]
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
