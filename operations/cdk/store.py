"""Cloud assemblies of a project, each below `.podwright/assemblies` under the digest of its inputs.

All commands share them: `deploy` and `report` reuse the assembly that `diff` has synthesized. A synthesis writes into a
temporary folder and renames it at the end, so a killed process leaves no incomplete entry. A process that
uses an entry holds a shared lock on its folder (flock, which the kernel releases when the process ends). Only a folder
without a lock is deleted.
"""

import errno
import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

from ...config.errors import CommandError
from .inputs import SynthesisInputs, digest

FOLDER: Final = Path(".podwright") / "assemblies"
LIMIT_BYTES: Final = 1 << 30
"""Size to which the store shrinks after each synthesis. An assembly has about 60 MB, most of it kubectl and helm."""
VALIDATION_REPORT: Final = "validation-report.json"
"""Name of aws-cdk-lib's report in an assembly; without it the validator found nothing, or did not run."""
_ASSEMBLY: Final = "cdk.out"
_MANIFEST: Final = "manifest.json"
_VALIDATED: Final = "validated"
_TEMPORARY: Final = ".new-"
_UNUSABLE: Final = (
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.EEXIST, errno.ENOTDIR),
    # Of flock, on a file system without locks.
    *(errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP),
)


@dataclass(frozen=True, slots=True)
class StoredAssembly:
    """A complete assembly, locked as long as the block lasts that opened it."""

    folder: Path
    """The cloud assembly."""
    reused: bool
    """True if no synthesis was necessary."""
    lock: int
    """File descriptor of the lock. The store keeps the assembly while this process or one that inherits it runs."""


@dataclass(frozen=True, slots=True)
class AssemblyStore:
    """The assemblies of one project."""

    project: Path
    limit_bytes: int = LIMIT_BYTES

    @contextmanager
    def open(
        self, inputs: SynthesisInputs, synthesize: Callable[[Path], None], *, validated: bool = False
    ) -> Iterator[StoredAssembly]:
        """Give the assembly of `inputs`; `synthesize` writes it into a folder if the store lacks it.

        Args:
            inputs: What the synthesis reads.
            synthesize: Called with the path of a folder to make; an error that it raises leaves the store as it was.
            validated: Accept only an assembly that CDK's validator has passed. `synthesize` then runs the validator.

        Raises:
            CommandError: an input changed during the synthesis, two syntheses of equal inputs differ, the entry lost
                files, or the store cannot be read, written or locked.
        """
        digests = inputs.digests()
        entry = self._root / digest(digests)
        with self._usable():
            self._root.mkdir(parents=True, exist_ok=True)
            lock = _locked(entry)
            if lock is not None and not _is_complete(entry):
                os.close(lock)
                raise CommandError(f"{entry} is incomplete", "delete this folder, then run the command again")
            reused = lock is not None and (not validated or (entry / _VALIDATED).exists())
        if not reused:
            if lock is not None:
                os.close(lock)
            lock = self._add(entry, inputs, digests, synthesize, validated=validated)
        assert lock is not None
        try:
            _mark_used(entry)
            if not reused:
                self._shrink()
            yield StoredAssembly(entry / _ASSEMBLY, reused, lock)
        finally:
            os.close(lock)

    @contextmanager
    def _usable(self) -> Iterator[None]:
        """Turn an error of the file system into one that names the store."""
        try:
            yield
        except OSError as error:
            if error.errno not in _UNUSABLE:
                raise
            hint = f"put the project on a disk that you may write and lock; delete {FOLDER} if another user made it"
            raise CommandError(f"{self._root} cannot be used: {error.strerror}", hint) from None

    @property
    def _root(self) -> Path:
        return self.project / FOLDER

    def _add(
        self,
        entry: Path,
        inputs: SynthesisInputs,
        digests: Mapping[str, str],
        synthesize: Callable[[Path], None],
        *,
        validated: bool,
    ) -> int:
        """Synthesize, and return the lock of the new entry, or of an equal entry that existed before."""
        with self._usable():
            new, lock = _temporary(self._root)
        try:
            synthesize(new / _ASSEMBLY)
            # Without the report, assemblies with and without validation have equal files.
            (new / _ASSEMBLY / VALIDATION_REPORT).unlink(missing_ok=True)
            _check_unchanged(digests, inputs.digests())
            (new / "inputs.json").write_text(json.dumps(digests, indent=2) + "\n", encoding="utf-8")
            if validated:
                (new / _VALIDATED).touch()
            while not _renamed(new, entry):
                # Another synthesis has stored the entry. `existing` is None if it has been deleted since.
                existing = _locked(entry)
                if existing is not None:
                    self._accept(entry, new, existing, validated=validated)
                    # Until here the lock keeps another process from deleting the folder that was compared.
                    os.close(lock)
                    return existing
        except BaseException:
            os.close(lock)
            raise
        finally:
            shutil.rmtree(new, ignore_errors=True)
        return lock

    def _accept(self, entry: Path, new: Path, existing: int, *, validated: bool) -> None:
        """Check that an existing entry equals a new one, and mark it as validated; closes its lock if it differs."""
        try:
            _check_equal(entry / _ASSEMBLY, new / _ASSEMBLY)
            if validated:
                with self._usable():
                    (entry / _VALIDATED).touch()
        except BaseException:
            os.close(existing)
            raise

    def _shrink(self) -> None:
        """Delete what killed processes left, and the entries used longest ago while the store is over its limit."""
        entries = [path for path in self._root.iterdir() if path.is_dir()]
        sizes = {path: _size(path) for path in entries}
        total = sum(sizes.values())
        for path in sorted(entries, key=_last_use):
            if (path.name.startswith(_TEMPORARY) or total > self.limit_bytes) and _deleted(path):
                total -= sizes[path]


