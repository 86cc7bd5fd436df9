"""Tables of measurements, each row with the limit that it has to keep."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Report:
    """A Markdown table, and whether every row keeps its limit."""

    table: str
    kept: bool


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def verdict(value: float, limit: float) -> str:
    """`kept` or `missed`."""
    return "kept" if value <= limit else "**missed**"
