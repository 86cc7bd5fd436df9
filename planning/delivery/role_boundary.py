"""The permissions boundary of roles that the pipeline's CloudFormation makes: what they can be given at most."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

from ...config.catalog.facts import table
from .execution_policy import Template, needed, own_names

_HOLDERS: Final = ("AWS::IAM::Role", "AWS::IAM::Policy", "AWS::IAM::ManagedPolicy")
# What gives a role the power of another, or makes one.
_NARROW: Final = ("iam", "sts")
_READS: Final = ("iam:Get*", "iam:List*", "iam:Simulate*", "sts:GetCallerIdentity")
_CDK_ROLES: Final = "cdk-*"


def unknown_policies(templates: Sequence[Template]) -> list[str]:
    """Managed policies that templates attach to roles and of which it is not known what they allow."""
    return sorted({name for name in _attached(templates) if name not in _services_of_policies()})


def boundary(templates: Sequence[Template], *, partition: str, account: str, prefixes: Iterable[str]) -> dict[str, Any]:
    """The policy: the services that the templates' own roles use, and of IAM and STS no more than they need.

    It names services rather than actions, so that a role may get another action of one without another boundary, and
    because AWS changes its managed policies at any time. Roles are passed on and taken on by their names: those of the
    stacks, and those of the CDK.

    Args:
        templates: All templates of an account.
        partition: aws, aws-cn or another.
        account: The account.
        prefixes: What names of stacks begin with.
    """
    actions = {action for statement in _statements(templates) for action in _listed(statement.get("Action", []))}
    services = {action.partition(":")[0] for action in actions}
    for name in _attached(templates):
        services |= _services_of_policies().get(name, frozenset())
    arn = f"arn:{partition}:iam"
    own = own_names(f"{arn}::{account}:role", prefixes, ())
    # Of any account: the pipeline's builds take roles on in those of environments.
    taken = own_names(f"{arn}::*:role", prefixes, (_CDK_ROLES,))
    named = sorted(needed(templates).roles)
    statements = [
        _allow([f"{service}:*" for service in sorted(services - {*_NARROW})], ["*"]),
        _allow(_READS, ["*"]),
        _allow(["iam:PassRole"], [*own, *named]),
        _allow(["iam:CreateServiceLinkedRole"], [f"{arn}::{account}:role/aws-service-role/*"]),
        _allow(["sts:AssumeRole", "sts:TagSession"], [*taken, *named]),
    ]
    return {"Version": "2012-10-17", "Statement": statements}


def _statements(templates: Sequence[Template]) -> Iterator[Mapping[str, Any]]:
    """The statements of all policies of roles."""
    for properties in _holders(templates):
        inline = [policy["PolicyDocument"] for policy in properties.get("Policies", [])]
        for document in [*inline, *filter(None, [properties.get("PolicyDocument")])]:
            yield from _listed(document["Statement"])


def _attached(templates: Sequence[Template]) -> Iterator[str]:
    """Managed policies of roles: the name of AWS's, the ARN or the reference of others."""
    for properties in _holders(templates):
        for arn in properties.get("ManagedPolicyArns", []):
            text = arn["Fn::Join"][1][-1] if isinstance(arn, dict) and "Fn::Join" in arn else str(arn)
            _, is_aws, name = text.partition(":iam::aws:policy/")
            yield name.rpartition("/")[2] if is_aws else text


def _holders(templates: Sequence[Template]) -> Iterator[Mapping[str, Any]]:
    for template in templates:
        for resource in template.get("Resources", {}).values():
            if resource["Type"] in _HOLDERS:
                yield resource.get("Properties", {})


@cache
def _services_of_policies() -> Mapping[str, frozenset[str]]:
    return {row["policy"]: frozenset(row["services"].split()) for row in table("managed_policies")}


def _allow(actions: Iterable[str], resources: Iterable[str]) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": list(actions), "Resource": list(resources)}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
