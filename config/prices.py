"""What an instance costs for an hour on demand, from price lists or from the environment's own file.

The price of HyperPod itself is what counts. Where no public list prints it, the price of the same EC2 instance stands
in, and says so: HyperPod charges more, by 18 to 25 percent where both are known. A type without either has no price
here, and none is guessed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from .facts import cited, table

HOURS_PER_MONTH = 730
"""365 days of 24 hours, by twelve: what AWS's own estimates count."""


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a unit of something, and who says so."""

    usd: float
    basis: Literal["file", "hyperpod", "ec2", "service"]
    """file: the environment sets it. hyperpod: HyperPod's own. ec2: EC2's of the same instance, so HyperPod's is
    higher. service: another service's own."""
    source: str
    """In words, with its date."""

    @property
    def lower_bound(self) -> bool:
        """Whether the real price is known to be higher."""
        return self.basis == "ec2"


def hourly(instance_type: str, region: str, overrides: Mapping[str, float] | None = None) -> Price | None:
    """The on-demand price of one instance for an hour in US dollars; None where nobody says.

    `instance_type` has the `ml.` prefix. `overrides` are the environment's own prices by type, which win.
    """
    if overrides and instance_type in overrides:
        return Price(overrides[instance_type], "file", "set by the environment")
    prices = _listed().get((instance_type, region), {})
    return prices.get("hyperpod") or prices.get("ec2")


@cache
def _listed() -> dict[tuple[str, str], dict[str, Price]]:
    prices: dict[tuple[str, str], dict[str, Price]] = {}
    for row in table("prices"):
        basis: Literal["hyperpod", "ec2"] = "hyperpod" if row["basis"] == "hyperpod" else "ec2"
        price = Price(float(row["usd_per_hour"]), basis, str(cited(row["source"])[0]))
        prices.setdefault((row["type"], row["region"]), {})[basis] = price
    return prices
