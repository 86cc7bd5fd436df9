"""What runs until somebody stops it: model endpoints and notebooks."""

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from ..base import BucketName, FileSystemId, MountPath, Region, Settings
from .base import Job, ObjectName

_ModelName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9](-*[a-zA-Z0-9])*$", max_length=63)]
_Location = Annotated[str, StringConstraints(pattern=r"^[^/\s][^\s]*$", max_length=1024)]
_HubModel = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$", max_length=200)]
_Minutes = Annotated[int, Field(ge=1, le=525_600)]


class ModelSource(Settings):
    """Where a model's weights come from: a bucket, a Lustre file system, or Hugging Face. Give one of the three."""

    bucket: BucketName | None = None
    """S3 bucket."""
    region: Region | None = None
    """Region of the bucket. Default: the environment's."""
    file_system: FileSystemId | None = None
    """FSx for Lustre file system."""
    location: _Location | None = None
    """Prefix in the bucket, or folder of the file system, without a slash in front."""
    hugging_face: _HubModel | None = None
    """Model of Hugging Face, such as mistralai/Mistral-7B-v0.1."""
    token_secret: ObjectName | None = None
    """Secret of the namespace whose key `token` opens a gated model."""
    prefetch: bool = False
    """Load the weights before the container starts."""

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        specified = [self.bucket, self.file_system, self.hugging_face]
        if sum(position is not None for position in specified) != 1:
            raise ValueError("one of `bucket`, `file_system` and `hugging_face`")
        return self


class InferenceEndpoint(Job):
    """A model behind an HTTPS endpoint, by HyperPod's inference operator. `image` serves it."""

    kind: Literal["inference"]
    """Kind of job."""
    replicas: int = Field(default=1, ge=1, le=1000)
    """Pods."""
    model_name: _ModelName
    """Name of the model."""
    model: ModelSource
    """Where its weights come from."""
    port: int = Field(default=8080, ge=1, le=65535)
    """Port on which the image serves."""
    path: Annotated[str, StringConstraints(pattern=r"^[^\s/][^\s]*$", max_length=255)] = "invocations"
    """Path of requests, such as v1/chat/completions."""
    health_path: Annotated[str, StringConstraints(pattern=r"^/[^\s]*$", max_length=255)] = "/ping"
    """Path at which the load balancer asks whether a pod is well."""
    weights: MountPath = "/opt/ml/model"
    """Where pods see the weights."""
    endpoint: _ModelName | None = None
    """SageMaker endpoint that is made as well; none when absent."""


class Space(Job):
    """A JupyterLab or Code Editor of one person, by the Spaces add-on. `command` replaces what the image starts."""

    kind: Literal["space"]
    """Kind of job."""
    title: Annotated[str, StringConstraints(min_length=1, max_length=63)] | None = None
    """Name that people see; the job's when absent."""
    home_gib: int = Field(default=50, ge=1, le=16384)
    """GiB of the home folder."""
    storage_class: ObjectName | None = None
    """Storage class of the home folder; the cluster's default when absent."""
    private: bool = True
    """Only its owner can change and open it; everybody in the namespace otherwise."""
    idle_minutes: _Minutes | None = 120
    """Stop it when nobody used it for so long; never when null."""
    template: ObjectName | None = None
    """WorkspaceTemplate of the namespace that completes it."""
