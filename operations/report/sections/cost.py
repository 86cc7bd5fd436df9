"""What the environment costs while it stands."""

from collections.abc import Sequence
from typing import Any, Final

from ....config.catalog.prices import HOURS_PER_MONTH
from ....planning.cost.costs import costs
from ...environments import costs as cost
from ..scene import Scene
from ..views import Cell, Code, Table, Tables

ID: Final = "cost"
TITLE: Final = "Cost"


def collect(scene: Scene) -> dict[str, Any]:
    """What `podwright cost --json` says, as of the report's day."""
    return cost.report(scene.environment, costs(scene.environment, scene.day), scene.day)


def view(data: dict[str, Any], document: dict[str, Any]) -> Tables:
    """Sums, their parts, and what is not in them."""
    stacks = [
        (name, _bounded(sums, "hourly"), _bounded(sums, "monthly"), _missing(sums))
        for name, sums in [*data["stacks"].items(), ("together", data["total"])]
    ]
    fees = [(fee["plan"], cost.upfront_words(fee["at_most"], fee["paid"]), fee["what"]) for fee in data["upfront"]]
    return Tables(
        intro=f"At the full count of every group, {HOURS_PER_MONTH} hours a month, in {data['currency']}.",
        tables=[
            Table("By stack", ("stack", "an hour", "a month", "unknown"), stacks, right=(1, 2)),
            _months(data["months"]),
            Table("Training plans", ("plan", "upfront", "when"), fees, right=(1,)),
        ],
        folded=[_items(data["items"]), _teams(data["teams"] if document["quotas"]["teams"] else ())],
        notes=[*_unpriced(data["items"]), f"Not counted: {'; '.join(data['not_counted'])}."],
    )


def _unpriced(items: Sequence[dict[str, Any]]) -> list[Cell]:
    """Where the missing prices go: of plans into their sections, all others under `prices`."""
    plans = sorted({item["unpaid_plan"] for item in items if item["unpaid_plan"]})
    names = sorted({item["name"] for item in items if item["price"] is None and not item["unpaid_plan"]})
    notes: list[Cell] = [(f"No price is known of {', '.join(names)}; yours go under", Code("prices:"))] if names else []
    return notes + [(f"No price is known for plan {plan}; set its", Code("paid_usd")) for plan in plans]


def _items(items: Sequence[dict[str, Any]]) -> Table:
    """Prices and months in dollars; ≥ where the price is that of the EC2 instance, which is below HyperPod's."""
    rows = []
    for item in items:
        price, month = item["price"], item["monthly"]
        bound = "≥ " if price and price["basis"] == "ec2" else ""
        rows.append(
            (
                item["name"],
                item["what"],
                f"{item['quantity']:,g} {item['unit']}",
                f"{bound}${price['usd']:,.3f}" if price else "unknown",
                f"{bound}{cost.money(month)}" if month is not None else "unknown",
                price["source"] if price else "",
            )
        )
    headers = ("name", "what", "quantity", "unit price", "a month", "source")
    return Table("Parts", headers, rows, right=(2, 3, 4), name="Parts and prices")


def _months(months: Sequence[dict[str, Any]]) -> Table:
    rows = []
    for month in months:
        until = "" if month["first"] == month["last"] else f" to {month['last']}"
        words = [*month["why"], *(["above the budget"] if month["above_budget"] else [])]
        rows.append((f"{month['first']}{until}", _bounded(month, "monthly"), "; ".join(words)))
    return Table("By month", ("month", "each", "what changes"), rows, right=(1,))


def _teams(teams: Sequence[dict[str, Any]]) -> Table:
    rows = [
        (
            row["team"] or "(no quota)",
            f"{row['instances']:,g}",
            _bounded(row, "monthly"),
            f"at most {cost.money(row['upfront_at_most'])}" if row["upfront_at_most"] else "",
        )
        for row in teams
    ]
    headers = ("team", "instances", "a month", "upfront")
    caption = "Instances by the quotas of teams; the rest is shared by all"
    return Table(caption, headers, rows, right=(1, 2, 3), name="By team")


def _bounded(sums: dict[str, Any], which: str) -> str:
    """A sum; `at least` where parts of it are unknown or known to cost more, no figure where it would mislead."""
    if sums["misleading"] or (not sums["monthly"] and sums["unknown"]):
        return "unknown"
    least = "at least " if sums["unknown"] or sums["lower_bound"] else ""
    return f"{least}{cost.money(sums[which])}"


def _missing(sums: dict[str, Any]) -> str:
    return f"{sums['unknown']} without a price" if sums["unknown"] else ""