def _temporary(root: Path) -> tuple[Path, int]:
    """Make a folder, and return it with the file descriptor of its lock.

    Another process may delete the folder before it is locked, because an unlocked one belongs to a killed process.
    """
    while True:
        # Not by `mkdtemp`, whose folders no other user of a shared project may read.
        new = root / f"{_TEMPORARY}{uuid4().hex}"
        new.mkdir()
        try:
            lock = _locked(new)
        except BaseException:
            new.rmdir()
            raise
        if lock is not None:
            return new, lock


def _mark_used(entry: Path) -> None:
    """Set the time of last use, by which the store deletes its entries."""
    try:
        os.utime(entry)
    except OSError as error:
        # Another user's entry, or one on a read-only disk, is usable, and is only deleted earlier.
        if error.errno not in _UNUSABLE:
            raise


def _locked(entry: Path) -> int | None:
    """Returns the file descriptor of a shared lock on an entry; None for a missing entry."""
    while True:
        try:
            lock = os.open(entry, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(lock, fcntl.LOCK_SH)
            # Another process may have deleted the folder before the lock was granted.
            if _is_at(lock, entry):
                return lock
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)


def _is_complete(entry: Path) -> bool:
    """False if the manifest is missing or empty, as after a deletion by hand or a power failure."""
    try:
        return (entry / _ASSEMBLY / _MANIFEST).stat().st_size > 0
    except FileNotFoundError:
        return False


def _is_at(lock: int, entry: Path) -> bool:
    """True if an open folder still has that path."""
    try:
        return os.path.samestat(os.fstat(lock), entry.stat())
    except FileNotFoundError:
        return False


def _renamed(new: Path, entry: Path) -> bool:
    """Rename a complete folder to its entry; False if the entry exists."""
    try:
        new.rename(entry)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        return False
    return True


def _deleted(path: Path) -> bool:
    """Delete a folder that no process uses; False if one does, if it is deleted, or if it belongs to another user."""
    try:
        lock = os.open(path, os.O_RDONLY)
    except (FileNotFoundError, PermissionError):
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Renamed first: a process that is killed now leaves a folder that the next one deletes.
        deleted = path.parent / f"{_TEMPORARY}{uuid4().hex}"
        path.rename(deleted)
    except (BlockingIOError, FileNotFoundError, PermissionError):
        return False
    finally:
        os.close(lock)
    shutil.rmtree(deleted, ignore_errors=True)
    return True


def _last_use(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _size(folder: Path) -> int:
    """Returns the bytes of all files below a folder, which another process may be deleting."""
    total = 0
    for location, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += Path(location, name).lstat().st_size
    return total


def _check_unchanged(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    if changed := [name for name in before if before[name] != after.get(name)]:
        raise CommandError(
            f"{', '.join(changed)} changed while the environment was synthesized",
            "finish the edit, then run the command again",
        )


def _check_equal(stored: Path, new: Path) -> None:
    """Compare templates, manifests and metadata, which name every asset by its digest."""
    first, second = _documents(stored), _documents(new)
    if first != second:
        names = first.keys() | second.keys()
        differing = sorted(name for name in names if first.get(name) != second.get(name))
        raise CommandError(
            f"two syntheses of the same inputs differ in {', '.join(differing[:3])}",
            f"delete {FOLDER} and run the command again; if it happens again, report it with both files",
        )


def _documents(folder: Path) -> dict[str, bytes]:
    files = [*folder.glob("*.json"), *folder.glob("assembly-*/*.json")]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}
