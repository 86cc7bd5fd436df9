"""What runs until somebody stops it: model endpoints and notebooks."""

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from ..base import BucketName, FileSystemId, MountPath, Region, RoleArn, Settings
from .base import Argument, ImageName, Job, ObjectName
from .endpoints import Autoscaling, DataCapture, KvCache, Metrics, Probes, RequestLimits, Routing, Tls

_ModelName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9](-*[a-zA-Z0-9])*$", max_length=63)]
_Location = Annotated[str, StringConstraints(pattern=r"^[^/\s][^\s]*$", max_length=1024)]
_HubModel = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$", max_length=200)]
_ModelVersion = Annotated[str, StringConstraints(pattern=r"^\d{1,4}\.\d{1,4}\.\d{1,4}$")]
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
    revision: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")] | None = None
    """Commit of a model of Hugging Face; the newest of its main branch when absent."""
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


class Endpoint(Job):
    """A model behind an HTTPS endpoint, by HyperPod's inference operator."""

    replicas: int | None = Field(default=None, ge=1, le=1000)
    """Pods, or with autoscaling those that it starts with. 1 when absent, or the fewest."""
    autoscaling: Autoscaling | None = None
    """More and fewer pods by load; as many as at the start when absent."""
    endpoint: _ModelName | None = None
    """SageMaker endpoint that is made as well; none when absent."""
    kv_cache: KvCache | None = None
    """Where keys and values of tokens are kept."""
    routing: Routing | None = None
    """Which pod answers a request; the load balancer chooses when absent."""
    balance: Literal["least_outstanding_requests", "round_robin"] | None = None
    """How the load balancer chooses; the operator's default when absent."""
    tls: Tls | None = None
    """Certificate and name."""
    data_capture: DataCapture | None = None
    """Requests and answers that are kept."""
    metrics: Metrics | None = None
    """Metrics of the container; the operator's default when absent."""
    deploy_seconds: Annotated[int, Field(ge=1, le=31_536_000)] | None = None
    """The deployment fails when it is not done after this; 3600 when absent."""

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.autoscaling and not self.autoscaling.min_replicas <= self.start <= self.autoscaling.max_replicas:
            raise ValueError(
                f"replicas from min_replicas to max_replicas of autoscaling, and it is {self.start}: "
                f"{self.autoscaling.min_replicas} to {self.autoscaling.max_replicas}"
            )
        if self.data_capture and self.data_capture.endpoint and not self.endpoint:
            raise ValueError("data_capture.endpoint only with a SageMaker endpoint under `endpoint`")
        return self

    @property
    def sizes(self) -> tuple[int, ...]:
        """Every number of pods that it may have, in rising order."""
        return (
            tuple(range(max(self.autoscaling.min_replicas, 1), self.autoscaling.max_replicas + 1))
            if (self.autoscaling)
            else (self.start,)
        )

    @property
    def start(self) -> int:
        """Pods that it starts with."""
        return self.replicas or max(self.autoscaling.min_replicas if self.autoscaling else 1, 1)


class InferenceEndpoint(Endpoint):
    """A model of your own behind an HTTPS endpoint, by HyperPod's inference operator. `image` serves it."""

    kind: Literal["inference"]
    """Kind of job."""
    model_name: _ModelName
    """Name of the model."""
    model_version: _ModelVersion | None = None
    """Version of the model, of its SageMaker endpoint."""
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
    probes: Probes | None = None
    """How the kubelet asks whether all is well; the operator's default when absent."""
    request_limits: RequestLimits | None = None
    """Requests that a pod takes at once; all of them when absent."""


class JumpStartModel(Endpoint):
    """A model of SageMaker JumpStart behind an HTTPS endpoint.

    JumpStart knows its image, its command and how much of a node it takes. `accelerators` is what quotas reckon with,
    and the object says nothing of it.
    """

    kind: Literal["jumpstart"]
    """Kind of job."""
    image: ImageName = ""
    """JumpStart's own; no file says it."""
    model_id: _ModelName
    """Its id in the hub, such as meta-textgeneration-llama-3-1-8b-instruct."""
    model_version: _ModelVersion | None = None
    """Version of the model; the newest when absent."""
    hub: Annotated[str, StringConstraints(min_length=1, max_length=2048)] | None = None
    """Name or ARN of the hub; JumpStart's public one when absent."""
    accept_eula: bool = False
    """Whether you have accepted the model's terms of use, where it has some."""
    gated_role: RoleArn | None = None
    """Role that downloads the model, where it is gated; that of platform.inference.gated_models_role when absent."""
    execution_role: RoleArn | None = None
    """Role that deploys the model; the operator's own when absent."""
    configs: dict[Annotated[str, StringConstraints(min_length=1, max_length=256)], Argument] = {}
    """Further configurations of the model, as JumpStart names them."""
    health_path: Annotated[str, StringConstraints(pattern=r"^/[^\s]*$", max_length=255)] | None = None
    """Path at which the load balancer asks whether a pod is well; the operator's default when absent."""


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
