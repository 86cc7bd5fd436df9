"""What the topics of podwright have in common: who hears, and that nobody publishes in clear text."""

from collections.abc import Iterable
from typing import cast

from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from constructs import Construct


def restrict(scope: Construct, construct_id: str, topic_arn: str, *allowed: iam.PolicyStatement) -> None:
    """Give a topic its policy: it takes messages over TLS only, and those of others that `allowed` lets publish."""
    over_tls = iam.PolicyStatement(
        sid="OnlyOverTls",
        effect=iam.Effect.DENY,
        principals=[cast(iam.IPrincipal, iam.AnyPrincipal())],
        actions=["sns:Publish"],
        resources=[topic_arn],
        conditions={"Bool": {"aws:SecureTransport": "false"}},
    )
    policy = iam.PolicyDocument(statements=[over_tls, *allowed])
    sns.CfnTopicPolicy(scope, construct_id, topics=[topic_arn], policy_document=policy)


def subscribe(scope: Construct, topic_arn: str, emails: Iterable[str]) -> None:
    """Send what comes over a topic to these addresses, once each has confirmed."""
    for address in emails:
        sns.CfnSubscription(scope, f"Email-{address}", topic_arn=topic_arn, protocol="email", endpoint=address)
