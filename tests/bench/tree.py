"""Processor seconds of a command with all processes that it starts, also those that nobody waits for.

jsii's Node is such a process: Python ends without waiting for it, so the kernel never adds its time to Python's. Run as
a program, `tree.py RESULT COMMAND…` starts the command, adopts what it leaves behind, and writes what all of it took.
"""

import ctypes
import json
import os
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

PROGRAM: Final = (sys.executable, "-P", str(Path(__file__).resolve()))
LEFT_BEHIND_SECONDS: Final = 60.0
"""Seconds that processes may run on after the command. A sandbox runs longer: it is a service, and not counted."""
_ADOPT_ORPHANS: Final = 36
"""PR_SET_CHILD_SUBREAPER of prctl."""
_TICK: Final = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Cost:
    """What a command took."""

    code: int
    """Its exit code."""
    elapsed: float
    """Seconds until the command itself ended."""
    processor: float
    """User and system seconds of all its processes."""
    peak_mib: float
    """Resident memory of the largest process."""


def run(command: Sequence[str]) -> Cost:
    """Run a command and wait for all its processes."""
    if sys.platform != "linux":
        raise SystemExit("processes are counted by PR_SET_CHILD_SUBREAPER, which only Linux has")
    if ctypes.CDLL(None).prctl(_ADOPT_ORPHANS, 1, 0, 0, 0):
        raise OSError("the kernel refuses PR_SET_CHILD_SUBREAPER")
    before, started = _ended(), time.perf_counter()
    process = os.posix_spawnp(command[0], command, os.environ)
    code, elapsed = 0, 0.0
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == process:
            code, elapsed = os.waitstatus_to_exitcode(status), time.perf_counter() - started
            break
    end = time.monotonic() + LEFT_BEHIND_SECONDS
    while time.monotonic() < end:
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.01)
        except ChildProcessError:
            break
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return Cost(code, elapsed, _ended() - before, peak)


def seconds_of(pid: int) -> float:
    """Processor seconds so far of a running process, of what it has started, and of what these have waited for."""
    return sum(sum(_times(process)) for process in (pid, *descendants(pid)))


def _ended() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _times(pid: int) -> tuple[float, ...]:
    """User and system seconds of a process, and of the ended children that it has waited for."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        # It has ended since; its time is now its parent's.
        return ()
    # The name of the program stands in parentheses and may hold spaces.
    fields = text.rpartition(")")[2].split()
    return tuple(int(field) * _TICK for field in fields[11:15])


def descendants(pid: int) -> Iterator[int]:
    """The processes that a process has started, and those that these have started."""
    try:
        children = [text.read_text().split() for text in Path(f"/proc/{pid}/task").glob("*/children")]
    except (FileNotFoundError, ProcessLookupError):
        return
    for child in (int(word) for words in children for word in words):
        yield child
        yield from descendants(child)


if __name__ == "__main__":
    cost = run(sys.argv[2:])
    Path(sys.argv[1]).write_text(json.dumps(asdict(cost)))
    sys.exit(cost.code if cost.code >= 0 else 128 - cost.code)
