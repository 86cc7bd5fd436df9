"""The folder in the user's cache that the parts of the control plane are installed in.

A part is made in a folder beside its own, which gets its name when all of it is there. So a part that has its folder is
whole, whatever happened to the process that made it.
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
    """How much of a part is installed."""

    INSTALLED = "installed"
    HALF_BUILT = "half-built"
    OUTDATED = "outdated"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Record:
    """What an installation wrote of a part."""

    recipe: str
    seconds: float
    size: int
    origin: str = ""
    """The installed wheels that it was taken from; empty where it was fetched or built."""


@dataclass(frozen=True, slots=True)
class Cache:
    """The parts on this machine."""

    root: Path

    @classmethod
    def of_user(cls) -> "Cache":
        """The cache of the user who runs this."""
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return cls(base / "podwright" / "control-plane")

    @property
    def toolchain(self) -> Path:
        """The folder of a Go toolchain that podwright fetched, with Go's own caches."""
        return self.root / _TOOLCHAIN

    @property
    def definitions(self) -> Path:
        """The folder of custom resource definitions as API servers stored them."""
        return self.root / _DEFINITIONS

    def folder(self, part: Part) -> Path:
        """Where an installed part lies."""
        return self.root / part.folder

    def unfinished(self, part: Part) -> Path:
        """Where a part lies until it is whole."""
        return self.root / f"{part.folder}{_UNFINISHED}"

    def record(self, part: Part) -> Record | None:
        """What was written of the part; None without it, or where another version of podwright wrote it."""
        try:
            return Record(**json.loads((self.folder(part) / _RECORD).read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def state(self, part: Part) -> State:
        """How much of the part is here."""
        record = self.record(part)
        if record and record.recipe == part.recipe and self._is_whole(part, record):
            return State.INSTALLED
        if self.unfinished(part).exists():
            return State.HALF_BUILT
        return State.OUTDATED if self.folder(part).exists() else State.MISSING

    def _is_whole(self, part: Part, record: Record) -> bool:
        """Whether all files are there, and as long as they were: a machine that lost its power may have cut some."""
        folder = self.folder(part)
        size = size_of(folder) - (folder / _RECORD).stat().st_size
        return size == record.size and all((folder / name).is_file() for name in part.files)

    def finish(self, part: Part, seconds: float, origin: str = "") -> Record:
        """Give a part that was made in its unfinished folder its name."""
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
        """Be the only process that changes the cache. Raises CommandError where another one is at it."""
        self.root.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(self.root / _LOCK, timeout=0):
                yield
        except Timeout:
            raise CommandError(
                "another `podwright sandbox kubernetes` changes the control plane", "wait for it to end"
            ) from None

    def remove(self) -> list[Path]:
        """Delete what installations made here, and return what is left, which is somebody else's.

        Raises:
            CommandError: Another process changes it, or programs of it run.
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
    """The bytes of all files below a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _running_from(folder: Path) -> Iterator[int]:
    """The processes whose program lies in a folder."""
    for pid, words in command_lines().items():
        if words and Path(os.fsdecode(words[0])).is_relative_to(folder):
            yield pid


def _is_ours(folder: Path) -> bool:
    is_named = folder.name in (_TOOLCHAIN, _DEFINITIONS) or folder.name.endswith(_UNFINISHED)
    return is_named or (folder / _RECORD).is_file()
