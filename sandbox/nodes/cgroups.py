"""Control groups of nodes: one below the root of each hierarchy, of version 1 or 2."""

import contextlib
import errno
import os
import signal
import time
from pathlib import Path
from typing import Final, NamedTuple

_ROOT: Final = Path("/sys/fs/cgroup")
_OWN: Final = Path("/proc/self/cgroup")
"""The groups of this process."""
_CPUSET: Final = ("cpuset.cpus", "cpuset.mems")
_SECONDS: Final = 10.0
_NEEDED: Final = frozenset({"cpu", "memory", "pids"})
"""Controllers that containers' limits need."""
_NO_LIMIT: Final = 2**60
"""Version 1 means no limit by this many bytes or more."""
_MEMORY_FILES: Final = {
    False: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    True: ("memory.max", "memory.current", "inactive_file"),
}
"""The file of the limit, that of the usage, and the reclaimable line of `memory.stat`; True is version 2."""


class Obstacle(NamedTuple):
    """A reason against real nodes on this machine."""

    reason: str
    action: str
    """The user's next step, in the imperative."""

    def __str__(self) -> str:
        return f"{self.reason} → {self.action}"


def obstacle() -> Obstacle | None:
    """Return why this machine's control groups are not enough for nodes; None if they are."""
    if not os.access(_ROOT, os.W_OK) or not any(_ROOT.iterdir()):
        return Obstacle(
            f"real nodes need control groups, and {_ROOT} has none that can be written",
            "mount them; start a container of Docker with --privileged",
        )
    if not _is_version_2():
        absent = _NEEDED - {folder.name for folder in _ROOT.iterdir() if (folder / "tasks").exists()}
        names = ", ".join(sorted(absent))
        reason = f"real nodes need the control groups {names} in {_ROOT}"
        return Obstacle(reason, f"mount {names} there") if absent else None
    control = _ROOT / "cgroup.subtree_control"
    for controller in _NEEDED - set(control.read_text(encoding="ascii").split()):
        try:
            control.write_text(f"+{controller}", encoding="ascii")
        except OSError as error:
            return Obstacle(
                f"real nodes need the control groups' controller {controller}, and {_ROOT} does not hand it on: "
                f"{error.strerror}",
                "start a container of Docker with --cgroupns=host",
            )
    return None


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
    """Return the processes of the first group below `name` whose own name ends with `inner`."""
    for hierarchy in _hierarchies():
        for path, folders, _ in os.walk(hierarchy / name):
            if match := next((folder for folder in folders if folder.endswith(inner)), None):
                return [int(pid) for pid in _read(Path(path, match, "cgroup.procs")).split()]
    return []


def names(prefix: str) -> list[str]:
    """Return the names of the groups that begin so."""
    return sorted({group.name for hierarchy in _hierarchies() for group in hierarchy.glob(f"{prefix}*")})


def stop_processes(name: str) -> None:
    """Stop the processes of a group and of all groups inside it, as SIGSTOP does."""
    for hierarchy in _hierarchies()[:1]:
        # Programs that start others while they are stopped would leave some running, so it is done twice.
        for file in [*(hierarchy / name).rglob("cgroup.procs")] * 2:
            for pid in _read(file).split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGSTOP)


def memory_left() -> int | None:
    """Return the bytes that this process's group and those around it may still take; None without a limit."""
    version_2 = _is_version_2()
    limit, usage, cache = _MEMORY_FILES[version_2]
    hierarchy = _ROOT if version_2 else _ROOT / "memory"
    lines = (line.split(":", 2) for line in _OWN.read_text(encoding="utf-8").splitlines())
    own = next((path for _, names, path in lines if names.split(",").count("" if version_2 else "memory")), "/")
    # In a container, the path may be that of the machine around it, whose groups are not mounted.
    group = hierarchy / own.strip("/")
    groups = [folder for folder in (group, *group.parents) if folder.is_relative_to(hierarchy)]
    left = [_memory_left(folder, limit, usage, cache) for folder in groups]
    return min((amount for amount in left if amount is not None), default=None)


def _memory_left(group: Path, limit: str, usage: str, cache: str) -> int | None:
    """Return the bytes that a group may still take; None without a limit."""
    stated = _read(group / limit).strip()
    if not stated.isdigit() or int(stated) >= _NO_LIMIT:
        return None
    statistics = dict(line.split() for line in _read(group / "memory.stat").splitlines())
    # The kernel frees these pages first.
    return int(stated) - int(_read(group / usage)) + int(statistics.get(cache, 0))


def _read(file: Path) -> str:
    """Return the content of a group's file; empty for a group that is removed meanwhile."""
    try:
        return file.read_text(encoding="ascii")
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENODEV):
            raise
        return ""


def remove(prefix: str) -> None:
    """Kill what runs in the groups whose names begin so, and remove them with all groups below."""
    deadline = time.monotonic() + _SECONDS
    while groups := names(prefix):
        for hierarchy in _hierarchies():
            for group in hierarchy.glob(f"{prefix}*"):
                _remove(group)
        if time.monotonic() > deadline:
            raise OSError(f"processes in the control groups {', '.join(groups)} do not end")
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


def _is_version_2() -> bool:
    return (_ROOT / "cgroup.controllers").exists()


def _hierarchies() -> list[Path]:
    """Return where the hierarchies with controllers are mounted: one of version 2, or several of version 1."""
    if _is_version_2():
        return [_ROOT]
    folders = [folder for folder in _ROOT.iterdir() if (folder / "tasks").exists() and not folder.is_symlink()]
    return [folder for folder in folders if folder.name != "systemd"]
