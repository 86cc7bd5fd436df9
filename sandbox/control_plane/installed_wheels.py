"""Takes parts from installed platform wheels of podwright."""

import base64
import hashlib
import shutil
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from ...config.errors import CommandError
from .pins import Part, Pins, Wheel

RECIPE: Final = "recipe"
"""File of a part that describes its sources."""


@dataclass(frozen=True, slots=True)
class CarriedPart:
    """A part that installed wheels contain completely."""

    origin: str
    """Names and versions of the wheels."""

    files: dict[str, tuple[Path, str]]
    """Location and digest of each file, by its path in the part's folder."""

    programs: tuple[str, ...]

    def unpack(self, folder: Path) -> None:
        """Copy the files into a folder.

        Raises:
            CommandError: A file differs from its digest in the wheel.
        """
        for name, (source, digest) in self.files.items():
            if not source.is_file() or _digest(source) != digest:
                names = " ".join(word.partition("==")[0] for word in self.origin.split(", "))
                raise CommandError(
                    f"{source} is not the file that {self.origin} brought",
                    f"`pip install --force-reinstall --no-deps {names}`, or `pip uninstall` it; then run this again",
                )
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, folder / name)
            (folder / name).chmod(0o755 if name in self.programs else 0o644)


def carried_part(part: Part, pins: Pins) -> CarriedPart | None:
    """Return a part from installed wheels; None if they lack a file of it or have other pins."""
    if isinstance(part.source, Wheel):
        return _upstream_wheel(part, part.source)
    files: dict[str, tuple[Path, str]] = {}
    origins = []
    for wheel in pins.wheels:
        installed = _installed(wheel.name) if part.name in wheel.parts else None
        if installed is None:
            continue
        carried = _files(installed, f"{wheel.package}/{part.folder}/")
        recipe, _ = carried.pop(RECIPE, (None, ""))
        if recipe and recipe.is_file() and recipe.read_text(encoding="utf-8") == part.recipe:
            files |= carried
            origins.append(f"{wheel.name}=={installed.version}")
    whole = files.keys() >= set(part.files)
    return CarriedPart(", ".join(origins), files, part.source.programs) if whole else None


def _upstream_wheel(part: Part, wheel: Wheel) -> CarriedPart | None:
    """Return a part from an upstream wheel of PyPI; None unless the pinned version is installed."""
    installed = _installed(wheel.package)
    if installed is None or installed.version != wheel.version:
        return None
    folder, _, program = wheel.program.rpartition("/")
    files = {name: file for name, file in _files(installed, f"{folder}/").items() if name == program}
    whole = files.keys() == set(part.files)
    return CarriedPart(f"{wheel.package}=={wheel.version}", files, part.files) if whole else None


def _installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def _files(installed: Distribution, folder: str) -> dict[str, tuple[Path, str]]:
    """Return the files of a distribution below a folder, with their digests in RECORD."""
    below = [file for file in installed.files or () if str(file).startswith(folder) and file.hash]
    return {
        str(file).removeprefix(folder): (Path(str(file.locate())), file.hash.value if file.hash else "")
        for file in below
    }


def _digest(file: Path) -> str:
    """Return a digest in the form of RECORD."""
    with file.open("rb") as opened:
        value = hashlib.file_digest(opened, "sha256").digest()
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
