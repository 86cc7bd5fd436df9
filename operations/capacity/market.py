"""Asking SageMaker for offers: in each region side by side, and further afield where none fits."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from ...config.catalog.limits import limits
from ...config.catalog.regions import zone
from ...planning.purchase.offers import Request
from ..aws.calls import Clients, get
from .offers import RegionOffer

_SEARCHES_AT_ONCE: Final = 4
_NEAREST: Final = 6
_OF_A_KIND: Final = 2
_WEEKS_LATER: Final = (1, 2, 4, 6)


@dataclass(frozen=True, slots=True)
class Region:
    """A region to ask."""

    name: str
    clients: Clients


@dataclass(frozen=True, slots=True)
class Answer:
    """What a region offers."""

    region: str
    fitting: tuple[RegionOffer, ...] = ()
    """Offers that are what was asked for, the cheapest first, then the earliest."""
    nearest: tuple[RegionOffer, ...] = ()
    """Where none fits, those that differ least."""
    everything: tuple[RegionOffer, ...] = ()
    """All that was offered, fitting or not."""
    problem: str = ""
    """Why the region could not be asked, or not everything."""


def ask(
    regions: Sequence[Region], request: Request, now: datetime, answered: Callable[[Answer], None] = lambda _: None
) -> list[Answer]:
    """The offers of every region, in the order of `regions`; `answered` hears of each in that order.

    A request without zones takes those of any zone. A region that refuses keeps none of the others from answering.
    """
    answers = []
    with ThreadPoolExecutor(len(regions)) as pool:
        for answer in pool.map(lambda region: _ask(region, request, now), regions):
            answered(answer)
            answers.append(answer)
    return answers


def zone_ids(clients: Clients) -> dict[str, str]:
    """The account's zone ids by zone name: offers give names, and a name means another zone in each account."""
    return {
        item["ZoneName"]: item["ZoneId"]
        for item in get(clients, "ec2", "describe_availability_zones", AllAvailabilityZones=True)["AvailabilityZones"]
    }


def _ask(region: Region, request: Request, now: datetime) -> Answer:
    """What one region offers; where nothing fits, also what lies beside the request."""
    try:
        zones = zone_ids(region.clients)
        # Zones of one region say nothing about another.
        own = tuple(each for each in request.zones if zone(each).region in (None, region.name))
        request = replace(request, zones=own or tuple(zones.values()))
        values = _search(region, request, request, zones, now)
    except (BotoCoreError, ClientError) as error:
        return Answer(region.name, problem=f"AWS says: {error}")
    problem = ""
    if all(each.differs for each in values):
        further, problem = _further(region, request, zones, now)
        # An offer comes back for several requests, and is the same by its id.
        values = list({each.offer.id: each for each in (*further, *values)}.values())
    if fitting := [each for each in values if not each.differs]:
        return Answer(region.name, tuple(sorted(fitting, key=_price)), everything=tuple(values), problem=problem)
    return Answer(region.name, nearest=tuple(_nearest(values, request)), everything=tuple(values), problem=problem)


def _search(
    region: Region, asked: Request, request: Request, zones: dict[str, str], now: datetime
) -> list[RegionOffer]:
    """The answers to `asked`, held against `request`."""
    answer = get(region.clients, "sagemaker", "search_training_plan_offerings", **asked.search(now))
    read = (RegionOffer.of(shape, region.name, zones, request) for shape in answer["TrainingPlanOfferings"])
    return [result for result in read if result]


def _further(region: Region, request: Request, zones: dict[str, str], now: datetime) -> tuple[list[RegionOffer], str]:
    """Offers for what lies beside the request, and the first reason why some of it could not be asked for."""

    def tried(other: Request) -> list[RegionOffer] | str:
        try:
            return _search(region, other, request, zones, now)
        except (BotoCoreError, ClientError) as error:
            return f"not everything could be asked: {error}"

    with ThreadPoolExecutor(_SEARCHES_AT_ONCE) as pool:
        results = list(pool.map(tried, beside(request, now)))
    matches = [each for result in results if not isinstance(result, str) for each in result]
    return matches, next((result for result in results if isinstance(result, str)), "")


def beside(request: Request, now: datetime) -> Iterator[Request]:
    """Requests that differ from this one in one thing: when, how many, or for how long."""
    bounds = limits().training_plan
    start = max(request.start_after or now, now)
    for weeks in _WEEKS_LATER:
        if start + timedelta(weeks=weeks) <= now + timedelta(weeks=bounds.start_weeks_ahead):
            yield replace(request, start_after=start + timedelta(weeks=weeks), end_before=None)
    if request.end_before:
        yield replace(request, end_before=None)
    if request.start_after and request.start_after > now:
        yield replace(request, start_after=None)
    if request.ultraserver_type:
        own = request.ultraserver_count or 0
        for count in (own - 1, own + 1):
            if count > 0:
                yield replace(request, ultraserver_count=count)
    else:
        own = request.count or 0
        # SageMaker sells certain counts only.
        fewer = [count for count in bounds.instance_counts if count < own]
        more = [count for count in bounds.instance_counts if count > own]
        for count in (*fewer[-2:], *more[:1]):
            yield replace(request, count=count)
    first, last = bounds.days
    days = (request.hours or 0) // 24
    # Half as long, and a week less or more.
    for other in sorted({days // 2, days - 7, days + 7} - {days}):
        if first <= other <= last:
            yield replace(request, hours=other * 24)


def _nearest(offers: Sequence[RegionOffer], request: Request) -> list[RegionOffer]:
    """The offers that differ least, few of each kind of difference so that every way out is seen."""

    def kind(each: RegionOffer) -> list[str]:
        # A difference begins with its verb: is in, has, lasts, starts, ends, costs.
        return sorted(text.split()[0] for text in each.differs)

    def distance(each: RegionOffer) -> tuple[Any, ...]:
        return (len(each.differs), each.distance(request), *_price(each))

    alike = (list(group) for _, group in groupby(sorted(offers, key=kind), kind))
    few = [each for group in alike for each in sorted(group, key=distance)[:_OF_A_KIND]]
    return sorted(few, key=distance)[:_NEAREST]


def _price(result: RegionOffer) -> tuple[Any, ...]:
    offer = result.offer
    return (offer.fee is None, offer.fee or 0, result.start, len(offer.parts), offer.id)
