"""The output layer by itself: tables and lines in every width lose nothing."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from podwright.operations.output.console import write_line
from podwright.operations.output.tables import Table, new_table, styled
from podwright.operations.output.wrapping import wrapped
from screens import COLOURS, screen

WORD = st.text("abcdefg-/.0123456789", min_size=1, max_size=40)
CELL = st.lists(WORD, max_size=8).map(" ".join)


def lines_of(table: Table, width: int) -> list[str]:
    with screen(width, NO_COLOR="1") as terminal:
        write_line(table)
    return COLOURS.sub("", terminal.getvalue()).splitlines()


@example([("a" * 40, "b" * 40, "c" * 40)], 90)
@given(st.lists(st.tuples(CELL, CELL, CELL), min_size=1, max_size=4), st.integers(40, 160))
def test_a_table_loses_nothing_in_a_width(rows: list[tuple[str, ...]], width: int) -> None:
    """Each letter of each cell is there, no line is too wide, and no column is narrower than six characters."""
    names = ("first", "second", "third")
    table = new_table("", names, rows)
    lines = lines_of(table, width)
    assert max(map(len, lines)) <= width
    letters = [sorted("".join(text.split())) for text in ("".join(lines), "".join(map("".join, rows)))]
    extra = list(letters[0])
    for letter in letters[1]:
        extra.remove(letter)
    grid = lines[0].split() == list(names)
    if grid:
        # Names apart, nothing is there that is in no cell.
        assert sorted(extra) == sorted("".join(names))
        starts = [lines[0].index(name) for name in names] + [width]
        natural = [max(len(row[index]) for row in [names, *rows]) for index in range(3)]
        assert all(starts[n + 1] - starts[n] >= min(6, natural[n]) for n in range(3))
    else:
        assert "Each row is a paragraph" in "\n".join(lines)


def test_columns_go_in_the_order_that_the_table_declares() -> None:
    row = ("0123456789" * 2,) * 4
    table = new_table("Offers", ("a", "b", "c", "price"), [row], right=("price",), optional=("b", "a"))
    assert lines_of(table, 90)[1].split() == ["a", "b", "c", "price"]
    assert lines_of(table, 70)[1:] == [
        f"{'a':<22}{'c':<22}{'price':>20}",
        "  ".join(row[:3]),
        "Not shown in a width of 70: b.",
    ]
    assert lines_of(table, 44)[1].split() == ["c", "price"]
    stacked = lines_of(table, 41)
    assert stacked[1:5] == [row[0], *(f"  {name:<5}  {row[0]}" for name in ("b", "c", "price"))]


HEADS = ("", "  ", "- ", "  name  ")


@given(st.lists(WORD, min_size=1, max_size=30).map(" ".join), st.integers(30, 120), st.sampled_from(HEADS))
def test_words_wrap_with_a_hanging_indent(text: str, width: int, head: str) -> None:
    lines = wrapped(head + text, width)
    assert " ".join(" ".join(lines).split()) == " ".join((head + text).split())
    assert all(len(line) <= width or len(line.split()) == 1 for line in lines)
    hang = len(head) if head.strip() and len(lines[0]) > len(head) else None
    if hang:
        assert all(line.startswith(" " * hang) and line[hang] != " " for line in lines[1:])
    assert all(line.startswith("  ") for line in lines[1:])


def test_a_command_between_backticks_stays_on_a_line() -> None:
    command = "`podwright upgrade prod nodes --group h200`"
    assert any(command in line for line in wrapped("Word " * 11 + command + " and more words after it", 72))


@pytest.mark.parametrize(("variables", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_colours(variables: dict[str, str], coloured: bool) -> None:
    with screen(80, **variables) as terminal:
        write_line(styled(("failed", "red"), " as it is"))
    assert bool(COLOURS.search(terminal.getvalue())) == coloured
    assert COLOURS.sub("", terminal.getvalue()) == "failed as it is\n"
