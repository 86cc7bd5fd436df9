"""Training plans of an environment: resolved, or bought once; checked against their groups; with reminders."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from ....config.catalog.limits import limits
from ....config.settings.groups import GroupBase
from ....config.settings.plans import TrainingPlan
from ....planning.purchase.offers import Request
from ....planning.purchase.purchase import SHIPPED
from ....planning.purchase.record import TABLE
from ....planning.purchase.words import plan_name, shown
from ....planning.rules import check
from ...common.arguments import checked
from ...common.custom_resource import HandlerFunction
from ...common.permission import allow
from ..reminder_topic import ReminderTopic
from .reference import TrainingPlanReference

RESOURCE_TYPE: Final = "Custom::PodwrightTrainingPlan"
_LONGEST_MINUTES: Final = 60
_HOURS_PER_DAY: Final = 24


class TrainingPlans(Construct):
    """Training plans that are there before the groups that draw on them.

    One with an ARN is resolved and never bought. One with `purchase: true` is bought by the first deployment, once,
    under the lock that the command line shares; every later deployment finds that purchase. A plan is there once it is
    Scheduled or Active. A deployment fails, with the reason, when a plan failed or has ended, and when its zone, type,
    count or target does not fit the groups. Nothing ever cancels a plan: the resource may go, the plan stays and is
    paid for until its end.

    Decided for you: one function for all plans, whose role may describe these plans and, only where one is to be
    bought, search, buy, and write the record of purchases; reminders at 14, 7 and 1 days and one hour before the end of
    each part of a plan, in a schedule group per plan that goes with it.

    Example:
        topic = ReminderTopic(stack, "Reminders", settings=environment.plan_reminders, key=key)
        plans = TrainingPlans(stack, "Plans", environment="prod", plans=environment.training_plans,
                              groups=environment.groups, topic=topic, key=key)
        arn = plans.arns["h200-q1"]
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: str,
        plans: Mapping[str, TrainingPlan],
        groups: Mapping[str, GroupBase],
        topic: ReminderTopic,
        key: kms.IKey,
        tags: Mapping[str, str] | None = None,
        timeout: cdk.Duration | None = None,
    ) -> None:
        """Defines the handler and a resource for each plan.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            environment: Name of the environment. With the plan's it names what is bought, and keys its record.
            plans: The plans by name.
            groups: Instance groups by name; those that draw on none of the plans are left aside.
            topic: Where people hear of the ends.
            key: Encrypts the logs.
            tags: Tags of what is bought.
            timeout: How long to wait for a payment; 55 minutes when absent, an hour at most.

        Raises:
            InvalidSettings: settings that cannot be built, such as a plan without an ARN that is not to be bought.
            ValueError: a timeout of more than an hour.
        """
        super().__init__(scope, construct_id)
        for plan in plans.values():
            check(plan)
        timeout = timeout or cdk.Duration.minutes(55)
        if timeout.to_minutes() > _LONGEST_MINUTES:
            raise ValueError(
                f"timeout is {timeout.to_minutes():g} minutes; CloudFormation waits {_LONGEST_MINUTES} at most"
            )
        to_buy = [name for name, plan in plans.items() if plan.state == "purchase"]

        function = HandlerFunction(
            self,
            "Handler",
            folder=Path(__file__).parent / "handler",
            description=f"Resolves or buys training plans of {environment}",
            timeout_seconds=900,
            key=key,
            planning_files=SHIPPED,
        )
        stack = cdk.Stack.of(self)
        if existing := sorted({plan.arn for plan in plans.values() if plan.arn}):
            allow(function.role, ["sagemaker:DescribeTrainingPlan"], existing)
        if to_buy:
            self._allow_buying(function.role, stack, [plan_name(environment, name) for name in to_buy])
        topic.grant_publish(function.role)
        # A policy of its own: the function depends on its role's default policy, which so cannot name the function.
        again = iam.Policy(
            self,
            "InvokesItself",
            roles=[function.role],
            statements=[
                iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[function.function.function_arn])
            ],
        )

        self.arns: dict[str, str] = {}
        """ARN of each plan by its name in the file. What reads it waits for the plan."""
        schedules: list[str] = []
        for name, plan in sorted(plans.items()):
            location = Construct(self, name)
            schedule_group = scheduler.CfnScheduleGroup(location, "Reminders")
            schedules.append(schedule_group.ref)
            resource = function.resource(
                location,
                "Plan",
                resource_type=RESOURCE_TYPE,
                properties={
                    "Environment": environment,
                    "Plan": name,
                    **_what(environment, name, plan, tags or {}),
                    # The end is read from SageMaker; here it makes an extension that is in the file a change.
                    **({"End": shown(plan.end)} if plan.end else {}),
                    "Needs": list(_needs(name, groups)),
                    "Reminders": {
                        "Group": schedule_group.ref,
                        "Topic": topic.topic_arn,
                        "Role": topic.role.role_arn,
                        "ReclaimMinutes": limits().training_plan.reclaim_minutes,
                    },
                    "TimeoutSeconds": timeout.to_seconds(),
                },
                wait_seconds=_LONGEST_MINUTES * 60,
            )
            # The policy by which reminders reach the topic is a resource of its own.
            resource.node.add_dependency(again, topic.role)
            self.arns[name] = resource.ref
        self.references = {name: TrainingPlanReference(arn, plans[name]) for name, arn in self.arns.items()}
        """The plans as a `HyperPodCluster` takes them, by name."""
        self._allow_reminding(function.role, stack, schedules, topic.role)

        self.function = function

    def _allow_buying(self, role: iam.IRole, stack: cdk.Stack, names: list[str]) -> None:
        """What `plan_purchase.acquire` calls.

        Source: SageMaker Developer Guide, "AWS managed policy: AmazonSageMakerTrainingPlanCreateAccess", 2026-11.
        """
        # Whether SageMaker writes a name in an ARN in small letters, as it does for jobs, no source says.
        spelled = sorted({spelling for name in names for spelling in (name, name.lower())})
        plans = [
            stack.format_arn(service="sagemaker", resource="training-plan", resource_name=name)
            for spelling in spelled
            for name in (spelling, f"{spelling}-*")
        ]
        capacity = stack.format_arn(service="sagemaker", resource="reserved-capacity", resource_name="*")
        generations = "A plan that failed gets a successor, whose number ends its name."
        unnamed = "SageMaker names reserved capacity while it makes the plan."
        allow(role, ["sagemaker:CreateTrainingPlan", "sagemaker:DescribeTrainingPlan"], plans, because=generations)
        allow(role, ["sagemaker:CreateReservedCapacity"], [capacity], because=unnamed)
        allow(
            role,
            ["sagemaker:AddTags"],
            [*plans, capacity],
            only_if={"StringEquals": {"sagemaker:TaggingAction": ["CreateTrainingPlan", "CreateReservedCapacity"]}},
            because=f"{generations} {unnamed}",
        )
        allow(
            role,
            ["sagemaker:ListTrainingPlans", "sagemaker:SearchTrainingPlanOfferings", "ec2:DescribeAvailabilityZones"],
            ["*"],
            because="These actions support no resource.",
        )
        allow(
            role,
            [
                "dynamodb:CreateTable",
                "dynamodb:DescribeContinuousBackups",
                "dynamodb:DescribeTable",
                "dynamodb:GetItem",
                "dynamodb:PutItem",
                "dynamodb:TagResource",
                "dynamodb:UpdateContinuousBackups",
            ],
            [stack.format_arn(service="dynamodb", resource="table", resource_name=TABLE)],
        )

    def _allow_reminding(
        self, role: iam.IRole, stack: cdk.Stack, schedule_groups: Iterable[str], scheduler_role: iam.IRole
    ) -> None:
        """What the handler needs to keep the schedules of reminders in step with the plan."""
        schedules = [
            stack.format_arn(service="scheduler", resource="schedule", resource_name=f"{group}/*")
            for group in schedule_groups
        ]
        allow(
            role,
            ["scheduler:CreateSchedule", "scheduler:DeleteSchedule", "scheduler:UpdateSchedule"],
            schedules,
            because="The name of a schedule holds the end of a part of the plan, which SageMaker decides.",
        )
        allow(role, ["scheduler:ListSchedules"], ["*"], because="The action supports no resource.")
        allow(
            role,
            ["iam:PassRole"],
            [scheduler_role.role_arn],
            only_if={"StringEquals": {"iam:PassedToService": "scheduler.amazonaws.com"}},
        )


def _what(environment: str, name: str, plan: TrainingPlan, tags: Mapping[str, str]) -> dict[str, Any]:
    """Which plan it is, or what to buy."""
    if plan.arn:
        return {"Arn": plan.arn}
    request = Request(
        environment,
        name,
        plan.zones,
        plan.instance_type,
        plan.count,
        plan.ultraserver_type,
        plan.ultraserver_count,
        plan.spares_per_ultraserver,
        plan.days * _HOURS_PER_DAY if plan.days else None,
        plan.start_after,
        plan.end_before,
        plan.max_upfront_usd,
    )
    return {"Request": request.to_properties(), "Tags": dict(sorted(tags.items()))}


def _needs(plan: str, groups: Mapping[str, GroupBase]) -> Iterator[dict[str, Any]]:
    """What the groups that draw on a plan want of it."""
    for name, group in sorted(groups.items()):
        if group.plan == plan:
            zone = {"Zone": group.zone_ids[0]} if len(group.zone_ids) == 1 else {}
            yield {"Group": name, **zone, "InstanceType": group.types[0], "Count": group.count}
