"""Timing whole commands: what a user waits for, start-up included, and the processor seconds of all their processes."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tree import PROGRAM, Cost

ROOT = Path(__file__).parent.parent.parent
_PYTEST = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
HELPERS = tuple(str(ROOT / folder) for folder in _PYTEST["pythonpath"])


@dataclass(frozen=True)
class Timing:
    """Elapsed and processor seconds of several runs, and the largest resident set of a process in MiB."""

    seconds: tuple[float, ...]
    peak_mib: float
    processor_seconds: tuple[float, ...] = ()

    @property
    def median(self) -> float:
        """Median seconds."""
        return statistics.median(self.seconds)

    @property
    def processor(self) -> float:
        """Median processor seconds, which other work on the machine hardly changes."""
        return statistics.median(self.processor_seconds)

    @property
    def processor_text(self) -> str:
        """Median and range of the processor seconds."""
        used = self.processor_seconds
        return f"{self.processor:.2f} s ({min(used):.2f}–{max(used):.2f})"

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
            cost = run_once(command, env, cwd)
            peaks[name] = max(peaks[name], cost.peak_mib)
            if run >= warm_ups:
                seconds[name].append(cost.elapsed)
                processor[name].append(cost.processor)
    return {name: Timing(tuple(seconds[name]), peaks[name], tuple(processor[name])) for name in commands}


def run_once(command: Sequence[str], env: Mapping[str, str], cwd: Path) -> Cost:
    """Run a command and all its processes. Raises CalledProcessError when it fails."""
    with tempfile.NamedTemporaryFile(prefix="podwright-cost-") as result:
        done = subprocess.run(
            [*PROGRAM, result.name, *command],
            cwd=cwd,
            env=os.environ | env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        if done.returncode:
            sys.stderr.buffer.write(done.stderr)
            raise subprocess.CalledProcessError(done.returncode, command)
        return Cost(**json.loads(Path(result.name).read_text()))
