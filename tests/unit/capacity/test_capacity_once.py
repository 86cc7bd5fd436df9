import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from capacity_account import (
    ARN,
    FILE,
    NOW,
    YES,
    CapacityAccount,
    Terminal,
    fault,
    open_account,
    reserve,
    settings,
    types,
)


@pytest.fixture
def capacity_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CapacityAccount:
    return open_account(tmp_path, monkeypatch)


def bought(capacity_account: CapacityAccount) -> list[str]:
    return [plan.name for plan in capacity_account.plans.ledger.plans]


def test_the_same_command_again_buys_nothing_and_asks_nothing(
    capacity_account: CapacityAccount, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reserve(capacity_account, *YES) == 0
    before = capacity_account.file.read_bytes()
    assert reserve(capacity_account) == 0
    assert "h200-q1 exists and is Scheduled; nothing was bought" in capsys.readouterr().out
    assert (len(capacity_account.charges), capacity_account.file.read_bytes()) == (1, before)
    capacity_account.file.write_text(FILE)
    types(monkeypatch)
    assert reserve(capacity_account) == 0
    assert (len(capacity_account.charges), settings(capacity_account)["arn"]) == (1, ARN)


@pytest.mark.parametrize("kind", ["timeout", "error"])
@pytest.mark.parametrize("duplicates", ["refuse", "allow"])
@pytest.mark.parametrize("stale", [0, 4])
def test_an_answer_that_got_lost_is_found_by_looking(
    capacity_account: CapacityAccount, capsys: pytest.CaptureFixture[str], kind: str, duplicates: Any, stale: int
) -> None:
    capacity_account.plans.ledger.duplicate_names, capacity_account.plans.ledger.stale_lists = duplicates, stale
    fault(capacity_account, "create_training_plan", kind, after=True)
    assert reserve(capacity_account, *YES) == 0
    assert "looking whether it was bought all the same" in capsys.readouterr().err
    assert (len(capacity_account.charges), settings(capacity_account)["arn"]) == (1, ARN)


def test_what_stays_unknown_is_not_bought_again_before_a_person_says_so(
    capacity_account: CapacityAccount, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fault(capacity_account, "create_training_plan", "timeout")
    assert reserve(capacity_account, *YES) == 1
    output = capsys.readouterr().err
    assert "whether prod-h200-q1 was bought is unknown" in output
    assert "--nothing-was-bought" in output
    assert reserve(capacity_account, *YES, "--json") == 1
    assert json.loads(capsys.readouterr().out)["result"] == "unknown"
    assert (capacity_account.charges, capacity_account.file.read_text()) == ([], FILE)
    types(monkeypatch, "no")
    assert reserve(capacity_account, "--nothing-was-bought") == 1
    types(monkeypatch, "h200-q1")
    assert reserve(capacity_account, "--nothing-was-bought") == 0
    assert "do not continue: it would be bought a second time" in capsys.readouterr().err.replace("\n", " ")
    types(monkeypatch, "h200-q1")
    assert reserve(capacity_account, "--nothing-was-bought") == 1
    assert "only what is unknown is closed" in capsys.readouterr().err
    assert reserve(capacity_account, *YES) == 0
    assert (len(capacity_account.charges), settings(capacity_account)["arn"]) == (1, ARN)


def test_a_person_closes_the_purchase_of_a_deployment_too(
    capacity_account: CapacityAccount, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fault(capacity_account, "create_training_plan", "timeout")
    assert reserve(capacity_account, *YES) == 1
    capacity_account.file.write_text(FILE.replace("days: 28", "days: 28\n    purchase: true"))
    assert reserve(capacity_account, *YES) == 2
    types(monkeypatch, "h200-q1")
    assert reserve(capacity_account, "--nothing-was-bought") == 0
    assert "h200-q1: closed; the next purchase may be made" in capsys.readouterr().out
    assert capacity_account.charges == []


def test_what_was_unknown_and_shows_up_later_is_the_plan(
    capacity_account: CapacityAccount, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    capacity_account.plans.ledger.stale_lists = 99
    fault(capacity_account, "create_training_plan", "timeout", after=True)
    assert reserve(capacity_account, *YES) == 1
    capacity_account.plans.ledger.plans[0].unseen = 0
    types(monkeypatch, "h200-q1")
    assert reserve(capacity_account, "--nothing-was-bought") == 1
    output = capsys.readouterr().err
    assert "prod-h200-q1 is bought, by ada" in output
    assert ARN in output
    assert reserve(capacity_account, *YES) == 0
    assert (len(capacity_account.charges), settings(capacity_account)["arn"]) == (1, ARN)


def test_an_offer_that_went_is_a_refusal_and_the_next_run_may_buy(
    capacity_account: CapacityAccount, capsys: pytest.CaptureFixture[str]
) -> None:
    fault(capacity_account, "create_training_plan", "vanish")
    assert reserve(capacity_account, *YES) == 1
    output = capsys.readouterr().err
    assert "prod-h200-q1 was not bought: " in output
    assert "is not available" in output
    assert "run this again for the offers of now" in output
    assert reserve(capacity_account, *YES) == 0
    assert len(capacity_account.charges) == 1


def test_a_payment_that_fails_leaves_the_reason_and_the_next_one_has_a_new_name(
    capacity_account: CapacityAccount, capsys: pytest.CaptureFixture[str]
) -> None:
    capacity_account.plans.ledger.payment_failure = "the card was declined"
    assert reserve(capacity_account, *YES) == 1
    output = capsys.readouterr().err
    assert "has failed: the card was declined" in output
    assert "next generation" in output
    capacity_account.plans.ledger.payment_failure = ""
    assert reserve(capacity_account) == 1
    assert "take `arn` out of h200-q1" in capsys.readouterr().err
    capacity_account.file.write_text(FILE)
    assert reserve(capacity_account, *YES) == 0
    assert bought(capacity_account) == ["prod-h200-q1", "prod-h200-q1-2"]
    assert settings(capacity_account)["arn"] == f"{ARN}-2"


def test_a_plan_of_that_name_that_nobody_recorded_is_not_taken_for_ours(
    capacity_account: CapacityAccount, capsys: pytest.CaptureFixture[str]
) -> None:
    offers = capacity_account.plans.search_training_plan_offerings(
        InstanceType="ml.p5en.48xlarge", InstanceCount=16, TargetResources=["hyperpod-cluster"]
    )
    offering = offers["TrainingPlanOfferings"][0]["TrainingPlanOfferingId"]
    capacity_account.plans.create_training_plan(TrainingPlanName="prod-h200-q1", TrainingPlanOfferingId=offering)
    assert reserve(capacity_account, *YES) == 1
    output = capsys.readouterr().err
    assert "is there already, and not bought under the record" in output
    assert f"`arn: {ARN}` under training_plans.h200-q1 uses it" in output
    assert len(capacity_account.charges) == 1


@pytest.mark.parametrize("parts", [True, False], ids=["seen", "without parts"])
def test_who_buys_while_the_price_is_being_looked_at_is_the_only_one_who_buys(
    capacity_account: CapacityAccount, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], parts: bool
) -> None:
    capacity_account.run("search", "prod", "h200-q1", "--json")
    offers = json.loads(capsys.readouterr().out)["regions"][0]["offers"]
    other = next(offer for offer in reversed(offers) if len(offer["parts"]) == 1)

    class Slow(Terminal):
        def readline(self, size: int = -1) -> str:
            assert reserve(capacity_account, *YES, "--offering", other["id"]) == 0
            capacity_account.file.write_text(FILE)
            if not parts:
                bare = {"TrainingPlanArn": ARN, "TrainingPlanName": "prod-h200-q1", "Status": "Pending"}
                monkeypatch.setattr(capacity_account.plans, "describe_training_plan", lambda **_: bare)
                monkeypatch.setattr(
                    capacity_account.plans, "list_training_plans", lambda **_: {"TrainingPlanSummaries": [bare]}
                )
            return "h200-q1\n"

    monkeypatch.setattr("sys.stdin", Slow())
    assert reserve(capacity_account) == 0
    assert [offering for _, offering in capacity_account.charges] == [other["id"]]
    start = datetime.fromisoformat(other["start"]).strftime("%Y-%m-%dT%H:%MZ")
    assert settings(capacity_account).get("start") == (start if parts else None)


def test_what_is_there_and_differs_from_the_file_by_now_is_said(
    capacity_account: CapacityAccount, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reserve(capacity_account, *YES) == 0
    capacity_account.file.write_text(FILE.replace("count: 16\n    days", "count: 32\n    days"))
    assert reserve(capacity_account, *YES) == 0
    assert "It differs from the request: it has 16 instances, not 32" in capsys.readouterr().err
    assert len(capacity_account.charges) == 1


def test_without_the_record_nothing_is_bought(
    capacity_account: CapacityAccount, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def gone(*_: Any, **__: Any) -> Any:
        raise TimeoutError("no answer")

    monkeypatch.setattr(capacity_account.dynamodb.tables, "put_item", gone)
    assert reserve(capacity_account, *YES) == 1
    assert "could not be written: no answer" in capsys.readouterr().err
    assert (capacity_account.charges, capacity_account.file.read_text()) == ([], FILE)


def test_a_lost_answer_to_an_offer_that_differs_is_found_too(
    capacity_account: CapacityAccount, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    capacity_account.file.write_text(FILE.replace("count: 16\n    days", "count: 200\n    days"))
    capacity_account.run("search", "prod", "h200-q1", "--json")
    nearest = json.loads(capsys.readouterr().out)["regions"][0]["nearest"]
    assert "has 32 instances, not 200" in nearest[0]["differs"]
    fault(capacity_account, "create_training_plan", "error", after=True)
    types(monkeypatch, "h200-q1")
    assert reserve(capacity_account, "--offering", nearest[0]["id"]) == 0
    assert (len(capacity_account.charges), settings(capacity_account)["arn"]) == (1, ARN)


def test_what_sagemaker_does_not_show_yet_comes_from_the_offer_that_was_bought(
    capacity_account: CapacityAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    described = capacity_account.plans.describe_training_plan
    parts = {"ReservedCapacitySummaries": []}
    monkeypatch.setattr(
        capacity_account.plans, "describe_training_plan", lambda **request: described(**request) | parts
    )
    assert reserve(capacity_account, *YES) == 0
    assert settings(capacity_account)["start"] == "2027-01-18T11:30Z"
    first = capacity_account.plans.ledger.offers[capacity_account.charges[0][1]]
    assert first.windows[0].start == capacity_account.environment.training_plans["h200-q1"].start


def test_a_payment_that_takes_long_is_waited_for_and_then_left_to_itself(
    capacity_account: CapacityAccount, capsys: pytest.CaptureFixture[str]
) -> None:
    capacity_account.plans.ledger.payment = timedelta(hours=1)
    assert reserve(capacity_account, *YES) == 0
    assert f"h200-q1 is bought and Pending: {ARN}" in capsys.readouterr().out
    assert 100 < (capacity_account.now - NOW).total_seconds() < 200
    assert settings(capacity_account)["arn"] == ARN
