"""Processor time of a tree of processes, with daemons that nothing waits for."""

import ctypes
import os
import resource
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

_PROC = Path("/proc")
_SET_CHILD_SUBREAPER = 36
"""`PR_SET_CHILD_SUBREAPER` of prctl(2)."""


def adopt_orphans() -> None:
    """Fork; the parent adopts and reaps the orphans of the child, and exits as the child does. Returns in the child.

    Daemons such as jsii's Node then remain in the tree of this process, and `tree_seconds` counts them. Does nothing
    where Linux's prctl is missing.
    """
    if sys.platform != "linux":
        return
    if ctypes.CDLL(None, use_errno=True).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl: cannot adopt orphans")
    child = os.fork()
    if not child:
        # A run in a shell's background ignores interrupts, by which its controller ends a shard.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        return

    def forward(number: int, _: FrameType | None) -> None:
        os.kill(child, number)

    signal.signal(signal.SIGINT, forward)
    signal.signal(signal.SIGTERM, forward)
    while True:
        ended, status = os.wait()
        if ended == child:
            break
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        # The controller reads the signal from the exit code.
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def tree_seconds(root: int) -> float:
    """CPU seconds, user and system, of process `root`, its descendants, and all that they have reaped.

    Without /proc: of this process and of the children that it has waited for.
    """
    if not (_PROC / "self/stat").exists():
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(usage.ru_utime + usage.ru_stime for usage in used)
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for process, parent, used_ticks in _processes():
        parents[process], ticks[process] = parent, used_ticks
    children: dict[int, list[int]] = {}
    for process, parent in parents.items():
        children.setdefault(parent, []).append(process)
    total, remaining = 0, [root]
    while remaining:
        process = remaining.pop()
        total += ticks.get(process, 0)
        remaining += children.get(process, [])
    return total / os.sysconf("SC_CLK_TCK")


def _processes() -> Iterator[tuple[int, int, int]]:
    """Id, parent, and clock ticks (own and reaped) of every process."""
    # Children have larger ids than their parents. Read first, one that ends meanwhile is in what its parent has reaped.
    for entry in sorted(_PROC.glob("[0-9]*"), key=lambda entry: int(entry.name), reverse=True):
        try:
            text = (entry / "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            # The process ended after the folder was listed; its parent has its time.
            continue
        # The name of the program is in parentheses and may contain any character.
        fields = text.rpartition(")")[2].split()
        yield int(entry.name), int(fields[1]), sum(map(int, fields[11:15]))
