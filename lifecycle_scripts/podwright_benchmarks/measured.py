"""What a benchmark hands to the judge, and how programs that measure are run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, NamedTuple

Say = Callable[..., None]
"""Writes one event with its facts into the node's log."""


@dataclass(frozen=True)
class Measured:
    """One value, or the reason why there is none."""

    name: str
    devices: tuple[int, ...]
    """Accelerators or EFA devices by index; empty for the node as a whole."""
    value: float | None
    unit: str
    reason: str = ""
    """Why there is no value, or what else is worth knowing of it."""
    failed: bool = False
    """Whether having no value is the hardware's fault."""


# What these errors of CUDA say is that the program does not fit the driver or the GPU, and nothing about their health.
UNFIT = ("cudaErrorInsufficientDriver", "cudaErrorNoKernelImageForDevice", "cudaErrorUnsupportedPtxVersion")


def results(
    command: Sequence[str], *, name: str, devices: tuple[int, ...], environment: Mapping[str, str], seconds: float
) -> list[Measured]:
    """Run one of our programs and return what it measured.

    A program that ends with an error or hangs is a failed measurement called `name`; one that cannot start, or that
    does not fit this driver or GPU, is one without a value.
    """
    status, out, err = finish(command, environment=environment, seconds=seconds)
    measureds: list[Measured] = []
    for line in out.splitlines():
        try:
            message: dict[str, Any] = json.loads(line)
        except ValueError:
            continue
        if "error" in message:
            unfit = any(error in message["error"] for error in UNFIT)
            return [*measureds, Measured(name, devices, None, "", message["error"], failed=not unfit)]
        if "name" in message:
            measureds.append(
                Measured(message["name"], tuple(message["devices"]), message["value"], message["unit"], message["note"])
            )
    if status is None:
        reason = f"{Path(command[0]).name} did not end within {seconds:g} s"
    elif status == 0:
        return measureds
    else:
        reason = f"{Path(command[0]).name} ended with {status}: {err.strip()[-300:] or 'it said nothing'}"
    # 126 and 127: it did not start, for want of a library or of the right to run; that is no fault of the GPU.
    return [*measureds, Measured(name, devices, None, "", reason, failed=status not in (126, 127))]


class Ended(NamedTuple):
    """How a command ended."""

    status: int | None
    """None when it took too long."""
    out: str
    err: str


def finish(command: Sequence[str], *, environment: Mapping[str, str] | None = None, seconds: float) -> Ended:
    """Run a command to its end.

    Whatever the command started is ended with it. A command that is not there has the status 127.
    """
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env={**os.environ, **(environment or {})},
            start_new_session=True,
        )
    except OSError as error:
        return Ended(127, "", str(error))
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        try:
            # A process that waits for a dead device in the kernel cannot be ended; its pipes would hold us too.
            out, err = process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            out, err = "", "it cannot be ended"
        return Ended(None, out, err)
    return Ended(process.returncode, out, err)
