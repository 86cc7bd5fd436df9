"""What `extends:` in an environment file means: settings of other files, laid below its own.

Mappings are joined key by key, at every depth; everything else, lists too, is replaced whole; and `null` takes away
what was inherited. Of several files a later one lies over an earlier, and the file itself over all. `name` is never
inherited. Every value keeps the place where it stands, so a finding points into the file that has to change.
"""

import os.path
from collections.abc import Iterator
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path as FilePath
from typing import Any, Final

from ..errors import InvalidFile
from ..findings import Path, SourcePosition
from .source import EXTENDS, Source, read_source

_NOT_INHERITED: Final = ("name", EXTENDS)
# People follow three or four levels; what goes deeper, or reads the same files over and over, is a mistake.
_MAX_DEPTH: Final = 8
_MAX_FILES: Final = 64


def with_extended(source: Source, file: FilePath) -> Source:
    """`source`, read from `file`, with everything that it extends laid below it; itself when it extends nothing.

    Raises:
        InvalidFile: ENV008 for what cannot be extended, ENV009 for files without end, and what is wrong in any of them.
    """
    return _Chain().resolved(source, file, ())


class _Chain:
    """The files that one environment is read from."""

    def __init__(self) -> None:
        self._files = 0
        self._shown = dict[str, FilePath]()
        """The real file of each path that findings show."""

    def resolved(self, source: Source, file: FilePath, above: tuple[tuple[FilePath, str], ...]) -> Source:
        """`source` with its bases below it. `above` are the files that led here, real and as shown."""
        own = _without((EXTENDS,), source) if isinstance(source.data, dict) else source
        # Resolved, as the same file may be named by two paths, and a circle goes by files.
        way = (*above, (file.resolve(), source.file))
        self._shown.setdefault(source.file, file.resolve())
        result: Source | None = None
        for specified, location in _named(source):
            base = self._read(specified, location, source.file, file, way)
            result = base if result is None else laid_over(result, base)
        own = replace(own, files={source.file: file})
        return own if result is None else laid_over(result, own)

    def _read(
        self,
        specified: str,
        location: SourcePosition,
        shown: str,
        file: FilePath,
        way: tuple[tuple[FilePath, str], ...],
    ) -> Source:
        """Read a file of a chain and what it extends in turn. Raises for circles and for chains beyond the limits."""
        # Shown as the path from the project, which is what people open.
        target, name = file.parent / specified, os.path.normpath(FilePath(shown).parent / specified)
        # Below a linked folder `..` leads elsewhere than in the path, so two files may have one path.
        if self._shown.get(name, target.resolve()) != target.resolve():
            name = str(target)
        if target.resolve() in (real for real, _ in way):
            circle = " → ".join([*(shown for _, shown in way), name])
            raise _endless(f"{name} extends itself: {circle}", "take one of these `extends` out", location)
        self._files += 1
        if len(way) > _MAX_DEPTH or self._files > _MAX_FILES:
            many = f"more than {_MAX_DEPTH} files deep" if len(way) > _MAX_DEPTH else f"more than {_MAX_FILES} files"
            raise _endless(f"extends leads {many}", "join some of the files", location)
        if not target.is_file():
            near = sorted(other.name for other in target.parent.glob("*.yaml")) if target.parent.is_dir() else []
            close = get_close_matches(target.name, near, 1)
            hint = f"did you mean {close[0]}?" if close else "the path is relative to the file that names it"
            raise _refused(f"extends names {specified}, and there is no {name}", hint, location)
        base = read_source(target, name)
        if not isinstance(base.data, dict):
            hint = "write settings as an environment file has them"
            raise _refused(f"{name} is not a mapping of settings", hint, base.position(()))
        # Its own extends is done with here, and its name is the name of another environment.
        return _without(_NOT_INHERITED, self.resolved(base, target, way))


def laid_over(below: Source, above: Source) -> Source:
    """`below` with `above` over it, each value with its own place."""
    deleted: list[Path] = []
    data = _joined(below.data, above.data, (), deleted)
    retained = {path: location for path, location in below.positions.items() if not _under(path, deleted)}
    # A value that null took away stands nowhere any more.
    over = {path: location for path, location in above.positions.items() if _stands(path, data)}
    return Source(above.file, data, retained | over, below.files | above.files)


def _joined(low: dict[str, Any], high: dict[str, Any], path: Path, deleted: list[Path]) -> dict[str, Any]:
    """The upper file's data over the lower's; places of the lower that no longer count are added to `deleted`."""
    # A copy: a base may lie below several files.
    result = dict(low)
    for key, value in high.items():
        here = (*path, key)
        if isinstance(value, dict) and isinstance(low.get(key), dict):
            result[key] = _joined(low[key], value, here, deleted)
            continue
        # What is replaced has its places in the upper file from now on, those of its insides too.
        if key in low:
            deleted.append(here)
        if value is None and key in low:
            del result[key]
        else:
            result[key] = value
    return result


def _under(path: Path, prefixes: list[Path]) -> bool:
    return any(path[: len(prefix)] == prefix for prefix in prefixes)


def _stands(path: Path, data: Any) -> bool:
    for part in path:
        # Items of lists are replaced with the whole list, so an index beyond its end stands nowhere.
        if not (part in data if isinstance(data, dict) else isinstance(data, list) and part in range(len(data))):
            return False
        data = data[part]
    return True


def _without(keys: tuple[str, ...], source: Source) -> Source:
    locations = {path: location for path, location in source.positions.items() if not path or path[0] not in keys}
    return replace(
        source, data={key: value for key, value in source.data.items() if key not in keys}, positions=locations
    )


def _named(source: Source) -> Iterator[tuple[str, SourcePosition]]:
    """The files that `source` extends as it writes them, each with where it does. Raises InvalidFile."""
    specified = source.data.get(EXTENDS) if isinstance(source.data, dict) else None
    if specified is None:
        return
    items = specified if isinstance(specified, list) else [specified]
    for index, item in enumerate(items):
        location = source.position((EXTENDS, index) if isinstance(specified, list) else (EXTENDS,))
        if not isinstance(item, str) or not item.endswith((".yaml", ".yml")):
            shown = repr(item) if isinstance(item, str) else "not a path"
            hint = "write the path of a .yaml file, or a list of them, such as `extends: shared/base.yaml`"
            raise _refused(f"extends is {shown}; allowed: paths of .yaml files", hint, location)
        if FilePath(item).is_absolute():
            hint = "write it relative to this file, so that the project works wherever it lies"
            raise _refused(f"extends names {item}, an absolute path", hint, location)
        yield item, location


def _refused(message: str, hint: str, location: SourcePosition) -> InvalidFile:
    return InvalidFile.because("ENV008", message, hint, location, EXTENDS)


def _endless(message: str, hint: str, location: SourcePosition) -> InvalidFile:
    return InvalidFile.because("ENV009", message, hint, location, EXTENDS)
