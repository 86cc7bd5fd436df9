"""Training plans of a file and of an account as tables: status, capacity, UltraServers, extensions."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from ...config.catalog.limits import limits
from ...planning.purchase.offers import money
from ..output.tables import Table, new_table, styled
from .offers import amount, minute, span
from .plans import Json
from .table import write_blocks

_COLOURS: Final = {"Active": "green", "Scheduled": "cyan", "Pending": "yellow", "Failed": "red", "Expired": "dim"}
_STATES: Final = {"wanted": "not bought", "purchase": "the deployment buys it", "exists": "not found"}


def write_plans(result: Json, timestamp: datetime) -> None:
    """Print what `account_plans` found."""
    own, others = result["plans"], result["others"]
    tables = [_plans(f"Training plans of {result['environment']}", own)] if own else []
    for plan in own:
        if plan["aws"] and len(plan["aws"]["parts"]) > 1:
            tables.append(_parts(plan))
        if plan["ultraservers"]:
            tables.append(_ultraservers(plan))
        if plan["extensions"]:
            tables.append(_extensions(plan))
    if others:
        rows = [{"plan": each["name"], "aws": each, "groups": {}, "state": "exists"} for each in others]
        tables.append(_plans(f"Other training plans in {result['region']}", rows))
    notes = [note for plan in own for note in _notes(plan, timestamp)]
    if not own and not others:
        notes.append(f"{result['environment']} has no training plan, nor has the account in {result['region']}.")
    write_blocks(tables, notes)


def _plans(title: str, plans: Iterable[Json]) -> Table:
    columns = ("plan", "status", "what", "zone", "from (UTC)", "to (UTC)", "instances", "groups")
    table = new_table(title, columns, right=(), optional=("groups", "what"))
    for plan in plans:
        aws = plan["aws"]
        groups = ", ".join(f"{name} {count}" for name, count in plan["groups"].items())
        if aws is None:
            table.add_row(plan["plan"], _STATES[plan["state"]], *[""] * 5, groups)
            continue
        units = ", ".join({part["ultraserver_type"] or part["instance_type"]: None for part in aws["parts"]})
        zones = ", ".join({part["zone"]: None for part in aws["parts"]})
        times = (_time(aws["start"]), _time(aws["end"]))
        table.add_row(plan["plan"], _status(aws["status"]), units, zones, *times, _instances(aws), groups)
    return table


def _instances(counts: Json) -> str:
    """`16: 12 in use, 4 free`; what is nought or unknown is left out."""
    named = (("in_use", "in use"), ("free", "free"), ("spare", "spare"), ("unhealthy", "unhealthy"))
    existing = ", ".join(f"{counts[key]} {name}" for key, name in named if counts[key])
    return f"{counts['total']}{f': {existing}' if existing else ''}"


def _parts(plan: Json) -> Table:
    rows = (
        (
            part["zone"],
            _status(part["status"]),
            part["ultraserver_type"] or part["instance_type"],
            str(part["ultraserver_count"] or part["count"]),
            _time(part["start"]),
            _time(part["end"]),
        )
        for part in plan["aws"]["parts"]
    )
    names = ("zone", "status", "what", "count", "from (UTC)", "to (UTC)")
    return new_table(f"Parts of {plan['plan']}", names, rows, right=("count",))


def _ultraservers(plan: Json) -> Table:
    servers = plan["ultraservers"]
    rows = ((server["id"], server["health"], server["type"], _instances(server)) for server in servers)
    return new_table(f"UltraServers of {plan['plan']}", ("id", "health", "what", "instances"), rows, right=())


def _extensions(plan: Json) -> Table:
    rows = (
        (
            item["offering"],
            _status(item["status"]),
            item["payment"],
            _time(item["start"]),
            _time(item["end"]),
            amount(money(item["upfront"]), item["currency"]),
        )
        for item in plan["extensions"]
    )
    columns = ("offering", "status", "payment", "from (UTC)", "to (UTC)", "upfront")
    return new_table(f"Extensions of {plan['plan']}", columns, rows, right=("upfront",))


def _notes(plan: Json, timestamp: datetime) -> Iterable[str]:
    """What a table has no room for."""
    name, aws, record = plan["plan"], plan["aws"], plan["record"]
    if aws is None and plan["arn"]:
        yield f"{name}: SageMaker has no {plan['arn']} in this region"
    if aws and aws["message"]:
        yield f"{name}: {aws['message']}"
    for text in plan["differs"]:
        yield f"{name}: the plan {text} as the file says"
    for part in aws["parts"] if aws else ():
        end = datetime.fromisoformat(part["end"]) if part["end"] else None
        if end and part["status"] in ("Active", "Scheduled"):
            deleted = end - timedelta(minutes=limits().training_plan.reclaim_minutes)
            when = f"in {span(deleted - timestamp)}" if deleted > timestamp else "now"
            yield f"{name}: instances in {part['zone']} go at {minute(deleted)}Z, {when}"
    if record and (record["state"] != "bought" or aws is None):
        reason = f": {record['reason']}" if record["reason"] else ""
        yield f"{name}: purchase {record['state']} at {record['at']}, offering {record['offering']}{reason}"
    if plan["problem"]:
        yield f"{name}: {plan['problem']}"


def _time(text: str | None) -> str:
    return minute(datetime.fromisoformat(text)) if text else ""


def _status(status: str) -> Any:
    return styled((status, _COLOURS.get(status, "default")))
