"""PyTorch jobs: HyperPod's own kind, which heals processes and grows and shrinks, and Kubeflow's."""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from ..base import MountPath, S3Uri, Settings
from ..governance.teams import PriorityName
from .base import Argument, DistributedJob, Seconds

Replicas = Annotated[int, Field(ge=1, le=6758)]


def _expression(value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"a regular expression; this one is none: {error}") from None
    return value


LogPattern = Annotated[str, StringConstraints(min_length=1, max_length=1024), AfterValidator(_expression)]


class Elastic(Settings):
    """Elastic training: the job grows while capacity is idle and gives it back, in whole replicas.

    The training script saves a checkpoint when `elastic_event_detected()` says so and returns; the operator starts it
    again with another number of ranks. Needs training operator 1.2 and checkpoints that load at every size, such as
    PyTorch's DCP. Sources: SageMaker Developer Guide, elastic training, 2026-11; sagemaker-hyperpod 3.12.0.
    """

    min_replicas: Replicas
    """Fewest replicas that it trains with."""
    max_replicas: Replicas
    """Most replicas that it grows to."""
    step: Replicas | None = None
    """It has min_replicas plus a multiple of this. Give this or `values`."""
    values: tuple[Replicas, ...] = ()
    """The numbers of replicas that it may have, in rising order."""
    scaling_timeout_seconds: Seconds = 60
    """How long more capacity has to stay before it grows."""
    graceful_shutdown_timeout_seconds: Annotated[int, Field(ge=1, le=86400)] = 600
    """How long it may take to save a checkpoint before it is stopped."""
    faulty_scale_down_timeout_seconds: Seconds = 30
    """How long a lost replica may take to come back before it continues with fewer."""
    extra_priority: PriorityName | None = None
    """Priority of the replicas beyond min_replicas. Only these are then taken away by work that goes before them."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        """Refuse sizes that the operator could not step through."""
        if (self.step is None) == (not self.values):
            raise ValueError("one of `step` and `values`, not both and not neither")
        if self.min_replicas > self.max_replicas:
            raise ValueError(f"min_replicas of at most max_replicas, and {self.min_replicas} > {self.max_replicas}")
        if self.values and list(self.values) != sorted(set(self.values)):
            raise ValueError("values in rising order, each once")
        if self.values and (self.values[0], self.values[-1]) != (self.min_replicas, self.max_replicas):
            raise ValueError("values from min_replicas to max_replicas")
        if self.step and (self.max_replicas - self.min_replicas) % self.step:
            raise ValueError(
                f"a step that leads from min_replicas to max_replicas; {self.step} does not divide "
                f"{self.max_replicas} - {self.min_replicas}"
            )
        return self

    @property
    def sizes(self) -> tuple[int, ...]:
        """Every number of replicas that it may have, in rising order."""
        return self.values or tuple(range(self.min_replicas, self.max_replicas + 1, self.step or 1))


class LogRule(Settings):
    """A check of the log of training that finds a job which hangs, is slow, or fails without ending.

    The elastic agent reads standard output; a line that Python still holds back is not seen, so pods get
    PYTHONUNBUFFERED. Source: SageMaker Developer Guide, using the training operator, 2026-11.
    """

    pattern: LogPattern
    """Regular expression that lines begin with if they count, such as `.*step`; a group in it may hold a number."""
    start_seconds: Seconds | None = None
    """The job hangs when the first such line is later than this."""
    every_seconds: Seconds | None = None
    """The job hangs when two such lines are further apart than this."""
    threshold: float | None = Field(default=None, allow_inf_nan=False)
    """The job is slow when the number in the line compares so with this. A whole number for operator 1.2."""
    operator: Literal["gt", "gteq", "lt", "lteq", "eq"] | None = None
    """How the number compares when the job is slow."""
    data_points: int | None = Field(default=None, ge=1)
    """Lines in a row that have to say so; 1 when absent."""
    stop_pattern: LogPattern | None = None
    """Regular expression that the line begins with after which the rule no longer holds."""
    fault_on_match: bool = False
    """Such a line is a fault by itself."""

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if (self.threshold is None) != (self.operator is None):
            raise ValueError("threshold and operator together")
        if self.threshold is not None and re.compile(self.pattern).groups == 0:
            raise ValueError("a pattern with a group around the number that threshold compares with")
        if (self.start_seconds, self.every_seconds, self.threshold) == (None,) * 3 and not self.fault_on_match:
            raise ValueError("start_seconds, every_seconds, threshold or fault_on_match; otherwise it finds nothing")
        return self


class Restarts(Settings):
    """How often what failed is started again.

    Source: SageMaker Developer Guide, using the training operator, 2026-11.
    """

    retries: int = Field(default=50, ge=0, le=100_000)
    """Restarts of processes altogether before the job fails."""
    before_full: int = Field(default=3, ge=0, le=1000)
    """Restarts of processes within the window before all pods are made anew."""
    full: int = Field(default=1, ge=0, le=1000)
    """Times within the window that all pods are made anew before the job fails."""
    window_seconds: Annotated[int, Field(ge=1, le=31_536_000)] = 21600
    """Window in which they are counted."""
    avoid_repeat_offenders: int | None = Field(default=None, ge=0, le=1000)
    """Nodes at most that the job avoids when it is made anew, because it failed there before."""
    scale_up_pause_seconds: Seconds = 0
    """How long an elastic job does not grow after a restart."""


class Checkpoints(Settings):
    """Where checkpoints go. Pods learn it from CHECKPOINT_DIR, CHECKPOINT_S3_URI and CHECKPOINT_NAMESPACE."""

    path: MountPath | None = None
    """Folder at or below one of `mounts`."""
    s3: S3Uri | None = None
    """S3 prefix, without a slash at its end. The service account needs a role that may read and write it."""
    tiered: bool = False
    """Keep them in the memory of the nodes as well (managed tiered checkpointing)."""
    checkpointless: bool = False
    """Recover the state from peers, without a checkpoint: processes stay, and initialisation needs no root. Pods use
    the node's network and are privileged. Source: hyperpod-checkpointless-training 1.0.1."""


