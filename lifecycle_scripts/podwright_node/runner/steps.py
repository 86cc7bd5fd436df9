"""Steps and the order in which they run."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Callable, Literal

from . import deadline
from .failure import Failure
from .node import Node
from .retry import pauses
from .verdict import record

Severity = Literal["fatal", "warning"]

GRACE_SECONDS = 15
"""What a step gets on top of its time before the others stop waiting for it. Its commands end with its time; only a
call that hangs in the kernel lasts longer."""


@dataclass(frozen=True)
class Step:
    """One thing that has to be so on a node. Killed at any point, it can be run again."""

    name: str
    applies_to: Callable[[Node], bool]
    """Whether this node needs it; see `applies.Only`. Asked when the steps that it needs are through."""
    check: Callable[[Node], bool]
    """Whether the node is so already. Changes nothing."""
    apply: Callable[[Node], None]
    """Make it so. Raises Failure when that cannot be done."""
    needs: tuple[str, ...] = ()
    """Names of the steps before it."""
    seconds: float = 300
    """Time that the step may take, with all its attempts. Commands are killed and waiting ends when it is up."""
    attempts: int = 1
    """How often it is tried, with growing pauses, before it has failed."""
    severity: Severity = "warning"
    """`fatal`: without it the node is of no use for its role, and HyperPod is told that the node failed. `warning`: the
    node joins, degraded by this step, and what needs the step is tried all the same."""
    rests_on: str = ""
    """The fact of the instance type that decides whether it fails. Where sources differ on that fact for this type, a
    failure only warns: a fact that may be wrong must not cost a node."""

    def is_fatal(self, node: Node) -> bool:
        """Whether its failure is that of the node."""
        if node.is_strict or self.severity == "warning" or not self.rests_on:
            return node.is_strict or self.severity == "fatal"
        return self.rests_on not in node.type_facts.get("disputed", ())


@dataclass
class _Result:
    outcome: str
    seconds: float = 0.0
    error: str | None = None
    fatal: bool = False


def run(steps: Sequence[Step], node: Node) -> bool:
    """Run the steps that apply, each as soon as those that it needs are through, all others at the same time.

    A step whose failure is fatal keeps those that need it from starting; the rest still runs, so that one boot shows
    everything that is wrong. Returns whether the node may join, and says at the end how each step went, how long it
    took, and as the last lines what failed.
    """
    known = {step.name: step for step in steps}
    order = TopologicalSorter({step.name: step.needs for step in steps})
    order.prepare()
    results: dict[str, _Result] = {}
    ended: queue.SimpleQueue[tuple[str, _Result]] = queue.SimpleQueue()
    latest: dict[str, float] = {}
    began = time.monotonic()
    while order.is_active():
        for name in order.get_ready():
            if not any(results[need].fatal for need in known[name].needs):
                latest[name] = time.monotonic() + known[name].seconds * deadline.PATIENCE + GRACE_SECONDS
                # A daemon: one that hangs in the kernel must not keep the node's failure from being told.
                threading.Thread(target=_work, args=(known[name], node, ended), name=name, daemon=True).start()
            else:
                waits_for = [need for need in known[name].needs if results[need].fatal]
                ended.put((name, _Result("held", error=f"needs {', '.join(waits_for)}, which failed", fatal=True)))
        for name, result in _next(ended, latest, known):
            if name in results:
                continue
            latest.pop(name, None)
            result.fatal |= result.error is not None and known[name].is_fatal(node)
            results[name] = result
            node.log.say(
                result.outcome, step=name, seconds=result.seconds, **({"error": result.error} if result.error else {})
            )
            order.done(name)
    return _summary(node, {name: results[name] for name in known}, time.monotonic() - began)


def _next(
    ended: queue.SimpleQueue[tuple[str, _Result]], latest: dict[str, float], known: dict[str, Step]
) -> list[tuple[str, _Result]]:
    """The result that comes next, or those of the steps that nobody waits for any longer."""
    try:
        return [ended.get(timeout=max(0.0, min(latest.values(), default=0.0) - time.monotonic()))]
    except queue.Empty:
        over = [name for name, end in latest.items() if end <= time.monotonic()]
        text = "hangs where no signal reaches it; look at the last mount or device it touched, and let the node go"
        return [(name, _Result("failed", known[name].seconds + GRACE_SECONDS, text)) for name in over]


def _work(step: Step, node: Node, ended: queue.SimpleQueue[tuple[str, _Result]]) -> None:
    started = time.monotonic()
    with deadline.limited(step.seconds):
        result = _outcome(step, node)
    result.seconds = round(time.monotonic() - started, 3)
    ended.put((step.name, result))


def _outcome(step: Step, node: Node) -> _Result:
    """Run a step until it holds, is hopeless, or its time is up."""
    pause, attempt = pauses(), 0
    while True:
        attempt += 1
        try:
            return _Result(_attempt(step, node))
        # Whatever a step raises is its failure, and the log is all that is left of a node that failed.
        except Exception as error:  # noqa: BLE001
            text = _text(error, step)
        if attempt >= step.attempts:
            return _Result("failed", error=text)
        node.log.say("again", step=step.name, attempt=attempt, error=text)
        try:
            deadline.pause(next(pause))
        except deadline.Late:
            return _Result("failed", error=text)


def _attempt(step: Step, node: Node) -> str:
    if not step.applies_to(node):
        return "not-needed"
    if step.check(node):
        return "unchanged"
    step.apply(node)
    if not step.check(node):
        raise Failure("the step ran to its end and its check still fails", "report this as a fault of podwright")
    return "changed"


def _text(error: Exception, step: Step) -> str:
    if isinstance(error, deadline.Late):
        return f"was not through in {step.seconds:.0f} s; the lines of this step above say what it waited for"
    return str(error) if isinstance(error, Failure) else f"{type(error).__name__}: {error}"


def _summary(node: Node, results: dict[str, _Result], seconds: float) -> bool:
    """Say how each step went, keep and publish the verdict; returns whether the node may join."""
    fatal = {name: result.error for name, result in results.items() if result.error is not None and result.fatal}
    degraded = {name: result.error for name, result in results.items() if result.error is not None and not result.fatal}
    verdict = record(node, failed=fatal, degraded=degraded)
    node.log.say(
        "summary",
        result={"ready": "succeeded"}.get(verdict, verdict),
        group=node.group,
        seconds=round(seconds, 3),
        steps={name: {"outcome": result.outcome, "seconds": result.seconds} for name, result in results.items()},
    )
    for name, error in degraded.items():
        node.log.say("degraded", step=name, error=error)
    for name, error in fatal.items():
        if results[name].outcome == "failed":
            node.log.say("error", step=name, error=error)
    return not fatal
