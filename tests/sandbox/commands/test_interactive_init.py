"""`podwright init --interactive`: what it asks, and what it looks up with the credentials of the shell."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest

from podwright.config.catalog.sandbox_account import access_key
from podwright.config.loading.project import Project
from podwright.config.settings.environment import Environment
from podwright.operations import cli
from podwright.operations.aws.sandbox_server import Running

ACCOUNT, REGION = "111122223333", "eu-west-1"
Capture = pytest.CaptureFixture[str]
Answer = Callable[..., list[str]]


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Answer:
    """Answers the questions in their order, and gives what was asked."""
    asked: list[str] = []

    def prepare(*answers: str) -> list[str]:
        waiting = list(answers)

        def typed(question: str) -> str:
            asked.append(question)
            return waiting.pop(0)

        monkeypatch.setattr("builtins.input", typed)
        monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
        return asked

    return prepare


@pytest.fixture
def credentials(sandbox: Running, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Those of an account of the sandbox, in this shell; gives a client of EC2."""
    for name, value in sandbox.environment(REGION, ACCOUNT).items():
        monkeypatch.setenv(name, value)
    session = boto3.Session(access_key(ACCOUNT), "sandbox", region_name=REGION)
    return session.client("ec2", endpoint_url=sandbox.endpoint)


def init(folder: Path, *arguments: str) -> int:
    return cli.main(["init", str(folder), "--interactive", *arguments])


def environment(folder: Path, name: str) -> Environment:
    return Project.at(folder).load(name).environment


def test_without_credentials_it_asks_all_the_same(
    tmp_path: Path, answer: Answer, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (("CONFIG_FILE", "/dev/null"), ("SHARED_CREDENTIALS_FILE", "/dev/null")):
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    answers = ["us-wset-2", "us-east-2", "12", "", "", "p5.48xlarg", "p5.48xlarge", "none", "4", "use2-az1"]
    asked = answer(*answers, "use2-az3,use2-az1", "me", "arn:aws:iam::111122223333:role/MlPlatform")
    assert init(tmp_path) == 0
    printed = capsys.readouterr().out
    assert "Nothing is looked up in AWS: Unable to locate credentials" in printed
    assert "us-wset-2 is not a region; did you mean us-west-2" in printed
    assert "12 is not an account: twelve digits, or sandbox" in printed
    assert "ml.p5.48xlarge" in printed
    assert "none is not a number of instances" in printed
    assert "EKS needs two zones" in printed
    assert "me is not an ARN" in printed
    assert asked[0] == "Region [us-west-2]: "
    assert not any(question.startswith("VPC") for question in asked)
    made = environment(tmp_path, "sandbox")
    assert (made.region, made.network.zones, made.network.vpc) == ("us-east-2", ("use2-az3", "use2-az1"), None)
    training = made.instance_groups["training"]
    assert (training.instance_type, training.count, training.zone_ids[:1]) == ("ml.p5.48xlarge", 4, ("use2-az3",))
    assert made.cluster.eks.admins == ("arn:aws:iam::111122223333:role/MlPlatform",)
    assert "Next: cd" in printed


def test_what_the_account_has_is_what_one_chooses_from(
    tmp_path: Path, answer: Answer, credentials: Any, capsys: Capture
) -> None:
    zones = {row["ZoneId"]: row["ZoneName"] for row in credentials.describe_availability_zones()["AvailabilityZones"]}
    first, second = sorted(zones)[:2]
    vpc = credentials.create_vpc(CidrBlock="10.32.0.0/16")["Vpc"]["VpcId"]
    credentials.create_tags(Resources=[vpc], Tags=[{"Key": "Name", "Value": "research"}])
    both = enumerate((first, first, second, second))
    ranges = [(zone, f"10.32.{number}.0/{24 + number % 2}") for number, zone in both]
    subnets = [
        credentials.create_subnet(VpcId=vpc, CidrBlock=cidr, AvailabilityZone=zones[zone])["Subnet"]["SubnetId"]
        for zone, cidr in ranges
    ]
    bare = credentials.create_vpc(CidrBlock="10.33.0.0/16")["Vpc"]["VpcId"]

    asked = answer("", "", "", "", f"{first},{second}", "arn:aws:iam::111122223333:role/MlPlatform", bare, vpc)
    assert init(tmp_path, "--region", REGION) == 0
    printed = capsys.readouterr().out
    assert f"AWS account, or sandbox [{ACCOUNT}]: " in asked
    assert f"  {vpc} 10.32.0.0/16 research\n" in printed
    assert bare not in printed.replace(f"{bare} is none of them", "")
    made = environment(tmp_path, "prod")
    assert (made.account, made.instance_groups["training"].instance_type) == (ACCOUNT, "ml.g5.12xlarge")
    assert made.network.vpc is not None
    assert made.network.vpc.id == vpc
    chosen = made.network.vpc.subnets[first]
    assert (chosen.nodes, chosen.nodes_cidr, chosen.control_plane) == (subnets[0], "10.32.0.0/24", subnets[1])
    assert "podwright preflight prod" in printed


def test_a_vpc_whose_subnets_are_public_is_not_offered(
    tmp_path: Path, answer: Answer, credentials: Any, capsys: Capture
) -> None:
    vpc = credentials.create_vpc(CidrBlock="10.34.0.0/16")["Vpc"]["VpcId"]
    rows = credentials.describe_availability_zones()["AvailabilityZones"][:2]
    for number in range(4):
        zone = rows[number // 2]["ZoneName"]
        credentials.create_subnet(VpcId=vpc, CidrBlock=f"10.34.{number}.0/24", AvailabilityZone=zone)
    gateway = credentials.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    credentials.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    (table,) = credentials.describe_route_tables(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["RouteTables"]
    credentials.create_route(RouteTableId=table["RouteTableId"], DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)
    answer("", "", "", "", ",".join(row["ZoneId"] for row in rows), "nobody", "")
    assert init(tmp_path, "--region", REGION) == 0
    assert vpc not in capsys.readouterr().out
    assert environment(tmp_path, "prod").network.vpc is None


def test_an_end_of_the_answers_is_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """Ctrl-D; the command line takes it for all questions of all commands."""

    def no_more(_: str) -> str:
        raise EOFError

    monkeypatch.setattr("builtins.input", no_more)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    assert init(tmp_path) == 1
    assert capsys.readouterr().err.endswith("a question got no answer, so nothing of what it asked about was done\n")
    assert not list(tmp_path.iterdir())


def test_nobody_is_asked_in_a_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False)
    assert init(tmp_path) == 2
    assert "a confirmation needs a terminal" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
