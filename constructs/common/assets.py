"""The one way in which a folder of ours becomes a CDK asset.

An asset's hash decides whether a deployment changes anything, so it must be the same from a checkout, an editable
install and a wheel, under any umask, and after Python has written its caches beside the sources. Therefore the files
are copied to a temporary folder first: only those that ship, with LF line endings and fixed modes; and the hash is
ours, over paths and bytes, rather than the CDK's, which also covers exclusion patterns and absolute facts of the copy.
"""

import hashlib
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct

_LEFT_OUT = frozenset({"__pycache__", "tests", "py.typed"})


@dataclass(frozen=True, slots=True)
class StagedFolder:
    """A temporary copy of the files that ship."""

    path: Path
    """Where the copy lies, until its `with` block ends."""
    digest: str
    """SHA-256 over the sorted paths and contents, as hexadecimal digits."""


def shipped_files(folder: Path, *, at: str = "") -> dict[str, Path]:
    """The files of `folder` that ship, by their path in the asset below `at`.

    Left out: dotfiles, `__pycache__`, compiled Python, `tests`, and the marker of typed packages.
    """
    files: dict[str, Path] = {}
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        hidden = any(part.startswith(".") or part in _LEFT_OUT for part in relative.parts)
        if path.is_file() and not hidden and path.suffix not in (".pyc", ".pyo"):
            files[str(PurePosixPath(at, relative.as_posix()))] = path
    if not files:
        raise FileNotFoundError(f"nothing to ship in {folder}: the folder is missing or empty")
    return files


@contextmanager
def staged(files: Mapping[str, Path]) -> Iterator[StagedFolder]:
    """A temporary folder with `files` by their path in it: text with LF, scripts 0755, all else 0644.

    The CDK reads the folder while a construct is made from it; nothing needs it after the `with` block.
    """
    digest = hashlib.sha256()
    with tempfile.TemporaryDirectory(prefix="podwright-asset-") as name:
        folder = Path(name)
        for relative, source in sorted(files.items()):
            content = source.read_bytes()
            if b"\0" not in content:
                # A file with a zero byte is binary, where two bytes that look like a line ending are none.
                content = content.replace(b"\r\n", b"\n")
            target = folder / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            # Whoever checked the files out may have had another umask.
            target.chmod(0o755 if target.suffix == ".sh" else 0o644)
            # The length stands between path and content, so that no other split into files gives the same digest.
            digest.update(f"{relative}\0{len(content)}\0".encode() + content)
        yield StagedFolder(folder, digest.hexdigest())


def folder_asset(scope: Construct, construct_id: str, files: Mapping[str, Path]) -> s3_assets.Asset:
    """An S3 asset, a zip after deployment, that holds `files` (see `shipped_files`)."""
    with staged(files) as folder:
        return s3_assets.Asset(scope, construct_id, path=str(folder.path), asset_hash=folder.digest)


@contextmanager
def folder_code(files: Mapping[str, Path]) -> Iterator[lambda_.Code]:
    """Lambda code that holds `files`; make the function inside the `with` block."""
    with staged(files) as folder:
        yield lambda_.Code.from_asset(str(folder.path), asset_hash=folder.digest)
