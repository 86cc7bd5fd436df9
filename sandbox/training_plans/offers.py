"""Training plan offerings of the free capacity in each zone, with synthetic prices.

Windows start at once or at 11:30 UTC, weekly from the requested day, up to eight weeks ahead, and last up to 182 days.
For two days or longer, some offers have two windows with a gap, in one zone or in two. The price decreases by 1 % for
each week of waiting, so that offers differ. The prices are not AWS's.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from ...config.catalog.instance_types import catalog
from ..protocol.json_objects import JsonObject
from .lifecycle import CURRENCY, Plan, Window, duration, kind, money

# Limits of start, length and count are AWS's; the number of starts, gaps and discounts are synthetic.
_FIRST_IN = timedelta(minutes=30)
_AHEAD = timedelta(weeks=8)
_LONGEST = timedelta(days=182)
_LONGEST_EXTENSION = timedelta(weeks=26)
_STARTS = 3
_GAP = timedelta(days=3)
_EXTENSIONS = (1, 7, 14, 28)
_WEEKLY = Decimal("0.01")
_SPLIT = Decimal("0.90")
# By instance type: US dollars per instance-hour, and free instances in each of a region's zones. Synthetic.
_PER_HOUR: dict[str, tuple[str, tuple[int, ...]]] = {
    "ml.p4d.24xlarge": ("12.00", (32, 16, 0, 8)),
    "ml.p4de.24xlarge": ("15.00", (0, 16, 16, 0)),
    "ml.p5.4xlarge": ("4.50", (64, 32, 0, 0)),
    "ml.p5.48xlarge": ("34.00", (16, 64, 32, 0)),
    "ml.p5e.48xlarge": ("38.00", (0, 16, 32, 0)),
    "ml.p5en.48xlarge": ("42.00", (0, 64, 16, 32)),
    "ml.p6-b200.48xlarge": ("75.00", (16, 32, 0, 8)),
    "ml.p6-b300.48xlarge": ("95.00", (0, 16, 0, 0)),
    "ml.trn1.32xlarge": ("9.50", (32, 0, 32, 0)),
    "ml.trn2.48xlarge": ("24.00", (0, 32, 0, 16)),
}
# By UltraServer type: US dollars per instance-hour, and free UltraServers in each zone. Synthetic.
_ULTRASERVERS: dict[str, tuple[str, tuple[int, ...]]] = {
    "ml.u-p6e-gb200x36": ("42.00", (0, 2, 0, 0)),
    "ml.u-p6e-gb200x72": ("44.00", (0, 2, 1, 0)),
}


@dataclass(frozen=True)
class Supply:
    """The free instances or UltraServers of a type in a zone.

    `zone_id` names the zone, `usd_per_hour` is the price of an instance for an hour.
    """

    # The sandbox's operation refuses unknown keys.
    __pydantic_config__ = {"extra": "forbid"}

    zone_id: str
    count: int
    usd_per_hour: str
    instance_type: str = ""
    ultraserver_type: str = ""

    @property
    def size(self) -> int:
        """Number of instances of a unit: 1, or those of an UltraServer."""
        return catalog().ultraservers[self.ultraserver_type].instances if self.ultraserver_type else 1

    @property
    def instance(self) -> str:
        """The instance type, or that of the UltraServer."""
        return self.instance_type or catalog().ultraservers[self.ultraserver_type].instance_type

    def free(self, plans: Iterable[Plan], start: datetime, end: datetime, timestamp: datetime) -> int:
        """Return the number of units that are free during a whole period."""
        taken = sum(
            window.ultraservers or window.instances
            for plan in plans
            if plan.holds(timestamp)
            for window in plan.windows
            if (window.zone_id, window.ultraserver_type) == (self.zone_id, self.ultraserver_type)
            and window.instance_type == self.instance
            and window.start < end
            and start < plan.end_of(window, timestamp)
        )
        return self.count - taken


@dataclass(frozen=True)
class Offer:
    """An offering: windows and their total price."""

    windows: tuple[Window, ...]
    fee: Decimal
    target: tuple[str, ...]

    @property
    def offering(self) -> str:
        """Its id, which is the same whenever the same is offered."""
        return f"tpo-{hashlib.sha256(repr(self).encode()).hexdigest()[:20]}"

    def describe(self, after: datetime | None, before: datetime | None) -> JsonObject:
        """The offer as SearchTrainingPlanOfferings shows it."""
        length = sum((window.end - window.start for window in self.windows), timedelta())
        return {
            "TrainingPlanOfferingId": self.offering,
            "TargetResources": list(self.target),
            **({"RequestedStartTimeAfter": after} if after else {}),
            **({"RequestedEndTimeBefore": before} if before else {}),
            **duration(length),
            "UpfrontFee": money(self.fee),
            "CurrencyCode": CURRENCY,
            "ReservedCapacityOfferings": [
                {
                    **kind(window),
                    "InstanceType": window.instance_type,
                    "InstanceCount": window.instances,
                    "AvailabilityZone": window.zone,
                    **duration(window.end - window.start),
                    "StartTime": window.start,
                    "EndTime": window.end,
                }
                for window in self.windows
            ],
        }


@dataclass(frozen=True)
class ExtensionOffer:
    """An offer to extend a plan's last window."""

    plan: str
    zone: str
    start: datetime
    end: datetime
    fee: Decimal

    @property
    def offering(self) -> str:
        """Its id, which is the same whenever the same is offered."""
        return f"tpeo-{hashlib.sha256(repr(self).encode()).hexdigest()[:20]}"

    def describe(self) -> JsonObject:
        """The offer as SearchTrainingPlanOfferings shows it."""
        return {
            "TrainingPlanExtensionOfferingId": self.offering,
            "AvailabilityZone": self.zone,
            "StartDate": self.start,
            "EndDate": self.end,
            "DurationHours": duration(self.end - self.start)["DurationHours"],
            "UpfrontFee": money(self.fee),
            "CurrencyCode": CURRENCY,
        }


