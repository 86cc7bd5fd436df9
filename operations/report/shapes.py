"""Shapes that drawings are made of. Their colours are classes of the style sheet."""

from collections.abc import Sequence

from .lettering import fitted, width, wrapped
from .markup import Markup, tag

Drawn = tuple[float, list[Markup]]
"""The height that something takes, and its elements."""


def text(
    x: float, y: float, words: str, size: float, *classes: str, room: float | None = None, bold: bool = False
) -> Markup:
    """A line of text; cut to `room`, with the whole of it as its title."""
    shown = fitted(words, size, room, bold=bold) if room is not None else words
    title = tag("title", words) if shown != words else None
    named = " ".join([*classes, *(["b"] if bold else [])])
    return tag("text", title, shown, x=x, y=y, font_size=size, class_=named or None)


def box(x: float, y: float, wide: float, high: float, named: str, radius: float = 8) -> Markup:
    """A rectangle with round corners."""
    return tag("rect", x=x, y=y, width=wide, height=high, rx=radius, class_=named)


def chips(texts: Sequence[str], x: float, y: float, room: float) -> Drawn:
    """Words in boxes, line under line."""
    size, padding, height, gap = 11, 8, 22, 6
    parts: list[Markup] = []
    lines = wrapped(list(texts), size, room - 2 * padding, 2 * padding + gap)
    for row, line in enumerate(lines):
        left, top = x, y + row * (height + gap)
        for words in line:
            taken = width(words, size) + 2 * padding
            parts += [box(left, top, taken, height, "card", 11), text(left + padding, top + 15, words, size)]
            left += taken + gap
    return len(lines) * (height + gap) - gap if lines else 0.0, parts


def headed(x: float, y: float, room: float, name: str, words: str, *classes: str) -> list[Markup]:
    """A name in bold and after it, in one line, what there is to say of it."""
    left = x + min(width(name, 14, bold=True), room) + 12
    rest = x + room - left
    return [
        text(x, y, name, 14, *classes, room=room, bold=True),
        *([text(left, y, words, 12, "soft", room=rest)] if rest > 40 and words else []),
    ]


def bar(x: float, y: float, wide: float, share: float) -> list[Markup]:
    """How much of something is taken, from 0 to 1."""
    filled = wide * max(0.0, min(1.0, share))
    return [box(x, y, wide, 6, "track", 3), *([box(x, y, max(filled, 3.0), 6, "hue", 3)] if share > 0 else [])]
