"""Text in the width of a terminal, with hanging indents."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

# A sign or a number of a list, or words that two spaces part from what they are about.
_HEAD: Final = re.compile(r" *(?:(?:[-+~!→•]|\d+\.) +|\S+(?: \S+){0,3} {2,})?")
# A command between backticks stays on one line, so that it can be copied.
_WORD: Final = re.compile(r"[^\s`]*`[^`]{1,60}`\S*|\S+")


class Span(NamedTuple):
    """A part of a line."""

    indent: int
    """Blanks before it."""
    start: int
    end: int


def wrapped(line: str, width: int | None, hang: int | None = None) -> list[str]:
    """The lines that a line becomes in a width; those after the first stand under where its text begins.

    A word that is longer than a line stays whole: it is an address, a name or a path. So does a line without a width.
    `hang` is where those lines begin; None for where the text does.
    """
    return [" " * indent + line[start:end] for indent, start, end in spans(line, width, hang)]


def spans(line: str, width: int | None, hang: int | None = None) -> Iterator[Span]:
    """What each of the lines is that `wrapped` makes of one."""
    if width is None or len(line) <= width:
        yield Span(0, 0, len(line))
        return
    margin = len(line) - len(line.lstrip())
    head = _HEAD.match(line)
    if hang is None:
        hang = len(head[0]) if head and 0 < len(head[0]) <= width // 2 else margin + 2
    indent = start = 0
    end = margin
    for word in _WORD.finditer(line, margin):
        if end > margin and indent + word.end() - start > width:
            yield Span(indent, start, end)
            indent, start = hang, word.start()
        end = word.end()
    yield Span(indent, start, end)
