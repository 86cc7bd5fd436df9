"""An account in memory in which training plans are sold, and a project in it, for tests of `podwright capacity`."""

import io
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from podwright.config.loading.load import load_environment
from podwright.config.loading.source import parse_source
from podwright.config.settings.environment import Environment
from podwright.operations import cli
from podwright.operations.aws.account import Account
from podwright.operations.capacity import command, purchase
from podwright.sandbox.training_plans.faults import Fault
from podwright.sandbox.training_plans.plans import ZONES, TrainingPlans
from purchase_aws import PurchaseAccount as Tables

NOW = datetime(2027, 1, 1, 9, 0, tzinfo=UTC)
EAST = {"use1-az1": "us-east-1a", "use1-az4": "us-east-1c", "use1-az6": "us-east-1d"}
FILE = """\
account: "111122223333"
region: us-west-2
network: {zones: [usw2-az2, usw2-az3]}
storage:
  lustre: {zone: usw2-az2, efa: true, throughput: 500, capacity_gib: 38400}
training_plans:
  # For the first quarter.
  h200-q1:
    zone: usw2-az2  # where the file system is
    instance_type: ml.p5en.48xlarge
    count: 16
    days: 28
    start_after: 2027-01-04
    max_upfront_usd: 900000
instance_groups:
  system: {instance_type: ml.m5.4xlarge, count: 2}
  h200: {instance_type: ml.p5en.48xlarge, count: 16, min_count: 0, capacity: {training_plan: h200-q1}}
"""


class Zones:
    """EC2 as far as zones are asked for."""

    def __init__(self, zones: dict[str, str]) -> None:
        self.zones = zones

    def describe_availability_zones(self, **_: Any) -> dict[str, Any]:
        return {"AvailabilityZones": [{"ZoneName": name, "ZoneId": zone} for zone, name in self.zones.items()]}


class Table:
    """DynamoDB with the table of purchases."""

    def __init__(self) -> None:
        self.tables = Tables(table="")

    def __getattr__(self, operation: str) -> Any:
        return partial(getattr(self.tables, operation), "somebody")


class Identity:
    """STS."""

    def get_caller_identity(self) -> dict[str, str]:
        return {"Arn": "arn:aws:iam::111122223333:user/ada"}


class Session:
    """boto3's session in a region."""

    def __init__(self, capacity_account: "CapacityAccount", region: str) -> None:
        self.account, self.region = capacity_account, region

    def client(self, service: str, endpoint_url: str | None, config: Any = None) -> Any:
        """A client; `config` only where something is bought."""
        clients = {"ec2": self.account.ec2[self.region], "dynamodb": self.account.dynamodb, "sts": Identity()}
        return clients.get(service) or self.account.markets[self.region]


@dataclass
class CapacityAccount:
    """The account, and a project with one environment `prod`. Time passes only in pauses."""

    project: Path
    now: datetime = NOW
    slept: float = 0
    dynamodb: Any = field(default_factory=Table)
    ec2: dict[str, Any] = field(default_factory=lambda: {"us-west-2": Zones(ZONES), "us-east-1": Zones(EAST)})

    def __post_init__(self) -> None:
        zones = {"us-west-2": ZONES, "us-east-1": EAST}
        self.markets = {name: TrainingPlans(lambda: self.now, region=name, zones=zones[name]) for name in zones}
        (self.project / "environments").mkdir()
        self.file.write_text(FILE)

    @property
    def plans(self) -> TrainingPlans:
        """The market of the environment's region."""
        return self.markets["us-west-2"]

    @property
    def charges(self) -> list[tuple[str, str]]:
        """What was paid for."""
        return self.plans.ledger.charges

    @property
    def file(self) -> Path:
        """The environment's file."""
        return self.project / "environments/prod.yaml"

    @property
    def environment(self) -> Environment:
        """What the file says."""
        return load_environment(self.file).environment

    def sleep(self, seconds: float) -> None:
        """A pause."""
        self.slept += seconds
        self.now += timedelta(seconds=seconds)

    def run(self, *arguments: str) -> int:
        """Run `podwright capacity` and return its exit code."""
        return cli.main(["capacity", *arguments, "--project", str(self.project)])


def open_account(folder: Path, monkeypatch: pytest.MonkeyPatch) -> CapacityAccount:
    """A world to which the command's accounts, times and pauses lead."""
    capacity_account = CapacityAccount(folder)
    account = Account("111122223333", "us-west-2", None, {})
    monkeypatch.setattr("podwright.operations.arguments.account_of", lambda *_: account)
    monkeypatch.setattr(Account, "session", lambda self: Session(capacity_account, self.region))
    # Not kept, so that a test may put something else in a service's place.
    monkeypatch.setattr(
        Account, "client", lambda self, service: Session(capacity_account, self.region).client(service, None)
    )
    monkeypatch.setattr(command, "now", lambda: capacity_account.now)
    actual = purchase.Buyer.of

    def buyer(*arguments: Any) -> purchase.Buyer:
        return replace(
            actual(*arguments), identity="ada", clock=lambda: capacity_account.now, sleep=capacity_account.sleep
        )

    monkeypatch.setattr(purchase.Buyer, "of", buyer)
    return capacity_account


class Terminal(io.StringIO):
    """Standard input of a person who types."""

    def isatty(self) -> bool:
        return True


def types(monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    """Let a person at a terminal type lines."""
    monkeypatch.setattr("sys.stdin", Terminal("".join(f"{word}\n" for word in words)))


ARN = "arn:aws:sagemaker:us-west-2:123456789012:training-plan/prod-h200-q1"
"""Of the plan of the file, once it is bought."""
YES = ("--yes", "--max-upfront", "900000")


def reserve(capacity_account: CapacityAccount, *arguments: str) -> int:
    """Run `podwright capacity reserve` for the plan of the file."""
    return capacity_account.run("reserve", "prod", "h200-q1", *arguments)


def settings(capacity_account: CapacityAccount) -> dict[str, Any]:
    """What the file says of the plan, as it is written."""
    return parse_source(capacity_account.file.read_text(), "file").data["training_plans"]["h200-q1"]


def fault(capacity_account: CapacityAccount, operation: str, kind: Any, **more: Any) -> None:
    """Let something go wrong with the next call of an operation."""
    capacity_account.plans.faults.append(Fault(operation, kind, **more))
