"""Processes of this machine, known by their id and command line."""

import subprocess
from pathlib import Path


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
