"""A queue of AWS Batch for SageMaker training jobs, shared by teams."""

from collections.abc import Mapping

import aws_cdk as cdk
from aws_cdk import aws_batch as batch
from constructs import Construct

from ...config.settings.governance.teams import Team
from ...config.settings.platform import TrainingJobQueue
from ...planning.quota.queue_shares import Share, queue_shares
from ...planning.rules import check


class TrainingJobs(Construct):
    """Service environment, scheduling policy, job queue and a quota share for each team.

    Decided for you: capacity is counted by instance type, which Batch asks for where teams have quotas; idle capacity
    goes to borrowers first come, first served, which is all that Batch has. Within a share jobs of higher scheduling
    priority, which each job carries, go first. Names follow the environment, because a
    submitted job names its queue and its share. What waits in a queue when the queue goes is lost.
    Source: AWS Batch API, CreateServiceEnvironment and CreateQuotaShare, 2026-11.

    Example:
        from podwright.config.settings.platform import TrainingJobQueue
        from podwright.config.settings.governance.teams import Team
        queue = TrainingJobQueue(capacity={"ml.p5.48xlarge": 8}, quota={"llm": {"ml.p5.48xlarge": 6}})
        TrainingJobs(stack, "Queue", name="prod-train", settings=queue, teams={"llm": Team(share="lend")})
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, name: str, settings: TrainingJobQueue, teams: Mapping[str, Team]
    ) -> None:
        """Defines the queue.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            name: Name of the queue and of what belongs to it.
            settings: Its settings.
            teams: Teams by name; those in its quota have a share.

        Raises:
            InvalidSettings: settings that cannot be built.
        """
        super().__init__(scope, construct_id)
        check(settings)
        shares = queue_shares(settings, teams)
        state = settings.state.upper()

        environment = batch.CfnServiceEnvironment(
            self,
            "Environment",
            service_environment_name=name,
            service_environment_type="SAGEMAKER_TRAINING",
            capacity_limits=[
                batch.CfnServiceEnvironment.CapacityLimitProperty(capacity_unit=unit, max_capacity=count)
                for unit, count in sorted(settings.capacity.items())
            ],
        )
        policy = batch.CfnSchedulingPolicy(
            self,
            "Policy",
            name=name,
            quota_share_policy=batch.CfnSchedulingPolicy.QuotaSharePolicyProperty(
                idle_resource_assignment_strategy="FIFO"
            ),
        )
        self.queue = batch.CfnJobQueue(
            self,
            "Queue",
            job_queue_name=name,
            job_queue_type="SAGEMAKER_TRAINING",
            # Of use only to queues that share a service environment, which these do not.
            priority=1,
            scheduling_policy_arn=policy.attr_arn,
            service_environment_order=[
                batch.CfnJobQueue.ServiceEnvironmentOrderProperty(
                    order=1, service_environment=environment.attr_service_environment_arn
                )
            ],
            job_state_time_limit_actions=_limits(settings.at_the_head),
            state=state,
        )
        """The queue; its reference is its ARN."""
        self.shares = {team: self._share(team, share, state) for team, share in shares.items()}
        """The shares by team."""
        cdk.CfnOutput(self, "QueueArn", value=self.queue.attr_job_queue_arn, description=f"Queue {name}")

    def _share(self, team: str, share: Share, state: str) -> batch.CfnQuotaShare:
        """The part of the queue that a team has."""
        return batch.CfnQuotaShare(
            self,
            f"Share-{team}",
            quota_share_name=team,
            job_queue=self.queue.attr_job_queue_arn,
            capacity_limits=[
                batch.CfnQuotaShare.QuotaShareCapacityLimitProperty(capacity_unit=unit, max_capacity=count)
                for unit, count in share.capacity.items()
            ],
            resource_sharing_configuration=batch.CfnQuotaShare.QuotaShareResourceSharingConfigurationProperty(
                strategy=share.strategy, borrow_limit=share.borrow_limit
            ),
            preemption_configuration=batch.CfnQuotaShare.QuotaSharePreemptionConfigurationProperty(
                in_share_preemption="ENABLED" if share.preempts else "DISABLED"
            ),
            state=state,
        )


def _limits(seconds: int | None) -> list[batch.CfnJobQueue.JobStateTimeLimitActionProperty] | None:
    if seconds is None:
        return None
    return [
        batch.CfnJobQueue.JobStateTimeLimitActionProperty(
            # The only action that queues of training jobs take.
            action="TERMINATE",
            max_time_seconds=seconds,
            reason="CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY",
            state="RUNNABLE",
        )
    ]
