"""Ask AWS for its prices, and write them into the environment's file.

The AWS Price List has HyperPod's instance prices, and prices of gateways, endpoints and file systems. The request needs
credentials that allow pricing:GetProducts, and is free.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ...config.catalog.prices import Price, hourly, service_items, service_price
from ...config.errors import CommandError
from ...config.loading.load import LoadedEnvironment
from ...config.loading.project import Project
from ...config.settings.environment import Environment
from ...planning.cost.costs import costs
from ..arguments import account_for, add_name, add_project, add_sandbox, load
from ..capacity.plan_file import NotWritten, lines, write_values
from ..environments.costs import today
from ..output.console import from_here, write_answer, write_note
from ..output.tables import Block, new_table
from .price_lists import Listed, fetch

_FETCH: Final = """\
Ask the AWS Price List for every price that `podwright cost` needs, and write the prices under `prices:` of the
environment's file, each with the date of the list. Prices without a date are yours, and stay.

The command names prices that the list does not have. The list has no prices for training plans and Spot instances.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright prices`."""
    ways = parser.add_subparsers(metavar="COMMAND", required=True)
    way = ways.add_parser("fetch", help="ask AWS for its prices, and write them into the file", description=_FETCH)
    add_name(way)
    add_sandbox(way)
    add_project(way)
    way.add_argument("--dry-run", action="store_true", help="show the result, and change nothing")
    way.add_argument("--json", action="store_true", help="print the prices as JSON")


def run(args: argparse.Namespace) -> int:
    """Fetch and write. Returns 1 when a price could not be had."""
    loaded = load(args)
    environment = loaded.environment
    account = account_for(args, environment)
    listed = list(fetch(account, environment.region, _wanted(environment), _ask))
    new = {row.name: row for row in listed if row.usd is not None and _is_new(environment, row)}
    values = {name: {"usd": row.usd, "as_of": row.as_of} for name, row in new.items()}
    file = Project.at(args.project).file(args.environment)
    if values and not args.dry_run:
        _write(file, loaded, values)
    document = {
        "environment": environment.name,
        "region": environment.region,
        "prices": [row._asdict() | {"as_of": row.as_of and row.as_of.isoformat()} for row in listed],
        "written": [] if args.dry_run else sorted(values),
    }
    write_answer(args.json, document, _lines(environment, listed, from_here(file), new, args.dry_run))
    return 1 if any(row.usd is None for row in listed) else 0


def _ask(name: str) -> None:
    write_note(f"asking AWS for the price of {name}")


def _wanted(environment: Environment) -> list[str]:
    """What `podwright cost` needs a price of: not those of the user, nor those that the package has for all regions."""
    mine = {name for name, own in environment.prices.items() if own.as_of is None}
    names: set[str] = set()
    for item in costs(environment, today()):
        if item.name in service_items() and "*" not in service_items()[item.name].prices:
            names.add(item.name)
        elif item.group and (group := environment.groups[item.group]).capacity in ("on_demand", "account_team"):
            names.update(group.types)
    return sorted(names - mine)


def _is_new(environment: Environment, row: Listed) -> bool:
    own = environment.prices.get(row.name)
    return own is None or (own.usd, own.as_of) != (row.usd, row.as_of)


def _write(file: Path, loaded: LoadedEnvironment, values: dict[str, Any]) -> None:
    """Set the prices in the file. Raises CommandError where it cannot take them; it says what to write by hand."""
    try:
        if loaded.environment.prices:
            write_values(file, ("prices",), values)
        else:
            write_values(file, (), {"prices": values})
    except NotWritten as error:
        hint = f"write this by hand:\n{lines({'prices': values}, 4)}"
        raise CommandError(f"nothing was written: {error}", hint) from None


def _lines(
    environment: Environment, listed: Sequence[Listed], file: Path, new: Mapping[str, Listed], dry_run: bool
) -> list[Block]:
    rows = []
    for row in listed:
        before = environment.own_prices.get(row.name) or _shipped(environment, row.name)
        amount = row.problem if row.usd is None else f"{row.usd:g}"
        earlier = f"{before.usd:g}" if before else "unknown"
        rows.append((row.name, row.unit, amount, str(row.as_of or ""), earlier))
    verb = "would get" if dry_run else "got"
    result = f"{file} {verb} {len(new)} prices" if new else f"{file} says the same"
    table = new_table("", ("price of", "a unit is", "US dollars", "list of", "before"), rows, right=("before",))
    return [table, "", f"{result}; `podwright cost {environment.name}` counts with them."]


def _shipped(environment: Environment, name: str) -> Price | None:
    if name in service_items():
        return service_price(name, environment.region)
    return hourly(name, environment.region)
