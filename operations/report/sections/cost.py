"""What the environment costs while it stands."""

from collections.abc import Sequence
from typing import Any, Final

from ....config.catalog.prices import HOURS_PER_MONTH
from ....planning.cost.costs import costs
from ...environments import costs as cost
from ..markup import Markup, details, joined, table, tag
from ..scene import Scene

ID: Final = "cost"
TITLE: Final = "Cost"


def collect(scene: Scene) -> dict[str, Any]:
    """What `podwright cost --json` says, as of the report's day."""
    return cost.report(scene.environment, costs(scene.environment, scene.day))


def shown(data: dict[str, Any], document: dict[str, Any]) -> Markup:
    """Sums, their parts, and what is not in them."""
    stacks = [
        (name, _bounded(sums, "hourly"), _bounded(sums, "monthly"), _missing(sums))
        for name, sums in [*data["stacks"].items(), ("together", data["total"])]
    ]
    teams = [
        (
            row["team"] or "(no quota)",
            f"{row['instances']:,g}",
            _bounded(row, "monthly"),
            f"at most {cost.money(row['upfront_at_most'])}" if row["upfront_at_most"] else "",
        )
        for row in data["teams"]
    ]
    fees = [
        (fee["plan"], f"at most {cost.money(fee['at_most'])}" if fee["at_most"] else "not in the file", fee["what"])
        for fee in data["upfront"]
    ]
    unpriced = sorted({item["name"] for item in data["items"] if item["price"] is None})
    words = f"At the full count of every group, {HOURS_PER_MONTH} hours a month, in {data['currency']}."
    return joined(
        [
            tag("p", words),
            table("By stack", ("stack", "an hour", "a month", "unknown"), stacks, right=(1, 2)),
            table("Training plans", ("plan", "upfront", "when"), fees, right=(1,)) if fees else None,
            details(f"Parts and prices ({len(data['items'])})", _items(data)),
            details(f"By team ({len(teams)})", _teams(teams)) if document["quotas"]["teams"] else None,
            tag(
                "p",
                f"No price is known of {', '.join(unpriced)}; yours go under ",
                tag("code", "prices:"),
                ".",
                class_="note",
            )
            if unpriced
            else None,
            tag("p", f"Not counted: {'; '.join(data['not_counted'])}.", class_="note"),
        ]
    )


def _items(data: dict[str, Any]) -> Markup:
    rows = []
    for item in data["items"]:
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
    return table("Parts", ("name", "what", "quantity", "unit price", "a month", "source"), rows, right=(2, 3, 4))


def _teams(rows: Sequence[Sequence[str]]) -> Markup:
    headers = ("team", "instances", "a month", "upfront")
    return table("Instances by the quotas of teams; the rest is shared by all", headers, rows, right=(1, 2, 3))


def _bounded(sums: dict[str, Any], which: str) -> str:
    """A sum; `at least` where parts of it are unknown or known to cost more."""
    if not sums["monthly"] and sums["unknown"]:
        return "unknown"
    least = "at least " if sums["unknown"] or sums["lower_bound"] else ""
    return f"{least}{cost.money(sums[which])}"


def _missing(sums: dict[str, Any]) -> str:
    return f"{sums['unknown']} without a price" if sums["unknown"] else ""
