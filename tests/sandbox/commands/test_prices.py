"""`podwright prices fetch` with boto3's client: what AWS lists goes into the file, and nothing that it leaves open."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from podwright.config.catalog import prices
from podwright.config.catalog.sandbox_account import SANDBOX_ACCOUNT
from podwright.config.loading.load import load_environment
from podwright.operations import cli
from podwright.operations.aws.account import Account
from podwright.operations.aws.sandbox_server import Running

FILE = """\
account: "123456789012"
region: us-east-1  # the cheapest
network: {zones: [use1-az1, use1-az2]}
storage:
  lustre: {zone: use1-az1, capacity_gib: 1200, throughput: 125}
  home: {openzfs: {zone: use1-az1}}
instance_groups:
  system: {instance_type: ml.m5.4xlarge, count: 2}
  g5: {instance_type: ml.g5.8xlarge, count: 1}
  spot: {instance_type: ml.p5.48xlarge, count: 1, capacity: spot}
"""
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The environment's file in a project."""
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments/pilot.yaml").write_text(FILE)
    return tmp_path / "environments/pilot.yaml"


@pytest.fixture
def fetch(sandbox: Running, file: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs the command in that project against this sandbox."""
    account = Account(SANDBOX_ACCOUNT, "us-east-1", sandbox.endpoint, {})
    monkeypatch.setattr("podwright.operations.arguments.account_of", lambda *_: account)
    return lambda *arguments: cli.main(["prices", "fetch", "pilot", *arguments, "--project", str(file.parents[1])])


def test_prices_with_their_day_go_into_the_file(fetch: Callable[..., int], file: Path, capsys: Capture) -> None:
    assert fetch("--dry-run") == 1
    assert file.read_text() == FILE
    assert "would get 4 prices" in capsys.readouterr().out

    assert fetch() == 1
    output, asked = capsys.readouterr()
    assert "asking AWS for the price of nat_gateway" in asked
    assert "kms_key" not in output
    assert "which product of the price list it is, no source says" in output
    assert "the price list has no such product in the region" in output
    written = load_environment(file).environment
    assert {name: own.usd for name, own in written.prices.items()} == {
        "interface_endpoint": 0.01,
        "lustre_ssd_125": 0.145,
        "ml.g5.8xlarge": 3.06,
        "nat_gateway": 0.045,
    }
    assert str(written.prices["nat_gateway"].as_of) == "2026-06-01"
    assert written.own_prices["nat_gateway"].source == "AWS Price List, 2026-06-01"
    lines = file.read_text().splitlines()
    assert "region: us-east-1  # the cheapest" in lines
    assert "  nat_gateway: {usd: 0.045, as_of: 2026-06-01}" in lines

    before = file.read_text()
    assert fetch("--json") == 1
    answer = json.loads(capsys.readouterr().out)
    assert (answer["written"], file.read_text()) == ([], before)
    assert "ml.p5.48xlarge" not in [row["name"] for row in answer["prices"]]


def test_a_price_of_ones_own_stays_and_an_older_one_is_renewed(fetch: Callable[..., int], file: Path) -> None:
    own = "prices:\n  ml.g5.8xlarge: 2  # negotiated\n  nat_gateway: {usd: 0.1, as_of: 2025-01-01}\n"
    file.write_text(FILE + own)
    fetch()
    assert "  ml.g5.8xlarge: 2  # negotiated\n" in file.read_text()
    assert load_environment(file).environment.prices["nat_gateway"].usd == 0.045


def test_products_of_several_prices_leave_it_unknown(
    fetch: Callable[..., int], file: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a product of another kind fits the same attributes: no price is better than a wrong one."""
    several = prices.PriceProduct("nat_gateway", "AmazonEC2", {"operatingSystem": "Linux"}, "")
    monkeypatch.setitem(prices.price_products(), "nat_gateway", several)
    assert fetch() == 1
    assert "prices fit, from $" in capsys.readouterr().out
    assert "nat_gateway" not in load_environment(file).environment.prices


def test_a_file_that_cannot_take_prices_says_what_to_write(
    fetch: Callable[..., int], file: Path, capsys: Capture
) -> None:
    file.write_text(FILE + "user_groups: &none {}\nprices: *none\n")
    assert fetch() == 1
    assert "nat_gateway: {usd: 0.045, as_of: 2026-06-01}" in capsys.readouterr().err
