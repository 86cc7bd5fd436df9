"""The files of a container image: from a registry, from an OCI layout, or from an unpacked root file system.

Only the files that are asked for are kept; one layer at a time lies on disk until it is read.
Sources: Open Container Initiative, Image Format 1.1 (layers, whiteouts, layouts).
"""

import hashlib
import json
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final

from ...config.catalog.images import Image
from ...config.errors import CommandError
from .registry import Registry

# OCI Image Format: a file of that prefix takes away the file of a lower layer whose name follows.
_WHITEOUT: Final = ".wh."
# This one takes away the whole folder below.
_OPAQUE: Final = ".wh..wh..opq"
_ARCHITECTURES: Final = {"x86_64": "amd64", "arm64": "arm64"}


@dataclass
class ImageFiles:
    """The files of an image that were asked for."""

    name: str
    """The image, or the folder."""
    files: dict[PurePosixPath, Path] = field(default_factory=dict)
    """Where a copy of each lies, by its path in the image."""
    links: dict[PurePosixPath, str] = field(default_factory=dict)
    """Symbolic links that match, and where they point."""
    variables: dict[str, str] = field(default_factory=dict)
    """Environment variables that the image sets."""

    def remove(self, path: PurePosixPath) -> None:
        """Forget a path and all below it."""
        for known in (self.files, self.links):
            for name in [name for name in known if name == path or path in name.parents]:
                del known[name]


Wanted = Callable[[PurePosixPath], bool]


@contextmanager
def files_of_folder(folder: Path, desired: Wanted, architecture: str) -> Iterator[ImageFiles]:
    """The files of an image in a folder: an OCI layout when it holds `oci-layout`, else a root file system.

    Raises:
        CommandError: a layout holds no image for the architecture.
    """
    if (folder / "oci-layout").is_file():
        with _layered(_Layout(folder), str(folder), desired, architecture) as image_files:
            yield image_files
        return
    image_files = ImageFiles(str(folder))
    for file in sorted(folder.rglob("*")):
        path = PurePosixPath("/", file.relative_to(folder).as_posix())
        if not desired(path):
            continue
        if file.is_symlink():
            image_files.links[path] = str(file.readlink())
        elif file.is_file():
            image_files.files[path] = file
    yield image_files


@contextmanager
def files_of_image(image: Image, registry: Registry, desired: Wanted, architecture: str) -> Iterator[ImageFiles]:
    """The files of an image in a registry. Raises CommandError when it has none for the architecture."""
    with _layered(_Remote(registry, image), str(image), desired, architecture) as result:
        yield result


class _Remote:
    """An image in a registry."""

    def __init__(self, registry: Registry, image: Image) -> None:
        self._registry, self._image = registry, image

    def top(self) -> dict[str, Any]:
        return self.manifest(self._image.digest or self._image.tag)

    def manifest(self, reference: str) -> dict[str, Any]:
        return json.loads(self._registry.manifest(self._image.repository, reference)[0])

    def blob(self, digest: str, into: IO[bytes]) -> None:
        self._registry.read_blob(self._image.repository, digest, into)


class _Layout:
    """An image in a folder as `skopeo copy` and `docker buildx` write it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def top(self) -> dict[str, Any]:
        return json.loads((self._folder / "index.json").read_text(encoding="utf-8"))

    def manifest(self, reference: str) -> dict[str, Any]:
        return json.loads(self._path(reference).read_text(encoding="utf-8"))

    def blob(self, digest: str, into: IO[bytes]) -> None:
        checksum = hashlib.sha256()
        with self._path(digest).open("rb") as file:
            while chunk := file.read(1 << 20):
                checksum.update(chunk)
                into.write(chunk)
        if f"sha256:{checksum.hexdigest()}" != digest:
            raise CommandError(f"{self._path(digest)} is not what its name says", "copy the image again")
        into.seek(0)

    def _path(self, digest: str) -> Path:
        # The digest sha256:abc lies at blobs/sha256/abc.
        return self._folder / "blobs" / digest.replace(":", "/", 1)


@contextmanager
def _layered(source: _Remote | _Layout, name: str, desired: Wanted, architecture: str) -> Iterator[ImageFiles]:
    manifest = _chosen(source, name, architecture)
    with tempfile.TemporaryDirectory(prefix="podwright-image-") as path, tempfile.TemporaryFile() as file:
        source.blob(manifest["config"]["digest"], file)
        environment = json.load(file).get("config", {}).get("Env") or ()
        variables = {key: value for item in environment for key, _, value in [item.partition("=")]}
        image_files = ImageFiles(name, variables=variables)
        for number, layer in enumerate(manifest["layers"]):
            with tempfile.TemporaryFile() as packed:
                source.blob(layer["digest"], packed)
                _read(packed, layer, desired, image_files, Path(path, str(number)))
        yield image_files


def _chosen(source: _Remote | _Layout, name: str, architecture: str) -> dict[str, Any]:
    """The manifest of the image for one architecture."""
    manifest = source.top()
    # An index may lead to indexes before it leads to a manifest.
    while "layers" not in manifest:
        entries = manifest.get("manifests", [])
        platforms = [entry.get("platform", {}).get("architecture") for entry in entries]
        fitting = [
            entry
            for entry, platform in zip(entries, platforms, strict=True)
            # An entry without a platform is the only one of its kind.
            if platform in (None, _ARCHITECTURES[architecture])
        ]
        if not fitting:
            # Attestations of buildx have the platform "unknown".
            existing = ", ".join(sorted({platform for platform in platforms if platform and platform != "unknown"}))
            raise CommandError(
                f"{name} has no image for {architecture}, only for {existing or 'nothing'}", "choose --architecture"
            )
        manifest = source.manifest(fitting[0]["digest"])
    return manifest


def _read(packed: IO[bytes], layer: dict[str, Any], desired: Wanted, image_files: ImageFiles, location: Path) -> None:
    """Lay one layer over what was found: its files replace those of the same name, and whiteouts take away."""
    if layer.get("mediaType", "").endswith("+zstd"):
        raise CommandError(
            f"{image_files.name} has layers that are compressed with zstd, which Python reads from 3.14 on",
            "unpack the image into a folder and check that, or copy it with `skopeo copy --dest-compress-format gzip`",
        )
    location.mkdir()
    with tarfile.open(fileobj=packed, mode="r:*") as archive:
        for index, member in enumerate(archive):
            # Members are named with and without ./ before them.
            path = PurePosixPath("/", PurePosixPath(member.name))
            if path.name == _OPAQUE:
                image_files.remove(path.parent)
            elif path.name.startswith(_WHITEOUT):
                image_files.remove(path.with_name(path.name.removeprefix(_WHITEOUT)))
            # A link in the place of a file takes the file away, and the other way round.
            elif member.issym() and desired(path):
                image_files.remove(path)
                image_files.links[path] = member.linkname
            elif member.isfile() and desired(path):
                image_files.remove(path)
                content = archive.extractfile(member)
                # By number, as names from an archive may lead outside of the folder.
                target = location / str(index)
                with target.open("wb") as file:
                    while content and (chunk := content.read(1 << 20)):
                        file.write(chunk)
                image_files.files[path] = target
