"""Commands that a step runs."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence

from . import deadline
from .failure import Failure

INHERITED: list[int] = []
"""File descriptors that every command gets. The lock of this run is one: it is free again when the last command that a
killed run has left behind is gone."""
GRACE_SECONDS = 5
"""How long a killed command gets to disappear. One that hangs in the kernel, on a dead mount, never does."""


def run(command: Sequence[str], *, timeout: float = 120, stdin: str | None = None) -> str:
    """Run a command and return what it printed.

    Raises:
        Failure: the command is missing, fails, or takes longer than `timeout` seconds.
        CutShort: it takes longer than its step may.
    """
    allowed, left = timeout * deadline.PATIENCE, deadline.remaining()
    seconds, late = min((allowed, Failure), (left, deadline.CutShort), key=lambda limit: limit[0])
    words = " ".join(command)
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
            pass_fds=INHERITED,
        )
    except FileNotFoundError as error:
        raise Failure(f"{command[0]} is not on this image", "use a HyperPod image, or one built on it") from error
    try:
        output, errors = process.communicate(stdin, timeout=seconds)
    except subprocess.TimeoutExpired as error:
        _kill(process)
        raise late(f"`{words}` did not end in {seconds:.0f} s", "see what it waits for on such a node") from error
    if process.returncode != 0:
        message = (errors or output).strip()
        raise Failure(f"`{words}` ended with {process.returncode}: {message}", "see the journal")
    return output


def _kill(process: subprocess.Popen[str]) -> None:
    """End a command with all that it has started."""
    os.killpg(process.pid, signal.SIGKILL)
    try:
        process.communicate(timeout=GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        # It hangs in the kernel and goes when that lets go. Nobody may wait for it here.
        return
