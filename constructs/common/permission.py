"""Permissions, each with a written reason where its resources or actions hold a wildcard."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

import aws_cdk as cdk
from aws_cdk import aws_iam as iam


def allow(
    role: iam.IRole,
    actions: Iterable[str],
    on: Iterable[str],
    *,
    only_if: Mapping[str, Any] | None = None,
    because: str | None = None,
) -> None:
    """Let `role` take `actions` on the resources `on`.

    cdk-nag wants a reason for each wildcard; it is acknowledged on the role with the reason given here.

    Args:
        role: Who gets the permission. To an imported role CDK attaches a further policy, unless it is immutable.
        actions: IAM actions.
        on: ARNs, or `*` for actions that know no resources.
        only_if: Conditions of the statement.
        because: Why the wildcard cannot be narrower.

    Raises:
        ValueError: a wildcard without a reason, or a reason without a wildcard.
    """
    # Every call of the CDK costs about a millisecond, and a synthesis grants dozens of permissions.
    actions, resources = list(actions), list(on)
    wildcards = [f"Resource::{_flat(role, arn)}" for arn in resources if "*" in arn]
    wildcards += [f"Action::{action}" for action in actions if "*" in action]
    if bool(wildcards) != bool(because):
        raise ValueError(
            f"{', '.join(actions)} on {', '.join(wildcards) or 'named resources'}: "
            f"{'a wildcard needs a reason' if wildcards else 'the reason explains no wildcard'}"
        )

    iam.Grant.add_to_principal(grantee=role, actions=actions, resource_arns=resources, conditions=only_if)
    if because:
        cdk.Validations.of(role).acknowledge(
            *(
                cdk.Acknowledgment(id=f"AwsSolutions::AwsSolutions-IAM5[{wildcard}]", reason=because)
                for wildcard in wildcards
            )
        )


def _flat(role: iam.IRole, arn: str) -> str:
    """An ARN as cdk-nag writes it in the id of its finding, which it forms from the finished template of the role."""
    if "${" not in arn:  # how the CDK writes a value that only a deployment knows
        return arn
    stack = cdk.Stack.of(role)
    text = _text(stack.resolve(arn))
    if text.count("<") == text.count("<AWS::"):
        return text
    for token in cdk.Tokenization.reverse_string(arn).tokens:
        producer = cdk.Stack.of(cast(cdk.Reference, token).target) if cdk.Reference.is_reference(token) else stack
        if producer is not stack:
            # The template will import the value; the export that CDK makes for it is this one.
            arn = arn.replace(cdk.Token.as_string(token), producer.export_value(token))
    return _text(stack.resolve(arn))


def _text(node: Any) -> str:
    """A resource of a permission as cdk-nag names it: text as it is, references as `<LogicalId.Attribute>`."""
    match node:
        case str():
            # A variable of IAM, which cdk-nag writes as it writes references.
            return node.replace("${", "<").replace("}", ">")
        case {"Fn::Join": [delimiter, parts]}:
            return delimiter.join(map(_text, parts))
        case {"Fn::GetAtt": [resource, attribute]}:
            return f"<{resource}.{attribute}>"
        case {"Fn::ImportValue": name}:
            return _text(name)
        case {"Ref": name}:
            return f"<{name}>"
        case {"Fn::Sub": str(text)}:
            return text.replace("${", "<").replace("}", ">")
    raise ValueError(f"a resource of a permission is neither text nor a reference: {node}")


def accept_wildcards(role: iam.Role, because: str) -> None:
    """Accept the wildcards that the CDK itself put into a role's policy, each by its name.

    Call it when nothing is granted to the role any more: a wildcard that comes later is found again.
    """
    policy = role.node.try_find_child("DefaultPolicy")
    if not isinstance(policy, iam.Policy):
        return
    results: dict[str, None] = {}
    for statement in cdk.Stack.of(role).resolve(policy.document)["Statement"]:
        for key, kind in (("Action", "Action"), ("Resource", "Resource")):
            values = statement[key] if isinstance(statement[key], list) else [statement[key]]
            results |= {f"{kind}::{text}": None for text in map(_text, values) if "*" in text}
    cdk.Validations.of(role).acknowledge(
        *(cdk.Acknowledgment(id=f"AwsSolutions::AwsSolutions-IAM5[{name}]", reason=because) for name in results)
    )
