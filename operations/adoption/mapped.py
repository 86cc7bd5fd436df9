"""Settings with notes on them, and the text of both as a file."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from textwrap import wrap
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.compat import StringIO

from ...config.findings import Path

_WIDTH: Final = 116
_INDENT: Final = 2
_LONGEST_LINE: Final = 10_000


@dataclass(slots=True)
class Mapped:
    """The settings of an environment, and what is to be said of them in comments."""

    data: dict[str, Any] = field(default_factory=dict)
    notes: list[tuple[Path, str]] = field(default_factory=list)
    """Each with the setting before which it stands; the empty path is the head of the file."""

    def note(self, path: Path, text: str) -> None:
        """Say something of a setting."""
        self.notes.append((path, text))

    def text(self, head: str) -> str:
        """The file, which begins with `head` and the notes on the whole."""
        by_path: dict[Path, list[str]] = {}
        for path, text in self.notes:
            by_path.setdefault(path, []).append(text)
        lines = [head, *(line for text in by_path.pop((), ()) for line in _comment(text, 0))]
        plain = [key for key, value in self.data.items() if not isinstance(value, Mapping)]
        # A section each with a blank line before it, for a file of one piece is hard to read.
        parts = [plain, *([key] for key in self.data if key not in plain)]
        dumped = [_dumped(self.data, part, by_path) for part in parts]
        return "\n".join(["\n".join(lines), *dumped])


def _dumped(data: Mapping[str, Any], keys: list[str], notes: Mapping[Path, list[str]]) -> str:
    """Some of the settings as YAML, with the notes that are on them."""
    tree = _commented({key: data[key] for key in keys})
    for path, texts in notes.items():
        if path[0] in keys:
            _place(tree, path, texts)
    stream = StringIO()
    yaml = YAML()
    # A long value stays on its line: people search for it.
    yaml.width = _LONGEST_LINE
    yaml.dump(tree, stream)
    return stream.getvalue()


def _comment(text: str, indent: int) -> list[str]:
    return [f"# {line}" for line in wrap(text, _WIDTH - indent, break_long_words=False, break_on_hyphens=False)]


def _place(tree: CommentedMap, path: Path, texts: list[str]) -> None:
    parent: Any = tree
    for part in path[:-1]:
        # A comment cannot stand within what is written on one line.
        parent.fa.set_block_style()
        parent = parent[part]
    parent.fa.set_block_style()
    indent = _INDENT * (len(path) - 1)
    lines = [line.removeprefix("# ") for text in texts for line in _comment(text, indent)]
    parent.yaml_set_comment_before_after_key(path[-1], before="\n".join(lines), indent=indent)


def _commented(value: Any, depth: int = 0) -> Any:
    """The same value with a style: what is short and deep enough stands on one line."""
    if isinstance(value, Mapping):
        result = CommentedMap((key, _commented(item, depth + 1)) for key, item in value.items())
        if depth > 1 and len(str(value)) < _WIDTH - _INDENT * depth - len("a_name_of_a_setting"):
            result.fa.set_flow_style()
        return result
    if isinstance(value, list):
        items = CommentedSeq(_commented(item, depth + 1) for item in value)
        if not any(isinstance(item, Mapping) for item in value):
            items.fa.set_flow_style()
        return items
    return value
