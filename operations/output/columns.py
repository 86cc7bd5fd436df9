"""Plain columns: tables that stay the same in a terminal, a pipe and a log."""

from collections.abc import Container, Sequence


def columns(rows: Sequence[Sequence[str]], right: Container[int] = ()) -> list[str]:
    """Lines with the texts of `rows` under each other; the columns numbered in `right` end in line."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            text.rjust(width) if column in right else text.ljust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
