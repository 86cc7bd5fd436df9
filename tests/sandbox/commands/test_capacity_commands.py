"""`podwright capacity` with boto3's own clients: what is bought is bought once, and the file says so."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from podwright.config.catalog.sandbox_account import SANDBOX_ACCOUNT
from podwright.config.loading.load import load_environment
from podwright.operations import cli
from podwright.operations.aws.account import Account
from podwright.operations.aws.sandbox_server import Running
from podwright.operations.capacity import purchase
from sandbox_stacks import turn

# A region of their own: the time of its plans, and what is for sale, is nobody else's.
REGION = "eu-west-1"
FILE = """\
account: "123456789012"
region: eu-west-1
network: {zones: [euw1-az1, euw1-az2]}
training_plans:
  trainium: {zone: euw1-az1, instance_type: ml.trn1.32xlarge, count: 4, days: 14}  # the pilot
instance_groups:
  system: {instance_type: ml.m5.4xlarge, count: 2}
"""


@pytest.fixture
def controls(sandbox: Running) -> Callable[..., dict[str, Any]]:
    """Turns the sandbox's controls of training plans, and gives what it holds then."""

    return lambda **changes: turn(sandbox.endpoint, "training-plans", {"region": REGION, **changes})


@pytest.fixture
def capacity(sandbox: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs `podwright capacity` in a project of this sandbox; pauses are short."""
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments/pilot.yaml").write_text(FILE)
    account = Account(SANDBOX_ACCOUNT, REGION, sandbox.endpoint, {})
    monkeypatch.setattr("podwright.operations.arguments.account_of", lambda *_: account)
    actual = purchase.Buyer.of

    def quick(*arguments: Any) -> purchase.Buyer:
        return replace(actual(*arguments), sleep=lambda seconds: time.sleep(seconds / 50))

    monkeypatch.setattr(purchase.Buyer, "of", quick)
    return lambda *arguments: cli.main(["capacity", *arguments, "--project", str(tmp_path)])


def test_a_plan_is_searched_for_bought_once_shown_and_extended(
    capacity: Callable[..., int],
    controls: Callable[..., dict[str, Any]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    controls(payment_seconds=0.2)
    assert capacity("search", "pilot", "trainium", "--json") == 0
    [region] = json.loads(capsys.readouterr().out)["regions"]
    assert {part["zone"] for offer in region["offers"] for part in offer["parts"]} == {"euw1-az1"}
    # The call goes through and its answer gets lost: boto3 must not send it again.
    controls(faults=[{"operation": "create_training_plan", "kind": "error", "after": True}])
    assert capacity("reserve", "pilot", "trainium", "--yes", "--max-upfront", "100000", "--json") == 0
    bought = json.loads(capsys.readouterr().out)
    assert (bought["result"], len(controls()["charges"])) == ("bought", 1)
    file = tmp_path / "environments/pilot.yaml"
    plan = load_environment(file).environment.training_plans["trainium"]
    assert (plan.arn, plan.zone) == (bought["plan"]["arn"], "euw1-az1")
    assert "# the pilot" in file.read_text()
    assert capacity("extend", "pilot", "trainium", "--duration", "7d", "--yes", "--max-upfront", "100000") == 0
    capsys.readouterr()
    assert capacity("show", "pilot", "--json") == 0
    [shown] = json.loads(capsys.readouterr().out)["plans"]
    assert (shown["aws"]["status"], shown["differs"]) == ("Scheduled", [])
    assert (shown["record"]["state"], len(shown["extensions"])) == ("bought", 1)
    assert shown["record"]["buyer"].startswith("arn:aws:")
    file.write_text(FILE)
    assert capacity("reserve", "pilot", "trainium", "--yes", "--max-upfront", "100000") == 0
    assert len(controls()["charges"]) == 2
    assert load_environment(file).environment.training_plans["trainium"].arn == plan.arn
