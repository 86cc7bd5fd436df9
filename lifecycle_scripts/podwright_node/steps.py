"""Steps and the order in which they run."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from graphlib import TopologicalSorter

from .node import Failure, Node

PARALLEL = 4


@dataclass(frozen=True)
class Step:
    """One thing that has to be so on a node. Killed at any point, it can be run again."""

    name: str
    applies_to: Callable[[Node], bool]
    """Whether this node needs it."""
    check: Callable[[Node], bool]
    """Whether the node is so already. Changes nothing."""
    apply: Callable[[Node], None]
    """Make it so. Raises Failure when that cannot be done."""
    needs: tuple[str, ...] = ()
    """Names of the steps before it."""


def run(steps: Sequence[Step], node: Node) -> bool:
    """Run the steps that apply, each after those that it needs and the others at the same time.

    A step that fails keeps those that need it from starting; the rest still runs, so that one boot shows everything
    that is wrong. Returns whether all went well, and says at the end how each step went and how long it took.
    """
    known = {step.name: step for step in steps}
    order = TopologicalSorter({step.name: step.needs for step in steps})
    order.prepare()
    outcomes: dict[str, str] = {}
    seconds: dict[str, float] = {}
    running: dict[Future[str], tuple[str, float]] = {}
    began = time.monotonic()
    with ThreadPoolExecutor(PARALLEL) as pool:
        while order.is_active():
            for name in order.get_ready():
                if all(outcomes[need] not in ("failed", "held") for need in known[name].needs):
                    running[pool.submit(_outcome, known[name], node)] = name, time.monotonic()
                else:
                    node.log.say("held", step=name, note="a step that it needs failed")
                    outcomes[name] = "held"
                    order.done(name)
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                name, started = running.pop(future)
                outcomes[name] = future.result()
                seconds[name] = round(time.monotonic() - started, 3)
                node.log.say(outcomes[name], step=name, seconds=seconds[name])
                order.done(name)
    succeeded = not {"failed", "held"} & set(outcomes.values())
    node.log.say(
        "summary",
        result="succeeded" if succeeded else "failed",
        group=node.group,
        seconds=round(time.monotonic() - began, 3),
        steps={name: {"outcome": outcomes[name], "seconds": seconds.get(name, 0)} for name in known},
    )
    return succeeded


def _outcome(step: Step, node: Node) -> str:
    try:
        if not step.applies_to(node):
            return "not-needed"
        if step.check(node):
            return "unchanged"
        step.apply(node)
        if not step.check(node):
            raise Failure("the step ran to its end and its check still fails", "report this as a fault of podwright")
    # Whatever a step raises is its failure, and the log is all that is left of a node that failed.
    except Exception as error:  # noqa: BLE001
        kind = "" if isinstance(error, Failure) else f"{type(error).__name__}: "
        node.log.say("error", step=step.name, error=f"{kind}{error}")
        return "failed"
    return "changed"
