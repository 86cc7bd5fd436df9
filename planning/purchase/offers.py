"""Training plans as SageMaker offers and lists them, and how they differ from what is asked for.

Standard library only: this module travels into the Lambda function that buys, beside `plan_purchase`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from .words import shown

TARGET: Final = "hyperpod-cluster"
"""What our plans are for. A plan serves the targets that it was bought for and no others."""
# Prices are compared with limits in the file, which are US dollars.
_CURRENCY: Final = "USD"
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a plan. Fields that are None are not asked for."""

    environment: str
    plan: str
    """Its key in `training_plans`."""
    zones: tuple[str, ...]
    """Zone ids in which its parts may be."""
    instance_type: str | None = None
    count: int | None = None
    ultraserver_type: str | None = None
    ultraserver_count: int | None = None
    spares_per_ultraserver: int | None = None
    hours: int | None = None
    start_after: datetime | None = None
    end_before: datetime | None = None
    max_upfront_usd: int | None = None

    @property
    def key(self) -> str:
        """The key under which the purchase is recorded."""
        return f"{self.environment}/{self.plan}"

    def search(self, now: datetime) -> dict[str, Any]:
        """Parameters of SearchTrainingPlanOfferings. `now` replaces a start that has passed."""
        specified = {
            "InstanceType": None if self.ultraserver_type else self.instance_type,
            "InstanceCount": None if self.ultraserver_type else self.count,
            "UltraServerType": self.ultraserver_type,
            "UltraServerCount": self.ultraserver_count,
            "StartTimeAfter": max(self.start_after, now) if self.start_after else None,
            "EndTimeBefore": self.end_before,
            "DurationHours": self.hours,
        }
        return {"TargetResources": [TARGET], **{name: value for name, value in specified.items() if value is not None}}

    def to_properties(self) -> dict[str, Any]:
        """The request as properties of a custom resource, whose scalars are text."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: _property(value) for name, value in values.items() if value is not None}

    @classmethod
    def of_properties(cls, properties: Mapping[str, Any]) -> "Request":
        """The request back from `to_properties`; keys that it does not know are left aside."""
        # A template of a newer release may carry more than this release of the function knows.
        known = {each.name: properties[each.name] for each in fields(cls) if each.name in properties}
        return cls(**{name: _FROM_TEXT.get(name, int)(value) for name, value in known.items()})


@dataclass(frozen=True, slots=True)
class Part:
    """One capacity of a plan or offer: instances of one type in one zone between two moments."""

    zone: str
    """Zone id; a zone name where no id is known for it."""
    instance_type: str
    count: int
    start: datetime | None
    end: datetime | None
    ultraserver_type: str | None = None
    ultraserver_count: int | None = None

    @classmethod
    def of(cls, shape: Mapping[str, Any], zone_ids: Mapping[str, str]) -> "Part":
        """From a ReservedCapacityOffering or a ReservedCapacitySummary."""
        # A zone's name is another zone in each account, so its id comes first.
        zone = shape.get("AvailabilityZone", "")
        return cls(
            shape.get("AvailabilityZoneId") or zone_ids.get(zone, zone),
            shape["InstanceType"],
            # Offers call it InstanceCount, plans TotalInstanceCount.
            shape.get("InstanceCount", shape.get("TotalInstanceCount", 0)),
            shape.get("StartTime"),
            shape.get("EndTime"),
            shape.get("UltraServerType"),
            shape.get("UltraServerCount"),
        )


@dataclass(frozen=True, slots=True)
class Offer:
    """One training plan offering."""

    id: str
    targets: tuple[str, ...]
    fee: Decimal | None
    """Price of the whole plan, paid at the purchase."""
    currency: str
    length: timedelta
    parts: tuple[Part, ...]

    @classmethod
    def of(cls, shape: Mapping[str, Any], zone_ids: Mapping[str, str]) -> "Offer":
        """From a TrainingPlanOffering; `zone_ids` are those of this account by zone name."""
        return cls(
            shape["TrainingPlanOfferingId"],
            tuple(shape["TargetResources"]),
            money(shape.get("UpfrontFee")),
            shape.get("CurrencyCode", ""),
            _length(shape),
            tuple(Part.of(each, zone_ids) for each in shape.get("ReservedCapacityOfferings", ())),
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """One training plan that exists."""

    arn: str
    name: str
    status: str
    """Pending, Scheduled, Active, Expired or Failed."""
    message: str
    targets: tuple[str, ...]
    fee: Decimal | None
    currency: str
    length: timedelta
    start: datetime | None
    end: datetime | None
    parts: tuple[Part, ...]

    @classmethod
    def of(cls, shape: Mapping[str, Any], zone_ids: Mapping[str, str] | None = None) -> "Plan":
        """From DescribeTrainingPlan's answer or a summary of ListTrainingPlans, which have the same fields."""
        return cls(
            shape["TrainingPlanArn"],
            shape["TrainingPlanName"],
            shape["Status"],
            shape.get("StatusMessage", ""),
            tuple(shape.get("TargetResources", ())),
            money(shape.get("UpfrontFee")),
            shape.get("CurrencyCode", ""),
            _length(shape),
            shape.get("StartTime"),
            shape.get("EndTime"),
            tuple(Part.of(each, zone_ids or {}) for each in shape.get("ReservedCapacitySummaries", ())),
        )


