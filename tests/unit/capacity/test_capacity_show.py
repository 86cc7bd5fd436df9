import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from capacity_account import FILE, NOW, CapacityAccount, open_account
from podwright.sandbox.training_plans.faults import client_error

ARN = "arn:aws:sagemaker:us-west-2:123456789012:training-plan/"
SERVERS = (
    FILE.replace(
        "instance_type: ml.p5en.48xlarge\n    count: 16",
        "ultraserver_type: ml.u-p6e-gb200x72\n    ultraserver_count: 1",
        1,
    )
    .replace("900000", "9000000")
    .replace(
        "h200: {instance_type: ml.p5en.48xlarge, count: 16", "h200: {instance_type: ml.p6e-gb200.36xlarge, count: 17"
    )
)
Show = Callable[..., dict[str, Any]]


@pytest.fixture
def capacity_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CapacityAccount:
    return open_account(tmp_path, monkeypatch)


@pytest.fixture
def show(capacity_account: CapacityAccount, capsys: pytest.CaptureFixture[str]) -> Show:
    """Shows the plans and gives them as data."""

    def run(*arguments: str) -> dict[str, Any]:
        capsys.readouterr()
        assert capacity_account.run("show", "prod", *arguments, "--json") == 0
        return json.loads(capsys.readouterr().out)

    return run


def reserve(capacity_account: CapacityAccount, *arguments: str) -> None:
    assert capacity_account.run("reserve", "prod", "h200-q1", "--yes", "--max-upfront", "9000000", *arguments) == 0


def test_a_plan_that_nobody_bought(
    capacity_account: CapacityAccount, show: Show, capsys: pytest.CaptureFixture[str]
) -> None:
    [plan] = show()["plans"]
    assert (plan["state"], plan["arn"], plan["aws"], plan["record"]) == ("wanted", None, None, None)
    assert plan["groups"] == {"h200": 16}
    capacity_account.run("show", "prod")
    assert "not bought" in capsys.readouterr().out


def test_a_plan_through_its_life(
    capacity_account: CapacityAccount, show: Show, capsys: pytest.CaptureFixture[str]
) -> None:
    reserve(capacity_account)
    [plan] = show("h200-q1")["plans"]
    assert (plan["arn"], plan["aws"]["status"], plan["differs"]) == (f"{ARN}prod-h200-q1", "Scheduled", [])
    assert (plan["record"]["state"], plan["record"]["price"]) == ("bought", "442552.32")
    capacity_account.now = datetime(2027, 1, 20, tzinfo=UTC)
    assert [show()["plans"][0]["aws"][key] for key in ("status", "total", "free")] == ["Active", 16, 16]
    assert capacity_account.run("show", "prod") == 0
    assert "instances in usw2-az2 go at 2027-02-15 11:00Z, in 26.5 days" in capsys.readouterr().out
    capacity_account.now = datetime(2027, 2, 15, 11, 10, tzinfo=UTC)
    capacity_account.run("show", "prod")
    assert "go at 2027-02-15 11:00Z, now" in capsys.readouterr().out
    capacity_account.now = datetime(2027, 3, 1, tzinfo=UTC)
    assert show()["plans"][0]["aws"]["status"] == "Expired"
    capacity_account.run("show", "prod")
    assert "go at" not in capsys.readouterr().out


def test_parts_of_a_split_plan(
    capacity_account: CapacityAccount, show: Show, capsys: pytest.CaptureFixture[str]
) -> None:
    capacity_account.run("search", "prod", "h200-q1", "--json")
    offers = json.loads(capsys.readouterr().out)["regions"][0]["offers"]
    reserve(capacity_account, "--offering", next(offer["id"] for offer in offers if len(offer["parts"]) == 2))
    capacity_account.now = datetime(2027, 1, 19, tzinfo=UTC)
    assert [part["status"] for part in show()["plans"][0]["aws"]["parts"]] == ["Expired", "Scheduled"]
    capsys.readouterr()
    capacity_account.run("show", "prod")
    printed = capsys.readouterr().out
    assert "Parts of h200-q1" in printed
    assert printed.count("instances in usw2-az2 go at") == 1


def test_ultraservers_and_their_health(
    capacity_account: CapacityAccount, show: Show, capsys: pytest.CaptureFixture[str]
) -> None:
    capacity_account.file.write_text(SERVERS)
    reserve(capacity_account)
    assert show()["plans"][0]["ultraservers"] == []
    capacity_account.now = NOW + timedelta(days=20)
    [plan] = show()["plans"]
    [server] = plan["ultraservers"]
    assert (server["type"], server["health"], server["total"], server["spare"]) == ("ml.u-p6e-gb200x72", "OK", 18, 1)
    assert plan["aws"]["ultraservers"] == 1
    capacity_account.run("show", "prod")
    printed = capsys.readouterr().out
    assert "UltraServers of h200-q1" in printed
    assert "18: 17 free, 1 spare" in printed


