"""Policies of roles and users in moto's IAM."""

import json
from functools import cache
from typing import Any, NamedTuple

from moto.iam.exceptions import NotFoundException
from moto.iam.models import iam_backends
from moto.sts.models import sts_backends

from ..protocol.accounts import account_of_key
from ..protocol.arns import PARTITION, account_of
from ..protocol.json_objects import JsonObject
from .evaluation import listed


class Policies(NamedTuple):
    """The policies of a role or user."""

    identity: list[JsonObject]
    boundary: list[JsonObject] | None
    """Permissions boundary; None without one. An unknown boundary allows nothing."""


class Session(NamedTuple):
    """A role that an AWS service has assumed."""

    arn: str
    """ARN of the session."""
    role: str
    """ARN of the role."""


def policies_of(holder: Any) -> Policies:
    """Return the policies of moto's role or user."""
    attached = [_default_version(policy) for policy in holder.managed_policies.values()]
    identity = [_parsed(_text(document)) for document in (*holder.policies.values(), *attached)]
    arn = getattr(holder, "permissions_boundary_arn", None)
    return Policies(identity, _boundary(arn) if arn else None)


def role_of(arn: str) -> Any:
    """Return moto's role of an ARN; None for an unknown one."""
    try:
        return iam_backends[account_of(arn)][PARTITION].get_role_by_arn(arn)
    except NotFoundException:
        return None


def boundary_of(account: str, role: str) -> str | None:
    """Return the ARN of a role's boundary, by the role's name; None without a role or a boundary."""
    try:
        return iam_backends[account][PARTITION].get_role(role).permissions_boundary_arn
    except NotFoundException:
        return None


def session_of_service(key: str) -> Session | None:
    """Return the session of an access key if its role trusts an AWS service; None otherwise."""
    session = sts_backends[account_of_key(key)][PARTITION].get_assumed_role_from_access_key(key)
    if session is None:
        return None
    role = role_of(session.role_arn)
    if role is None:
        return None
    trust = _parsed(_text(role.assume_role_policy_document))
    principals = [statement.get("Principal", {}) for statement in listed(trust.get("Statement", []))]
    by_service = any(isinstance(principal, dict) and "Service" in principal for principal in principals)
    return Session(session.arn, session.role_arn) if by_service else None


def _boundary(arn: str) -> list[JsonObject]:
    try:
        return [_parsed(_text(_default_version(iam_backends[account_of(arn)][PARTITION].get_policy(arn))))]
    except NotFoundException:
        return []


def _default_version(policy: Any) -> Any:
    return next(version.document for version in policy.versions if version.is_default)


def _text(document: Any) -> str:
    return document if isinstance(document, str) else json.dumps(document)


@cache
def _parsed(text: str) -> JsonObject:
    return json.loads(text)
