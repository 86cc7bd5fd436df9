import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from capacity_account import FILE, CapacityAccount, open_account, types
from podwright.operations.capacity.extend import Extension
from podwright.sandbox.training_plans.faults import Fault

YES = ("--yes", "--max-upfront", "200000")


@pytest.fixture
def capacity_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> CapacityAccount:
    """With the plan bought; it ends on 2027-02-15 at 11:30."""
    capacity_account = open_account(tmp_path, monkeypatch)
    assert capacity_account.run("reserve", "prod", "h200-q1", "--yes", "--max-upfront", "900000") == 0
    capsys.readouterr()
    return capacity_account


def extend(capacity_account: CapacityAccount, *arguments: str) -> int:
    return capacity_account.run("extend", "prod", "h200-q1", *arguments)


def ends(capacity_account: CapacityAccount) -> datetime | None:
    return capacity_account.environment.training_plans["h200-q1"].end


def test_without_a_choice_the_offers_are_listed(
    capacity_account: CapacityAccount, capsys: pytest.CaptureFixture[str]
) -> None:
    assert extend(capacity_account, "--json") == 0
    offers = json.loads(capsys.readouterr().out)["offers"]
    assert [offer["hours"] for offer in offers] == [24, 168, 336, 672]
    assert all(offer["per_instance_hour"] == 42 for offer in offers)
    assert {offer["start"] for offer in offers} == {"2027-02-15T11:30:00+00:00"}
    assert extend(capacity_account) == 0
    assert "`podwright capacity extend prod h200-q1 --duration Nd` buys one" in capsys.readouterr().out
    assert len(capacity_account.charges) == 1


