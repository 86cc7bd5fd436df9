"""Offers beside what is asked for, beside what the environment has in their zones, and beside on-demand prices."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from ...config.catalog.prices import Price, hourly
from ...config.settings.environment import Environment
from ...planning.purchase.offers import Offer, Request, misfits

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class RegionOffer:
    """An offer that some region made."""

    region: str
    offer: Offer
    differs: tuple[str, ...]
    """How it differs from what is asked for, as parts of a sentence; nothing for an offer that fits."""

    @classmethod
    def of(
        cls, shape: Mapping[str, Any], region: str, zones: Mapping[str, str], request: Request
    ) -> "RegionOffer | None":
        """From a TrainingPlanOffering; None where capacity or times are missing, so that nobody could compare it."""
        offer = Offer.of(shape, zones)
        if not offer.parts or any(not (part.start and part.end and part.count) for part in offer.parts):
            return None
        return cls(region, offer, tuple(misfits(request, offer)))

    @property
    def start(self) -> datetime:
        """When its first capacity comes."""
        return min(part.start for part in self.offer.parts if part.start)

    @property
    def end(self) -> datetime:
        """When its last capacity ends."""
        return max(part.end for part in self.offer.parts if part.end)

    @property
    def zones(self) -> tuple[str, ...]:
        """Zone ids of its parts, in their order."""
        return tuple(dict.fromkeys(part.zone for part in self.offer.parts))

    @property
    def per_instance_hour(self) -> Decimal | None:
        """The price of one instance for an hour; None where the offer gives no price."""
        spans = [(part.count, part.end - part.start) for part in self.offer.parts if part.start and part.end]
        return (
            None if self.offer.fee is None else self.offer.fee / sum(count * hours(length) for count, length in spans)
        )

    def distance(self, request: Request) -> float:
        """How far it is from what is asked for, to sort by: number, length, price and end count by their ratios."""
        desired, existing = (
            (request.ultraserver_count, max(part.ultraserver_count or 0 for part in self.offer.parts))
            if request.ultraserver_type
            else (request.count, max(part.count for part in self.offer.parts))
        )
        ratios = [
            existing / desired if desired else 1.0,
            self.offer.length / timedelta(hours=request.hours) if request.hours else 1.0,
            float(max(self.offer.fee or 0, request.max_upfront_usd) / request.max_upfront_usd)
            if request.max_upfront_usd
            else 1.0,
            1 + max(self.end - request.end_before, timedelta()) / self.offer.length if request.end_before else 1.0,
        ]
        return sum(abs(ratio - 1) for ratio in ratios)


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
    systems = defaultdict[str, list[str]](list)
    for name, zone in file_systems(environment).items():
        systems[zone].append(name)
    return [ZoneCoverage(zone, zone in environment.network.zones, tuple(systems.get(zone, ()))) for zone in offer.zones]


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


def compared(offer: RegionOffer, prices: Mapping[str, Price] | None) -> Comparison | None:
    """An offer beside on-demand capacity in its region; None where either price is unknown.

    `prices` are the environment's own, by instance type.
    """
    types = {part.instance_type for part in offer.offer.parts}
    own = offer.per_instance_hour
    price = hourly(types.pop(), offer.region, prices) if len(types) == 1 else None
    if price is None or own is None or offer.offer.currency != "USD":
        return None
    return Comparison(price, (own / Decimal(str(price.usd)) - 1) * 100)


def described(request: Request) -> str:
    """What is asked for, in words."""
    number, unit = (
        (request.ultraserver_count, request.ultraserver_type)
        if request.ultraserver_type
        else (request.count, request.instance_type)
    )
    words = [f"{number} × {unit}"]
    if request.hours:
        words.append(f"for {span(timedelta(hours=request.hours))}")
    if request.start_after:
        words.append(f"from {day(request.start_after)}")
    if request.end_before:
        words.append(f"until {day(request.end_before)}")
    if request.zones:
        words.append(f"in {' or '.join(request.zones)}")
    if request.max_upfront_usd:
        words.append(f"for at most {request.max_upfront_usd:,} USD")
    return " ".join(words)


def amount(value: Decimal | None, currency: str) -> str:
    """A price for people, to the cent."""
    return "unknown" if value is None else f"{value:,.2f} {currency}".strip()


def hours(length: timedelta) -> Decimal:
    """A length in hours."""
    return Decimal(round(length.total_seconds())) / 3600


def day(timestamp: datetime) -> str:
    """A moment for people, in UTC; midnight is a day."""
    timestamp = timestamp.astimezone(UTC)
    return f"{timestamp:%Y-%m-%d}" if not (timestamp.hour or timestamp.minute) else f"{timestamp:%Y-%m-%d %H:%M}Z"


def minute(timestamp: datetime | None) -> str:
    """A moment in UTC to the minute, for whatever says that it is UTC; nothing for none."""
    return f"{timestamp.astimezone(UTC):%Y-%m-%d %H:%M}" if timestamp else ""


def span(length: timedelta) -> str:
    """A length for people: `28 days`, `27.5 days`, `6 hours`."""
    if length < _DAY:
        return counted(max(1, round(length / timedelta(hours=1))), "hour")
    days = round(length / _DAY, 1)
    return counted(int(days) if days == int(days) else days, "day")


def counted(number: float, noun: str) -> str:
    """`1 day`, `2 days`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
