"""HTML and SVG as a tree of calls: whatever is not markup already is escaped, so no name of a file becomes markup."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, Final

_VOID: Final = frozenset({"br", "hr", "link", "meta"})


class Markup(str):
    """Text that is HTML or SVG already, and goes out as it is."""

    __slots__ = ()


def tag(name: str, /, *children: Any, **attributes: Any) -> Markup:
    """An element.

    Args:
        name: Its name.
        children: Markup as it is; everything else as escaped text; None and False not at all; lists by their members.
        attributes: `class_` and `for_` lose their underscore, others turn it into a hyphen. None and False are left
            out, True stands without a value.
    """
    shown = "".join(_attribute(key, value) for key, value in attributes.items() if value is not None)
    if name in _VOID:
        return Markup(f"<{name}{shown}>")
    return Markup(f"<{name}{shown}>{joined(children)}</{name}>")


def joined(children: Iterable[Any]) -> Markup:
    """Children one after the other, escaped where they are no markup."""
    return Markup("".join(map(_child, children)))


def table(
    caption: str,
    headers: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    right: Iterable[int] = (),
    class_: str | None = None,
) -> Markup:
    """A table that scrolls by itself where it is too wide. The first cell of a row names it.

    Args:
        caption: What it shows; screen readers say it, and the page shows it above.
        headers: One for each column.
        rows: Cells, as text or markup.
        right: Columns of numbers.
        class_: A class of the table.
    """
    numbers = frozenset(right)
    head = tag(
        "tr",
        *(
            tag("th", text, scope="col", class_="n" if column in numbers else None)
            for column, text in enumerate(headers)
        ),
    )
    body = [
        tag(
            "tr",
            *(
                tag("th", cell, scope="row")
                if not column
                else tag("td", cell, class_="n" if column in numbers else None)
                for column, cell in enumerate(row)
            ),
        )
        for row in rows
    ]
    inner = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", *body), class_=class_)
    return tag("div", inner, class_="scroll", role="region", tabindex="0", aria_label=caption)


def facts(pairs: Iterable[tuple[str, Any]]) -> Markup:
    """A list of names and what they are; those that are nothing are left out."""
    shown = [tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs if value not in (None, "", False)]
    return tag("dl", *shown, class_="facts")


def badge(text: str, kind: str) -> Markup:
    """A word in a coloured box; `kind` is a class of the style sheet."""
    return tag("span", text, class_=f"badge {kind}")


def details(summary: Any, *children: Any, opened: bool = False) -> Markup:
    """What opens at a click, without a script. Print shows it as it is."""
    return tag("details", tag("summary", summary), *children, open=opened)


def _child(child: Any) -> str:
    if child is None or child is False:
        return ""
    if isinstance(child, Markup):
        return child
    if isinstance(child, list | tuple):
        return "".join(map(_child, child))
    return escape(str(child))


def _attribute(key: str, value: Any) -> str:
    if value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    if isinstance(value, float):
        value = f"{value:.1f}".removesuffix(".0")
    return f' {name}="{escape(str(value))}"'
