"""What commands print, as a pipe has it or as a terminal of a width shows it."""

import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from unittest.mock import patch

from podwright.operations.output.console import write_line
from podwright.operations.output.tables import Block

WIDTHS = (80, 100, 120)
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
CODES = re.compile(r"(\x1b\[[0-9;?]*[a-zA-Z])")
MOVES = re.compile(r"\x1b\[([0-9]*)([AK])")


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True

    def seen(self, width: int = 10_000) -> list[str]:
        """The lines that somebody sees in the end, without what was taken away; what is too wide is wrapped."""
        rows, row, column = [""], 0, 0
        for part in CODES.split(self.getvalue()):
            if move := MOVES.fullmatch(part):
                row -= int(move[1] or 1) if move[2] == "A" else 0
                rows[row] = "" if move[0] == "\x1b[2K" else rows[row][:column] if move[2] == "K" else rows[row]
                continue
            for letter in "" if part.startswith("\x1b") else part:
                if letter == "\n" or (column == width and letter != "\r"):
                    row, column = row + 1, 0
                    rows += [""] * (row == len(rows))
                if letter == "\r":
                    column = 0
                elif letter != "\n":
                    rows[row] = rows[row][:column].ljust(column) + letter + rows[row][column + 1 :]
                    column += 1
        return "\n".join(rows).rstrip("\n").split("\n")


@contextmanager
def screen(width: int, **variables: str) -> Iterator[Screen]:
    """A terminal of a width, where standard output and standard error go; in colour unless NO_COLOR is among them."""
    shown = Screen()
    values = {"COLUMNS": str(width), "TERM": "xterm-256color", "NO_COLOR": "", **variables}
    with patch.dict("os.environ", values), redirect_stdout(shown), redirect_stderr(shown):
        yield shown


def text_of(blocks: Iterable[Block]) -> str:
    """Parts of an answer as a pipe has them."""
    with redirect_stdout(io.StringIO()) as printed:
        for block in blocks:
            write_line(block)
    return printed.getvalue()
