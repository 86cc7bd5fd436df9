"""Control of training plans, an operation of the sandbox.

`GET /podwright/training-plans?region=us-west-2` returns the time of plans, the supply and the bought plans. `PUT` takes
a JSON object of `Controls` and applies it completely or not at all: the time of plans, expiring offers, failing calls,
and existing plans.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, NonNegativeInt, PositiveInt
from werkzeug.wrappers import Request, Response

from ...config.catalog.instance_types import catalog
from ..protocol.known_names import check_known
from ..services.zones import ZONE_IDS
from .faults import Fault
from .lifecycle import Plan, Window
from .offers import Supply
from .plans import DuplicateNames, TrainingPlans
from .service import TARGET, TrainingPlanService

PATH = "/podwright/training-plans"
_USUAL = timedelta(days=28)
# Operations with faults are wrapped.
_OPERATIONS = [name for name, member in vars(TrainingPlans).items() if hasattr(member, "__wrapped__")]


class Part(BaseModel):
    """A window of an existing plan. Without times, it started a day ago and ends in four weeks."""

    model_config = ConfigDict(extra="forbid")
    zone: str
    count: PositiveInt
    start: AwareDatetime | None = None
    end: AwareDatetime | None = None


class Existing(BaseModel):
    """An existing plan in an environment file. `count` of its parts is in instances."""

    model_config = ConfigDict(extra="forbid")
    arn: str
    instance_type: str = ""
    ultraserver_type: str = ""
    spares: NonNegativeInt = 0
    parts: list[Part] = Field(min_length=1)

    def plan(self, service: TrainingPlanService, region: str) -> Plan:
        """Return the plan in the sandbox's form. Raises ValueError for unknown values."""
        zones, timestamp = service.region(region).zones, service.now(region)
        server = catalog().ultraservers.get(self.ultraserver_type)
        if unknown := [part.zone for part in self.parts if part.zone not in zones]:
            raise ValueError(f"{region} has the zones {', '.join(sorted(zones))}, not {unknown[0]}")
        windows = [
            Window(
                server.instance_type if server else self.instance_type,
                part.count,
                zones[part.zone],
                part.zone,
                part.start or timestamp - timedelta(days=1),
                part.end or max(timestamp, part.start or timestamp) + _USUAL,
                self.ultraserver_type,
                part.count // server.instances if server else 0,
                f"{self.arn.replace(':training-plan/', ':reserved-capacity/')}-{index}",
            )
            for index, part in enumerate(self.parts, 1)
        ]
        return Plan(
            self.arn.rpartition("/")[2], self.arn, "", timestamp, timestamp, windows, Decimal(0), [TARGET], self.spares
        )


class Controls(BaseModel):
    """The body of a `PUT`. Missing fields change nothing."""

    model_config = ConfigDict(extra="forbid")
    region: str = "us-west-2"
    at: AwareDatetime | None = None
    """The current time of plans."""
    advance_hours: float = 0.0
    """Hours to advance the time of plans."""
    speed: float | None = Field(default=None, gt=0)
    """Speed of their time, relative to real time."""
    duplicate_names: DuplicateNames | None = None
    payment_seconds: float | None = Field(default=None, ge=0)
    """Duration of a payment in the time of plans."""
    payment_failure: str | None = None
    """Reason for which payments fail from now on; "" lets them succeed."""
    stale_lists: NonNegativeInt | None = None
    """Number of list calls that do not show later purchases yet."""
    withdraw: bool = False
    """True to expire all existing offers."""
    supply: list[Supply] | None = None
    """New supply, which replaces the former."""
    faults: list[Fault] | None = None
    """Faults of the next calls, which replace the former ones."""
    existing: list[Existing] = []
    """Existing plans."""

    def apply(self, service: TrainingPlanService) -> None:
        """Apply the fields that are set. Raises ValueError before any change."""
        self._check()
        plans = service.region(self.region)
        existing = [item.plan(service, self.region) for item in self.existing]
        timestamp, time = service.now(self.region), service.times[self.region]
        time.set((self.at or timestamp) + timedelta(hours=self.advance_hours), self.speed or time.speed)
        changes = {
            "duplicate_names": self.duplicate_names,
            "payment": None if self.payment_seconds is None else timedelta(seconds=self.payment_seconds),
            "payment_failure": self.payment_failure,
            "stale_lists": self.stale_lists,
            "supply": self.supply,
            "faults": self.faults,
        }
        for name, value in changes.items():
            if value is not None:
                setattr(plans.ledger, name, value)
        if self.withdraw:
            plans.withdraw()
        for plan in existing:
            service.add_existing(self.region, plan)

    def _check(self) -> None:
        """Raise ValueError for an unknown name, whose fault would never happen."""
        _check_region(self.region)
        supply = self.supply or []
        parts = [*supply, *self.existing]
        # A file may omit the type of an existing plan that no group uses.
        types = [item.instance_type for item in supply if item.instance_type or not item.ultraserver_type]
        types += [item.instance_type for item in self.existing if item.instance_type]
        check_known("operation of faults", (fault.operation for fault in self.faults or []), _OPERATIONS)
        check_known("zone of supply", (item.zone_id for item in supply), ZONE_IDS[self.region])
        check_known("instance type", types, (row.name for row in catalog()))
        check_known(
            "UltraServer type",
            (part.ultraserver_type for part in parts if part.ultraserver_type),
            catalog().ultraservers,
        )


def serve(service: TrainingPlanService, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Serve one request."""
    request = Request(environ)
    region = request.args.get("region", Controls().region)
    try:
        _check_region(region)
        if request.method == "PUT":
            # The region of the query is the default of the body.
            controls = Controls.model_validate({"region": region, **json.loads(request.get_data())})
            controls.apply(service)
            region = controls.region
    except (TypeError, ValueError) as error:  # pydantic's are ValueErrors
        return Response(f"{error}\n", 400)(environ, start_response)
    text = json.dumps(_shown(service, region), default=_plain)
    return Response(text, content_type="application/json")(environ, start_response)


def _check_region(region: str) -> None:
    check_known("region", [region], ZONE_IDS)


def _shown(service: TrainingPlanService, region: str) -> dict[str, Any]:
    """Return the state of a region's ledger in the form of `Controls`."""
    plans = service.region(region)
    ledger, timestamp = plans.ledger, service.now(region)
    return {
        "region": region,
        "at": timestamp,
        "speed": service.times[region].speed,
        "duplicate_names": ledger.duplicate_names,
        "payment_seconds": ledger.payment.total_seconds(),
        "payment_failure": ledger.payment_failure,
        "stale_lists": ledger.stale_lists,
        "supply": [asdict(item) for item in ledger.supply],
        "faults": [asdict(item) for item in ledger.faults],
        "plans": [
            {"arn": plan.arn, "status": plan.status(timestamp), "end": plan.end(timestamp)} for plan in ledger.plans
        ],
        "charges": [{"plan": arn, "offering": offering} for arn, offering in ledger.charges],
    }


def _plain(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} cannot be shown")
