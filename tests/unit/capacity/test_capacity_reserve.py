import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from capacity_account import ARN, FILE, YES, CapacityAccount, open_account, reserve, settings, types


@pytest.fixture
def capacity_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CapacityAccount:
    return open_account(tmp_path, monkeypatch)


def test_a_plan_is_bought_once_its_name_was_typed_and_the_file_says_so(
    capacity_account: CapacityAccount, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    types(monkeypatch, "h200-q1")
    assert reserve(capacity_account) == 0
    printed = capsys.readouterr()
    assert "costs 442,552.32 USD, charged at once and not given back" in printed.err
    assert f"h200-q1 is bought and Scheduled: {ARN}" in printed.out
    [(arn, offering)] = capacity_account.charges
    assert arn == ARN
    assert offering in printed.out
    plan = capacity_account.environment.training_plans["h200-q1"]
    assert (plan.arn, plan.zone, plan.state) == (ARN, "usw2-az2", "exists")
    assert (plan.start, plan.end) == (
        datetime(2027, 1, 18, 11, 30, tzinfo=UTC),
        datetime(2027, 2, 15, 11, 30, tzinfo=UTC),
    )
    added = set(capacity_account.file.read_text().splitlines()) - set(FILE.splitlines())
    assert {line.split()[0] for line in added} == {"arn:", "paid_usd:", "start:", "end:"}
    assert set(FILE.splitlines()) <= set(capacity_account.file.read_text().splitlines())


@pytest.mark.parametrize("typed", ["", "h200", "yes", "prod-h200-q1"])
def test_without_the_name_nothing_is_bought(
    capacity_account: CapacityAccount, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: str
) -> None:
    types(monkeypatch, *([typed] if typed else []))
    assert reserve(capacity_account) == 1
    assert "nothing was bought" in capsys.readouterr().err
    assert (capacity_account.charges, capacity_account.file.read_text()) == ([], FILE)


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        ((), "a confirmation needs a terminal"),
        (("--yes",), "--yes buys without asking, and needs a limit"),
        (("--max-upfront", "900000"), "a confirmation needs a terminal"),
        (("--yes", "--max-upfront", "0"), "--max-upfront is 0"),
        ((*YES, "--nothing-was-bought"), "--nothing-was-bought is what a person has seen"),
    ],
)
def test_without_a_person_it_needs_yes_and_a_limit(
    capacity_account: CapacityAccount, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], output: str
) -> None:
    capacity_account.markets.clear()
    assert reserve(capacity_account, *arguments) == 2
    assert output in capsys.readouterr().err


