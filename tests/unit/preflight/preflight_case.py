"""One thing that is wrong with an account."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, eq=False)
class Case:
    """One answer of the account that makes a check speak, a part of what it says, and a part of what it advises."""

    id: str
    base: str
    says: str
    fix: str
    changed: dict[tuple[str, str], Any] = field(default_factory=dict)
    more: str = "{}"
    """Laid over the base environment."""
    groups: tuple[str, ...] = ()