def test_more_days_are_bought_and_the_new_end_is_written(
    capacity_account: CapacityAccount, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = capacity_account.file.read_text()
    types(monkeypatch, "h200-q1")
    assert extend(capacity_account, "--duration", "7d") == 0
    printed = capsys.readouterr()
    assert "h200-q1 until 2027-02-22 11:30Z" in printed.err
    assert "costs 112,896.00 USD" in printed.err
    assert "now ends at 2027-02-22 11:30Z; deploy, so that its reminders move along" in printed.out
    assert len(capacity_account.charges) == 2
    assert capacity_account.file.read_text() == before.replace("2027-02-15T11:30Z", "2027-02-22T11:30Z")


@pytest.mark.parametrize("typed", ["", "h200-q", "prod"])
def test_without_the_name_nothing_is_extended(
    capacity_account: CapacityAccount, monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    types(monkeypatch, *([typed] if typed else []))
    assert extend(capacity_account, "--duration", "7d") == 1
    assert len(capacity_account.charges) == 1


def test_a_second_extension_follows_the_first(capacity_account: CapacityAccount) -> None:
    assert extend(capacity_account, "--duration", "7d", *YES) == 0
    assert extend(capacity_account, "--duration", "1d", *YES) == 0
    assert len(capacity_account.charges) == 3
    assert ends(capacity_account) == datetime(2027, 2, 23, 11, 30, tzinfo=UTC)


@pytest.mark.parametrize("says", ["", "    end: 2027-02-15T11:30Z\n"], ids=["no end", "the old end"])
def test_an_extension_that_the_file_lacks_is_written_and_no_other_bought(
    capacity_account: CapacityAccount, capsys: pytest.CaptureFixture[str], says: str
) -> None:
    """As after a purchase whose end could not be written: the same command again must not buy the week after it."""
    assert extend(capacity_account, "--duration", "7d", *YES) == 0
    capacity_account.file.write_text(capacity_account.file.read_text().replace("    end: 2027-02-22T11:30Z\n", says))
    capsys.readouterr()
    assert extend(capacity_account, "--duration", "7d", *YES) == 0
    assert "ends at 2027-02-22 11:30Z already, later than the file says; nothing was bought" in capsys.readouterr().out
    assert len(capacity_account.charges) == 2
    assert ends(capacity_account) == datetime(2027, 2, 22, 11, 30, tzinfo=UTC)
    assert extend(capacity_account, "--duration", "7d", *YES) == 0
    assert len(capacity_account.charges) == 3


@pytest.mark.parametrize("kind", ["timeout", "error"])
@pytest.mark.parametrize("duplicates", ["refuse", "allow"])
def test_an_answer_that_got_lost_is_found_in_the_history(
    capacity_account: CapacityAccount, capsys: pytest.CaptureFixture[str], kind: Any, duplicates: Any
) -> None:
    capacity_account.plans.ledger.duplicate_names = duplicates
    capacity_account.plans.faults.append(Fault("extend_training_plan", kind, after=True))
    assert extend(capacity_account, "--duration", "7d", *YES) == 0
    assert len(capacity_account.charges) == 2
    assert ends(capacity_account) == datetime(2027, 2, 22, 11, 30, tzinfo=UTC)


def test_what_stays_unknown_is_closed_by_a_person(
    capacity_account: CapacityAccount, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    capacity_account.plans.faults.append(Fault("extend_training_plan", "timeout"))
    assert extend(capacity_account, "--duration", "7d", *YES) == 1
    assert "is unknown" in capsys.readouterr().err
    assert extend(capacity_account, "--duration", "7d", *YES, "--json") == 1
    assert json.loads(capsys.readouterr().out)["result"] == "unknown"
    assert len(capacity_account.charges) == 1
    types(monkeypatch, "h200-q1")
    assert extend(capacity_account, "--nothing-was-bought") == 0
    assert extend(capacity_account, "--duration", "7d", *YES) == 0
    assert len(capacity_account.charges) == 2


@pytest.mark.parametrize("late", [0, 5], ids=["to the minute", "later"])
def test_an_unknown_extension_is_found_again_by_its_start(
    capacity_account: CapacityAccount, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], late: int
) -> None:
    """Whether an extension starts at the very end of the plan, no source says."""
    offered = capacity_account.plans.search_training_plan_offerings

    def shifted(**request: Any) -> Any:
        answer = offered(**request)
        for offer in answer["TrainingPlanExtensionOfferings"]:
            offer["StartDate"] += timedelta(minutes=late)
        return answer

    monkeypatch.setattr(capacity_account.plans, "search_training_plan_offerings", shifted)
    capacity_account.plans.faults.append(Fault("extend_training_plan", "timeout"))
    assert extend(capacity_account, "--duration", "7d", *YES) == 1
    types(monkeypatch)
    assert extend(capacity_account, "--duration", "14d") == 1
    assert "Type h200-q1" not in capsys.readouterr().err
    types(monkeypatch, "h200-q1")
    assert extend(capacity_account, "--nothing-was-bought") == 0
    assert extend(capacity_account, "--duration", "7d", *YES) == 0
    assert len(capacity_account.charges) == 2


def test_a_price_above_the_limit_is_refused_before_the_call(
    capacity_account: CapacityAccount, capsys: pytest.CaptureFixture[str]
) -> None:
    assert extend(capacity_account, "--duration", "7d", "--yes", "--max-upfront", "100000") == 1
    assert "costs 112,896.00 USD, above the limit of 100,000" in capsys.readouterr().err
    assert len(capacity_account.charges) == 1


def test_a_length_that_is_not_offered_names_those_that_are(
    capacity_account: CapacityAccount, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    offered = capacity_account.plans.search_training_plan_offerings
    monkeypatch.setattr(
        capacity_account.plans,
        "search_training_plan_offerings",
        # Whether offers of other lengths are left out, no source says.
        lambda **request: offered(TrainingPlanArn=request["TrainingPlanArn"]),
    )
    assert extend(capacity_account, "--duration", "3d", *YES) == 1
    printed = capsys.readouterr()
    assert "no extension of 3 days is offered" in printed.err
    assert "2027-02-22 11:30" in printed.out
    monkeypatch.setattr(
        capacity_account.plans, "search_training_plan_offerings", lambda **_: {"TrainingPlanOfferings": []}
    )
    assert extend(capacity_account) == 0
    assert "SageMaker offers no extension of h200-q1 now" in capsys.readouterr().out


def test_a_payment_that_takes_long_is_no_reason_to_buy_or_to_ask_again(
    capacity_account: CapacityAccount, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    capacity_account.plans.ledger.payment = timedelta(hours=1)
    assert extend(capacity_account, "--duration", "7d", *YES) == 1
    assert "is bought, and SageMaker does not show the new end yet" in capsys.readouterr().err
    types(monkeypatch)
    assert extend(capacity_account, "--duration", "7d") == 1
    assert "Type h200-q1" not in capsys.readouterr().err
    assert len(capacity_account.charges) == 2
    capacity_account.now += timedelta(hours=1)
    assert capacity_account.run("reserve", "prod", "h200-q1") == 0
    assert ends(capacity_account) == datetime(2027, 2, 22, 11, 30, tzinfo=UTC)


def test_an_offer_by_its_id(capacity_account: CapacityAccount, capsys: pytest.CaptureFixture[str]) -> None:
    extend(capacity_account, "--json")
    offers = json.loads(capsys.readouterr().out)["offers"]
    assert extend(capacity_account, "--offering", "tpeo-none", *YES) == 1
    assert "tpeo-none is not among the offers now" in capsys.readouterr().err
    assert extend(capacity_account, "--offering", offers[0]["id"], *YES) == 0
    assert ends(capacity_account) == datetime(2027, 2, 16, 11, 30, tzinfo=UTC)


def test_a_plan_that_is_not_there_or_over_is_not_extended(
    capacity_account: CapacityAccount, capsys: pytest.CaptureFixture[str]
) -> None:
    capacity_account.now = datetime(2027, 3, 1, tzinfo=UTC)
    assert extend(capacity_account, "--duration", "7d", *YES) == 1
    assert "h200-q1 is Expired; only a plan that is Scheduled or Active can be extended" in capsys.readouterr().err
    capacity_account.file.write_text(capacity_account.file.read_text().replace("plan/prod-h200-q1", "plan/prod-lost"))
    assert extend(capacity_account, "--duration", "7d", *YES) == 1
    assert "SageMaker has no " in capsys.readouterr().err
    capacity_account.dynamodb.tables.items.clear()
    capacity_account.file.write_text(FILE)
    assert extend(capacity_account, "--duration", "7d", *YES) == 1
    assert "h200-q1 is not bought yet" in capsys.readouterr().err


def test_a_plan_of_the_deployment_is_extended_and_its_file_says_until_when(
    capacity_account: CapacityAccount, capsys: pytest.CaptureFixture[str]
) -> None:
    text = FILE.replace("days: 28", "days: 28\n    purchase: true")
    capacity_account.file.write_text(text)
    assert extend(capacity_account, "--duration", "7d", *YES) == 0
    assert "now ends at 2027-02-22 11:30Z" in capsys.readouterr().out
    assert capacity_account.file.read_text().replace("    end: 2027-02-22T11:30Z\n", "") == text
    assert capacity_account.environment.training_plans["h200-q1"].state == "purchase"
    assert len(capacity_account.charges) == 2


def test_the_last_part_of_a_split_plan_grows(
    capacity_account: CapacityAccount, capsys: pytest.CaptureFixture[str]
) -> None:
    capacity_account.file.write_text(FILE.replace("h200-q1", "split"))
    capacity_account.run("search", "prod", "split", "--json")
    offers = json.loads(capsys.readouterr().out)["regions"][0]["offers"]
    split = next(offer["id"] for offer in offers if len(offer["parts"]) == 2)
    assert (
        capacity_account.run("reserve", "prod", "split", "--offering", split, "--yes", "--max-upfront", "900000") == 0
    )
    before = capacity_account.environment.training_plans["split"]
    assert capacity_account.run("extend", "prod", "split", "--duration", "1d", *YES) == 0
    after = capacity_account.environment.training_plans["split"]
    assert after.windows[0] == before.windows[0]
    assert (after.windows[1].end - before.windows[1].end).days == 1
    assert after.end == after.windows[1].end


def test_a_price_that_is_unknown_has_no_hourly_one() -> None:
    shape = {"TrainingPlanExtensionOfferingId": "x", "StartDate": datetime(2027, 1, 1, tzinfo=UTC)}
    offer = Extension.of(shape | {"EndDate": datetime(2027, 1, 2, tzinfo=UTC)})
    assert (offer.fee, offer.per_instance_hour(16)) == (None, None)


def test_nobody_is_asked_without_a_terminal(
    capacity_account: CapacityAccount, capsys: pytest.CaptureFixture[str]
) -> None:
    assert extend(capacity_account, "--duration", "7d") == 2
    assert "a confirmation needs a terminal" in capsys.readouterr().err