def default_supply(zone_ids: Iterable[str]) -> list[Supply]:
    """Return a region's default supply, with zones in the order of their ids."""
    ordered = sorted(zone_ids)
    tables = {"instance_type": _PER_HOUR, "ultraserver_type": _ULTRASERVERS}
    rows = [(key, name, *row) for key, table in tables.items() for name, row in table.items()]
    return [
        Supply(zone_id, count, price, **{key: name})
        for key, name, price, counts in rows
        for zone_id, count in zip(ordered, counts, strict=False)
        if count
    ]


@dataclass(frozen=True)
class Market:
    """The supply of a region at a given time. `zones` has the name of each zone id, `plans` the sold plans."""

    supply: list[Supply]
    zones: dict[str, str]
    plans: list[Plan]
    moment: datetime

    def offers(
        self,
        desired: tuple[str, str],
        count: int,
        length: timedelta,
        target: list[str],
        after: datetime | None,
        before: datetime | None,
    ) -> list[Offer]:
        """Return the offers for a number of units. `desired` is an instance type and an UltraServer type."""
        matching = [item for item in self.supply if (item.instance_type, item.ultraserver_type) == desired]
        if count < 1 or length > _LONGEST:
            return []
        results = [
            Offer((window,), self._fee(supply, window), tuple(target))
            for supply in matching
            for window in [*self._windows(supply, count, length, after)][:_STARTS]
        ]
        if matching and length >= timedelta(days=2):
            for second in dict.fromkeys([matching[0], matching[-1]]):
                results += self._split(matching[0], second, count, length, target, after)
        # Windows are sorted, so the last one ends last.
        return [offer for offer in results if before is None or offer.windows[-1].end <= before]

    def available(self, offer: Offer) -> bool:
        """Return True if the whole offer is still free."""
        return all(map(self._is_free, offer.windows))

    def _is_free(self, window: Window) -> bool:
        kind = (window.zone_id, window.instance_type, window.ultraserver_type)
        return any(
            (item.zone_id, item.instance, item.ultraserver_type) == kind
            and item.free(self.plans, window.start, window.end, self.moment)
            >= (window.ultraservers or window.instances)
            for item in self.supply
        )

    def extensions(self, plan: Plan, length: timedelta | None) -> list[ExtensionOffer]:
        """Return the offers to extend a plan: one of `length`, or several common lengths."""
        last, start = plan.windows[-1], plan.end(self.moment)
        units = last.ultraservers or last.instances
        lengths = [length] if length else [timedelta(days=days) for days in _EXTENSIONS]
        return [
            ExtensionOffer(plan.arn, last.zone, start, start + each, self._price(supply, last.instances, each))
            for supply in self.supply
            if (supply.zone_id, supply.instance, supply.ultraserver_type)
            == (last.zone_id, last.instance_type, last.ultraserver_type)
            for each in lengths
            if each <= _LONGEST_EXTENSION and supply.free(self.plans, start, start + each, self.moment) >= units
        ]

    def _windows(self, supply: Supply, count: int, length: timedelta, after: datetime | None) -> Iterator[Window]:
        for start in self._starts(after):
            end = _half_past_eleven(start + length)
            if start <= self.moment + _AHEAD and supply.free(self.plans, start, end, self.moment) >= count:
                yield self._window(supply, count, start, end)

    def _starts(self, after: datetime | None) -> Iterator[datetime]:
        soon = self.moment + _FIRST_IN
        if after is None or after <= soon:
            yield soon.replace(minute=soon.minute // 5 * 5, second=0, microsecond=0)
        first = _half_past_eleven(max(after or soon, soon))
        for week in range(_AHEAD.days // 7 + 1):
            yield first + timedelta(weeks=week)

    def _split(
        self, first: Supply, second: Supply, count: int, length: timedelta, target: list[str], after: datetime | None
    ) -> list[Offer]:
        half = timedelta(days=max(1, length.days // 2))
        for one in self._windows(first, count, half, after):
            start = one.end + _GAP
            end = start + max(length - (one.end - one.start), timedelta(days=1))
            if second.free(self.plans, start, end, self.moment) >= count:
                two = self._window(second, count, start, end)
                fee = self._fee(first, one) + self._fee(second, two)
                return [Offer((one, two), (fee * _SPLIT).quantize(Decimal("0.01")), tuple(target))]
        return []

    def _window(self, supply: Supply, count: int, start: datetime, end: datetime) -> Window:
        return Window(
            supply.instance,
            count * supply.size,
            self.zones[supply.zone_id],
            supply.zone_id,
            start,
            end,
            supply.ultraserver_type,
            count if supply.ultraserver_type else 0,
        )

    def _fee(self, supply: Supply, window: Window) -> Decimal:
        weeks = max(0, (window.start - self.moment).days // 7)
        return (self._price(supply, window.instances, window.end - window.start) * (1 - _WEEKLY * weeks)).quantize(
            Decimal("0.01")
        )

    def _price(self, supply: Supply, instances: int, length: timedelta) -> Decimal:
        hours = Decimal(round(length.total_seconds())) / 3600
        return (Decimal(supply.usd_per_hour) * instances * hours).quantize(Decimal("0.01"))


def _half_past_eleven(timestamp: datetime) -> datetime:
    """Return the first 11:30 UTC at or after a time."""
    same = timestamp.replace(hour=11, minute=30, second=0, microsecond=0)
    return same if same >= timestamp else same + timedelta(days=1)
