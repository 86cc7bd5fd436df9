"""What an environment costs: as plain data, as lines for people, and in one line."""

import dataclasses
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

from ...config.catalog.prices import HOURS_PER_MONTH
from ...config.settings.environment import Environment
from ...planning.cost.costs import NOT_COUNTED, Cost, Sum, TeamCost, Upfront, by_stack, by_team, costs, total, upfronts
from ...planning.cost.months import above_budget, months, price_changes
from ...planning.cost.scaled import limit_words, scaled_types
from ...planning.rules.cluster.upgrades import NEAR
from ..output.money import money
from ..output.tables import Block, Table, new_table


def today() -> date:
    """The day in UTC."""
    return datetime.now(UTC).date()


def brief(environment: Environment, day: date) -> dict[str, Any]:
    """The sums alone, and a line that says them: what it costs a month, and what is paid at once."""
    items = costs(environment, day)
    sums, fees = total(items), [item.at_most for item in upfronts(environment) if item.at_most]
    parts = [f"{shown(sums)} a month, {shown(sums, hourly=True)} an hour"]
    parts += [f"{money(sums.prepaid)} of a month paid with training plans"] if sums.prepaid else []
    parts += [f"training plans up to {money(sum(fees))} upfront"] if fees else []
    parts += [
        f"+{money(change.monthly)} a month from {change.on}"
        for change in price_changes(environment, day)
        if change.on - day <= NEAR
    ]
    parts += [f"{sums.unknown} of {len(items)} parts without a price"] if sums.unknown else []
    line = f"{'; '.join(parts)} (podwright cost {environment.name})"
    return {"summary": line, "upfront_at_most": sum(fees)} | _sum(sums)


def report(environment: Environment, items: Sequence[Cost], day: date) -> dict[str, Any]:
    """Items and sums as plain data; what changes, from a day on."""
    return {
        "environment": environment.name,
        "region": environment.region,
        "currency": "USD",
        "hours_per_month": HOURS_PER_MONTH,
        "date": str(day),
        "items": [dataclasses.asdict(item) | {"monthly": item.monthly} for item in items],
        "stacks": {stack: _sum(sums) for stack, sums in by_stack(items).items()},
        "teams": [
            {"team": row.team, "instances": row.instances, "upfront_at_most": row.upfront} | _sum(row.total)
            for row in by_team(environment, items)
        ],
        "upfront": [dataclasses.asdict(item) for item in upfronts(environment)],
        "total": _sum(total(items)),
        "price_changes": [
            dataclasses.asdict(change) | {"on": str(change.on)} for change in price_changes(environment, day)
        ],
        "months": [
            {"first": f"{month.first:%Y-%m}", "last": f"{month.last:%Y-%m}", "why": list(month.why)}
            | {"above_budget": above_budget(environment, month.total)}
            | _sum(month.total)
            for month in months(environment, day)
        ],
        "scaled": [dataclasses.asdict(kind) | {"hourly": kind.hourly} for kind in scaled_types(environment)],
        "not_counted": list(NOT_COUNTED),
    }


def _sum(sums: Sum) -> dict[str, Any]:
    return dataclasses.asdict(sums)


def lines(environment: Environment, items: Sequence[Cost], day: date) -> list[Block]:
    """The report for people."""
    title = (
        f"{environment.name} in {environment.region}, all groups at their full count, {HOURS_PER_MONTH} hours a month"
    )
    teams = by_team(environment, items) if environment.governance.teams else []
    return [
        title,
        "",
        _items(items),
        "",
        _sums(items),
        *_months(environment, day),
        *_upfront(upfronts(environment)),
        *_teams(teams),
        *_scaled(environment),
        *_notes(items),
    ]


def shown(sums: Sum, *, hourly: bool = False) -> str:
    """A sum; `at least` where parts of it are unknown or are known to cost more, no figure where it would mislead."""
    if sums.misleading or (not sums.monthly and sums.unknown):
        return "unknown"
    return f"{'' if sums.exact else 'at least '}{money(sums.hourly if hourly else sums.monthly)}"


def _items(items: Sequence[Cost]) -> Table:
    rows = []
    for item in items:
        bound = "≥ " if item.price and item.price.lower_bound else ""
        price = f"{bound}${item.price.usd:,.3f}" if item.price else "unknown"
        month = f"{bound}{money(item.monthly)}" if item.monthly is not None else "unknown"
        rows.append((item.stack, item.name, item.what, f"{item.quantity:,g} {item.unit}", price, month))
    names = ("stack", "name", "what", "quantity", "unit price", "a month")
    return new_table("", names, rows, right=names[3:], optional=("unit price", "quantity"))


