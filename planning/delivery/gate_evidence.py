"""The evidence of a gate: the file that `podwright gate` keeps of each run, published as docs/gate.schema.json."""

from typing import Any, Literal

from pydantic import AwareDatetime, Field

from ...config.loading.schema import published_schema
from ...config.settings.base import Settings
from ...config.settings.gates import GateName

Verdict = Literal["passed", "failed", "skipped"]


class Check(Settings):
    """One thing that was looked at."""

    about: str
    """What: a group, a node, a quota, an exporter."""
    wanted: str
    """What it has to be."""
    seen: str
    """What it was when the gate looked last."""
    ok: bool
    """Whether that is good enough."""


class Evidence(Settings):
    """One run of one gate."""

    version: Literal[1] = 1
    """Version of this layout."""
    gate: GateName
    """The gate."""
    title: str
    """What is so when it passes."""
    environment: str
    """Name of the environment."""
    cluster: str
    """Name of its HyperPod cluster."""
    account: str
    """AWS account id."""
    region: str
    """AWS region."""
    orchestrator: Literal["eks", "slurm", "none"]
    """What schedules the work."""
    simulated: bool
    """Whether the embedded sandbox answered in place of AWS: then nothing was proved of any hardware."""
    podwright: str
    """Version of podwright."""
    asked: dict[str, Any]
    """The gate's settings with every default, and what follows from them, such as lines and numbers of nodes."""
    begun: AwareDatetime
    """When the run began."""
    seconds: float = Field(ge=0)
    """How long it took."""
    timeout_seconds: float = Field(ge=0)
    """How long it might have taken."""
    verdict: Verdict
    """Whether it passed; skipped where it does not apply."""
    reason: str
    """Why, in a sentence."""
    next_step: str
    """What to do next when it failed; else empty."""
    checks: tuple[Check, ...]
    """Everything that was looked at, as it was at the last read."""
    answers: dict[str, Any]
    """What was answered that decided, secrets taken out: statuses, tables of measurements, ends of logs."""


def evidence_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of evidence."""
    return published_schema(Evidence, "podwright evidence of a gate")
