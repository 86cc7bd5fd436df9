"""What endpoints of models have besides their pods: their number by load, caches, routes, names, captures and probes.

Sources: sagemaker-hyperpod 3.12.0; hyperpod-custom-inference-template 1.2.1; SageMaker Developer Guide, KV caching and
intelligent routing, autoscaling policies for inference, 2026-11.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from ..base import S3Uri, Settings
from .base import Seconds
from .pods import Argument

_Measure = Literal["average", "value"]
_Number = Annotated[float, Field(allow_inf_nan=False)]
_Percent = Annotated[int, Field(ge=0, le=100)]
_Port = Annotated[int, Field(ge=1, le=65535)]
_Text = Annotated[str, StringConstraints(min_length=1, max_length=4096)]
_Path = Annotated[str, StringConstraints(pattern=r"^/[^\s]*$", max_length=255)]
_CertificateArn = Annotated[
    str, StringConstraints(pattern=r"^arn:aws[a-z-]*:acm:[a-z0-9-]+:[0-9]{12}:certificate/[a-fA-F0-9-]+$")
]
_Domain = Annotated[
    str,
    StringConstraints(
        pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$", max_length=253
    ),
]
_HostedZone = Annotated[str, StringConstraints(pattern=r"^Z[A-Z0-9]+$", max_length=32)]


class _Trigger(Settings):
    """What the two sources of metrics share."""

    target: _Number
    """Value per pod, or of all pods, at which the number of pods is right."""
    measure: _Measure = "average"
    """Whether the target is for each pod, or for all of them together (value)."""
    activation: _Number | None = None
    """Value above which an endpoint without pods gets its first one; only with min_replicas 0."""
    cached: bool = True
    """Use a value again until it is asked for the next time."""


class CloudWatchTrigger(_Trigger):
    """A metric of CloudWatch that says how many pods there should be."""

    namespace: _Text
    """Namespace of the metric, such as AWS/ApplicationELB."""
    metric: _Text
    """Name of the metric."""
    dimensions: dict[_Text, _Text] = {}
    """Its dimensions."""
    statistic: _Text = "Average"
    """Its statistic."""
    period_seconds: Annotated[int, Field(ge=1, le=86400)] = 300
    """Seconds of a data point."""
    window_seconds: Annotated[int, Field(ge=1, le=86400)] = 300
    """How far back it looks for data points."""
    empty: _Number = 0
    """Value where CloudWatch has none."""


class PrometheusTrigger(_Trigger):
    """A query of Prometheus that says how many pods there should be."""

    query: _Text
    """PromQL query with one value."""
    server: Annotated[str, StringConstraints(pattern=r"^https?://[^\s]+$", max_length=2048)]
    """Address of the server, such as the query endpoint of a workspace of Amazon Managed Service for Prometheus."""
    namespace: _Text | None = None
    """Namespace of queries, where the server divides its data by it."""


class Autoscaling(Settings):
    """As many pods as the load needs, by KEDA, which comes with the inference operator."""

    min_replicas: Annotated[int, Field(ge=0, le=1000)] = 1
    """Fewest pods."""
    max_replicas: Annotated[int, Field(ge=1, le=1000)]
    """Most pods."""
    cloudwatch: dict[_Text, CloudWatchTrigger] = {}
    """Metrics of CloudWatch, by a name of your own. The one that wants the most pods decides."""
    prometheus: dict[_Text, PrometheusTrigger] = {}
    """Queries of Prometheus, by a name of your own."""
    polling_seconds: Annotated[int, Field(ge=1, le=86400)] = 30
    """How often the metrics are asked for."""
    cooldown_seconds: Seconds = 300
    """How long nothing has to be asked of it before its last pod goes."""
    initial_cooldown_seconds: Seconds = 300
    """How long that does not count after it was made."""
    scale_up_seconds: Seconds = 0
    """How long more pods have to be wanted before they come."""
    scale_down_seconds: Seconds = 300
    """How long fewer pods have to be wanted before some go."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.min_replicas > self.max_replicas:
            raise ValueError(f"min_replicas of at most max_replicas, and {self.min_replicas} > {self.max_replicas}")
        if not self.cloudwatch and not self.prometheus:
            raise ValueError("a metric under `cloudwatch` or `prometheus`; otherwise nothing says how many pods")
        waking = [name for name, each in (self.cloudwatch | self.prometheus).items() if each.activation is not None]
        if waking and self.min_replicas:
            raise ValueError(f"activation only with min_replicas 0, and {waking[0]} has one")
        return self


class KvCache(Settings):
    """Keys and values of tokens that were reckoned once, kept where they are found again. Only with images of vLLM."""

    cpu: bool = True
    """Keep them in the memory of the node (L1)."""
    shared: Literal["tieredstorage", "redis"] | None = None
    """Keep them for all nodes (L2): in the memory of the cluster that managed tiered checkpointing sets aside, or in a
    Redis of your own."""
    redis: Annotated[str, StringConstraints(pattern=r"^rediss?://[^\s]+$", max_length=2048)] | None = None
    """Address of that Redis."""
    config_file: _Text | None = None
    """File of the image that says all this instead."""

    @model_validator(mode="after")
    def _where(self) -> Self:
        if (self.shared == "redis") != (self.redis is not None):
            raise ValueError("`shared: redis` and the address under `redis` together")
        if not (self.cpu or self.shared or self.config_file):
            raise ValueError("`cpu`, `shared` or `config_file`; otherwise there is no cache")
        return self


