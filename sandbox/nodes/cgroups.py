"""Control groups of nodes: one below the root of each hierarchy, of version 1 or 2."""

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Final

_ROOT: Final = Path("/sys/fs/cgroup")
_CPUSET: Final = ("cpuset.cpus", "cpuset.mems")
_SECONDS: Final = 10.0


def create(name: str) -> None:
    """Make a group in each hierarchy."""
    for hierarchy in _hierarchies():
        folder = hierarchy / name
        folder.mkdir(exist_ok=True)
        for file in _CPUSET:
            # A new group of version 1 has no CPUs, and takes no process.
            if (hierarchy / "tasks").exists() and (hierarchy / file).exists():
                (folder / file).write_text((hierarchy / file).read_text(encoding="ascii"), encoding="ascii")
        if (folder / "cgroup.clone_children").exists():
            (folder / "cgroup.clone_children").write_text("1", encoding="ascii")


def enter(name: str) -> None:
    """Move this process into a group of each hierarchy."""
    for hierarchy in _hierarchies():
        (hierarchy / name / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")


def processes(name: str, inner: str) -> list[int]:
    """Return the processes of the group inside another one whose name ends with a text."""
    for hierarchy in _hierarchies():
        for path, folders, _ in os.walk(hierarchy / name):
            if match := next((folder for folder in folders if folder.endswith(inner)), None):
                with contextlib.suppress(FileNotFoundError, OSError):
                    return [int(pid) for pid in Path(path, match, "cgroup.procs").read_text(encoding="ascii").split()]
    return []


def stop_processes(name: str) -> None:
    """Stop the processes of a group and of all groups inside it, as SIGSTOP does."""
    for hierarchy in _hierarchies()[:1]:
        # Programs that start others while they are stopped would leave some running, so it is done twice.
        for file in [*(hierarchy / name).rglob("cgroup.procs")] * 2:
            for pid in file.read_text(encoding="ascii").split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGSTOP)


def remove(prefix: str) -> None:
    """Kill what runs in the groups whose names begin so, and remove them with all groups below."""
    deadline = time.monotonic() + _SECONDS
    while groups := [group for hierarchy in _hierarchies() for group in hierarchy.glob(f"{prefix}*")]:
        for group in groups:
            _remove(group)
        if time.monotonic() > deadline:
            raise OSError(f"processes in the control groups {', '.join(map(str, groups))} do not end")
        time.sleep(0.05)


def _remove(group: Path) -> None:
    folders = [Path(path) for path, _, _ in os.walk(group, topdown=False)]
    for folder in folders:
        # A group may be removed at the same time by whoever made it, and a process may end by itself.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for pid in (folder / "cgroup.procs").read_text(encoding="ascii").split():
                os.kill(int(pid), signal.SIGKILL)
        # It is busy until its processes have ended.
        with contextlib.suppress(OSError):
            folder.rmdir()


def _hierarchies() -> list[Path]:
    """Return where the hierarchies with controllers are mounted: one of version 2, or several of version 1."""
    if (_ROOT / "cgroup.controllers").exists():
        return [_ROOT]
    folders = [folder for folder in _ROOT.iterdir() if (folder / "tasks").exists() and not folder.is_symlink()]
    return [folder for folder in folders if folder.name != "systemd"]
