"""Training plans: accelerator capacity of a zone, paid for in advance and there between two dates.

A plan is in one of three states, and the file says which:

- it **exists**: `arn` is given. It is resolved, never bought.
- it is **wanted**: neither `arn` nor `purchase: true`. `podwright capacity reserve` takes the section as its request,
  and writes arn, zone, start and end back. A deployment refuses it.
- the **deployment buys** it: `purchase: true`, with a limit to its price and without `arn`.
"""

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StringConstraints

from .base import InstanceTypeName, Settings, TrainingPlanArn, ZoneId

PlanName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9](-*[a-zA-Z0-9])*$", max_length=64)]
UltraServerTypeName = Annotated[str, StringConstraints(pattern=r"^ml\.u-[a-z0-9-]+$", max_length=64)]
_INSTANT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2})?(Z|[+-][0-9]{2}:[0-9]{2})?)?$"


def _instant(value: Any) -> datetime:
    try:
        if not isinstance(value, datetime):
            value = datetime.fromisoformat(value if re.search(_INSTANT, value) else "")
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    except (TypeError, ValueError, OverflowError):
        raise ValueError("a date such as 2027-01-04, or a time such as 2027-01-04T11:30Z; UTC unless it says") from None


Instant = Annotated[
    datetime, BeforeValidator(_instant, json_schema_input_type=Annotated[str, StringConstraints(pattern=_INSTANT)])
]
"""A moment in UTC. The file writes a date, whose first second it is, or a time, in UTC unless it has an offset."""


class PlanWindow(Settings):
    """One part of a plan that comes in several: so many instances, in one zone, between two moments."""

    start: Instant
    """When its instances come."""
    end: Instant
    """When the part ends; instances go 30 minutes before."""
    count: int = Field(ge=1)
    """Instances of this part."""
    zone: ZoneId
    """Zone id of this part."""


class TrainingPlan(Settings):
    """A training plan that exists, is wanted, or is bought by the deployment."""

    arn: TrainingPlanArn | None = None
    """ARN of a plan that exists. It is resolved and never bought."""
    zone: ZoneId
    """Zone id of its capacity, which decides subnet and file system. DescribeTrainingPlan prints that of a plan."""
    instance_type: InstanceTypeName | None = None
    """Instance type that it reserves; checked against the groups when given."""
    count: int | None = Field(default=None, ge=1)
    """Instances that it reserves; checked against the sum of the groups when given."""
    ultraserver_type: UltraServerTypeName | None = None
    """UltraServer type, when the plan reserves whole UltraServers."""
    ultraserver_count: int | None = Field(default=None, ge=1)
    """UltraServers that it reserves."""
    spares_per_ultraserver: int | None = Field(default=None, ge=0)
    """Instances of each UltraServer kept as spares; SageMaker's default (1) when absent."""
    days: int | None = Field(default=None, ge=1, le=182)
    """Length of a plan to buy, in days."""
    start_after: Instant | None = None
    """A plan to buy starts at this moment or later; it can be up to eight weeks ahead."""
    end_before: Instant | None = None
    """A plan to buy ends at this moment or earlier."""
    max_upfront_usd: int | None = Field(default=None, ge=1)
    """Highest price in US dollars at which it may be bought. The whole of it is charged at the purchase."""
    paid_usd: int | None = Field(default=None, ge=1)
    """What an existing plan cost at its purchase, in US dollars: `UpfrontFee` of DescribeTrainingPlan, which
    `podwright capacity reserve` writes here. Costs spread it over the plan's instance-hours."""
    purchase: bool = False
    """Whether the deployment buys it, once. Without it only `podwright capacity reserve` buys."""
    start: Instant | None = None
    """When an existing plan starts."""
    end: Instant | None = None
    """When an existing plan ends; instances go 30 minutes before, and reminders come ahead of it."""
    windows: tuple[PlanWindow, ...] = Field(default=(), max_length=5)
    """The parts of an existing plan that has several. Between them it has no capacity."""

    @property
    def state(self) -> Literal["exists", "wanted", "purchase"]:
        """What the file says of it. One with an ARN exists, whatever else is given: nothing ever buys it again."""
        if self.arn:
            return "exists"
        return "purchase" if self.purchase else "wanted"

    @property
    def zones(self) -> tuple[str, ...]:
        """The zone ids of all its parts in order, `zone` first."""
        return tuple(dict.fromkeys((self.zone, *(window.zone for window in self.windows))))

    def count_at(self, timestamp: datetime, zone: str) -> int:
        """Instances that the parts of the plan in a zone have at that time."""
        return sum(part.count for part in self.windows if part.zone == zone and part.start <= timestamp < part.end)
