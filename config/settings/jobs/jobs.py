"""The jobs of an environment: a template of one of several kinds, told apart by `kind`."""

from typing import Annotated

from pydantic import Field

from .base import JobName
from .kinds import BatchJob, MpiJob, NcclTest, RayJob, TrainJob
from .pytorch import HyperPodPyTorchJob, PyTorchJob, RecipeJob
from .sbatch import SbatchJob
from .services import InferenceEndpoint, Space

AnyJob = Annotated[
    HyperPodPyTorchJob
    | PyTorchJob
    | RecipeJob
    | RayJob
    | NcclTest
    | MpiJob
    | TrainJob
    | BatchJob
    | InferenceEndpoint
    | Space
    | SbatchJob,
    Field(discriminator="kind"),
]

Jobs = dict[JobName, AnyJob]
