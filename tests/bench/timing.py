"""Timing whole processes: what a user waits for, start-up included."""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True)
class Timing:
    """Wall-clock seconds of several runs, and the largest resident set of any process in MiB."""

    seconds: tuple[float, ...]
    peak_mib: float

    @property
    def median(self) -> float:
        """Median seconds."""
        return statistics.median(self.seconds)

    def __str__(self) -> str:
        return f"{self.median:.2f} s ({min(self.seconds):.2f}–{max(self.seconds):.2f})"


def measure(command: Sequence[str], *, runs: int = 5, env: Mapping[str, str] | None = None, cwd: Path = ROOT) -> Timing:
    """Run a command `runs` times after one warm-up. Raises CalledProcessError when it fails."""
    seconds, peak = [], 0.0
    for run in range(runs + 1):
        start = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=cwd, env=os.environ | (env or {}), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        assert process.stderr
        output = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        elapsed = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            sys.stderr.buffer.write(output)
            raise subprocess.CalledProcessError(process.returncode, command)
        if run:
            seconds.append(elapsed)
        peak = max(peak, usage.ru_maxrss / 1024)
    return Timing(tuple(seconds), peak)
