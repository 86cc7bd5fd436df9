"""What environment files name and do not make, made in the sandbox: there nobody made it before."""

import json

from ...config.settings.environment import Environment
from ..aws.account import Account
from ..aws.calls import make
from ..preflight.account_checks import named_roles
from ..preflight.storage_checks import named_buckets


def make_stand_ins(environment: Environment, account: Account) -> None:
    """Make the roles, the permissions boundary and the buckets that `preflight` looks for; existing ones stay."""
    trusted: dict[str, list[str]] = {}
    for _, arn, service in named_roles(environment):
        trusted.setdefault(arn, []).extend([service] if service else [])
    for arn, services in trusted.items():
        partition, owner, path, name = _parts(arn)
        if owner != account.id:
            continue
        principal: dict[str, object] = (
            {"Service": services} if services else {"AWS": f"arn:{partition}:iam::{owner}:root"}
        )
        policy = _allowing("sts:AssumeRole", principal)
        role = {"Path": path, "RoleName": name, "AssumeRolePolicyDocument": policy}
        make(account, "iam", "create_role", ("EntityAlreadyExists",), **role)
    if boundary := environment.iam.permissions_boundary:
        _, _, path, name = _parts(boundary)
        policy = {"Path": path, "PolicyName": name, "PolicyDocument": _allowing("*")}
        make(account, "iam", "create_policy", ("EntityAlreadyExists",), **policy)
    location = {} if account.region == "us-east-1" else {"LocationConstraint": account.region}
    for _, bucket, _ in named_buckets(environment):
        where = {"CreateBucketConfiguration": location} if location else {}
        make(account, "s3", "create_bucket", ("BucketAlreadyOwnedByYou",), Bucket=bucket, **where)


def _parts(arn: str) -> tuple[str, str, str, str]:
    """Partition, account, path and name of a role or policy."""
    _, partition, _, _, account, resource = arn.split(":", 5)
    path, _, name = resource.partition("/")[2].rpartition("/")
    return partition, account, f"/{path}/" if path else "/", name


def _allowing(action: str, principal: dict[str, object] | None = None) -> str:
    statement = {"Effect": "Allow", "Action": action}
    whom = {"Principal": principal} if principal else {"Resource": "*"}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement | whom]})
