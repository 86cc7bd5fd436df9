"""The stack of queues for SageMaker training jobs, which need no cluster."""

import aws_cdk as cdk
from aws_cdk import aws_s3 as s3
from constructs import Construct

from ..constructs.platform.training_job_queue import TrainingJobs
from ..constructs.platform.training_roles import TrainingRole
from ..planning.jobs.training_job import queue_name, role_path
from ..planning.kubernetes.deployed_values import OUTPUT_DESCRIPTION
from ..planning.resolved import ResolvedEnvironment
from .network import NetworkStack
from .storage import StorageStack


class TrainingJobsStack(cdk.Stack):
    """A queue of AWS Batch for each entry of `training_job_queues`, and what jobs of each team run as. Stateless."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        resolved: ResolvedEnvironment,
        network: NetworkStack,
        storage: StorageStack,
    ) -> None:
        """Defines the stack of an environment; jobs write to the bucket of `storage`."""
        super().__init__(scope, construct_id, description="Queues of SageMaker training jobs")
        environment = resolved.environment
        self.queues = {
            name: TrainingJobs(
                self,
                f"Queue-{name}",
                name=queue_name(environment.name, name),
                settings=settings,
                teams=environment.governance.teams,
            )
            for name, settings in environment.training_job_queues.items()
        }
        """The queues by their name in the file."""

        shares = {team for queue in environment.training_job_queues.values() for team in queue.quota}
        # By its name, which the storage stack exports whether anybody uses it or not.
        bucket = s3.Bucket.from_bucket_name(self, "Checkpoints", storage.checkpoint_bucket.bucket_name)
        for team in sorted(shares):
            made = TrainingRole(
                self,
                f"Role-{team}",
                team=team,
                bucket=bucket,
                key=network.key,
                inputs=[
                    uri for job in environment.training_jobs.values() if job.team == team for uri in job.inputs.values()
                ],
            )
            value, description = made.role.role_arn, f"{OUTPUT_DESCRIPTION}{role_path(team)}"
            cdk.CfnOutput(made, "Arn", value=value, description=description)
