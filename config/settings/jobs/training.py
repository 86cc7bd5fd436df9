"""Training jobs of SageMaker, which bring their own instances and wait in a queue of AWS Batch."""

from typing import Annotated

from pydantic import Field, StringConstraints

from ..base import InstanceTypeName, QueueName, RoleArn, S3Uri, Settings
from ..governance.teams import PriorityName, TeamName
from ..software import VariableName
from .patch import Patch
from .pods import ImageName

# Source: CreateTrainingJob, botocore 1.44.5.
ChannelName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]+$", max_length=64)]
Word = Annotated[str, StringConstraints(max_length=256)]
TrainingJobName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9](-*[a-z0-9])*$", max_length=40)]


class TrainingJob(Settings):
    """A training job that `podwright submit` hands to a queue of `training_job_queues`; a deployment never does."""

    queue: QueueName
    """A key of `training_job_queues`."""
    team: TeamName
    """A key of `governance.teams` with a share of the queue, which it counts against."""
    priority: PriorityName | None = None
    """A key of `governance.priorities`, whose weight is its scheduling priority within the share."""
    image: ImageName
    """Container image."""
    command: tuple[Word, ...] = Field(default=(), max_length=100)
    """What runs, and its arguments; the image's own when absent."""
    env: dict[VariableName, Annotated[str, StringConstraints(max_length=512)]] = Field(default={}, max_length=100)
    """Environment variables."""
    instance_type: InstanceTypeName
    """A type of the queue's capacity."""
    nodes: int = Field(default=1, ge=1, le=6758)
    """Instances."""
    volume_gib: int = Field(default=100, ge=1, le=16384)
    """GiB of each instance's volume; types with local NVMe use that."""
    inputs: dict[ChannelName, S3Uri] = Field(default={}, max_length=20)
    """S3 prefixes by channel, which the container sees as a folder of /opt/ml/input/data."""
    output: S3Uri | None = None
    """Where the model goes. Default: `TEAM/training-jobs/` in the environment's bucket for checkpoints."""
    checkpoints: S3Uri | None = None
    """Prefix that is kept in step with /opt/ml/checkpoints. Default: `TEAM/checkpoints/NAME/` in the environment's
    bucket."""
    max_hours: float = Field(default=24, gt=0, le=672)
    """Hours of running after which SageMaker stops it."""
    attempts: int = Field(default=1, ge=1, le=10)
    """How often Batch starts it before it has failed."""
    role: RoleArn | None = None
    """Its execution role. Default: the one that podwright makes for its team."""
    request: Patch | None = None
    """Further members of CreateTrainingJob by their API names as YAML text, such as VpcConfig; they win over all of the
    above."""
