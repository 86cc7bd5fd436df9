"""The training-plan operations of SageMaker, in memory: one account in one region.

The methods are named like boto3's, take and give what boto3 takes and gives, and raise its errors. `Ledger` is all that
there is to remember. Sources: botocore 1.44.5 service model of SageMaker. What no source says is a setting (whether a
second plan of one name is refused) or carries "(sandbox)" in its words.
"""

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from ...config.catalog.sandbox_account import SANDBOX_ACCOUNT
from ..protocol.json_objects import JsonObject, tags_of
from .faults import Fault, client_error, may_fail
from .lifecycle import Extension, Plan, Window
from .offers import ExtensionOffer, Market, Offer, Supply, default_supply

DuplicateNames = Literal["refuse", "allow"]
_NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,63}")
ZONES = {"usw2-az1": "us-west-2b", "usw2-az2": "us-west-2a", "usw2-az3": "us-west-2c", "usw2-az4": "us-west-2d"}
"""Zone ids of us-west-2 with the names that moto's account has for them."""


@dataclass
class Ledger:
    """What is for sale, what was offered, what was bought, and how the service behaves.

    `payment`: how long a payment takes. `payment_failure`: why payments fail; they go through when it is empty.
    `stale_lists`: how many lists do not show yet what was bought. `duplicate_names` "allow" also lets one extension
    offering be bought twice. `charges`: each purchase that was accepted, as (plan's ARN, offering).
    """

    supply: list[Supply] = field(default_factory=list)
    duplicate_names: DuplicateNames = "refuse"
    payment: timedelta = timedelta(seconds=2)
    payment_failure: str = ""
    stale_lists: int = 0
    plans: list[Plan] = field(default_factory=list)
    offers: dict[str, Offer] = field(default_factory=dict)
    extension_offers: dict[str, ExtensionOffer] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    charges: list[tuple[str, str]] = field(default_factory=list)


