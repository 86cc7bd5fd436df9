"""The topics on which people hear of alerts: one for mail and whoever else reads text, one for chat."""

from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from constructs import Construct

from ...config.settings.observability import Alerts
from ...planning.rules import check
from ..common.permission import allow
from ..common.protection import Protection, removal_policy
from ..common.topic import restrict, subscribe

# Services that publish by themselves: rules of metrics, CloudWatch's alarms, and budgets.
_PUBLISHERS = ("aps.amazonaws.com", "cloudwatch.amazonaws.com", "budgets.amazonaws.com")


class AlertTopics(Construct):
    """SNS topics with their subscribers, their key and the services that may publish.

    Decided for you: there is always a topic for text, so that pagers and functions of your own can subscribe to it, and
    one for chat where a channel is set. Messages are taken over TLS only, and encrypted with a key of the topics' own:
    services publish by themselves, and only a key's policy can let them, which that of an existing key is not ours to
    change. Services of other accounts may not publish.

    Example:
        from podwright.config.settings.observability import Alerts
        AlertTopics(stack, "Alerts", settings=Alerts(emails=("oncall@example.com",)))
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, settings: Alerts, protection: Protection = "destroy"
    ) -> None:
        """Defines key and topics.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            settings: Who is told.
            protection: Whether the key survives the stack; nothing but messages on their way is encrypted with it.

        Raises:
            InvalidSettings: settings that cannot be built.
        """
        super().__init__(scope, construct_id)
        check(settings)

        key = kms.Key(
            self,
            "Key",
            description=f"Messages of {self.node.path.replace('/Default', '')}",
            enable_key_rotation=True,
            removal_policy=removal_policy(protection),
        )
        key.add_to_resource_policy(self._statement(["kms:Decrypt", "kms:GenerateDataKey"], "*"))
        self.key = cast(kms.IKey, key)
        """Encrypts what is published."""
        self.mail = self._topic("Mail")
        """ARN of the topic for text."""
        self.chat = self._topic("Chat") if settings.chat.slack or settings.chat.teams else None
        """ARN of the topic for chat, where a channel is set."""
        subscribe(self, self.mail, settings.emails)

    @property
    def arns(self) -> dict[str, str]:
        """ARN of each topic, by what reads it: `mail`, and `chat` where there is one."""
        return {"mail": self.mail} | ({"chat": self.chat} if self.chat else {})

    def grant_publish(self, role: iam.IRole) -> None:
        """Let a role publish to the topics, which takes their key too."""
        allow(role, ["sns:Publish"], self.arns.values())
        allow(role, ["kms:Decrypt", "kms:GenerateDataKey"], [self.key.key_arn])

    def _topic(self, name: str) -> str:
        topic = sns.CfnTopic(self, name, kms_master_key_id=self.key.key_arn)
        publish = self._statement(["sns:Publish", "sns:GetTopicAttributes"], topic.ref)
        restrict(self, f"{name}Policy", topic.ref, publish)
        return topic.ref

    def _statement(self, actions: list[str], resource: str) -> iam.PolicyStatement:
        return iam.PolicyStatement(
            sid="ServicesOfThisAccount",
            principals=[cast(iam.IPrincipal, iam.ServicePrincipal(name)) for name in _PUBLISHERS],
            actions=actions,
            resources=[resource],
            conditions={"StringEquals": {"aws:SourceAccount": cdk.Stack.of(self).account}},
        )
