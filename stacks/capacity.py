"""The stack of training plans: capacity that is paid for, before the cluster that draws on it."""

import aws_cdk as cdk
from constructs import Construct

from ..constructs.hyperpod.reminder_topic import ReminderTopic
from ..constructs.hyperpod.training_plan.construct import TrainingPlans
from ..planning.resolved import ResolvedEnvironment
from .network import NetworkStack


class CapacityStack(cdk.Stack):
    """Training plans, and reminders of their ends. Stateless: plans and the record of purchases live outside of it.

    The ARN of each plan is exported whether a group uses it today or not, so a group that leaves a plan never asks
    CloudFormation to drop an export that the cluster stack still imports.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, resolved: ResolvedEnvironment, network: NetworkStack
    ) -> None:
        """Defines the stack of an environment with training plans; the key is that of `network`."""
        super().__init__(scope, construct_id, description="Training plans and reminders of their ends")
        environment = resolved.environment
        topic = ReminderTopic(self, "Reminders", settings=environment.plan_reminders, key=network.key)
        self.arns = TrainingPlans(
            self,
            "Plans",
            environment=environment.name,
            plans=environment.training_plans,
            groups=environment.groups,
            topic=topic,
            key=network.key,
            tags=resolved.tags,
        ).arns
        """ARN of each training plan by its name in the file."""

        for arn in self.arns.values():
            # Explicitly: the CDK makes an export only while somebody imports it.
            self.export_value(arn)
        cdk.CfnOutput(self, "ReminderTopicArn", value=topic.topic_arn, description="Subscribe to hear of ends")
