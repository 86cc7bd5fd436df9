"""Explains why a container is not running, or how it ended: the kubelet's message, and how to fix it."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ..doctor.knowledge import shown_by
from ..doctor.pods import Pod
from .resources import is_sidecar

_STARTING: Final = ("PodInitializing", "ContainerCreating")


class ContainerState(NamedTuple):
    """The state of a container that is not simply running."""

    text: str
    fix: str
    """The next step, from doctor's knowledge; empty if doctor does not know the cause."""
    restarts: int
    has_failed: bool
    """False for one that has ended well, or that runs again."""


def container_state(pod: Pod, name: str) -> ContainerState | None:
    """Return the state of a container, or of the init container that it waits for.

    Args:
        pod: The pod.
        name: The container's name.

    Returns:
        The state; None for a container that runs and was never restarted, or that the kubelet has not mentioned.
    """
    own = [status for status in pod.containers if status["name"] == name]
    sidecars = {item["name"] for item in pod.spec.get("initContainers", ()) if is_sidecar(item)}
    before = [
        status
        for status in pod.status.get("initContainerStatuses") or ()
        if _keeps_others_waiting(status, is_sidecar=status["name"] in sidecars)
    ]
    for status in (*before, *own):
        if state := _state(status, status["name"]):
            return state
    return None


def _keeps_others_waiting(status: Mapping[str, Any], *, is_sidecar: bool) -> bool:
    """Return whether an init container keeps the containers after it from starting. A sidecar that runs does not."""
    state = status.get("state", {})
    ended = state.get("terminated")
    if is_sidecar and "running" in state:
        return False
    return not ended or bool(ended.get("exitCode"))


def _state(status: Mapping[str, Any], name: str) -> ContainerState | None:
    """Return the state of one container; None for one that runs and was never restarted."""
    current, restarts = status.get("state", {}), status.get("restartCount", 0)
    last = (status.get("lastState") or {}).get("terminated")
    if waiting := current.get("waiting"):
        reason = waiting.get("reason", "")
        if reason in _STARTING:
            return ContainerState(f"{name} has not started: {reason}", "", restarts, has_failed=False)
        text = f"{name} does not run: {_joined(reason, waiting.get('message'))}"
        if last:
            text += f"; it ended {_times(restarts + 1)}, last with {_ending(last)}"
        return ContainerState(text, _fix(text), restarts, has_failed=True)
    if ended := current.get("terminated"):
        text = f"{name} has ended with {_ending(ended)}"
        has_failed = bool(ended.get("exitCode"))
        return ContainerState(text, _fix(text) if has_failed else "", restarts, has_failed=has_failed)
    if last:
        text = f"{name} runs again: it was restarted {_times(restarts)}, last after {_ending(last)}"
        return ContainerState(text, _fix(text), restarts, has_failed=False)
    return None


def _ending(ended: Mapping[str, Any]) -> str:
    """How a container ended: its exit code with the kubelet's reason and message."""
    reason = ended.get("reason", "")
    named = f" ({reason})" if reason not in ("", "Error", "Completed") else ""
    message = (ended.get("message") or "").strip()
    return f"exit code {ended.get('exitCode', '')}{named}" + (f": {message}" if message else "")


def _joined(reason: str, message: str | None) -> str:
    return f"{reason}: {message}" if message else reason


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _fix(text: str) -> str:
    cause = shown_by(text, "kubernetes", running=False)
    return cause.fix if cause else ""
