"""The jobs of an environment: a template of one of several kinds, told apart by `kind`."""

from typing import Annotated

from pydantic import Field

from .job_pytorch import HyperPodPyTorchJob, PyTorchJob

AnyJob = Annotated[HyperPodPyTorchJob | PyTorchJob, Field(discriminator="kind")]
