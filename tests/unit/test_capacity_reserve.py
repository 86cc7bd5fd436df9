import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from capacity_world import FILE, NOW, Terminal, World, open_world, types
from podwright.config.source import parse_source
from podwright.operations.sandbox.training_plan_faults import Fault

ARN = "arn:aws:sagemaker:us-west-2:123456789012:training-plan/prod-h200-q1"
YES = ("--yes", "--max-upfront", "900000")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return open_world(tmp_path, monkeypatch)


def reserve(world: World, *arguments: str) -> int:
    return world.run("reserve", "prod", "h200-q1", *arguments)


def fault(world: World, operation: str, kind: Any, **more: Any) -> None:
    world.plans.faults.append(Fault(operation, kind, **more))


def bought(world: World) -> list[str]:
    return [plan.name for plan in world.plans.ledger.plans]


def settings(world: World) -> dict[str, Any]:
    return parse_source(world.file.read_text(), "file").data["training_plans"]["h200-q1"]


def test_a_plan_is_bought_once_its_name_was_typed_and_the_file_says_so(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    types(monkeypatch, "h200-q1")
    assert reserve(world) == 0
    printed = capsys.readouterr()
    assert "costs 442,552.32 USD, charged at once and not given back" in printed.err
    assert f"h200-q1 is bought and Scheduled: {ARN}" in printed.out
    [(arn, offering)] = world.charges
    assert arn == ARN
    assert offering in printed.out
    plan = world.environment.training_plans["h200-q1"]
    assert (plan.arn, plan.zone, plan.state) == (ARN, "usw2-az2", "exists")
    assert (plan.start, plan.end) == (
        datetime(2027, 1, 18, 11, 30, tzinfo=UTC),
        datetime(2027, 2, 15, 11, 30, tzinfo=UTC),
    )
    added = set(world.file.read_text().splitlines()) - set(FILE.splitlines())
    assert {line.split()[0] for line in added} == {"arn:", "start:", "end:"}
    assert set(FILE.splitlines()) <= set(world.file.read_text().splitlines())


@pytest.mark.parametrize("typed", ["", "h200", "yes", "prod-h200-q1"])
def test_without_the_name_nothing_is_bought(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: str
) -> None:
    types(monkeypatch, *([typed] if typed else []))
    assert reserve(world) == 1
    assert "nothing was bought" in capsys.readouterr().err
    assert (world.charges, world.file.read_text()) == ([], FILE)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "nobody can be asked here"),
        (("--yes",), "--yes buys without asking, and needs a limit"),
        (("--max-upfront", "900000"), "nobody can be asked here"),
        (("--yes", "--max-upfront", "0"), "--max-upfront is 0"),
        ((*YES, "--nothing-was-bought"), "--nothing-was-bought is what a person has seen"),
    ],
)
def test_without_a_person_it_needs_yes_and_a_limit(
    world: World, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    world.markets.clear()
    assert reserve(world, *arguments) == 2
    assert said in capsys.readouterr().err


def test_yes_and_a_limit_ask_nobody_and_the_lower_limit_holds(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert reserve(world, "--yes", "--max-upfront", "300000", "--json") == 1
    printed = capsys.readouterr()
    differs = [text for offer in json.loads(printed.out)["nearest"] for text in offer["differs"]]
    assert any(text.startswith("costs ") and text.endswith(" USD, above the limit of 300,000") for text in differs)
    assert "nothing was bought: no offer fits" in printed.err
    assert world.charges == []
    assert reserve(world, "--yes", "--max-upfront", "9000000", "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["result"], answer["paid"], answer["upfront"]) == ("bought", True, 442552.32)
    assert answer["plan"] == {"arn": ARN, "zone": "usw2-az2", "start": "2027-01-18T11:30Z", "end": "2027-02-15T11:30Z"}
    assert len(world.charges) == 1


def test_a_price_above_the_files_limit_is_refused_before_any_call(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    world.file.write_text(FILE.replace("900000", "400000"))
    dear = next(
        offer["TrainingPlanOfferingId"]
        for offer in world.plans.search_training_plan_offerings(
            InstanceType="ml.p5en.48xlarge",
            InstanceCount=16,
            DurationHours=672,
            TargetResources=["hyperpod-cluster"],
            StartTimeAfter=datetime(2027, 1, 4, tzinfo=UTC),
        )["TrainingPlanOfferings"]
        if offer["UpfrontFee"] == "442552.32"
    )
    types(monkeypatch, "h200-q1")
    assert reserve(world, "--offering", dear) == 1
    said = capsys.readouterr().err
    assert "costs 442,552.32 USD, above the limit of 400,000" in said
    assert "Type h200-q1" not in said
    assert (world.charges, world.dynamodb.tables.items) == ([], {})


def test_the_same_command_again_buys_nothing_and_asks_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reserve(world, *YES) == 0
    before = world.file.read_bytes()
    assert reserve(world) == 0
    assert "h200-q1 exists and is Scheduled; nothing was bought" in capsys.readouterr().out
    assert (len(world.charges), world.file.read_bytes()) == (1, before)
    world.file.write_text(FILE)
    types(monkeypatch)
    assert reserve(world) == 0
    assert (len(world.charges), settings(world)["arn"]) == (1, ARN)


def test_a_file_that_cannot_be_written_loses_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError(30, "Read-only file system")))
        assert reserve(world, *YES) == 1
    said = capsys.readouterr().err
    assert ARN in said
    assert "Read-only file system" in said
    assert f"    arn: {ARN}\n    zone: usw2-az2\n    start: 2027-01-18T11:30Z" in said
    assert world.file.read_text() == FILE
    assert reserve(world, *YES) == 0
    assert (len(world.charges), settings(world)["arn"]) == (1, ARN)


@pytest.mark.parametrize("kind", ["timeout", "error"])
@pytest.mark.parametrize("duplicates", ["refuse", "allow"])
@pytest.mark.parametrize("stale", [0, 4])
def test_an_answer_that_got_lost_is_found_by_looking(
    world: World, capsys: pytest.CaptureFixture[str], kind: str, duplicates: Any, stale: int
) -> None:
    world.plans.ledger.duplicate_names, world.plans.ledger.stale_lists = duplicates, stale
    fault(world, "create_training_plan", kind, after=True)
    assert reserve(world, *YES) == 0
    assert "looking whether it was bought all the same" in capsys.readouterr().err
    assert (len(world.charges), settings(world)["arn"]) == (1, ARN)


def test_what_stays_unknown_is_not_bought_again_before_a_person_says_so(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fault(world, "create_training_plan", "timeout")
    assert reserve(world, *YES) == 1
    said = capsys.readouterr().err
    assert "whether prod-h200-q1 was bought is unknown" in said
    assert "--nothing-was-bought" in said
    assert reserve(world, *YES, "--json") == 1
    assert json.loads(capsys.readouterr().out)["result"] == "unknown"
    assert (world.charges, world.file.read_text()) == ([], FILE)
    types(monkeypatch, "no")
    assert reserve(world, "--nothing-was-bought") == 1
    types(monkeypatch, "h200-q1")
    assert reserve(world, "--nothing-was-bought") == 0
    assert "do not go on: it would be bought a second time" in capsys.readouterr().err.replace("\n", " ")
    types(monkeypatch, "h200-q1")
    assert reserve(world, "--nothing-was-bought") == 1
    assert "only what is unknown is closed" in capsys.readouterr().err
    assert reserve(world, *YES) == 0
    assert (len(world.charges), settings(world)["arn"]) == (1, ARN)


def test_a_person_closes_the_purchase_of_a_deployment_too(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fault(world, "create_training_plan", "timeout")
    assert reserve(world, *YES) == 1
    world.file.write_text(FILE.replace("days: 28", "days: 28\n    purchase: true"))
    assert reserve(world, *YES) == 2
    types(monkeypatch, "h200-q1")
    assert reserve(world, "--nothing-was-bought") == 0
    assert "h200-q1: closed; the next purchase may be made" in capsys.readouterr().out
    assert world.charges == []


def test_what_was_unknown_and_shows_up_later_is_the_plan(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    world.plans.ledger.stale_lists = 99
    fault(world, "create_training_plan", "timeout", after=True)
    assert reserve(world, *YES) == 1
    world.plans.ledger.plans[0].unseen = 0
    types(monkeypatch, "h200-q1")
    assert reserve(world, "--nothing-was-bought") == 1
    said = capsys.readouterr().err
    assert "prod-h200-q1 is bought, by ada" in said
    assert ARN in said
    assert reserve(world, *YES) == 0
    assert (len(world.charges), settings(world)["arn"]) == (1, ARN)


def test_an_offer_that_went_is_a_refusal_and_the_next_run_may_buy(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    fault(world, "create_training_plan", "vanish")
    assert reserve(world, *YES) == 1
    said = capsys.readouterr().err
    assert "prod-h200-q1 was not bought: " in said
    assert "is not available" in said
    assert "run this again for the offers of now" in said
    assert reserve(world, *YES) == 0
    assert len(world.charges) == 1


def test_a_payment_that_fails_leaves_the_reason_and_the_next_one_has_a_new_name(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.plans.ledger.payment_failure = "the card was declined"
    assert reserve(world, *YES) == 1
    said = capsys.readouterr().err
    assert "has failed: the card was declined" in said
    assert "next generation" in said
    world.plans.ledger.payment_failure = ""
    assert reserve(world) == 1
    assert "take `arn` out of h200-q1" in capsys.readouterr().err
    world.file.write_text(FILE)
    assert reserve(world, *YES) == 0
    assert bought(world) == ["prod-h200-q1", "prod-h200-q1-2"]
    assert settings(world)["arn"] == f"{ARN}-2"


def test_a_plan_of_that_name_that_nobody_recorded_is_not_taken_for_ours(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    offers = world.plans.search_training_plan_offerings(
        InstanceType="ml.p5en.48xlarge", InstanceCount=16, TargetResources=["hyperpod-cluster"]
    )
    offering = offers["TrainingPlanOfferings"][0]["TrainingPlanOfferingId"]
    world.plans.create_training_plan(TrainingPlanName="prod-h200-q1", TrainingPlanOfferingId=offering)
    assert reserve(world, *YES) == 1
    said = capsys.readouterr().err
    assert "is there already, and not bought under the record" in said
    assert f"`arn: {ARN}` under training_plans.h200-q1 uses it" in said
    assert len(world.charges) == 1


@pytest.mark.parametrize("parts", [True, False], ids=["seen", "without parts"])
def test_who_buys_while_the_price_is_being_looked_at_is_the_only_one_who_buys(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], parts: bool
) -> None:
    world.run("search", "prod", "h200-q1", "--json")
    offers = json.loads(capsys.readouterr().out)["regions"][0]["offers"]
    other = next(offer for offer in reversed(offers) if len(offer["parts"]) == 1)

    class Slow(Terminal):
        def readline(self, size: int = -1) -> str:
            assert reserve(world, *YES, "--offering", other["id"]) == 0
            world.file.write_text(FILE)
            if not parts:
                bare = {"TrainingPlanArn": ARN, "TrainingPlanName": "prod-h200-q1", "Status": "Pending"}
                monkeypatch.setattr(world.plans, "describe_training_plan", lambda **_: bare)
                monkeypatch.setattr(world.plans, "list_training_plans", lambda **_: {"TrainingPlanSummaries": [bare]})
            return "h200-q1\n"

    monkeypatch.setattr("sys.stdin", Slow())
    assert reserve(world) == 0
    assert [offering for _, offering in world.charges] == [other["id"]]
    start = datetime.fromisoformat(other["start"]).strftime("%Y-%m-%dT%H:%MZ")
    assert settings(world).get("start") == (start if parts else None)


def test_what_is_there_and_differs_from_the_file_by_now_is_said(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reserve(world, *YES) == 0
    world.file.write_text(FILE.replace("count: 16\n    days", "count: 32\n    days"))
    assert reserve(world, *YES) == 0
    assert "It is not what was asked for now: it has 16 instances, not 32" in capsys.readouterr().err
    assert len(world.charges) == 1


def test_without_the_record_nothing_is_bought(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def gone(*_: Any, **__: Any) -> Any:
        raise TimeoutError("no answer")

    monkeypatch.setattr(world.dynamodb.tables, "put_item", gone)
    assert reserve(world, *YES) == 1
    assert "could not be written: no answer" in capsys.readouterr().err
    assert (world.charges, world.file.read_text()) == ([], FILE)


def test_a_split_offer_is_only_bought_by_its_id_and_its_parts_are_written(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.run("search", "prod", "h200-q1", "--json")
    offers = json.loads(capsys.readouterr().out)["regions"][0]["offers"]
    [split] = [offer["id"] for offer in offers if len(offer["parts"]) > 1]
    assert reserve(world, *YES, "--offering", split) == 0
    plan = world.environment.training_plans["h200-q1"]
    assert [(window.count, window.zone) for window in plan.windows] == [(16, "usw2-az2")] * 2
    assert (plan.windows[0].start, plan.windows[1].end) == (plan.start, plan.end)
    assert plan.windows[0].end < plan.windows[1].start


def test_where_only_a_split_offer_fits_it_is_named(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert reserve(world, "--yes", "--max-upfront", "410000") == 1
    said = capsys.readouterr().err
    assert "what fits comes in several parts (tpo-" in said
    assert "between its parts there is no capacity" in said


def test_an_offer_in_another_zone_takes_a_person_who_is_told_both_ways(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = FILE.replace("zone: usw2-az2  #", "zone: usw2-az1  #")
    world.file.write_text(text.replace("[usw2-az2, usw2-az3]", "[usw2-az1, usw2-az2]"))
    assert reserve(world, *YES) == 1
    printed = capsys.readouterr()
    assert "is in usw2-az2, not usw2-az1" in printed.out
    other = next(line.split()[1] for line in printed.out.splitlines() if "is in usw2-az2, not usw2-az1" in line)
    assert reserve(world, *YES, "--offering", other) == 1
    assert "--yes takes only what the file asks for" in capsys.readouterr().err
    types(monkeypatch, "h200-q1")
    assert reserve(world, "--offering", other) == 0
    said = capsys.readouterr().err
    assert "It is not what the file asks for: it is in usw2-az2, not usw2-az1" in said
    assert "either move there (`zone: usw2-az2` of h200-q1" in said
    assert "or wait for an offer in usw2-az1" in said
    assert settings(world)["zone"] == "usw2-az2"
    assert "# where the file system is" in world.file.read_text()


def test_a_lost_answer_to_an_offer_that_differs_is_found_too(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    world.file.write_text(FILE.replace("count: 16\n    days", "count: 200\n    days"))
    world.run("search", "prod", "h200-q1", "--json")
    nearest = json.loads(capsys.readouterr().out)["regions"][0]["nearest"]
    assert "has 32 instances, not 200" in nearest[0]["differs"]
    fault(world, "create_training_plan", "error", after=True)
    types(monkeypatch, "h200-q1")
    assert reserve(world, "--offering", nearest[0]["id"]) == 0
    assert (len(world.charges), settings(world)["arn"]) == (1, ARN)


def test_what_sagemaker_does_not_show_yet_comes_from_the_offer_that_was_bought(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    described = world.plans.describe_training_plan
    parts = {"ReservedCapacitySummaries": []}
    monkeypatch.setattr(world.plans, "describe_training_plan", lambda **request: described(**request) | parts)
    assert reserve(world, *YES) == 0
    assert settings(world)["start"] == "2027-01-18T11:30Z"
    first = world.plans.ledger.offers[world.charges[0][1]]
    assert first.windows[0].start == world.environment.training_plans["h200-q1"].start


def test_an_offer_that_nobody_makes_is_not_bought(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert reserve(world, *YES, "--offering", "tpo-gone") == 1
    assert "tpo-gone is not among the offers now" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "code", "said"),
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
    world: World, capsys: pytest.CaptureFixture[str], text: str, code: int, said: str
) -> None:
    world.file.write_text(text)
    assert reserve(world, *YES) == code
    assert said in capsys.readouterr().err
    assert world.charges == []


def test_ultraservers_are_bought_by_number_with_their_spares(world: World) -> None:
    kind = "ultraserver_type: ml.u-p6e-gb200x72\n    ultraserver_count: 1\n    spares_per_ultraserver: 2"
    text = FILE.replace("instance_type: ml.p5en.48xlarge\n    count: 16", kind, 1).replace("900000", "9000000")
    world.file.write_text(text.replace("start_after", "end_before: 2027-03-01\n    start_after"))
    assert reserve(world, "--yes", "--max-upfront", "9000000") == 0
    [plan] = world.plans.ledger.plans
    assert (plan.spares, plan.windows[0].ultraservers, plan.windows[0].instances) == (2, 1, 18)
    assert settings(world)["ultraserver_count"] == "1"


def test_a_plan_of_the_sandbox_never_gets_into_the_file_of_an_account(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reserve(world, *YES, "--sandbox") == 0
    assert f"The file stays as it is, because this was the sandbox. It would say: arn {ARN}" in capsys.readouterr().out
    assert world.run("extend", "prod", "h200-q1", "--days", "7", *YES, "--sandbox", "--json") == 0
    assert "file" not in json.loads(capsys.readouterr().out)
    assert (len(world.charges), world.file.read_text()) == (2, FILE)


def test_tags_of_the_environment_are_those_of_the_plan(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}
    sell = world.plans.create_training_plan
    monkeypatch.setattr(world.plans, "create_training_plan", lambda **request: asked.update(request) or sell(**request))
    world.file.write_text(f"{FILE}tags: {{cost-center: ai}}\n")
    assert reserve(world, *YES) == 0
    assert asked["Tags"] == [{"Key": "cost-center", "Value": "ai"}]
    assert asked["TrainingPlanName"] == "prod-h200-q1"


def test_a_payment_that_takes_long_is_waited_for_and_then_left_to_itself(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.plans.ledger.payment = timedelta(hours=1)
    assert reserve(world, *YES) == 0
    assert f"h200-q1 is bought and Pending: {ARN}" in capsys.readouterr().out
    assert 100 < (world.now - NOW).total_seconds() < 200
    assert settings(world)["arn"] == ARN
