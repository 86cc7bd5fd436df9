"""What of an environment is where an offer's capacity would be, and what on-demand instances cost there."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from ...config.catalog.prices import Price, hourly
from ...config.settings.environment import Environment
from .offers import RegionOffer


@dataclass(frozen=True, slots=True)
class ZoneCoverage:
    """A zone of an offer beside the environment's own."""

    zone: str
    """Zone id, or zone name where the id is unknown."""
    subnet: bool
    """Whether the environment has subnets there."""
    file_systems: tuple[str, ...]
    """Names of its file systems that are there."""

    def __str__(self) -> str:
        return ", ".join([*(["subnet"] if self.subnet else []), *self.file_systems]) or "nothing"


def zone_coverage(environment: Environment, offer: RegionOffer) -> list[ZoneCoverage]:
    """The zones of an offer, in the order of its parts."""
    systems = file_systems(environment)
    return [
        ZoneCoverage(zone, zone in environment.network.zones, tuple(name for name, at in systems.items() if at == zone))
        for zone in offer.zones
    ]


def file_systems(environment: Environment) -> dict[str, str]:
    """Zone ids of the environment's file systems, by name."""
    systems = {name: lustre.zone for name, lustre in environment.storage.lustres.items()}
    home = environment.storage.home
    return systems | ({"home": home.openzfs.zone} if home else {})


@dataclass(frozen=True, slots=True)
class Comparison:
    """What an offer's instance-hour costs beside one on demand."""

    on_demand: Price
    percent: Decimal
    """Of the offer's price relative to on demand: -40 is 40 % cheaper."""

    def __str__(self) -> str:
        if not self.on_demand.lower_bound:
            return f"{self.percent:+.0f} %"
        # HyperPod's own price is above the one that it is held against: the plan saves at least as much.
        return f"≤ {self.percent:+.0f} %"


def compared(offer: RegionOffer, prices: Mapping[str, float] | None) -> Comparison | None:
    """An offer beside on-demand capacity in its region; None where either price is unknown.

    `prices` are the environment's own, in US dollars for an hour by instance type.
    """
    types = {part.instance_type for part in offer.offer.parts}
    own = offer.per_instance_hour
    price = hourly(types.pop(), offer.region, prices) if len(types) == 1 else None
    if price is None or own is None or offer.offer.currency != "USD":
        return None
    return Comparison(price, (own / Decimal(str(price.usd)) - 1) * 100)
