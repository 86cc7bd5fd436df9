"""The checks of preflight: what each looks for in the account, and which calls it makes.

The checks themselves are in `operations/preflight/`, which alone talks to AWS; their pages lie beside those of rules.
"""

from functools import cache
from typing import Final, NamedTuple

from ..findings import Level
from .facts import Citation, cited, table

AREA: Final = "PRE"
"""What the ids of all checks begin with."""


class PreflightCheck(NamedTuple):
    """One check of an account."""

    id: str
    """Stable, such as PRE012; never given to another check."""
    level: Level
    subject: str
    """What it looks at, in two or three words."""
    title: str
    """What is wrong when the check speaks."""
    actions: tuple[str, ...]
    """IAM actions that it needs, all of which only read."""
    sources: tuple[Citation, ...]
    """Where the fact behind it can be read."""


@cache
def preflight_checks() -> dict[str, PreflightCheck]:
    """Every check by id."""
    return {
        row["id"]: PreflightCheck(
            row["id"],
            Level(row["level"]),
            row["subject"],
            row["title"],
            tuple(row["actions"].split()),
            cited(row["source"]),
        )
        for row in table("preflight")
    }
