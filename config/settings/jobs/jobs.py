"""The jobs of an environment: a template of one of several kinds, told apart by `kind`."""

from typing import Annotated

from pydantic import Field

from .base import JobName
from .kinds import BatchJob, JobSet, LeaderWorkerSet, MpiJob, NcclTest, RayCluster, RayJob, TrainJob
from .pytorch import HyperPodPyTorchJob, PyTorchJob, RecipeJob
from .sbatch import SbatchJob
from .services import InferenceEndpoint, JumpStartModel, Space

AnyJob = Annotated[
    HyperPodPyTorchJob
    | PyTorchJob
    | RecipeJob
    | RayJob
    | RayCluster
    | NcclTest
    | MpiJob
    | TrainJob
    | JobSet
    | LeaderWorkerSet
    | BatchJob
    | InferenceEndpoint
    | JumpStartModel
    | Space
    | SbatchJob,
    Field(discriminator="kind"),
]

Jobs = dict[JobName, AnyJob]
