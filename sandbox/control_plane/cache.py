"""The folder of the control plane's installed parts in the user's cache.

podwright writes a part into an unfinished folder and renames this at the end. So a part with a folder is complete, even
if a process was killed.
"""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from filelock import FileLock, Timeout

from ...config.errors import CommandError
from ...operations.programs.process import command_lines
from .pins import Part

_RECORD = "part.json"
_UNFINISHED = ".building"
_LOCK = "install.lock"
_TOOLCHAIN = "toolchain"
_DEFINITIONS = "definitions"


class State(StrEnum):
    """State of a part's installation."""

    INSTALLED = "installed"
    HALF_BUILT = "half-built"
    OUTDATED = "outdated"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Record:
    """The record of a part's installation."""

    recipe: str
    seconds: float
    size: int
    origin: str = ""
    """Wheels that contained the part; empty if it was downloaded or built."""


@dataclass(frozen=True, slots=True)
class Cache:
    """The parts of the control plane on this machine."""

    root: Path

    @classmethod
    def of_user(cls) -> "Cache":
        """Return the cache of the current user."""
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return cls(base / "podwright" / "control-plane")

    @property
    def toolchain(self) -> Path:
        """Folder of the downloaded Go toolchain, with Go's own caches."""
        return self.root / _TOOLCHAIN

    @property
    def definitions(self) -> Path:
        """Folder of custom resource definitions in the form in which API servers have stored them."""
        return self.root / _DEFINITIONS

    def folder(self, part: Part) -> Path:
        """Return the folder of an installed part."""
        return self.root / part.folder

    def unfinished(self, part: Part) -> Path:
        """Return the folder of an unfinished part."""
        return self.root / f"{part.folder}{_UNFINISHED}"

    def record(self, part: Part) -> Record | None:
        """Return the record of a part; None without one, or if another version of podwright wrote it."""
        try:
            return Record(**json.loads((self.folder(part) / _RECORD).read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def state(self, part: Part) -> State:
        """Return the state of a part."""
        record = self.record(part)
        if record and record.recipe == part.recipe and self._is_whole(part, record):
            return State.INSTALLED
        if self.unfinished(part).exists():
            return State.HALF_BUILT
        return State.OUTDATED if self.folder(part).exists() else State.MISSING

    def _is_whole(self, part: Part, record: Record) -> bool:
        """True if all files exist with their recorded sizes: a power failure may have truncated some."""
        folder = self.folder(part)
        size = size_of(folder) - (folder / _RECORD).stat().st_size
        return size == record.size and all((folder / name).is_file() for name in part.files)

    def finish(self, part: Part, seconds: float, origin: str = "") -> Record:
        """Move a part from its unfinished folder to its final one."""
        folder = self.unfinished(part)
        (folder / _RECORD).unlink(missing_ok=True)
        record = Record(part.recipe, round(seconds, 1), size_of(folder), origin)
        stated = {key: value for key, value in asdict(record).items() if value != ""}
        (folder / _RECORD).write_text(json.dumps(stated), encoding="utf-8")
        if self.folder(part).exists():
            shutil.rmtree(self.folder(part))
        folder.rename(self.folder(part))
        return record

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the cache. Raises CommandError if another process is changing it."""
        self.root.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(self.root / _LOCK, timeout=0):
                yield
        except Timeout:
            raise CommandError(
                "another `podwright sandbox kubernetes` changes the control plane", "wait for it to end"
            ) from None

    def remove(self) -> list[Path]:
        """Delete all installed parts. Returns the remaining files, which podwright did not create.

        Raises:
            CommandError: Another process is changing the cache, or programs of it are running.
        """
        if not self.root.exists():
            return []
        if running := sorted(_running_from(self.root)):
            raise CommandError(
                f"clusters of a sandbox run from {self.root} (processes {', '.join(map(str, running))})",
                "stop each sandbox first: `podwright sandbox stop` in its project",
            )
        with self.locked():
            for folder in filter(_is_ours, self.root.iterdir()):
                # The module cache of Go is read-only.
                for entry in (folder, *folder.rglob("*")):
                    if entry.is_dir() and not entry.is_symlink():
                        entry.chmod(0o755)
                shutil.rmtree(folder)
        (self.root / _LOCK).unlink(missing_ok=True)
        left = sorted(self.root.iterdir())
        if not left:
            self.root.rmdir()
        return left


def size_of(folder: Path) -> int:
    """Return the size of all files below a folder, in bytes."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _running_from(folder: Path) -> Iterator[int]:
    """Return the processes whose program is in a folder."""
    for pid, words in command_lines().items():
        if words and Path(os.fsdecode(words[0])).is_relative_to(folder):
            yield pid


def _is_ours(folder: Path) -> bool:
    is_named = folder.name in (_TOOLCHAIN, _DEFINITIONS) or folder.name.endswith(_UNFINISHED)
    return is_named or (folder / _RECORD).is_file()