def _sums(items: Sequence[Cost]) -> Table:
    rows = []
    sums = [*by_stack(items).items(), ("together", total(items))]
    for name, value in sums:
        missing = f"{value.unknown} without a price" if value.unknown else ""
        rows.append((str(name), shown(value, hourly=True), shown(value), missing))
    return new_table("", ("stack", "an hour", "a month", ""), rows, right=(1, 2))


def _months(environment: Environment, day: date) -> list[Block]:
    """The months in which something changes, and those around them."""
    rows = []
    for month in months(environment, day):
        words = [*month.why, *([_above_budget(environment)] if above_budget(environment, month.total) else [])]
        until = f" to {month.last:%Y-%m}" if month.last > month.first else ""
        rows.append((f"{month.first:%Y-%m}{until}", shown(month.total), "; ".join(words)))
    return ["", new_table("", ("month", "each", "what changes"), rows, right=(1,))] if rows else []


def _above_budget(environment: Environment) -> str:
    budget = environment.observability.budget_usd_per_month if environment.observability else None
    return f"above the budget of {money(budget or 0)}"


def _upfront(fees: Sequence[Upfront]) -> list[Block]:
    if not fees:
        return []
    rows = [(fee.plan, upfront_words(fee.at_most, fee.paid), fee.what) for fee in fees]
    return ["", new_table("", ("training plan", "upfront", ""), rows, right=(1,))]


def upfront_words(at_most: int | None, paid: int | None) -> str:
    """What a training plan costs or has cost at its purchase."""
    if paid:
        return money(paid)
    return f"at most {money(at_most)}" if at_most else "not in the file"


def _teams(teams: Sequence[TeamCost]) -> list[Block]:
    if not teams:
        return []
    rows = []
    for row in teams:
        fee = f"at most {money(row.upfront)}" if row.upfront else ""
        sums = (shown(row.total, hourly=True), shown(row.total))
        rows.append((row.team or "(no quota)", f"{row.instances:g}", *sums, fee))
    names = ("team", "instances", "an hour", "a month", "upfront")
    return ["", new_table("", names, rows, right=names[1:])]


def _scaled(environment: Environment) -> list[Block]:
    """What Karpenter may add, which no sum holds."""
    karpenter = environment.cluster.karpenter
    if karpenter is None:
        return []
    rows = []
    for kind in scaled_types(environment):
        bound = "≥ " if kind.price and kind.price.lower_bound else ""
        each = f"{bound}${kind.price.usd:,.3f}" if kind.price else "unknown"
        nodes = "no limit" if kind.nodes is None else f"{kind.nodes:,}"
        all_of_them = "unknown" if kind.hourly is None else f"{bound}{money(kind.hourly)}"
        rows.append((kind.instance_type, ", ".join(kind.groups), nodes, each, all_of_them))
    names = ("type", "groups", "at most", "each an hour", "an hour")
    table = new_table("", names, rows, right=names[2:], optional=("groups",))
    limits = limit_words(karpenter)
    return ["", f"Not in the sums: nodes that Karpenter adds while pods wait, up to {limits} together.", "", table]


def _notes(items: Sequence[Cost]) -> list[str]:
    """Where prices come from, what has none, and what no sum counts."""
    sources = sorted({item.price.source for item in items if item.price and item.price.usd})
    bounded = any(item.price and item.price.lower_bound for item in items)
    unknown = sorted({name for item in items for name in item.settable})
    unpaid = sorted({item.unpaid_plan for item in items if item.unpaid_plan})
    spot = [item.name for item in items if item.price is None and not item.settable and not item.unpaid_plan]
    notes = ["", "Prices:", *(f"  {source}" for source in sources)]
    if bounded:
        notes.append(
            "  ≥: the price of the same EC2 instance; HyperPod's own is not published in a list, and is higher."
        )
    if (sums := total(items)).misleading:
        groups = ", ".join(item.name for item in items if item.price is None and item.accelerated)
        notes.append(
            f"Groups with accelerators have no price, so a sum with them is unknown: {groups}. Everything else costs "
            f"{shown(dataclasses.replace(sums, misleading=False))} a month."
        )
    if spot:
        notes.append(f"Spot has no price in advance: {', '.join(spot)}.")
    if unpaid:
        notes.append(
            f"No price is known for plan {', '.join(unpaid)}: give its UpfrontFee as `paid_usd` under "
            "`training_plans:`, with start and end or days."
        )
    if unknown:
        notes.append(
            f"No price is known of {', '.join(unknown)}. `podwright prices fetch` asks AWS for them, and yours go "
            "under `prices:` of the environment."
        )
    return [*notes, f"Not counted: {'; '.join(NOT_COUNTED)}."]
