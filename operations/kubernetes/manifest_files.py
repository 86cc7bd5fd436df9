"""Manifests as files of a folder that holds nothing else of an earlier run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ...config.errors import CommandError
from ..output.console import write_line

_INDEX: Final = ".podwright-rendered"


def write_files(folder: Path, files: Mapping[str, str], *, some: bool = False) -> None:
    """Write files below `folder`, delete those of an earlier run that are not among them, and say how many.

    With `some`, these files are only a part of the folder's, and nothing is deleted.

    Raises:
        CommandError: the folder is a file, or lies where the user may not write.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"--out {folder} cannot be a folder: {error.strerror}", "name another one", 2) from None
    index = folder / _INDEX
    former = set(index.read_text(encoding="utf-8").splitlines()) if index.is_file() else set[str]()
    for file, text in files.items():
        target = folder / file
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    deleted = set[str]() if some else former - files.keys()
    for file in deleted:
        (folder / file).unlink(missing_ok=True)
    index.write_text("".join(f"{file}\n" for file in sorted((former | files.keys()) - deleted)), encoding="utf-8")
    write_line(f"{len(files):,} files in {folder}" + (f", {len(deleted):,} removed" if deleted else ""))