class HyperPodPyTorchJob(DistributedJob):
    """PyTorch under HyperPod's training operator: `command` is started by hyperpodrun on each accelerator.

    A `command` that begins with torchrun, hyperpodrun or Python loses that word and the arguments that podwright sets.
    """

    kind: Literal["hyperpod_pytorch"]
    """Kind of job."""
    launch: Literal["hyperpodrun", "image"] = "hyperpodrun"
    """hyperpodrun starts `command`, a script and its arguments. image: what `command` or the image starts does that."""
    hyperpodrun_args: tuple[Argument, ...] = ()
    """Further arguments of hyperpodrun, which takes all of torchrun's."""
    processes_per_node: int | None = Field(default=None, ge=1, le=128)
    """Processes of a pod. Default: its accelerators."""
    spares: int = Field(default=0, ge=0, le=1000)
    """Pods more that quota and capacity are set aside for, to take over from a lost one at once."""
    elastic: Elastic | None = None
    """Grow and shrink; a fixed size when absent."""
    log_rules: dict[Annotated[str, StringConstraints(min_length=1, max_length=63)], LogRule] = {}
    """Detection of jobs that hang or are slow, by a name of your own."""
    restarts: Restarts = Restarts.model_construct()
    """Restarts of what failed."""
    active_deadline_seconds: Seconds | None = None
    """The job ends after this, finished or not."""
    startup_deadline_seconds: Seconds | None = None
    """The job fails when it has not started after this."""
    fault_deadline_seconds: Seconds | None = None
    """The job fails when a fault has not been fixed after this."""
    clean_pods: Literal["all", "only_complete", "none"] = "all"
    """Pods that go when the job ends."""
    keep_seconds: Annotated[int, Field(ge=-1, le=31_536_000)] = 604_800
    """How long the finished job stays to be looked at; -1 forever."""
    checkpoints: Checkpoints = Checkpoints.model_construct()
    """Where checkpoints go."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Every number of pods that it may have, in rising order, spares left out."""
        return self.elastic.sizes if self.elastic else super().sizes

    @property
    def uses_host_network(self) -> bool:
        """Whether its pods use the node's network."""
        return self.host_network or self.checkpoints.checkpointless


class RecipeJob(DistributedJob):
    """A recipe of sagemaker-hyperpod-recipes, whose own launcher makes a HyperPodPyTorchJob of it.

    podwright writes the command that starts the launcher, with everything that follows from group and team; `image` is
    the recipe's container. Source: sagemaker-hyperpod-recipes 2.0.0.
    """

    kind: Literal["recipe"]
    """Kind of job."""
    path: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]+(/[A-Za-z0-9_.-]+)+$", max_length=256)]
    """Its path in the collection, such as fine-tuning/llama/llmft_llama3_1_8b_instruct_seq4k_gpu_sft_lora."""
    overrides: dict[
        Annotated[str, StringConstraints(pattern=r"^[+]{0,2}[A-Za-z0-9_.]+$", max_length=256)], Argument
    ] = {}
    """Settings of the recipe by Hydra's path, such as recipes.training_config.training_args.training_dir."""
    elastic: Elastic | None = None
    """Grow and shrink, over sizes that the recipe's scale_config has settings for."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Every number of pods that it may have, in rising order."""
        return self.elastic.sizes if self.elastic else super().sizes


class KubeflowElastic(Settings):
    """Elastic workers by torchrun's own rendezvous: workers that come or go restart all of them."""

    min_replicas: Replicas
    """Fewest workers that it trains with; what a gang waits for."""
    max_replicas: Replicas
    """Most workers."""
    max_restarts: int = Field(default=100, ge=0, le=10_000)
    """Restarts of all workers before the job fails; every change of their number is one."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.min_replicas > self.max_replicas:
            raise ValueError(f"min_replicas of at most max_replicas, and {self.min_replicas} > {self.max_replicas}")
        return self

    @property
    def sizes(self) -> tuple[int, ...]:
        """Every number of workers that it may have, in rising order."""
        return tuple(range(self.min_replicas, self.max_replicas + 1))


class PyTorchJob(DistributedJob):
    """PyTorch under Kubeflow's training operator, which HyperPod's dependencies chart brings.

    `command` runs in each pod, with the variables of torchrun set: `torchrun train.py` needs no argument of its own.
    """

    kind: Literal["pytorch"]
    """Kind of job."""
    auto_resume: int | None = Field(default=None, ge=1, le=100)
    """Restarts after a node failed and was replaced, by HyperPod; none when absent."""
    elastic: KubeflowElastic | None = None
    """Grow and shrink; a fixed size when absent. Kueue and task governance admit one size only."""
    retries: int = Field(default=3, ge=0, le=1000)
    """Restarts of all pods before the job fails."""
    active_deadline_seconds: Seconds | None = None
    """The job ends after this, finished or not."""
    clean_pods: Literal["all", "running", "none"] = "running"
    """Pods that go when the job ends."""
    keep_seconds: Seconds = 604_800
    """How long the finished job stays to be looked at."""
    checkpoints: Checkpoints = Checkpoints.model_construct()
    """Where checkpoints go."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Every number of pods that it may have, in rising order."""
        return self.elastic.sizes if self.elastic else super().sizes

    @property
    def start(self) -> int:
        """Pods that it starts with: with elastic training the most, of which the scheduler starts as many as fit."""
        return self.nodes or self.sizes[-1]
