"""Asking somebody what a new environment is to be, with what the account has as answers to choose from.

Nothing is needed but a terminal: without credentials the same is asked, and nothing is looked up.
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Mapping
from ipaddress import IPv4Network
from typing import Any, Final, NamedTuple, TypeVar

from pydantic import TypeAdapter, ValidationError

from ...config.catalog.instance_types import UnknownInstanceType, catalog
from ...config.catalog.regions import UnknownRegion, region
from ...config.catalog.sandbox_account import SANDBOX_ACCOUNT
from ...config.errors import CommandError
from ...config.settings.base import Account as AccountId
from ..aws.account import Patience, shell_account
from ..aws.calls import Clients, get, pages
from ..aws.route_tables import default_route, is_public, table_of
from ..output.console import write_line
from .new_project import Beginning, first_zones

_PATIENCE: Final = Patience(5, 10, attempts=2)
_NEW: Final = "new"
T = TypeVar("T")


class Caller(NamedTuple):
    """Whom the credentials of this shell are."""

    account: str
    admin: str
    """ARN of the role or user."""


def ask_beginning(name: str | None, account: str | None, region_name: str | None) -> Beginning:
    """What somebody answers; what the command line says is not asked. Raises CommandError where nobody can be asked."""
    if not sys.stdin.isatty():
        raise CommandError("a confirmation needs a terminal", "leave --interactive out, and say it with options", 2)
    write_line("An empty answer takes the value in brackets.")
    where = region_name or _ask("Region", "us-west-2", _region)
    clients = shell_account(where).reader(_PATIENCE)
    caller = _caller(clients)
    # Before the account: what is chosen first is what everything else is looked up in.
    account = account or _ask("AWS account, or sandbox", caller.account if caller else "sandbox", _account)
    if caller is None or caller.account != account:
        clients = None
    name = name or _ask("Name of the environment", "sandbox" if account == SANDBOX_ACCOUNT else "prod", str)
    instance_type = _ask("Instance type for training", "ml.g5.12xlarge", _type)
    count = _ask("How many of them", "2", _count)
    offered = _offered(clients, instance_type) if clients else []
    first = [*offered, *(zone for zone in first_zones(where) if zone not in offered)][:2]
    if offered:
        write_line(f"EC2 offers {instance_type} in {', '.join(offered)}.")
    zones = _ask("Zone ids, the one for training first", ",".join(first), _zones)
    admins = _ask("Who administers Kubernetes, as ARNs", caller.admin if caller and clients else "nobody", _arns)
    vpc = _vpc(clients, zones) if clients else None
    return Beginning(name, account, where, zones, instance_type, count, admins, vpc)


def _ask(question: str, default: str, read: Callable[[str], T]) -> T:
    """An answer that can be read; asked again until it can."""
    while True:
        text = input(f"{question} [{default}]: ").strip() or default
        try:
            return read(text)
        except ValueError as error:
            write_line(f"  {error}")


def _region(text: str) -> str:
    try:
        return region(text).name
    except UnknownRegion as error:
        raise ValueError(str(error)) from None


def _account(text: str) -> str:
    if text == "sandbox":
        return SANDBOX_ACCOUNT
    try:
        return TypeAdapter(AccountId).validate_python(text)
    except ValidationError:
        raise ValueError(f"{text} is not an account: twelve digits, or sandbox") from None


def _type(text: str) -> str:
    name = text if text.startswith("ml.") else f"ml.{text}"
    try:
        return catalog().get(name).name
    except UnknownInstanceType as error:
        raise ValueError(str(error)) from None


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise ValueError(f"{text} is not a number of instances, such as 4")
    return int(text)


def _zones(text: str) -> tuple[str, ...]:
    zones = tuple(part.strip() for part in text.split(","))
    if len(set(zones)) < 2:
        raise ValueError("EKS needs two zones, with a comma between")
    return zones


def _arns(text: str) -> tuple[str, ...]:
    arns = () if text == "nobody" else tuple(part.strip() for part in text.split(","))
    if wrong := [arn for arn in arns if not arn.startswith("arn:")]:
        raise ValueError(f"{wrong[0]} is not an ARN, such as arn:aws:iam::111122223333:role/MlPlatform")
    return arns


def _caller(clients: Clients) -> Caller | None:
    """Whom AWS takes this shell for; None without credentials."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        identity = get(clients, "sts", "get_caller_identity")
    except (BotoCoreError, ClientError) as error:
        write_line(f"Nothing is looked up in AWS: {error}")
        return None
    arn = identity["Arn"]
    kind, _, name = arn.rpartition(":")[2].partition("/")
    if kind == "assumed-role":
        arn = _seen(lambda: get(clients, "iam", "get_role", RoleName=name.partition("/")[0])["Role"]["Arn"], "nobody")
    # The root user administers nothing that it has not to.
    return Caller(identity["Account"], "nobody" if kind == "root" else arn)