class TrainingPlans:
    """The operations over a ledger; `clock` gives the time in UTC, `zones` the name of each zone id of the region.

    `in_use` gives how many instances of a plan (its ARN) in a zone (its id) clusters have, by UltraServer, "" for none.
    """

    def __init__(
        self,
        clock: Callable[[], datetime],
        duplicate_names: DuplicateNames = "refuse",
        *,
        account: str = SANDBOX_ACCOUNT,
        region: str = "us-west-2",
        zones: dict[str, str] = ZONES,
        ledger: Ledger | None = None,
        in_use: Callable[[str, str], Mapping[str, int]] = lambda arn, zone_id: {},
    ):
        """A region's training plans over a ledger that survives a restart."""
        self.clock, self.account, self.region = clock, account, region
        self.zones, self.in_use = zones, in_use
        self.ledger = ledger or Ledger(default_supply(zones), duplicate_names)
        self._lock = threading.RLock()

    @property
    def faults(self) -> list[Fault]:
        """What goes wrong with the next calls."""
        return self.ledger.faults

    def withdraw(self) -> None:
        """Let every offer that was made be gone."""
        self.ledger.offers.clear()
        self.ledger.extension_offers.clear()

    @may_fail
    def search_training_plan_offerings(
        self,
        *,
        InstanceType: str = "",
        InstanceCount: int = 1,
        UltraServerType: str = "",
        UltraServerCount: int = 1,
        StartTimeAfter: datetime | None = None,
        EndTimeBefore: datetime | None = None,
        DurationHours: int | None = None,
        TargetResources: list[str] | None = None,
        TrainingPlanArn: str = "",
    ) -> JsonObject:
        """Offers for a wish, or with TrainingPlanArn the extensions of a plan.

        Without TargetResources the offers are for training jobs; without DurationHours they last a week.
        """
        name = "search_training_plan_offerings"
        with self._lock:
            length = timedelta(hours=DurationHours) if DurationHours else None
            if TrainingPlanArn:
                plan = self._plan(TrainingPlanArn, name)
                result = self._market().extensions(plan, length) if self._open(plan) else []
                self.ledger.extension_offers |= {offer.offering: offer for offer in result}
                described = [offer.describe() for offer in result]
                return {"TrainingPlanOfferings": [], "TrainingPlanExtensionOfferings": described}
            if bool(InstanceType) == bool(UltraServerType):
                raise client_error(name, "ValidationException", "Give either InstanceType or UltraServerType")
            offers = self._market().offers(
                (InstanceType, UltraServerType),
                UltraServerCount if UltraServerType else InstanceCount,
                length or timedelta(days=7),
                TargetResources or ["training-job"],
                StartTimeAfter,
                EndTimeBefore,
            )
            self.ledger.offers |= {offer.offering: offer for offer in offers}
            return {"TrainingPlanOfferings": [offer.describe(StartTimeAfter, EndTimeBefore) for offer in offers]}

    @may_fail
    def create_training_plan(
        self,
        *,
        TrainingPlanName: str,
        TrainingPlanOfferingId: str,
        SpareInstanceCountPerUltraServer: int = 1,
        Tags: list[dict[str, str]] | None = None,
    ) -> JsonObject:
        """Buy an offer. There is no idempotency token: what the same call does again, `duplicate_names` says."""
        name = "create_training_plan"
        with self._lock:
            if not _NAME.fullmatch(TrainingPlanName):
                raise client_error(
                    name, "ValidationException", f"TrainingPlanName {TrainingPlanName} does not match {_NAME.pattern}"
                )
            namesakes = [plan for plan in self.ledger.plans if plan.name == TrainingPlanName]
            if namesakes and self.ledger.duplicate_names == "refuse":
                raise client_error(name, "ResourceInUse", f"A training plan named {TrainingPlanName} already exists")
            offer = self.ledger.offers.get(TrainingPlanOfferingId)
            if offer is None or not self._market().available(offer) or offer.windows[0].start < self.clock():
                raise client_error(
                    name, "ResourceNotFound", f"Training plan offering {TrainingPlanOfferingId} is not available"
                )
            # Plans of one name have ARNs of their own.
            again = f"/{len(namesakes) + 1}" if namesakes else ""
            plan = self._bought(f"{TrainingPlanName}{again}", TrainingPlanName, offer, SpareInstanceCountPerUltraServer)
            plan.tags = tags_of({"Tags": Tags})
            self.ledger.plans.append(plan)
            self.ledger.charges.append((plan.arn, TrainingPlanOfferingId))
            return {"TrainingPlanArn": plan.arn}

    @may_fail
    def list_training_plans(
        self,
        *,
        NextToken: str = "",
        MaxResults: int = 100,
        StartTimeAfter: datetime | None = None,
        StartTimeBefore: datetime | None = None,
        SortBy: Literal["TrainingPlanName", "StartTime", "Status"] = "StartTime",
        SortOrder: Literal["Ascending", "Descending"] = "Ascending",
        Filters: list[dict[str, str]] | None = None,
    ) -> JsonObject:
        """A page of the plans that can be seen already."""
        with self._lock:
            observed = [plan for plan in self.ledger.plans if not plan.unseen]
            # Lists are late. Only a first page counts as a read of the list, whatever number of pages follows.
            if not NextToken:
                for plan in self.ledger.plans:
                    plan.unseen = max(0, plan.unseen - 1)
            statuses = {item["Value"] for item in Filters or []}
            plans = [
                plan
                for plan in map(self._described, observed)
                if (not statuses or plan["Status"] in statuses)
                and (StartTimeAfter is None or plan["StartTime"] > StartTimeAfter)
                and (StartTimeBefore is None or plan["StartTime"] < StartTimeBefore)
            ]
            plans.sort(key=lambda plan: plan[SortBy], reverse=SortOrder == "Descending")
            return _page(plans, "TrainingPlanSummaries", NextToken, MaxResults)

    @may_fail
    def describe_training_plan(self, *, TrainingPlanName: str) -> JsonObject:
        """A plan by name or ARN; of several plans of one name the newest."""
        with self._lock:
            plan = self._plan(TrainingPlanName, "describe_training_plan")
            spares = sum(plan.spare_instances(window) for window in plan.windows)
            return {
                **self._described(plan),
                "UnhealthyInstanceCount": 0,
                **({"AvailableSpareInstanceCount": spares} if spares else {}),
            }

    @may_fail
    def extend_training_plan(self, *, TrainingPlanExtensionOfferingId: str) -> JsonObject:
        """Buy an extension offer."""
        name = "extend_training_plan"
        with self._lock:
            offer = self.ledger.extension_offers.get(TrainingPlanExtensionOfferingId)
            plan = self._plan(offer.plan, name) if offer else None
            if offer is None or plan is None or not self._extendable(plan, offer):
                raise client_error(
                    name, "ResourceNotFound", f"Extension offering {TrainingPlanExtensionOfferingId} is not available"
                )
            timestamp = self.clock()
            start = max([offer.start, *(item.end for item in plan.extensions)])
            plan.extensions.append(
                Extension(
                    TrainingPlanExtensionOfferingId,
                    timestamp,
                    timestamp + self.ledger.payment,
                    start,
                    start + (offer.end - offer.start),
                    offer.fee,
                    self.ledger.payment_failure,
                    self.ledger.stale_lists,
                )
            )
            self.ledger.charges.append((plan.arn, TrainingPlanExtensionOfferingId))
            return {"TrainingPlanExtensions": plan.history(timestamp)}

    @may_fail
    def describe_training_plan_extension_history(
        self, *, TrainingPlanArn: str, NextToken: str = "", MaxResults: int = 100
    ) -> JsonObject:
        """A page of a plan's extensions that can be seen already."""
        with self._lock:
            plan = self._plan(TrainingPlanArn, "describe_training_plan_extension_history")
            observed = [
                entry
                for item, entry in zip(plan.extensions, plan.history(self.clock()), strict=True)
                if not item.unseen
            ]
            if not NextToken:
                for item in plan.extensions:
                    item.unseen = max(0, item.unseen - 1)
            return _page(observed, "TrainingPlanExtensions", NextToken, MaxResults)

    @may_fail
    def describe_reserved_capacity(self, *, ReservedCapacityArn: str) -> JsonObject:
        """One window of a plan."""
        with self._lock:
            plan, window = self._window(ReservedCapacityArn, "describe_reserved_capacity")
            timestamp = self.clock()
            [answer] = [
                dict(item)
                for item in plan.describe(timestamp, 0)["ReservedCapacitySummaries"]
                if item["ReservedCapacityArn"] == ReservedCapacityArn
            ]
            answer.pop("AvailabilityZoneId")
            servers = answer.pop("UltraServerCount", 0)
            if servers:
                answer["UltraServerSummary"] = {
                    "UltraServerType": answer.pop("UltraServerType"),
                    "InstanceType": window.instance_type,
                    "UltraServerCount": servers,
                    "AvailableSpareInstanceCount": plan.spare_instances(window),
                    "UnhealthyInstanceCount": 0,
                }
            return answer | self._counts(plan, window)

    @may_fail
    def list_ultra_servers_by_reserved_capacity(
        self, *, ReservedCapacityArn: str, MaxResults: int = 10, NextToken: str = ""
    ) -> JsonObject:
        """A page of the UltraServers of a window."""
        with self._lock:
            plan, window = self._window(ReservedCapacityArn, "list_ultra_servers_by_reserved_capacity")
            used, size = self.in_use(plan.arn, window.zone_id), window.instances // max(1, window.ultraservers)
            open_now = window in plan.open_windows(self.clock(), window.zone_id)
            servers = [
                {
                    "UltraServerId": server,
                    "UltraServerType": window.ultraserver_type,
                    "AvailabilityZone": window.zone,
                    "InstanceType": window.instance_type,
                    "TotalInstanceCount": size,
                    "ConfiguredSpareInstanceCount": plan.spares,
                    "AvailableInstanceCount": size - plan.spares - used.get(server, 0) if open_now else 0,
                    "InUseInstanceCount": used.get(server, 0),
                    "AvailableSpareInstanceCount": plan.spares,
                    "UnhealthyInstanceCount": 0,
                    "HealthStatus": "OK",
                }
                for server in window.servers
            ]
            return _page(servers, "UltraServers", NextToken, MaxResults)

    def find(self, arn: str) -> Plan | None:
        """A plan by its ARN."""
        return next((plan for plan in self.ledger.plans if plan.arn == arn), None)

    def places(self, plan: Plan, zone_id: str) -> list[str]:
        """One entry for each instance that clusters can still get in a zone: its UltraServer, "" for none."""
        with self._lock:
            used, result = self.in_use(plan.arn, zone_id), list[str]()
            for window in plan.open_windows(self.clock(), zone_id):
                size = window.instances // max(1, window.ultraservers) - plan.spares
                for server in window.servers:
                    result += [server] * (size - used.get(server, 0))
                result += [""] * (0 if window.servers else window.instances)
            # Instances without an UltraServer are alike, so it does not matter which of them are taken.
            plain = used.get("", 0)
            return result[plain:]

    def _market(self) -> Market:
        return Market(self.ledger.supply, self.zones, self.ledger.plans, self.clock())

    def _described(self, plan: Plan) -> JsonObject:
        zones = {window.zone_id for window in plan.windows}
        used = sum(sum(self.in_use(plan.arn, zone_id).values()) for zone_id in zones)
        return plan.describe(self.clock(), used)

    def _counts(self, plan: Plan, window: Window) -> JsonObject:
        used = sum(self.in_use(plan.arn, window.zone_id).values())
        usable = plan.usable(self.clock(), window.zone_id)
        return {"AvailableInstanceCount": max(0, usable - used), "InUseInstanceCount": used}

    def _bought(self, identifier: str, name: str, offer: Offer, spares: int) -> Plan:
        """The plan that a purchase makes of an offering."""
        timestamp, prefix = self.clock(), f"arn:aws:sagemaker:{self.region}:{self.account}"
        windows = [
            replace(window, arn=f"{prefix}:reserved-capacity/{identifier}-{index}")
            for index, window in enumerate(offer.windows, 1)
        ]
        return Plan(
            name,
            f"{prefix}:training-plan/{identifier}",
            offer.offering,
            timestamp,
            timestamp + self.ledger.payment,
            windows,
            offer.fee,
            list(offer.target),
            spares,
            self.ledger.payment_failure,
            self.ledger.stale_lists,
        )

    def _open(self, plan: Plan) -> bool:
        return plan.status(self.clock()) in ("Scheduled", "Active")

    def _extendable(self, plan: Plan, offer: ExtensionOffer) -> bool:
        bought = any(item.offering == offer.offering for item in plan.extensions)
        if not self._open(plan) or (bought and self.ledger.duplicate_names == "refuse"):
            return False
        offered = self._market().extensions(plan, offer.end - offer.start)
        return bought or any(item.offering == offer.offering for item in offered)

    def _plan(self, name_or_arn: str, operation: str) -> Plan:
        for plan in reversed(self.ledger.plans):
            if name_or_arn in (plan.name, plan.arn):
                return plan
        raise client_error(operation, "ResourceNotFound", f"Training plan {name_or_arn} does not exist")

    def _window(self, arn: str, operation: str) -> tuple[Plan, Window]:
        for plan in self.ledger.plans:
            for window in plan.windows:
                if window.arn == arn:
                    return plan, window
        raise client_error(operation, "ResourceNotFound", f"Reserved capacity {arn} does not exist")


def _page(items: list[Any], key: str, token: str, size: int) -> JsonObject:
    start = int(token or 0)
    more = {"NextToken": str(start + size)} if len(items) > start + size else {}
    return {key: items[start : start + size], **more}
