"""Timing whole processes: what a user waits for, start-up included."""

import os
import statistics
import subprocess
import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
_PYTEST = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
HELPERS = tuple(str(ROOT / folder) for folder in _PYTEST["pythonpath"])


@dataclass(frozen=True)
class Timing:
    """Wall-clock seconds of several runs, what of a processor each took, and the largest resident set in MiB."""

    seconds: tuple[float, ...]
    peak_mib: float
    processor_seconds: tuple[float, ...] = ()

    @property
    def median(self) -> float:
        """Median seconds."""
        return statistics.median(self.seconds)

    @property
    def processor(self) -> float:
        """Median seconds of a processor: what one process takes that nobody else disturbs."""
        return statistics.median(self.processor_seconds)

    def __str__(self) -> str:
        return f"{self.median:.2f} s ({min(self.seconds):.2f}–{max(self.seconds):.2f})"


def measure(
    command: Sequence[str], *, runs: int = 5, warm_ups: int = 1, env: Mapping[str, str] | None = None, cwd: Path = ROOT
) -> Timing:
    """Run a command `runs` times after its warm-ups. Raises CalledProcessError when it fails."""
    return measure_in_turn({"": (command, env or {})}, runs=runs, warm_ups=warm_ups, cwd=cwd)[""]


def measure_in_turn(
    commands: Mapping[str, tuple[Sequence[str], Mapping[str, str]]],
    *,
    runs: int = 5,
    warm_ups: int = 1,
    cwd: Path = ROOT,
) -> dict[str, Timing]:
    """Run several commands, each with its variables, one after the other and `runs` times over after its warm-ups.

    What slows the machine down for a while then slows all of them. Raises CalledProcessError when one fails.
    """
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    processor: dict[str, list[float]] = {name: [] for name in commands}
    peaks = dict.fromkeys(commands, 0.0)
    for run in range(runs + warm_ups):
        for name, (command, env) in commands.items():
            elapsed, used, peak = _once(command, env, cwd)
            peaks[name] = max(peaks[name], peak)
            if run >= warm_ups:
                seconds[name].append(elapsed)
                processor[name].append(used)
    return {name: Timing(tuple(seconds[name]), peaks[name], tuple(processor[name])) for name in commands}


def _once(command: Sequence[str], env: Mapping[str, str], cwd: Path) -> tuple[float, float, float]:
    """Seconds, those of a processor, and MiB of the largest process."""
    start = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=cwd, env=os.environ | env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert process.stderr
    output = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    elapsed = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.stderr.buffer.write(output)
        raise subprocess.CalledProcessError(process.returncode, command)
    return elapsed, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