def _offered(clients: Clients, instance_type: str) -> list[str]:
    """Zone ids in which EC2 offers a type."""
    filters = [{"Name": "instance-type", "Values": [instance_type.removeprefix("ml.")]}]
    of_zones = {"LocationType": "availability-zone-id", "Filters": filters}
    operation = "describe_instance_type_offerings"
    rows = _seen(lambda: pages(clients, "ec2", operation, "InstanceTypeOfferings", **of_zones), [])
    return sorted(row["Location"] for row in rows)


def _vpc(clients: Clients, zones: tuple[str, ...]) -> Mapping[str, Any] | None:
    """An existing VPC that somebody chose; None for a new one."""
    vpcs = {row["VpcId"]: row for row in _seen(lambda: pages(clients, "ec2", "describe_vpcs", "Vpcs"), [])}
    fitting = {}
    for id, row in vpcs.items():
        subnets = _subnets(clients, id, zones)
        if subnets:
            fitting[id] = {"id": id, "cidr": row["CidrBlock"], "subnets": subnets}
    if vpcs and not fitting:
        write_line(f"None of {len(vpcs)} VPCs has two private subnets in each of these zones: a new one is made.")
    if not fitting:
        return None
    for id, each in fitting.items():
        write_line(f"  {id} {each['cidr']} {_name(vpcs[id])}".rstrip())

    def choose(text: str) -> Mapping[str, Any] | None:
        if text != _NEW and text not in fitting:
            raise ValueError(f"{text} is none of them")
        return fitting.get(text)

    return _ask("VPC: new, or one of these", _NEW, choose)


def _subnets(clients: Clients, vpc: str, zones: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """Two private subnets of each zone, the larger one for nodes; empty where one of the zones has not two."""
    filters = {"Filters": [{"Name": "vpc-id", "Values": [vpc]}]}
    tables = _seen(lambda: pages(clients, "ec2", "describe_route_tables", "RouteTables", **filters), [])
    rows = _seen(lambda: pages(clients, "ec2", "describe_subnets", "Subnets", **filters), [])
    by_zone = defaultdict[str, list[Mapping[str, Any]]](list)
    for row in sorted(rows, key=lambda row: IPv4Network(row["CidrBlock"]).prefixlen):
        table = table_of(tables, row["SubnetId"])
        if table and not is_public(default_route(table)):
            by_zone[row["AvailabilityZoneId"]].append(row)
    if any(len(by_zone[zone]) < 2 for zone in zones):
        return {}
    return {
        zone: {
            "nodes": by_zone[zone][0]["SubnetId"],
            "nodes_cidr": by_zone[zone][0]["CidrBlock"],
            "control_plane": by_zone[zone][1]["SubnetId"],
        }
        for zone in zones
    }


def _name(row: Mapping[str, Any]) -> str:
    return next((tag["Value"] for tag in row.get("Tags", ()) if tag["Key"] == "Name"), "")


def _seen(read: Callable[[], T], otherwise: T) -> T:
    """What AWS answers; `otherwise` where it does not let this be looked at, which a line says."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        return read()
    except (BotoCoreError, ClientError) as error:
        write_line(f"  not looked up: {error}")
        return otherwise
