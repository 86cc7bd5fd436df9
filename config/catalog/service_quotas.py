"""Service quotas that an environment can meet, by the names under which Service Quotas lists them.

Names, because AWS publishes no list of codes, and codes found elsewhere contradict each other.
"""

from dataclasses import dataclass
from functools import cache

from .facts import Citation, cited, table


@dataclass(frozen=True, slots=True)
class Quota:
    """One quota, or one of each instance type."""

    service: str
    """Service code of Service Quotas."""
    name: str
    """Name there; `{type}` stands for an instance type."""
    sources: tuple[Citation, ...]

    def named(self, instance_type: str = "") -> str:
        """Its name for an instance type such as ml.p5en.48xlarge."""
        return self.name.format(type=instance_type)


@cache
def quotas() -> dict[str, Quota]:
    """Every quota by a key of our own."""
    return {row["key"]: Quota(row["service"], row["name"], cited(row["source"])) for row in table("quotas")}
