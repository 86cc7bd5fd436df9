"""Reading YAML so that every scalar stays as written and every value knows its line.

YAML's own guesses turn `off` into false, `1.30` into 1.3 and `012345670123` into another number. Here all scalars
stay text (only `null`, `~` and nothing mean absent); the models decide what they are.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path as FilePath
from typing import Any

from yaml.composer import Composer
from yaml.cyaml import CParser
from yaml.error import MarkedYAMLError
from yaml.events import AliasEvent
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.reader import ReaderError
from yaml.resolver import BaseResolver

from ..errors import InvalidFile
from ..findings import Finding, Level, Path, SourcePosition, dotted

EXTENDS = "extends"
"""The setting of a file that names others whose settings it takes over; see `extends.py`."""

# A hundred groups with fifty labels each are 500 kB and 11,000 values. Aliases may multiply a file beyond any memory.
_MAX_BYTES = 1_000_000
_MAX_VALUES = 50_000
_MAX_DEPTH = 40
_NULLS = {"", "~", "null", "Null", "NULL"}
_PLAIN_TAGS = {"str", "int", "float", "bool", "null", "timestamp", "map", "seq", "merge", "value"}


class _Loader(Composer, CParser, BaseResolver):
    """Parses by libyaml, ten times as fast as a parser in Python, and resolves no scalar.

    Composes nodes no deeper than any environment is: libyaml's own composer has no limit, and crashes the process.
    """

    def __init__(self, text: str) -> None:
        CParser.__init__(self, text)
        Composer.__init__(self)
        BaseResolver.__init__(self)
        self.depth = 0

    # The composer calls it for each node, so here is where depth can be counted.
    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()
        if self.depth > _MAX_DEPTH:
            raise MarkedYAMLError(problem=f"more than {_MAX_DEPTH} levels deep", problem_mark=event.start_mark)
        # YAML allows it and takes the last one; in a file that people read that is a slip.
        if not isinstance(event, AliasEvent) and event.anchor in self.anchors:
            raise MarkedYAMLError(problem=f"anchor {event.anchor!r} is given twice", problem_mark=event.start_mark)
        self.depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1


@dataclass(frozen=True, slots=True)
class Source:
    """A YAML file as plain data, with the place of every value."""

    file: str
    data: Any
    positions: dict[Path, SourcePosition]
    files: dict[str, FilePath] = field(default_factory=dict)
    """The files that it was read from, as places name them: its own and those that it extends."""

    def file_of(self, path: Path) -> FilePath | None:
        """The file in which `path` stands; None for text that came from no file."""
        return self.files.get(self.position(path).file)

    def position(self, path: Path) -> SourcePosition:
        """Where `path` stands; for a value that is not in the file, the nearest enclosing one."""
        # A default has no place of its own, and what is missing belongs to what encloses it.
        while path and path not in self.positions:
            path = path[:-1]
        return self.positions.get(path, SourcePosition(self.file, 1))


def read_source(file: FilePath, shown_as: str | None = None) -> Source:
    """Read a YAML file.

    Raises:
        InvalidFile: unreadable, not UTF-8, too large, not YAML, several documents, duplicate keys, tags of its own,
            or aliases that expand without bound.
    """
    name = shown_as or str(file)
    try:
        raw = file.read_bytes()
    except OSError as error:
        raise _invalid(name, 1, f"cannot be read: {error.strerror}", "check the name and the permissions") from None
    if len(raw) > _MAX_BYTES:
        raise _invalid(name, 1, f"is {len(raw):,} bytes, more than {_MAX_BYTES:,}", "split it into several files")
    try:
        # Editors of Windows begin a file with a byte order mark.
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise _invalid(name, line, f"is not UTF-8 at byte {error.start}", "save the file as UTF-8") from None
    return replace(parse_source(text, name), files={name: file})


def compose(text: str) -> Node | None:
    """The nodes of YAML text that `parse_source` takes, each with where in the text it stands; None for empty text."""
    return _Loader(text).get_single_node()


def parse_source(text: str, name: str) -> Source:
    """Read YAML text; `name` is the file that findings show. Raises InvalidFile like `read_source`."""
    loader = _Loader(text)
    nodes: list[Node] = []
    try:
        while loader.check_node() and (node := loader.get_node()):
            nodes.append(node)
    except MarkedYAMLError as error:
        mark, started, problem = error.problem_mark or error.context_mark, error.context_mark, error.problem
        # What is never closed is missed one line below the last.
        line = min(mark.line, text.count("\n")) + 1 if mark else 1
        if mark and mark.index < len(text) and problem:
            problem = problem.replace("found character", f"found character {text[mark.index]!r}")
        if started and started.line + 1 < line:
            problem = f"{problem} {error.context}, which begins at line {started.line + 1}"
        hint = "fix the syntax at this line; indent with spaces"
        if problem == "found incompatible YAML document":
            hint = "leave out the line with %YAML"
        raise _invalid(name, line, f"cannot be read: {problem}", hint) from None
    except ReaderError as error:
        line = text[: error.position].count("\n") + 1
        problem = f"holds the character U+{error.character:04X}, which YAML does not take"
        raise _invalid(name, line, problem, "remove it, or write it as an escape in double quotes") from None
    if len(nodes) > 1:
        raise _invalid(
            name, nodes[1].start_mark.line + 1, "holds a second YAML document", "keep one environment per file"
        )
    reader = _Reader(name)
    data = reader.value(nodes[0], (), 0) if nodes and nodes[0] is not None else None
    if reader.findings:
        raise InvalidFile(reader.findings)
    return Source(name, data, reader.positions)


def _invalid(name: str, line: int, message: str, hint: str) -> InvalidFile:
    return InvalidFile.because("YML001", f"{name} {message}", hint, SourcePosition(name, line))


class _Reader:
    """Turns composed YAML nodes into plain data, collecting places and findings."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.positions: dict[Path, SourcePosition] = {}
        self.findings: list[Finding] = []
        # Counted where aliases are followed, for that is where they multiply.
        self.values = 0

    def value(self, node: Node, path: Path, depth: int) -> Any:
        """The plain value of a node. Remembers its position, and refuses aliases that expand without end."""
        self.values += 1
        if self.values > _MAX_VALUES or depth > _MAX_DEPTH:
            many = f"more than {_MAX_DEPTH} levels" if depth > _MAX_DEPTH else f"more than {_MAX_VALUES:,} values"
            raise _invalid(self.name, node.start_mark.line + 1, f"expands to {many}", "do without nested aliases")
        # The first: an anchored value keeps the place where it is written, and not that of its last use.
        self.positions.setdefault(path, self._position(node))
        tag = str(node.tag).rsplit(":", 1)[-1]
        if tag not in _PLAIN_TAGS:
            self._find("YML003", path, node, f"tag {node.tag} is not known", "write the plain value")
        if isinstance(node, ScalarNode):
            # In quotes `null` is a word.
            return None if not node.style and node.value in _NULLS else node.value
        if isinstance(node, SequenceNode):
            return [self.value(item, (*path, index), depth + 1) for index, item in enumerate(node.value)]
        assert isinstance(node, MappingNode)
        return self._mapping(node, path, depth)

    def _mapping(self, node: MappingNode, path: Path, depth: int) -> dict[str, Any]:
        """A mapping with its merge keys resolved as YAML 1.1 has it: own keys win, then the first of the merged."""
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                self._find("YML004", path, key_node, "a key is not plain text", "use a plain name as key")
                continue
            key = key_node.value
            if key == "<<" and not key_node.style:
                sources = value_node.value if isinstance(value_node, SequenceNode) else [value_node]
                for source in sources:
                    if not isinstance(source, MappingNode):
                        self._find(
                            "YML005",
                            path,
                            source,
                            "<< merges something that is not a mapping",
                            "point it at an anchored mapping",
                        )
                        continue
                    merged = self.value(source, path, depth + 1) | merged
                continue
            if key in own:
                self._find(
                    "YML002",
                    (*path, key),
                    key_node,
                    f"key {key!r} is listed twice",
                    f"keep one of them; the first is at line {self.positions[(*path, key)].line}",
                )
                continue
            self.positions[(*path, key)] = self._position(key_node)
            own[key] = self.value(value_node, (*path, key), depth + 1)
        return merged | own

    def _position(self, node: Node) -> SourcePosition:
        return SourcePosition(self.name, node.start_mark.line + 1, node.start_mark.column + 1)

    def _find(self, rule: str, path: Path, node: Node, message: str, hint: str) -> None:
        self.findings.append(Finding(rule, Level.ERROR, dotted(path), message, hint, self._position(node)))