def money(text: str | None) -> Decimal | None:
    """An amount as SageMaker writes it; None for none, or for what is no amount."""
    try:
        amount = Decimal(text or "")
    except InvalidOperation:
        return None
    # `Infinity` and `NaN` are decimals, too, and no price.
    return amount if amount.is_finite() else None


def misfits(request: Request, capacity: Offer | Plan) -> list[str]:
    """How an offer or a plan differs from what is asked for, as parts of a sentence; empty when it fits.

    An offer has exactly the count and about the length (less than a day off: plans end at a fixed time of day). A plan
    that exists may have more instances than are asked for.
    """
    offer = isinstance(capacity, Offer)
    result = [] if TARGET in capacity.targets else [f"is for {', '.join(capacity.targets) or 'nothing'}, not {TARGET}"]
    for part in capacity.parts:
        if part.zone not in request.zones:
            result.append(f"is in {part.zone or 'an unknown zone'}, not {' or '.join(request.zones)}")
        if request.instance_type and part.instance_type != request.instance_type:
            result.append(f"has {part.instance_type}, not {request.instance_type}")
        if request.ultraserver_type and part.ultraserver_type != request.ultraserver_type:
            result.append(f"has {part.ultraserver_type or 'no UltraServers'}, not {request.ultraserver_type}")
        if request.start_after and part.start and part.start < request.start_after:
            result.append(f"starts {shown(part.start)}, before {shown(request.start_after)}")
        if request.end_before and part.end and part.end > request.end_before:
            result.append(f"ends {shown(part.end)}, after {shown(request.end_before)}")
    if request.ultraserver_type:
        servers = _at_once(capacity.parts, lambda part: part.ultraserver_count or 0)
        result += _other_count("UltraServers", request.ultraserver_count, servers, exactly=offer)
    else:
        existing = _at_once(capacity.parts, lambda part: part.count)
        result += _other_count("instances", request.count, existing, exactly=offer)
    if request.hours and abs(capacity.length - timedelta(hours=request.hours)) >= _DAY:
        result.append(f"lasts {capacity.length / _DAY:.4g} days, not {request.hours / 24:.4g}")
    if offer:
        result += over_limit(request.max_upfront_usd, capacity.fee, capacity.currency)
    # Several parts may differ in the same way, and saying it once is enough.
    return list(dict.fromkeys(result))


def over_limit(limit: int | None, fee: Decimal | None, currency: str) -> list[str]:
    """Why a price is not to be paid: unknown, in another currency, or above the limit in US dollars."""
    if fee is None or currency != _CURRENCY:
        return [
            f"has the price {fee if fee is not None else 'unknown'} {currency}".rstrip() + f", not one in {_CURRENCY}"
        ]
    if limit is not None and fee > limit:
        return [f"costs {fee:,.2f} {currency}, above the limit of {limit:,}"]
    return []


def best(request: Request, offers: Iterable[Offer]) -> Offer | None:
    """The cheapest offer in one part that fits, the earlier one at the same price; None when none fits."""
    # In one part: several would run one after the other, with days without instances between.
    fitting = [offer for offer in offers if len(offer.parts) == 1 and not misfits(request, offer)]
    # The id last, so that the same offers lead to the same choice in every run.
    return min(fitting, key=lambda offer: (offer.fee, offer.parts[0].start, offer.id), default=None)


_FROM_TEXT: Final[Mapping[str, Any]] = {
    "zones": tuple,
    **dict.fromkeys(("environment", "plan", "instance_type", "ultraserver_type"), str),
    **dict.fromkeys(("start_after", "end_before"), datetime.fromisoformat),
}


def _property(value: Any) -> str | list[str]:
    if isinstance(value, tuple):
        return list(value)
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _at_once(parts: Iterable[Part], count: Callable[[Part], int]) -> int:
    """The most that are there at one moment; parts without dates are there all the time."""
    parts = tuple(parts)

    def beside(part: Part) -> int:
        return sum(count(other) for other in parts if _covers(other, part))

    return max(map(beside, parts), default=0)


def _covers(part: Part, other: Part) -> bool:
    return not (part.start and part.end and other.start) or part.start <= other.start < part.end


def _other_count(what: str, desired: int | None, existing: int, *, exactly: bool) -> list[str]:
    # A plan that waits for its payment may not have its parts yet.
    if desired is None or existing == desired or (not exactly and (existing > desired or not existing)):
        return []
    return [f"has {existing} {what if existing != 1 else what[:-1]}, not {desired}"]


def _length(shape: Mapping[str, Any]) -> timedelta:
    return timedelta(hours=shape.get("DurationHours", 0), minutes=shape.get("DurationMinutes", 0))