def test_yes_and_a_limit_ask_nobody_and_the_lower_limit_holds(
    capacity_account: CapacityAccount, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reserve(capacity_account, "--yes", "--max-upfront", "300000", "--json") == 1
    printed = capsys.readouterr()
    differs = [text for offer in json.loads(printed.out)["nearest"] for text in offer["differs"]]
    assert any(text.startswith("costs ") and text.endswith(" USD, above the limit of 300,000") for text in differs)
    assert "nothing was bought: no offer fits" in printed.err
    assert capacity_account.charges == []
    assert reserve(capacity_account, "--yes", "--max-upfront", "9000000", "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["result"], answer["paid"], answer["upfront"]) == ("bought", True, 442552.32)
    assert answer["plan"] == {
        "arn": ARN,
        # In whole dollars, like the file's limit.
        "paid_usd": "442553",
        "zone": "usw2-az2",
        "start": "2027-01-18T11:30Z",
        "end": "2027-02-15T11:30Z",
    }
    assert len(capacity_account.charges) == 1


def test_a_price_above_the_files_limit_is_refused_before_any_call(
    capacity_account: CapacityAccount, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    capacity_account.file.write_text(FILE.replace("900000", "400000"))
    dear = next(
        offer["TrainingPlanOfferingId"]
        for offer in capacity_account.plans.search_training_plan_offerings(
            InstanceType="ml.p5en.48xlarge",
            InstanceCount=16,
            DurationHours=672,
            TargetResources=["hyperpod-cluster"],
            StartTimeAfter=datetime(2027, 1, 4, tzinfo=UTC),
        )["TrainingPlanOfferings"]
        if offer["UpfrontFee"] == "442552.32"
    )
    types(monkeypatch, "h200-q1")
    assert reserve(capacity_account, "--offering", dear) == 1
    output = capsys.readouterr().err
    assert "costs 442,552.32 USD, above the limit of 400,000" in output
    assert "Type h200-q1" not in output
    assert (capacity_account.charges, capacity_account.dynamodb.tables.items) == ([], {})


def test_a_file_that_cannot_be_written_loses_nothing(
    capacity_account: CapacityAccount, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError(30, "Read-only file system")))
        assert reserve(capacity_account, *YES) == 1
    output = capsys.readouterr().err
    assert ARN in output
    assert "Read-only file system" in output
    assert f"    arn: {ARN}\n    paid_usd: 442553\n    zone: usw2-az2\n    start: 2027-01-18T11:30Z" in output
    assert capacity_account.file.read_text() == FILE
    assert reserve(capacity_account, *YES) == 0
    assert (len(capacity_account.charges), settings(capacity_account)["arn"]) == (1, ARN)


def test_a_split_offer_is_only_bought_by_its_id_and_its_parts_are_written(
    capacity_account: CapacityAccount, capsys: pytest.CaptureFixture[str]
) -> None:
    capacity_account.run("search", "prod", "h200-q1", "--json")
    offers = json.loads(capsys.readouterr().out)["regions"][0]["offers"]
    [split] = [offer["id"] for offer in offers if len(offer["parts"]) > 1]
    assert reserve(capacity_account, *YES, "--offering", split) == 0
    plan = capacity_account.environment.training_plans["h200-q1"]
    assert [(window.count, window.zone) for window in plan.windows] == [(16, "usw2-az2")] * 2
    assert (plan.windows[0].start, plan.windows[1].end) == (plan.start, plan.end)
    assert plan.windows[0].end < plan.windows[1].start


def test_where_only_a_split_offer_fits_it_is_named(
    capacity_account: CapacityAccount, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reserve(capacity_account, "--yes", "--max-upfront", "410000") == 1
    output = capsys.readouterr().err
    assert "the fitting offers have several parts (tpo-" in output
    assert "it has no capacity between its parts" in output


def test_an_offer_in_another_zone_takes_a_person_who_is_told_both_ways(
    capacity_account: CapacityAccount, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = FILE.replace("zone: usw2-az2  #", "zone: usw2-az1  #")
    capacity_account.file.write_text(text.replace("[usw2-az2, usw2-az3]", "[usw2-az1, usw2-az2]"))
    assert reserve(capacity_account, *YES) == 1
    printed = capsys.readouterr()
    assert "is in usw2-az2, not usw2-az1" in printed.out
    other = next(line.split()[1] for line in printed.out.splitlines() if "is in usw2-az2, not usw2-az1" in line)
    assert reserve(capacity_account, *YES, "--offering", other) == 1
    assert "--yes takes only what the file asks for" in capsys.readouterr().err
    types(monkeypatch, "h200-q1")
    assert reserve(capacity_account, "--offering", other) == 0
    output = capsys.readouterr().err
    assert "It differs from the file: it is in usw2-az2, not usw2-az1" in output
    assert "either move there (`zone: usw2-az2` of h200-q1" in output
    assert "or wait for an offer in usw2-az1" in output
    assert settings(capacity_account)["zone"] == "usw2-az2"
    assert "# where the file system is" in capacity_account.file.read_text()


def test_an_offer_that_nobody_makes_is_not_bought(
    capacity_account: CapacityAccount, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reserve(capacity_account, *YES, "--offering", "tpo-gone") == 1
    assert "tpo-gone is not among the offers now" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "code", "output"),
    [
        (FILE.replace("days: 28", "days: 28\n    purchase: true"), 2, "the deployment buys it"),
        (FILE.replace("    days: 28\n", ""), 2, "what shall be searched for?"),
        (FILE.replace("count: 16\n    days", f"count: 16\n    arn: {ARN}\n    days"), 1, f"SageMaker has no {ARN}"),
        (
            FILE.replace("days: 28", "days: 28\n    end_before: 2027-01-10"),
            1,
            "from start_after to end_before there are 6 days, and the plan lasts 28",
        ),
        (FILE.replace("h200-q1:", "other:").replace("h200-q1}", "other}"), 2, "known: other"),
    ],
    ids=["deployment", "incomplete", "gone", "broken rule", "unknown"],
)
def test_what_is_not_for_sale(
    capacity_account: CapacityAccount, capsys: pytest.CaptureFixture[str], text: str, code: int, output: str
) -> None:
    capacity_account.file.write_text(text)
    assert reserve(capacity_account, *YES) == code
    assert output in capsys.readouterr().err
    assert capacity_account.charges == []


def test_ultraservers_are_bought_by_number_with_their_spares(capacity_account: CapacityAccount) -> None:
    kind = "ultraserver_type: ml.u-p6e-gb200x72\n    ultraserver_count: 1\n    spares_per_ultraserver: 2"
    text = FILE.replace("instance_type: ml.p5en.48xlarge\n    count: 16", kind, 1).replace("900000", "9000000")
    capacity_account.file.write_text(text.replace("start_after", "end_before: 2027-03-01\n    start_after"))
    assert reserve(capacity_account, "--yes", "--max-upfront", "9000000") == 0
    [plan] = capacity_account.plans.ledger.plans
    assert (plan.spares, plan.windows[0].ultraservers, plan.windows[0].instances) == (2, 1, 18)
    assert settings(capacity_account)["ultraserver_count"] == "1"


def test_a_plan_of_the_sandbox_never_gets_into_the_file_of_an_account(
    capacity_account: CapacityAccount, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reserve(capacity_account, *YES, "--sandbox") == 0
    assert f"The file stays as it is, because this was the sandbox. It would say: arn {ARN}" in capsys.readouterr().out
    assert capacity_account.run("extend", "prod", "h200-q1", "--duration", "7d", *YES, "--sandbox", "--json") == 0
    assert "file" not in json.loads(capsys.readouterr().out)
    assert (len(capacity_account.charges), capacity_account.file.read_text()) == (2, FILE)


def test_tags_of_the_environment_are_those_of_the_plan(
    capacity_account: CapacityAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}
    sell = capacity_account.plans.create_training_plan
    monkeypatch.setattr(
        capacity_account.plans, "create_training_plan", lambda **request: asked.update(request) or sell(**request)
    )
    capacity_account.file.write_text(f"{FILE}tags: {{cost-center: ai}}\n")
    assert reserve(capacity_account, *YES) == 0
    assert asked["Tags"] == [{"Key": "cost-center", "Value": "ai"}]
    assert asked["TrainingPlanName"] == "prod-h200-q1"
