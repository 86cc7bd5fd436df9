"""The stack of queues for SageMaker training jobs, which need no cluster."""

import aws_cdk as cdk
from constructs import Construct

from ..constructs.platform.training_job_queue import TrainingJobs
from ..planning.resolved import ResolvedEnvironment


class TrainingJobsStack(cdk.Stack):
    """A queue of AWS Batch for each entry of `training_job_queues`. Stateless."""

    def __init__(self, scope: Construct, construct_id: str, *, resolved: ResolvedEnvironment) -> None:
        """Defines the stack of an environment."""
        super().__init__(scope, construct_id, description="Queues of SageMaker training jobs")
        environment = resolved.environment
        self.queues = {
            name: TrainingJobs(
                self,
                f"Queue-{name}",
                name=f"{environment.name}-{name}",
                settings=settings,
                teams=environment.governance.teams,
            )
            for name, settings in environment.training_job_queues.items()
        }
        """The queues by their name in the file."""
