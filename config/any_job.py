"""A job of any kind, told apart by `kind`: what the JSON Schema shows, and what an unknown kind is compared with."""

from typing import Annotated

from pydantic import Field

from .job_kinds import BatchJob, MpiJob, NcclTest, RayJob, TrainJob
from .job_pytorch import HyperPodPyTorchJob, PyTorchJob, RecipeJob
from .job_services import InferenceEndpoint, Space

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
    | Space,
    Field(discriminator="kind"),
]
