"""Writing values back into an environment file: only those that change are touched, all other bytes stay.

A dump of the whole document, ruamel's round trip included, would move comments and change the indentation of people who
never asked for it (decision 48). So the new values are put into the text where the parser says that the old ones stand,
and the result is read again before it replaces the file: what it says has to be exactly what was wanted.
"""

import copy
import json
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from difflib import unified_diff
from functools import reduce
from pathlib import Path
from typing import Any

from yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode, SequenceNode

from ...config.errors import InvalidFile, PodwrightError
from ...config.loading.load import LoadedEnvironment, environment_from, resolved
from ...config.loading.source import Source, compose, parse_source, read_source

Scalar = str | int | float | date
Values = Mapping[str, Scalar | list[dict[str, Scalar]] | Mapping[str, Scalar | Mapping[str, Scalar]]]
"""Settings by name, as a mapping of an environment file takes them, such as `training_plans.<plan>`."""

_PLAIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9/_.+-]|:(?=[A-Za-z0-9/_.+-]))*")
_NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?")


class NotWritten(PodwrightError):
    """A file that cannot take the values. It is as it was."""


def write_plan(file: Path, plan: str, values: Values) -> None:
    """Set `values` at `training_plans.<plan>` of an environment file. Raises NotWritten, as `write_values`."""
    write_values(file, ("training_plans", plan), values)


@dataclass(frozen=True, slots=True)
class FileEdit:
    """A change of one file that is prepared and not written."""

    file: Path
    """The file that changes: an environment's own, or one that it extends."""
    shown: str
    """The same as people know it."""
    before: bytes
    after: bytes
    loaded: LoadedEnvironment
    """The environment as it would be."""

    @property
    def diff(self) -> str:
        """The change as a unified diff; empty where there is none."""
        old, new = (text.decode("utf-8-sig").splitlines() for text in (self.before, self.after))
        return "\n".join(unified_diff(old, new, f"a/{self.shown}", f"b/{self.shown}", lineterm=""))

    def write(self) -> None:
        """Replace the file, as a whole or not at all. Raises NotWritten where it is no longer what was read."""
        try:
            if self.file.read_bytes() != self.before:
                raise NotWritten(f"{self.shown} has changed since it was read")
            if self.after != self.before:
                replace_file(self.file, self.after)
        except OSError as error:
            raise NotWritten(f"{self.shown}: {error.strerror}") from None


def write_values(file: Path, path: tuple[str, ...], values: Values) -> None:
    """Set `values` in the mapping at `path`, in the file that holds it: the environment's, or one that it extends.

    That file is replaced as a whole or not at all.

    Raises:
        NotWritten: as `edit_of`.
    """
    edit_of(file, path, values).write()


def edit_of(
    file: Path, path: tuple[str, ...], values: Values, *, shown: str | None = None, own: bool = False
) -> FileEdit:
    """The change that sets `values` in the mapping at `path`.

    Args:
        file: The environment's file.
        path: The mapping; empty for the whole file.
        values: What goes into it.
        shown: What people call the file; its path when absent.
        own: Whether `file` itself changes, rather than the file that it extends and that holds the mapping.

    Raises:
        NotWritten: the file is gone, locked or no longer an environment, does not have the mapping, or writes it in a
            way that cannot be changed in place (an alias or a merge key). It says which.
    """
    try:
        file.stat()
        whole = resolved(read_source(file, shown), file)
        # A link stays a link: what it points to is replaced.
        target = (file if own else holder(whole, file, path)).resolve()
        raw = target.read_bytes()
        text = raw.decode("utf-8-sig")
        changed = edited(text, path, values)
        _expect(text, changed, path, values)
        if own:
            source = resolved(replace(parse_source(changed, whole.file), files={whole.file: file}), file)
        else:
            source = replace(whole, data=_with(whole.data, path, values))
        mark = raw[: len(raw) - len(text.encode("utf-8"))]
        after = mark + changed.encode("utf-8")
        name = whole.file if own or path not in whole.positions else whole.position(path).file
        return FileEdit(target, name, raw, after, environment_from(source, file.resolve().stem))
    except OSError as error:
        raise NotWritten(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise NotWritten(f"{file} is not UTF-8") from None
    except InvalidFile as error:
        raise NotWritten(str(error)) from None


def holder(source: Source, file: Path, path: tuple[str, ...]) -> Path:
    """The file of `source` in which `path` stands; `file`, the environment's own, where it stands nowhere."""
    return (source.file_of(path) if path in source.positions else None) or file


def lines(values: Values, indent: int = 0) -> str:
    """The values as lines of a block mapping, for people who write them by hand."""
    return "\n".join(" " * indent + _line(name, value, indent) for name, value in values.items())


def edited(text: str, path: tuple[str, ...], values: Values) -> str:
    """`text` with `values` in the mapping at `path`; keys that are there are changed, others come before the first.

    Raises:
        NotWritten: there is no such mapping, or it is shared by an alias.
    """
    mapping = _mapping(text, path)
    known = {key.value: (key, value) for key, value in mapping.value if isinstance(key, ScalarNode)}
    newline = "\r\n" if "\r\n" in text else "\n"
    edits = [_edit(text, (*path, name), *known[name], values[name]) for name in values if name in known]
    if added := {name: value for name, value in values.items() if name not in known}:
        first = mapping.value[0][0].start_mark
        edits.append(_Edit(first.index, first.index, _before(added, first.column, bool(mapping.flow_style))))
    # From the end, so that the positions of those before stay.
    for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
        text = text[: edit.start] + edit.written.replace("\n", newline) + text[edit.end :]
    return text


@dataclass(frozen=True, slots=True)
class _Edit:
    """What takes the place of a piece of the text."""

    start: int
    end: int
    written: str


def _edit(text: str, path: tuple[str, ...], key: Node, old: Node, value: Any) -> _Edit:
    """The value of a key in place of its old one."""
    start = old.start_mark.index
    if start < key.end_mark.index:
        raise NotWritten(f"{'.'.join(path)} is an alias")
    if start == old.end_mark.index:
        # Nothing is there, and the parser's mark for nothing lies at whatever comes next.
        colon = text.index(":", key.end_mark.index) + 1
        return _Edit(colon, colon, f" {_written(value)}")
    if isinstance(value, list) and isinstance(old, SequenceNode) and not old.flow_style:
        return _Edit(start, _end(old, text), f"\n{' ' * old.start_mark.column}".join(_items(value)))
    return _Edit(start, _end(old, text), _written(value))


def _before(values: Values, column: int, flow: bool) -> str:
    """New settings before the first of a mapping whose keys stand in that column."""
    if flow:
        return "".join(f"{name}: {_written(value)},\n{' ' * column}" for name, value in values.items())
    return "".join(f"{_line(name, value, column)}\n{' ' * column}" for name, value in values.items())


def _mapping(text: str, path: tuple[str, ...]) -> MappingNode:
    node, started = compose(text), 0
    for depth, part in enumerate(path, start=1):
        pairs = node.value if isinstance(node, MappingNode) else []
        key, node = next(((key, value) for key, value in pairs if key.value == part), (None, None))
        where = ".".join(path[:depth])
        if key is None or node is None:
            raise NotWritten(f"the file has no {where}")
        if node.start_mark.index < max(started, key.end_mark.index):
            raise NotWritten(f"{where} is an alias, and a change would reach whatever shares it")
        started = key.end_mark.index
    if not isinstance(node, MappingNode) or not node.value:
        raise NotWritten(f"{'.'.join(path)} is not a mapping with settings")
    return node


def _end(node: Node, text: str) -> int:
    """Where a value's own text ends: a block collection's mark lies behind the comments that follow it."""
    if isinstance(node, CollectionNode) and not node.flow_style:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last, text)
    begin = node.start_mark.index
    return begin + len(text[begin : node.end_mark.index].rstrip())