class Routing(Settings):
    """Which pod answers a request. Cannot be added to an endpoint that runs, nor taken from it."""

    strategy: Literal["prefix_aware", "kv_aware", "session", "round_robin"] = "prefix_aware"
    """The pod that had the same beginning before, the one with most of its keys and values, the one of the session, or
    each in its turn."""
    autoscaling: Autoscaling | None = None
    """As many routers as the load needs; one when absent."""


class Tls(Settings):
    """The certificate and the name of an endpoint. The operator makes a certificate of its own when absent."""

    certificate: _CertificateArn | None = None
    """Certificate of ACM."""
    domain: _Domain | None = None
    """Name of the certificate by which the endpoint is asked."""
    hosted_zone: _HostedZone | None = None
    """Hosted zone of Route 53 in which the operator keeps that name."""
    output: S3Uri | None = None
    """Where the operator puts the certificate that it makes."""

    @model_validator(mode="after")
    def _together(self) -> Self:
        if (self.certificate is None) != (self.domain is None):
            raise ValueError("certificate and domain together")
        if self.hosted_zone and not self.certificate:
            raise ValueError("hosted_zone only with certificate and domain")
        if not self.certificate and not self.output:
            raise ValueError("certificate and domain, or output")
        return self


class Capture(Settings):
    """What of requests and answers is kept."""

    percent: _Percent = 100
    """Part of the requests."""
    parts: tuple[Literal["input", "output"], ...] = Field(default=("input", "output"), min_length=1)
    """Requests, answers or both."""
    key: Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9:/_-]+$", max_length=2048)] | None = None
    """KMS key of what is kept: its id, ARN or alias."""
    json_types: tuple[_Text, ...] = ()
    """Content types that are kept as JSON."""
    csv_types: tuple[_Text, ...] = ()
    """Content types that are kept as CSV."""


class PodCapture(Capture):
    """What of requests and answers each pod keeps."""

    batch: Annotated[int, Field(ge=1, le=100_000)] = 10
    """Requests that are written together."""
    flush_seconds: Annotated[int, Field(ge=1, le=86400)] = 60
    """How long a request waits for others at most."""
    max_payload_kb: Annotated[int, Field(ge=0, le=1_048_576)] = 0
    """KB of a request or an answer that are kept; all of it with 0."""


class DataCapture(Settings):
    """Requests and answers, kept in S3 at up to three places: for audits, and to see when a model drifts."""

    s3: S3Uri
    """Prefix below which each of the three has its own."""
    endpoint: Capture | None = None
    """At the SageMaker endpoint."""
    load_balancer: bool = False
    """Access logs of the load balancer."""
    pods: PodCapture | None = None
    """At the pods."""

    @model_validator(mode="after")
    def _somewhere(self) -> Self:
        if not (self.endpoint or self.load_balancer or self.pods):
            raise ValueError("`endpoint`, `load_balancer` or `pods`; otherwise nothing is kept")
        return self


class Probe(Settings):
    """How the kubelet asks a container whether all is well: by a path of a port, a port alone, or a command."""

    path: _Path | None = None
    """Path that answers with a status from 200 to 399."""
    port: _Port | None = None
    """Port; the endpoint's own when absent."""
    command: tuple[Argument, ...] = ()
    """Command that ends with 0, instead."""
    delay_seconds: Seconds | None = None
    """How long after its start the container is not asked."""
    period_seconds: Annotated[int, Field(ge=1, le=86400)] | None = None
    """How often it is asked."""
    timeout_seconds: Annotated[int, Field(ge=1, le=86400)] | None = None
    """How long it may take to answer."""
    failures: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Failures in a row that count."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.command and (self.path or self.port):
            raise ValueError("`command`, or `path` and `port`")
        if not (self.command or self.path or self.port):
            raise ValueError("`path`, `port` or `command`")
        return self


class Probes(Settings):
    """The three questions of the kubelet."""

    startup: Probe | None = None
    """Whether the container has started; the others wait for it. Weights take their time to load."""
    readiness: Probe | None = None
    """Whether it takes requests."""
    liveness: Probe | None = None
    """Whether it has to be started anew."""


class RequestLimits(Settings):
    """Requests that a pod takes at once; the proxy beside the container refuses the others."""

    concurrent: Annotated[int, Field(ge=1, le=100_000)]
    """Requests at once."""
    queue: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Requests that wait."""
    status: Annotated[int, Field(ge=400, le=599)] | None = None
    """HTTP status of the others; 429 when absent."""


class Metrics(Settings):
    """Metrics of the container, beside those of the proxy."""

    path: _Path = "/metrics"
    """Path of the container's metrics."""
    port: _Port = 8080
    """Port of the container's metrics."""
    every_seconds: Annotated[int, Field(ge=1, le=3600)] = 15
    """How often they are read."""
