"""Offers as a table, and as JSON."""

from collections.abc import Sequence
from typing import Any, Final

from ...config.settings.environment import Environment
from ...planning.purchase.offers import Part
from ..output.console import write_line
from ..output.tables import Block, Table, new_table
from .extend import Extension
from .market import Answer
from .offers import RegionOffer, amount, compared, file_systems, hours, minute, span, zone_coverage

_SHOWN: Final = 8
_RIGHT: Final = ("#", "count", "upfront", "instance-hour", "on demand")
_LOWER_BOUND: Final = "≤: HyperPod's price is not published there; the table shows EC2's, which is lower."


def write_answers(environment: Environment, answers: Sequence[Answer]) -> None:
    """Print what fits, and where nothing does, what comes nearest."""
    fitting = [row for answer in answers for row in answer.fitting[:_SHOWN]]
    nearest = [result for answer in answers for result in answer.nearest]
    blocks, notes = [], []
    if fitting:
        blocks += offer_blocks("Offers that fit, the cheapest first", environment, fitting)
    if nearest:
        without = ", ".join(answer.region for answer in answers if answer.nearest)
        blocks += offer_blocks(f"Nothing fits in {without}. The nearest", environment, nearest)
    for answer in answers:
        if (more := len(answer.fitting) - _SHOWN) > 0:
            notes.append(f"{answer.region}: {more} dearer besides; --json has all")
        if answer.problem:
            notes.append(f"{answer.region}: {answer.problem}")
        elif not (answer.fitting or answer.nearest):
            notes.append(f"{answer.region}: no offer, nor one near it")
    write_blocks(blocks, notes + legend(environment, [*fitting, *nearest]))


def legend(environment: Environment, shown: Sequence[RegionOffer]) -> list[str]:
    """What the columns of these offers mean."""
    if not shown:
        return []
    systems = [f"{name} in {zone}" for name, zone in file_systems(environment).items()]
    has = ", ".join([f"subnets in {', '.join(environment.network.zones)}", *systems])
    comparisons = [compared(row, environment.own_prices) for row in shown]
    bounded = any(comparison and comparison.on_demand.lower_bound for comparison in comparisons)
    return [f"there: what of {environment.name} is in that zone; it has {has}.", *([_LOWER_BOUND] if bounded else [])]


def offer_blocks(title: str, environment: Environment, shown: Sequence[RegionOffer]) -> list[Block]:
    """A table with a row for each part of an offer, and what is too long for it: ids, and how offers differ.

    What holds for the whole offer stands in its first row.
    """
    regions = len({row.region for row in shown}) > 1
    columns = ("#", *(("region",) if regions else ()), "zone", "from (UTC)", "to (UTC)", "count")
    rows, lines = list[tuple[str, ...]](), list[str]()
    for number, offer in enumerate(shown, 1):
        existing = {zone.zone: str(zone) for zone in zone_coverage(environment, offer)}
        whole = [str(number), *([offer.region] if regions else [])]
        costs = [_fee(offer), _hourly(offer), str(compared(offer, environment.own_prices) or "unknown")]
        for part in offer.offer.parts:
            times = (minute(part.start), minute(part.end))
            count = str(part.ultraserver_count or part.count)
            rows.append((*whole, part.zone, *times, count, *costs, existing.pop(part.zone, "")))
            whole, costs = [""] * len(whole), [""] * len(costs)
        differs = f"  {'; '.join(offer.differs)}" if offer.differs else ""
        lines.append(f"{number:>3}  {offer.offer.id}{differs}")
    columns = (*columns, "upfront", "instance-hour", "on demand", "there")
    return [
        new_table(title, columns, rows, right=_RIGHT, optional=("there", "to (UTC)", "on demand")),
        "\n".join(lines),
    ]


def extension_table(title: str, offers: Sequence[Extension], count: int) -> Table:
    """A table of offers to prolong a plan of that many instances."""
    rows = (
        (
            offer.id,
            minute(offer.start),
            minute(offer.end),
            span(offer.end - offer.start),
            amount(offer.fee, offer.currency),
            f"{price:,.2f}" if (price := offer.per_instance_hour(count)) else "unknown",
        )
        for offer in offers
    )
    names = ("offer", "from (UTC)", "to (UTC)", "length", "upfront", "instance-hour")
    return new_table(title, names, rows, right=names[3:], optional=("to (UTC)",))


def write_blocks(blocks: Sequence[Block], notes: Sequence[str]) -> None:
    """Print tables and texts, and what there is to say about them."""
    for block in blocks:
        write_line(block)
        write_line()
    for note in notes:
        write_line(note)


def answer_json(environment: Environment, answer: Answer) -> dict[str, Any]:
    """A region's answer for machines."""
    return {
        "region": answer.region,
        "offers": [offer_json(environment, row) for row in answer.fitting],
        "nearest": [offer_json(environment, result) for result in answer.nearest],
        "problem": answer.problem,
    }


def offer_json(environment: Environment, result: RegionOffer) -> dict[str, Any]:
    """An offer for machines: prices as numbers, times in UTC."""
    offer, comparison, price = result.offer, compared(result, environment.own_prices), result.per_instance_hour
    return {
        "id": offer.id,
        "region": result.region,
        "start": result.start.isoformat(),
        "end": result.end.isoformat(),
        "hours": float(hours(offer.length)),
        "upfront": None if offer.fee is None else float(offer.fee),
        "currency": offer.currency,
        "per_instance_hour": None if price is None else round(float(price), 4),
        "on_demand": comparison
        and {
            "usd": comparison.on_demand.usd,
            "basis": comparison.on_demand.basis,
            "source": comparison.on_demand.source,
            "percent": round(float(comparison.percent), 1),
        },
        "parts": [_part_json(part) for part in offer.parts],
        "places": [
            {"zone": zone.zone, "subnet": zone.subnet, "file_systems": list(zone.file_systems)}
            for zone in zone_coverage(environment, result)
        ],
        "differs": list(result.differs),
    }


def extension_json(offer: Extension, count: int) -> dict[str, Any]:
    """An offer to prolong a plan of that many instances, for machines."""
    price = offer.per_instance_hour(count)
    return {
        "id": offer.id,
        "start": offer.start.isoformat(),
        "end": offer.end.isoformat(),
        "hours": float(hours(offer.end - offer.start)),
        "upfront": None if offer.fee is None else float(offer.fee),
        "currency": offer.currency,
        "per_instance_hour": None if price is None else round(float(price), 4),
    }


def _part_json(part: Part) -> dict[str, Any]:
    return {
        "instance_type": part.instance_type,
        "count": part.count,
        "ultraserver_type": part.ultraserver_type,
        "ultraserver_count": part.ultraserver_count,
        "zone": part.zone,
        "start": part.start and part.start.isoformat(),
        "end": part.end and part.end.isoformat(),
    }


def _fee(offer: RegionOffer) -> str:
    """The price in whole units; whoever buys sees all of it before."""
    return "unknown" if offer.offer.fee is None else f"{offer.offer.fee:,.0f} {offer.offer.currency}"


def _hourly(offer: RegionOffer) -> str:
    price = offer.per_instance_hour
    return "unknown" if price is None else f"{price:,.2f}"