def test_where_the_file_and_sagemaker_disagree(
    capacity_account: CapacityAccount, show: Show, capsys: pytest.CaptureFixture[str]
) -> None:
    reserve(capacity_account)
    text = (
        capacity_account.file.read_text().replace("zone: usw2-az2  #", "zone: usw2-az3  #").replace("02-15T", "02-16T")
    )
    capacity_account.file.write_text(text)
    assert show()["plans"][0]["differs"] == [
        "is in usw2-az2, not usw2-az3",
        "has its end at 2027-02-15T11:30Z, not 2027-02-16T11:30Z",
    ]
    capacity_account.run("show", "prod")
    assert "h200-q1: the plan is in usw2-az2, not usw2-az3 as the file says" in capsys.readouterr().out
    assert capacity_account.run("reserve", "prod", "h200-q1") == 0
    assert show()["plans"][0]["differs"] == []


def test_an_arn_that_is_not_there(
    capacity_account: CapacityAccount, show: Show, capsys: pytest.CaptureFixture[str]
) -> None:
    capacity_account.file.write_text(FILE.replace("    days:", f"    arn: {ARN}lost\n    days:"))
    assert show()["plans"][0]["aws"] is None
    capacity_account.run("show", "prod")
    assert f"SageMaker has no {ARN}lost in this region" in capsys.readouterr().out


def test_every_other_plan_of_the_account(
    capacity_account: CapacityAccount, show: Show, capsys: pytest.CaptureFixture[str]
) -> None:
    reserve(capacity_account)
    for number in range(3):
        offers = capacity_account.plans.search_training_plan_offerings(InstanceType="ml.p5.48xlarge", InstanceCount=2)
        offering = offers["TrainingPlanOfferings"][number]["TrainingPlanOfferingId"]
        capacity_account.plans.create_training_plan(
            TrainingPlanName=f"theirs-{number}", TrainingPlanOfferingId=offering
        )
    actual = show()
    assert {plan["name"] for plan in actual["others"]} == {"theirs-0", "theirs-1", "theirs-2"}
    assert actual["others"][0]["targets"] == ["training-job"]
    assert show("h200-q1")["others"] == []
    capacity_account.run("show", "prod")
    assert "Other training plans in us-west-2" in capsys.readouterr().out


def test_all_pages_are_read(capacity_account: CapacityAccount, show: Show, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = {"": ({"TrainingPlanSummaries": [], "NextToken": "more"}), "more": {"TrainingPlanSummaries": []}}
    asked: list[str] = []
    monkeypatch.setattr(
        capacity_account.plans,
        "list_training_plans",
        lambda NextToken="", **_: asked.append(NextToken) or pages[NextToken],
    )
    show()
    assert asked == ["", "more"]


def test_a_record_that_may_not_be_read_is_said_and_hides_nothing_else(
    capacity_account: CapacityAccount, show: Show, capsys: pytest.CaptureFixture[str]
) -> None:
    reserve(capacity_account)

    class Closed:
        def get_item(self, **_: Any) -> Any:
            raise client_error("get_item", "AccessDeniedException", "no")

    capacity_account.dynamodb = Closed()
    [plan] = show()["plans"]
    assert plan["aws"]["status"] == "Scheduled"
    assert "AccessDeniedException" in plan["problem"]
    capacity_account.run("show", "prod")
    assert "h200-q1: the record of purchases cannot be read" in capsys.readouterr().out


def test_a_purchase_whose_outcome_is_unknown_shows(
    capacity_account: CapacityAccount, capsys: pytest.CaptureFixture[str]
) -> None:
    from podwright.sandbox.training_plans.faults import Fault

    capacity_account.plans.faults.append(Fault("create_training_plan", "timeout"))
    capacity_account.run("reserve", "prod", "h200-q1", "--yes", "--max-upfront", "900000")
    capsys.readouterr()
    assert capacity_account.run("show", "prod") == 0
    assert "h200-q1: purchase unknown at 2027-01-01T09:00:33+00:00, offering tpo-" in capsys.readouterr().out


def test_nothing_to_show(capacity_account: CapacityAccount, capsys: pytest.CaptureFixture[str]) -> None:
    without = (
        FILE.partition("training_plans:")[0] + "instance_groups:\n  system: {instance_type: ml.m5.4xlarge, count: 2}\n"
    )
    capacity_account.file.write_text(without)
    assert capacity_account.run("show", "prod") == 0
    assert "prod has no training plan, nor has the account in us-west-2" in capsys.readouterr().out


def test_a_plan_that_the_file_does_not_have_is_2(
    capacity_account: CapacityAccount, capsys: pytest.CaptureFixture[str]
) -> None:
    assert capacity_account.run("show", "prod", "other") == 2
    assert "known: h200-q1" in capsys.readouterr().err
