"""Searching for what SageMaker offers as training plans: what is asked for, and the region's answers.

What is searched for is a plan of the environment's file, or what options say; options win. Zone and price are no
filters of SageMaker's: offers in other zones, or above the limit, are shown as near where nothing fits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import Any

from ...config.catalog.instance_types import environment_types
from ...config.catalog.limits import limits
from ...config.catalog.regions import InvalidZoneId, zone
from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ...config.settings.plans import TrainingPlan
from ...planning.purchase.offers import Request
from ...planning.purchase.requests import plan_request
from .market import Answer
from .offers import RegionOffer, zone_coverage
from .plan_file import Values


def plan_of(environment: Environment, name: str) -> TrainingPlan:
    """The plan of that name in the file. Raises CommandError with the known ones."""
    if name not in environment.training_plans:
        known = ", ".join(environment.training_plans) or "none"
        raise CommandError(
            f"{environment.name} has no training plan {name}", f"known: {known}; add it under training_plans", 2
        )
    return environment.training_plans[name]


def request_of(environment: Environment, plan: str | None, options: Mapping[str, Any]) -> Request:
    """What a plan of the file asks for, changed by options: fields of the request, None where they are not used.

    Raises:
        CommandError: too little, or what no plan can be.
    """
    base = wanted(environment, plan) if plan else Request(environment.name, "", ())
    if options["instance_type"]:
        base = replace(base, ultraserver_type=None, ultraserver_count=None)
    if options["ultraserver_type"]:
        base = replace(base, instance_type=None, count=None)
    request = replace(base, **{name: value for name, value in options.items() if value is not None})
    check_request(request, environment)
    return request


def wanted(environment: Environment, name: str) -> Request:
    """What a plan of the file asks for. Of UltraServers, only what does not follow from their type."""
    request = plan_request(plan_of(environment, name), environment.name, name)
    return replace(request, instance_type=None, count=None) if request.ultraserver_type else request


def check_request(request: Request, environment: Environment) -> None:
    """Raise CommandError for what SageMaker could not answer."""
    types, bounds = environment_types(environment.instance_types), limits().training_plan
    number = request.ultraserver_count if request.ultraserver_type else request.count
    if bool(request.instance_type) == bool(request.ultraserver_type) or not number or not request.hours:
        plans = ", ".join(name for name, plan in environment.training_plans.items() if plan.state != "exists")
        raise CommandError(
            "what shall be searched for? One type, how many, and for how many days",
            "for instance --type ml.p5en.48xlarge --count 16 --duration 28d; or a wanted plan of the file: "
            + (plans or "there is none"),
            2,
        )
    sold = [row.name for row in types if row.training_plan]
    if request.instance_type and request.instance_type not in sold:
        raise CommandError(
            f"training plans do not reserve {request.instance_type}", f"they reserve {', '.join(sold)}", 2
        )
    servers = [name for name, unit in types.ultraservers.items() if unit.hyperpod]
    if request.ultraserver_type and request.ultraserver_type not in servers:
        raise CommandError(
            f"HyperPod takes no UltraServer {request.ultraserver_type}", f"it takes {', '.join(servers)}", 2
        )
    for name, value, (low, high) in (
        ("--duration in days", request.hours // 24, bounds.days),
        ("--count", request.count or 1, (1, bounds.search_instances[1])),
        ("--ultraserver-count", request.ultraserver_count or 1, (1, bounds.search_instances[1])),
        ("--max-upfront", request.max_upfront_usd or 1, (1, None)),
    ):
        if value < low or (high and value > high):
            raise CommandError(f"{name} is {value}; allowed are {low} to {high or 'any'}", "ask for several plans", 2)
    for each in request.zones:
        try:
            zone(each)
        except InvalidZoneId as error:
            raise CommandError(
                f"--zone: {error}", "name the zone by its id, as offers, subnets and file systems do", 2
            ) from None
    if request.start_after and request.end_before and request.end_before <= request.start_after:
        raise CommandError("the end is not after the start", "leave room for the plan between them", 2)


def best(environment: Environment, answers: Sequence[Answer]) -> RegionOffer | None:
    """What one would rather have of the own region, at any price; None where nothing fits there.

    All in one part comes first, then subnet and file systems where it is.
    """

    def rank(offer: RegionOffer) -> tuple[bool, int]:
        existing = sum(coverage.subnet + len(coverage.file_systems) for coverage in zone_coverage(environment, offer))
        return len(offer.offer.parts) > 1, -existing

    own = next((answer.fitting for answer in answers if answer.region == environment.region), ())
    return min(own, key=rank, default=None)


def as_plan(request: Request, offer: RegionOffer) -> Values:
    """The settings of a file that ask for what the offer is."""
    specified = {
        "zone": offer.offer.parts[0].zone,
        "instance_type": request.instance_type,
        "count": request.count,
        "ultraserver_type": request.ultraserver_type,
        "ultraserver_count": request.ultraserver_count,
        "days": request.hours and request.hours // 24,
        "start_after": request.start_after,
        "end_before": request.end_before,
        "max_upfront_usd": request.max_upfront_usd or (ceil(offer.offer.fee) if offer.offer.fee else None),
    }
    return {name: value for name, value in specified.items() if value is not None}
