"""What CloudFormation calls with the deploying role for one resource, by the permissions of its type's handlers.

Source: `handlers.<verb>.permissions` of the provider schemas, and data/handler_permissions.json for types without.
A schema says no resources. Actions of IAM are judged on the roles, policies and providers that the resource touches,
the others as `authorization.resource_arns` says. An action of IAM that an absent property makes idle is left out.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

from ...config.catalog.facts import DATA
from ..authorization.evaluation import Call, listed
from ..authorization.resource_arns import Location, Touching, arns, forms, kinds
from ..protocol.arns import PARTITION
from ..protocol.json_objects import JsonObject
from .schemas import find, is_custom

Verb = Literal["create", "update", "delete"]
_ROLE: Final = re.compile(r"arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]+")
_LINKED: Final = "role/aws-service-role"
_FSX_LINKED: Final = f"{_LINKED}/s3.data-source.lustre.fsx.amazonaws.com/AWSServiceRoleForFSxS3Access_fs-0"
_BOUNDARY: Final = "iam:permissionsboundary"
_LISTS: Final = frozenset({"iam:ListOpenIDConnectProviders", "iam:ListRoles"})
# The property without which a handler of a role does not call the action.
_ONLY_WITH: Final = {
    "iam:AttachRolePolicy": "ManagedPolicyArns",
    "iam:PutRolePermissionsBoundary": "PermissionsBoundary",
    "iam:PutRolePolicy": "Policies",
}
_ON_USERS: Final = re.compile("iam:[A-Za-z]*(User|Group)[A-Za-z]*")


@dataclass(frozen=True, slots=True)
class Touched:
    """A resource of a stack with its properties resolved."""

    resource_type: str
    properties: JsonObject
    account: str
    region: str
    physical_id: str
    """Before the resource is made, what CloudFormation would call it."""
    boundary_of: Callable[[str], str | None]
    """The boundary of a role by its name."""

    @property
    def name(self) -> str:
        """Name of the role, policy or profile, where the resource is one."""
        specified = self.properties.get("RoleName") or self.properties.get("ManagedPolicyName")
        return specified or self.physical_id.rpartition("/")[2]


def calls(resource: Touched, verb: Verb) -> Iterator[Call]:
    """The calls for one resource, each once."""
    for action in sorted(_actions(resource.resource_type, verb, resource.region)):
        if action.startswith("iam:"):
            yield from _iam(resource, action)
        else:
            yield from _of_service(resource, action)


def _actions(resource_type: str, verb: Verb, region: str) -> set[str]:
    if is_custom(resource_type):
        return {"lambda:InvokeFunction"}
    known = _table()["schemas"].get(resource_type)
    if known is None:
        return set(_table()["legacy"].get(resource_type, []))
    schema = find(resource_type, region)
    handlers = schema.document.get("handlers", {}) if schema else {}
    # Some handlers name what is no action of IAM, and the table has no such.
    return {*handlers.get(verb, {}).get("permissions", ())} & {*known}


@cache
def _table() -> dict[str, dict[str, list[str]]]:
    return json.loads((DATA / "handler_permissions.json").read_text(encoding="utf-8"))


def _of_service(resource: Touched, action: str) -> Iterator[Call]:
    """The calls of one action on each thing that the resource touches; on none where nobody knows on which."""
    service, _, kind = resource.resource_type.lower().removeprefix("aws::").partition("::")
    touching = Touching(service, kind, _identifier(resource), resource.properties)
    touched = arns(action, touching, Location(resource.region, resource.account))
    yield from (Call(action, forms(arn)) for arn in touched)
    if not touched:
        yield Call(action, () if kinds(action) else ("*",))


def _identifier(resource: Touched) -> str:
    """The physical id; before there is one, the property that becomes it."""
    schema = find(resource.resource_type, resource.region)
    specified = [resource.properties.get(path) for path in schema.primary_identifier] if schema else []
    match specified:
        case [str() as name]:
            return name
    return resource.physical_id


def _iam(resource: Touched, action: str) -> Iterator[Call]:
    """The calls of one action of IAM, on each thing that the resource touches."""
    arn, properties = f"arn:{PARTITION}:iam::{resource.account}", resource.properties
    if action in _LISTS:
        yield Call(action, ("*",))
        return
    if action == "iam:CreateServiceLinkedRole":
        yield Call(action, (f"{arn}:{_LINKED}/service.amazonaws.com/AWSServiceRoleForService",))
        return
    match resource.resource_type:
        case "AWS::IAM::Role":
            yield from _role(resource, action, arn)
        case "AWS::IAM::Policy" | "AWS::IAM::RolePolicy":
            names = [] if _ON_USERS.fullmatch(action) else _names(properties)
            for name in names:
                yield _on_role(action, f"{arn}:role/{name}", resource.boundary_of(name))
        case "AWS::IAM::ManagedPolicy":
            yield Call(action, (f"{arn}:policy{properties.get('Path', '/')}{resource.name}",))
        case "AWS::IAM::InstanceProfile":
            yield Call(action, (f"{arn}:instance-profile{properties.get('Path', '/')}{resource.name}",))
        case "AWS::IAM::OIDCProvider":
            host = str(properties["Url"]).removeprefix("https://")
            yield Call(action, (f"{arn}:oidc-provider/{host}",))
        case "AWS::FSx::DataRepositoryAssociation":
            yield Call(action, (f"{arn}:{_FSX_LINKED}",))
        case _ if "InstanceProfile" not in action or "ComputeConfig" in properties:
            for role in sorted(set(_ROLE.findall(json.dumps(properties)))):
                yield Call(action, (role,))


def _role(resource: Touched, action: str, arn: str) -> Iterator[Call]:
    properties = resource.properties
    idle = _ONLY_WITH.get(action, "AssumeRolePolicyDocument") not in properties
    if idle or (action == "iam:DeleteRolePermissionsBoundary" and "PermissionsBoundary" in properties):
        return
    role = f"{arn}:role{properties.get('Path', '/')}{resource.name}"
    yield _on_role(action, role, properties.get("PermissionsBoundary"))


def _on_role(action: str, role: str, boundary: str | None) -> Call:
    return Call(action, (role,), {_BOUNDARY: [boundary]} if boundary else {})


def _names(properties: JsonObject) -> list[str]:
    return [str(name) for name in listed(properties.get("Roles") or properties.get("RoleName") or [])]
