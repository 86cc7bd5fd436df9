"""Print what SageMaker offers as training plans, in one or several regions side by side.

What is searched for is PLAN of the environment's file, or what the options say; options win. Zone and price are no
filters of SageMaker's: offers in other zones, or above the limit, are shown as near where nothing fits. The exit code
is 1 when no offer fits.
"""

import argparse
from dataclasses import replace
from datetime import UTC, datetime
from math import ceil
from typing import Any

from pydantic import TypeAdapter, ValidationError

from ...config.catalog.instance_types import environment_types
from ...config.catalog.limits import limits
from ...config.catalog.regions import InvalidZoneId, UnknownRegion, region, zone
from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ...config.settings.plans import Instant, TrainingPlan
from ...planning.purchase.offers import Request
from ...planning.purchase.requests import plan_request
from ..aws.account import Account, account_of
from ..cdk.deployment import load
from ..cdk.progress import Progress
from ..output.console import write_json, write_line, write_note
from .market import Answer, Region, ask
from .offers import RegionOffer, counted, described
from .plan_file import Values, lines
from .table import answer_json, write_answers
from .zone_coverage import zone_coverage


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright capacity search`."""
    parser.add_argument("environment", nargs="?", metavar="ENV", help="name in environments/, or path of a file")
    parser.add_argument("plan", nargs="?", metavar="PLAN", help="a plan of the file that is wanted")
    parser.add_argument("--type", metavar="TYPE", help="instance type, such as ml.p5en.48xlarge")
    parser.add_argument("--count", type=int, metavar="N", help="instances")
    parser.add_argument("--ultraserver-type", metavar="TYPE", help="UltraServer type, such as ml.u-p6e-gb200x72")
    parser.add_argument("--ultraserver-count", type=int, metavar="N", help="UltraServers")
    parser.add_argument("--days", type=int, metavar="N", help="length in days")
    parser.add_argument("--start-after", type=moment, metavar="TIME", help="earliest start, such as 2027-01-04")
    parser.add_argument("--end-before", type=moment, metavar="TIME", help="latest end")
    parser.add_argument("--zone", metavar="ID", help="zone id, such as usw2-az2")
    parser.add_argument("--max-upfront", type=int, metavar="USD", help="highest price in US dollars")
    parser.add_argument(
        "--region",
        action="append",
        metavar="REGION",
        help="region to ask; may be repeated (default: the environment's)",
    )


def run(args: argparse.Namespace) -> int:
    """Print the offers."""
    environment = load(args).environment
    request = _request(args, environment)
    names = list(dict.fromkeys(args.region or [environment.region]))
    for name in names:
        try:
            region(name)
        except UnknownRegion as error:
            raise CommandError(str(error), "--region takes names such as us-west-2", 2) from None
    account = account_of(environment, args.project, args.sandbox)
    write_note(f"{described(request)} → {account}")
    answers = ask_all(_regions(account, names), request)
    if args.json:
        answered = [answer_json(environment, answer) for answer in answers]
        write_json({"asked": described(request), "regions": answered})
    else:
        write_answers(environment, answers)
        own = next((answer.fitting for answer in answers if answer.region == environment.region), ())
        best = min(own, key=lambda result: _rank(environment, result), default=None)
        if best and args.plan is None:
            write_line(f"\nTo reserve {best.offer.id}, put this under training_plans, with a name of yours for NAME:\n")
            write_line("  NAME:\n" + lines(_as_plan(request, best), 4))
            write_line(f"\nand run `podwright capacity reserve {environment.name} NAME`.")
    return 0 if any(answer.fitting for answer in answers) else 1


def _regions(account: Account, names: list[str]) -> list[Region]:
    """The regions of these names."""
    return [Region(name, replace(account, region=name)) for name in names]


def ask_all(regions: list[Region], request: Request) -> list[Answer]:
    """Ask these regions, and say on standard error as each has answered."""
    progress = Progress()
    return ask(regions, request, now(), lambda answer: progress.say(answer.region, _summary(answer)))


def _summary(answer: Answer) -> str:
    if answer.fitting:
        return counted(len(answer.fitting), "offer")
    return answer.problem or f"nothing fits, {len(answer.nearest)} near"


def plan_of(environment: Environment, name: str) -> TrainingPlan:
    """The plan of that name in the file. Raises CommandError with the known ones."""
    if name not in environment.training_plans:
        known = ", ".join(environment.training_plans) or "none"
        raise CommandError(
            f"{environment.name} has no training plan {name}", f"known: {known}; add it under training_plans", 2
        )
    return environment.training_plans[name]


def _request(args: argparse.Namespace, environment: Environment) -> Request:
    """What the plan of the file and the options ask for together.

    Raises:
        CommandError: too little, or what no plan can be.
    """
    options = {
        "instance_type": args.type,
        "count": args.count,
        "ultraserver_type": args.ultraserver_type,
        "ultraserver_count": args.ultraserver_count,
        "hours": args.days and args.days * 24,
        "start_after": args.start_after,
        "end_before": args.end_before,
        "max_upfront_usd": args.max_upfront,
        "zones": (args.zone,) if args.zone else None,
    }
    base = wanted(environment, args.plan) if args.plan else Request(environment.name, "", ())
    if args.type:
        base = replace(base, ultraserver_type=None, ultraserver_count=None)
    if args.ultraserver_type:
        base = replace(base, instance_type=None, count=None)
    specified: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    request = replace(base, **specified)
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
            "for instance --type ml.p5en.48xlarge --count 16 --days 28; or a wanted plan of the file: "
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
        ("--days", request.hours // 24, bounds.days),
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
                f"--zone: {error}", "offers, subnets and file systems are told apart by zone id", 2
            ) from None
    if request.start_after and request.end_before and request.end_before <= request.start_after:
        raise CommandError("the end is not after the start", "leave room for the plan between them", 2)


def _rank(environment: Environment, offer: RegionOffer) -> tuple[bool, int]:
    """What one would rather have, at any price: all in one part, then subnet and file systems where it is."""
    existing = sum(coverage.subnet + len(coverage.file_systems) for coverage in zone_coverage(environment, offer))
    return len(offer.offer.parts) > 1, -existing


def _as_plan(request: Request, offer: RegionOffer) -> Values:
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


def now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)


def moment(text: str) -> datetime:
    """A time of the command line. Raises argparse's error."""
    try:
        return TypeAdapter(Instant).validate_python(text)
    except ValidationError as error:
        raise argparse.ArgumentTypeError(error.errors()[0]["msg"].removeprefix("Value error, ")) from None
