"""Plain columns: tables that stay the same in a terminal, a pipe and a log."""

from collections.abc import Container, Sequence


def columns(rows: Sequence[Sequence[str]], right: Container[int] = ()) -> list[str]:
    """Lines with the texts of `rows` under each other; the columns numbered in `right` end in line."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]

    def line(row: Sequence[str]) -> str:
        cells = (
            text.rjust(width) if column in right else text.ljust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        return "  ".join(cells).rstrip()

    return list(map(line, rows))
