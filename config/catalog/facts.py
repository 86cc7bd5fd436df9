"""Facts are data: the tables under `data/`, and the citation behind each row."""

import csv
from functools import cache
from pathlib import Path
from typing import NamedTuple

DATA = Path(__file__).parent / "data"
"""The folder of all tables."""


class Citation(NamedTuple):
    """Where a fact comes from."""

    key: str
    """The short name that tables use."""
    text: str
    """The source in words, for reports and findings."""
    date: str
    """ISO date of the source, or of the day it was read when it carries none."""
    url: str
    """Where to read it."""

    def __str__(self) -> str:
        return f"{self.text}, {self.date}"


def table(name: str) -> list[dict[str, str]]:
    """The rows of `data/<name>.csv`, each as column → text."""
    with (DATA / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@cache
def _citations() -> dict[str, Citation]:
    return {row["key"]: Citation(**row) for row in table("citations")}


@cache
def cited(keys: str) -> tuple[Citation, ...]:
    """The citations behind space-separated keys, as the `source` columns hold them."""
    return tuple(_citations()[key] for key in keys.split())
