"""What every gate has at hand, and the one way in which gates wait."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from ...config.catalog.instance_types import Catalog, environment_types
from ...config.loading.load import LoadedEnvironment
from ...config.settings.gates import Gates
from ...planning.delivery.gate_evidence import Check
from ...planning.delivery.gate_table import Gate, settings_of
from ..aws.account import Account
from ..kubernetes.in_vpc import POLL_SECONDS, InVpc, kubectl_of
from ..kubernetes.kubectl import NO_SCHEDULER, REAL_KUBERNETES, Kubectl, Refused
from ..output.console import write_note

_POLL: Final = 15.0
_POLL_IN_SANDBOX: Final = 0.3
_SILENCE: Final = 60.0
_NAMED: Final = 6
_PATIENCE: Final = 3


@dataclass(slots=True)
class Observation:
    """One observation at what a gate waits for."""

    checks: list[Check] = field(default_factory=list)
    final: str = ""
    """Why waiting longer is of no use; empty where it may be."""
    next_step: str = ""
    """What to do when it stays so."""
    answers: dict[str, Any] = field(default_factory=dict)
    """What was answered, for the evidence."""

    def check(self, about: str, desired: object, observed: object, ok: bool) -> None:
        """Add a check."""
        self.checks.append(Check(about=about, wanted=str(desired), seen=str(observed), ok=ok))

    @property
    def missing(self) -> list[Check]:
        """The checks that are not good enough."""
        return [check for check in self.checks if not check.ok]


@dataclass(slots=True)
class Result:
    """How a gate ended."""

    passed: bool
    reason: str
    checks: Sequence[Check] = ()
    next_step: str = ""
    answers: dict[str, Any] = field(default_factory=dict)
    skipped: bool = False
    """Whether it found that it does not apply here after all."""


class Context:
    """One run of one gate on one environment."""

    def __init__(
        self,
        loaded: LoadedEnvironment,
        account: Account,
        project: Path,
        gate: Gate,
        minutes: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """A gate of an environment that waits `minutes` at most; tests have a `clock` and a `sleep` of their own."""
        self.loaded, self.environment = loaded, loaded.environment
        self.account, self.project, self.gate = account, project, gate
        self.settings: Gates = settings_of(self.environment)
        self.types: Catalog = environment_types(self.environment.instance_types)
        self.begun_at = datetime.now(UTC)
        self.seconds = minutes * 60
        self.asked: dict[str, Any] = {}
        self.clock, self.sleep = clock, sleep
        self.begun = clock()
        self.poll = _POLL_IN_SANDBOX if account.endpoint else _POLL
        self._said, self._spoken = "", self.begun

    @property
    def elapsed(self) -> float:
        """Seconds since the run began."""
        return self.clock() - self.begun

    @property
    def left(self) -> float:
        """Seconds until its time is over."""
        return self.seconds - self.elapsed

    @cached_property
    def kubectl(self) -> Kubectl:
        """The way to Kubernetes: direct, through an open tunnel, or the runner inside the VPC. Raises CommandError."""
        kubectl = kubectl_of(self.project, self.environment, self.account)
        if isinstance(kubectl, InVpc):
            self.say("the Kubernetes API is private: kubectl runs inside the VPC, about a minute a call")
            self.poll = max(self.poll, POLL_SECONDS)
        return kubectl

    @property
    def without_scheduler(self) -> Result | None:
        """How a gate ends that needs a scheduler or its queues where the sandbox's Kubernetes has none; else None."""
        slurm = self.environment.cluster.orchestrator == "slurm"
        if slurm or self.account.endpoint is None or self.kubectl.is_real:
            return None
        return Result(True, f"nothing is proved: {NO_SCHEDULER}. {REAL_KUBERNETES}", skipped=True)

    def wait(self, observation: Callable[[], Observation]) -> Result:
        """Look until everything is as it should be, waiting is of no use, or the time is over.

        Raises:
            Refused: Kubernetes refuses several looks in a row.
        """
        trouble = 0
        while True:
            try:
                observed = observation()
            except Refused as refused:
                # One observation of many may meet an API that is just being replaced.
                trouble += 1
                if trouble == _PATIENCE or self.left <= 0:
                    raise
                self.say(f"kubectl: {str(refused).splitlines()[-1]}")
                self.sleep(self.poll)
                continue
            trouble = 0
            missing = observed.missing
            if not missing and not observed.final:
                return Result(True, in_words(observed.checks), observed.checks, "", observed.answers)
            message = in_words(missing) or observed.final
            if observed.final:
                reason = f"{message}; {observed.final}" if missing and observed.final not in message else observed.final
                return Result(False, reason, observed.checks, observed.next_step, observed.answers)
            if self.left <= 0:
                reason = f"not reached in {self.seconds / 60:g} min: {message}"
                return Result(False, reason, observed.checks, observed.next_step, observed.answers)
            self.say(message)
            self.sleep(min(self.poll, max(self.left, 0.01)))

    def say(self, text: str) -> None:
        """Tell what is waited for: when it changes, and once a minute."""
        now = self.clock()
        if text != self._said or now - self._spoken >= _SILENCE:
            self._said, self._spoken = text, now
            span = int(self.elapsed)
            write_note(f"  {self.gate.name:<9} {span // 60}:{span % 60:02}  {text}")


def in_words(checks: Sequence[Check]) -> str:
    """What checks saw, shortly: `h200 14 of 16; i-0123 Pending`."""
    shown = "; ".join(f"{check.about} {check.seen}" for check in checks[:_NAMED])
    return shown + (f"; and {len(checks) - _NAMED} more" if len(checks) > _NAMED else "")
