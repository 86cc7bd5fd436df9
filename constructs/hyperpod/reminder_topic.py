"""The topic on which people hear that a training plan ends."""

from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from constructs import Construct

from ...config.settings.plan_reminders import PlanReminders
from ...planning.rules import check
from ..common.arguments import checked
from ..common.permission import allow
from ..common.topic import restrict, subscribe


class ReminderTopic(Construct):
    """An SNS topic, its subscribers, and the role with which EventBridge Scheduler publishes to it.

    Decided for you: messages are encrypted at rest with the environment's key and taken over TLS only; Scheduler may
    take the role for schedules of this account alone. No key policy has to change, since it is the role that uses the
    key. An existing key has to let IAM policies of the account decide.

    Example:
        ReminderTopic(stack, "Reminders", settings=PlanReminders(emails=("oncall@example.com",)), key=key)
    """

    @checked
    def __init__(self, scope: Construct, construct_id: str, *, settings: PlanReminders, key: kms.IKey) -> None:
        """Defines topic and role.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            settings: Who hears the reminders.
            key: Encrypts the messages.

        Raises:
            InvalidSettings: settings that cannot be built.
        """
        super().__init__(scope, construct_id)
        check(settings)

        topic = sns.CfnTopic(self, "Resource", kms_master_key_id=key.key_arn)
        self.topic_arn: str = topic.ref
        """ARN of the topic."""
        restrict(self, "Policy", topic.ref)
        subscribe(self, topic.ref, settings.emails)
        scheduler = iam.ServicePrincipal(
            "scheduler.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": cdk.Stack.of(self).account}}
        )
        role = cast(
            iam.IRole,
            iam.Role(
                self,
                "Role",
                assumed_by=cast(iam.IPrincipal, scheduler),
                description="Reminds people of the ends of training plans",
            ),
        )
        self.role = role
        """Role of Scheduler."""
        self._key = key
        self.grant_publish(role)

    def grant_publish(self, role: iam.IRole) -> None:
        """Let a role publish, which on an encrypted topic takes the key too."""
        allow(role, ["sns:Publish"], [self.topic_arn])
        allow(role, ["kms:Decrypt", "kms:GenerateDataKey"], [self._key.key_arn])