def _line(name: str, value: Any, column: int) -> str:
    """A setting of a block mapping whose keys stand in that column; a list gets a line for each item.

    So does a mapping whose values are mappings.
    """
    items = _items(value) if isinstance(value, list) else ()
    if isinstance(value, dict) and all(isinstance(item, dict) for item in value.values()):
        items = [f"{key}: {_written(item)}" for key, item in value.items()]
    if items:
        return f"{name}:" + "".join(f"\n{' ' * (column + 2)}{item}" for item in items)
    return f"{name}: {_written(value)}"


def _items(values: list[Any]) -> list[str]:
    """The items of a block sequence."""
    return [f"- {_written(value)}" for value in values]


def _written(value: Any) -> str:
    """A value on one line."""
    match value:
        case list():
            return f"[{', '.join(map(_written, value))}]"
        case dict():
            return "{" + ", ".join(f"{_written(key)}: {_written(item)}" for key, item in value.items()) + "}"
        case datetime():
            return shown_time(value)
        case int() | float() | date():
            return str(value)
    plain = _PLAIN.fullmatch(value) and not _NUMBER.fullmatch(value)
    # What JSON quotes YAML reads as well.
    return value if plain else json.dumps(value, ensure_ascii=False)


def shown_time(value: datetime) -> str:
    """A time as environment files write it: in UTC, with as much of it as is not zero."""
    value = value.astimezone(UTC)
    return value.strftime("%Y-%m-%dT%H:%M:%SZ" if value.second else "%Y-%m-%dT%H:%MZ")


def plain(values: Values) -> dict[str, Any]:
    """The values as JSON takes them: text, and lists of mappings of text."""
    return {name: _as_read(value) for name, value in values.items()}


def _as_read(value: Any) -> Any:
    """A value as the parser gives it back: every scalar is text."""
    if isinstance(value, list):
        return [_as_read(item) for item in value]
    if isinstance(value, dict):
        return {key: _as_read(each) for key, each in value.items()}
    return shown_time(value) if isinstance(value, datetime) else str(value)


def _with(data: Any, path: tuple[str, ...], values: Values) -> Any:
    """What a file says, with the values in the mapping at `path`."""
    changed = copy.deepcopy(data)
    zone = reduce(lambda data, part: data[part], path, changed)
    zone |= {name: _as_read(value) for name, value in values.items()}
    return changed


def _expect(text: str, changed: str, path: tuple[str, ...], values: Values) -> None:
    """Raises NotWritten when the changed text says anything but the old text with the new values."""
    desired = _with(parse_source(text, "the file").data, path, values)
    if parse_source(changed, "the changed file").data != desired:
        raise NotWritten(f"{'.'.join(path)} shares its settings with other parts of the file")


def replace_file(target: Path, content: bytes) -> None:
    """Put `content` in the file's place at once, with its permissions, so that no crash leaves half of it."""
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    fresh = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        fresh.chmod(target.stat().st_mode & 0o7777)
        fresh.replace(target)
    finally:
        fresh.unlink(missing_ok=True)
