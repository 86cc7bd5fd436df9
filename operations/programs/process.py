"""Processes of this machine: known by their id and command line, or run to their end."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..output.moving import Waiting


def followed(command: Sequence[str], text: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program to its end and take what it prints; `text`, which was said to be under way, is said again.

    `options` are those of `subprocess.Popen`.
    """
    waiting = Waiting(text)
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes, **options) as process:
        try:
            while True:
                try:
                    output, errors = process.communicate(timeout=1)
                    return subprocess.CompletedProcess(command, process.returncode, output, errors)
                except subprocess.TimeoutExpired:
                    waiting.tick()
        except BaseException:
            # As subprocess.run does: what was interrupted leaves nothing running.
            process.kill()
            raise


def command_line(pid: int) -> list[bytes]:
    """The words of a process's command line; none where it has ended. Ids are given out again, so callers compare."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        if Path("/proc/self").exists():
            return []
    # No procfs, as on macOS.
    listing = subprocess.run(["ps", "-o", "command=", "-p", str(pid)], capture_output=True, check=False)
    return listing.stdout.split()


def command_lines() -> dict[int, list[bytes]]:
    """The command lines of all processes, by id."""
    if Path("/proc/self").exists():
        return {int(file.name): command_line(int(file.name)) for file in Path("/proc").glob("[0-9]*")}
    listing = subprocess.run(["ps", "-axo", "pid=,command="], capture_output=True, check=False)
    lines = (line.split() for line in listing.stdout.splitlines())
    return {int(pid): words for pid, *words in lines}
