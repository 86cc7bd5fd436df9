"""What benchmarks say about a node: the file that a node keeps and puts into the lifecycle bucket.

The node's own scripts write it without this module, which they cannot import; tests hold the two together.
"""

from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field

from ...config.loading.schema import published_schema
from ...config.settings.base import Settings
from ...config.settings.groups import BenchmarkPolicy

Outcome = Literal["pass", "warn", "fail", "skip"]


class Measurement(Settings):
    """One kernel on one device, or between some."""

    name: Annotated[str, Field(min_length=1)]
    """Of the kernel, such as gemm_bf16."""
    devices: tuple[int, ...]
    """Accelerators that took part, by index; empty when the node as a whole was measured."""
    value: float | None
    """What was measured, in `unit`; null when nothing was."""
    unit: str
    """Such as TFLOPS, GB/s, us or errors."""
    higher_is_better: bool
    """Whether a larger value is the better one."""
    fail_below: float | None
    """The worst value that does not fail; a node with a worse one does. Where lower is better, worse is above it."""
    warn_below: float | None
    """The worst value that does not warn."""
    bound: float | None
    """What the hardware can do at best, by its own specification."""
    source: str
    """Where the lines come from."""
    outcome: Outcome
    """What follows for this measurement."""
    reason: str
    """Why, when it is not `pass`; else empty."""


class Decision(Settings):
    """What follows for the node."""

    policy: BenchmarkPolicy
    """What the group does with a verdict."""
    action: Literal["keep", "exit", "replace"]
    """keep: the node takes work. exit: its scripts end with an error, and HyperPod replaces it. replace: it is marked
    for replacement."""
    reason: str
    """Why."""


class BenchmarkResults(Settings):
    """One run of the benchmarks on one node."""

    version: Literal[1]
    """Version of this layout."""
    cluster: str
    """Name of the HyperPod cluster."""
    group: str
    """Instance group of the node."""
    instance_id: str | None
    """The instance; null where the node could not tell."""
    instance_type: str
    """Its HyperPod type."""
    started: AwareDatetime
    """When the run began."""
    seconds: Annotated[float, Field(ge=0)]
    """How long it took."""
    mode: Literal["quick", "thorough"]
    """How long the kernels ran."""
    thresholds_version: str
    """Version of the lines; empty when there were none."""
    results: tuple[Measurement, ...]
    """Every measurement."""
    verdict: Outcome
    """The worst outcome; `skip` when nothing could be measured."""
    decision: Decision | None = None
    """What follows for the node; null until that is decided."""


def benchmark_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a node's benchmark results, published as docs/benchmark.schema.json."""
    return published_schema(BenchmarkResults, "podwright benchmark results")
