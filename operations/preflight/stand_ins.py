"""What environment files name and do not make, made in the sandbox: there nobody made it before."""

import json
from typing import Any, Final, NamedTuple

from ...config.settings.environment import Environment
from ..aws.account import Account
from ..aws.calls import make
from ..aws.sandbox_plans import call
from .account_checks import named_roles
from .storage_checks import named_buckets, named_keys

_ADOPTED: Final = "/podwright/adopted"


def make_stand_ins(environment: Environment, account: Account) -> None:
    """Make what `preflight` looks for; what is there stays.

    These are roles, the permissions boundary, buckets and keys; and an adopted network with its EKS cluster and its
    file systems.

    Raises:
        CommandError: The sandbox refuses something.
    """
    adopted = _adopted(environment)
    if len(adopted) > 1:
        call(f"{account.endpoint}{_ADOPTED}?account={account.id}&new=true", adopted)
    trusted: dict[str, list[str]] = {}
    for named in named_roles(environment):
        trusted.setdefault(named.arn, []).extend([named.service] if named.service else [])
    for arn, services in trusted.items():
        role = _arn(arn)
        if role.account != account.id:
            continue
        principal: dict[str, object] = (
            {"Service": services} if services else {"AWS": f"arn:{role.partition}:iam::{account.id}:root"}
        )
        policy = _allowing("sts:AssumeRole", principal)
        properties = {"Path": role.path, "RoleName": role.name, "AssumeRolePolicyDocument": policy}
        make(account, "iam", "create_role", ("EntityAlreadyExists",), **properties)
    if boundary := environment.iam.permissions_boundary:
        named_policy = _arn(boundary)
        properties = {"Path": named_policy.path, "PolicyName": named_policy.name, "PolicyDocument": _allowing("*")}
        make(account, "iam", "create_policy", ("EntityAlreadyExists",), **properties)
    location = {} if account.region == "us-east-1" else {"LocationConstraint": account.region}
    for bucket in named_buckets(environment):
        where = {"CreateBucketConfiguration": location} if location else {}
        make(account, "s3", "create_bucket", ("BucketAlreadyOwnedByYou",), Bucket=bucket.name, **where)


def _adopted(environment: Environment) -> dict[str, Any]:
    """The part that AWS has no operation for, since it comes with its ids."""
    network, eks = environment.network.vpc, environment.cluster.eks.existing
    lustres = [lustre for lustre in environment.storage.lustres.values() if lustre.existing]
    result: dict[str, Any] = {"region": environment.region}
    if keys := [arn for _, arn in named_keys(environment)]:
        result["keys"] = keys
    if network is None:
        return result
    database = environment.cluster.slurm.accounting.existing if environment.cluster.slurm.accounting else None
    groups = [network.security_group, eks and eks.security_group, database and database.security_group]
    groups += [lustre.existing.security_group for lustre in lustres if lustre.existing]
    subnets = [
        {"id": subnet, "zone": zone, "cidr": cidr}
        for zone, each in network.subnets.items()
        for subnet, cidr in ((each.nodes, each.nodes_cidr), *each.more_nodes.items(), (each.control_plane, None))
        if subnet
    ]
    named = list(dict.fromkeys(group for group in groups if group))
    result["vpc"] = {"id": network.id, "cidr": network.cidr, "subnets": subnets, "security_groups": named}
    result["file_systems"] = [
        {**lustre.existing.model_dump(), "zone": lustre.zone} for lustre in lustres if lustre.existing
    ]
    if eks:
        namespace = environment.governance.yunikorn.existing
        result["cluster"] = {
            "name": eks.name,
            "security_group": eks.security_group,
            "authentication": eks.authentication,
            "admin": eks.kubectl_role,
            "namespaces": [namespace] if namespace else [],
        }
    return result


class _Arn(NamedTuple):
    """Of a role or policy."""

    partition: str
    account: str
    path: str
    name: str


def _arn(arn: str) -> _Arn:
    _, partition, _, _, account, resource = arn.split(":", 5)
    path, _, name = resource.partition("/")[2].rpartition("/")
    return _Arn(partition, account, f"/{path}/" if path else "/", name)


def _allowing(action: str, principal: dict[str, object] | None = None) -> str:
    statement = {"Effect": "Allow", "Action": action}
    whom = {"Principal": principal} if principal else {"Resource": "*"}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement | whom]})
