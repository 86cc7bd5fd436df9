"""Processes that podwright started earlier, known by their id and command line."""

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
