import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from capacity_account import NOW, CapacityAccount, open_account
from podwright.config.catalog.limits import limits
from podwright.config.catalog.prices import Price
from podwright.operations.capacity.market import beside
from podwright.operations.capacity.offers import RegionOffer, amount, compared, day, described, span
from podwright.planning.purchase.offers import Request
from podwright.sandbox.training_plans.faults import Fault, client_error
from podwright.sandbox.training_plans.offers import Supply

ASKED = ("--type", "ml.p5en.48xlarge", "--count", "16", "--duration", "28d")
Search = Callable[..., dict[str, Any]]


@pytest.fixture
def capacity_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CapacityAccount:
    return open_account(tmp_path, monkeypatch)


@pytest.fixture
def search(capacity_account: CapacityAccount, capsys: pytest.CaptureFixture[str]) -> Search:
    """Runs a search and gives its JSON, with the exit code as `code`."""

    def run(*arguments: str) -> dict[str, Any]:
        code = capacity_account.run("search", "prod", *arguments, "--json")
        return json.loads(capsys.readouterr().out) | {"code": code}

    return run


def test_a_wanted_plan_of_the_file_is_searched_for(search: Search) -> None:
    answer = search("h200-q1")
    assert answer["code"] == 0
    assert answer["asked"] == ("16 × ml.p5en.48xlarge for 28 days from 2027-01-04 in usw2-az2 for at most 900,000 USD")
    (region,) = answer["regions"]
    assert region["nearest"] == []
    fees = [offer["upfront"] for offer in region["offers"]]
    assert fees == sorted(fees)
    assert fees[-1] <= 900_000
    for offer in region["offers"]:
        assert {part["zone"] for part in offer["parts"]} == {"usw2-az2"}
        assert {(part["instance_type"], part["count"]) for part in offer["parts"]} == {("ml.p5en.48xlarge", 16)}
        assert datetime.fromisoformat(offer["start"]) >= datetime(2027, 1, 4, tzinfo=UTC)
        assert offer["places"] == [{"zone": "usw2-az2", "subnet": True, "file_systems": ["lustre"]}]
        assert offer["differs"] == []


def test_an_offer_has_its_price_for_an_instance_and_an_hour_beside_on_demand(
    search: Search, capacity_account: CapacityAccount
) -> None:
    whole = next(offer for offer in search("h200-q1")["regions"][0]["offers"] if len(offer["parts"]) == 1)
    hourly = whole["upfront"] / (16 * 28 * 24)
    assert whole["per_instance_hour"] == pytest.approx(hourly, abs=1e-4)
    assert whole["on_demand"]["basis"] == "ec2"
    assert whole["on_demand"]["percent"] == pytest.approx((hourly / whole["on_demand"]["usd"] - 1) * 100, abs=0.1)
    capacity_account.file.write_text(capacity_account.file.read_text() + "prices: {ml.p5en.48xlarge: 20.58}\n")
    [own] = [each for each in search("h200-q1")["regions"][0]["offers"] if each["id"] == whole["id"]]
    assert (own["on_demand"]["usd"], own["on_demand"]["basis"], own["on_demand"]["percent"]) == (20.58, "file", 100.0)


def test_a_split_offer_shows_each_of_its_parts(
    capacity_account: CapacityAccount, search: Search, capsys: pytest.CaptureFixture[str]
) -> None:
    [split] = [offer for offer in search("h200-q1")["regions"][0]["offers"] if len(offer["parts"]) == 2]
    first, second = split["parts"]
    assert first["end"] < second["start"]
    assert (split["start"], split["end"]) == (first["start"], second["end"])
    assert split["hours"] == 28 * 24
    assert capacity_account.run("search", "prod", "h200-q1") == 0
    printed = capsys.readouterr().out
    rows = [line for line in printed.splitlines() if "usw2-az2  2027" in line]
    assert f"  1  {split['id']}\n" in printed
    assert rows[0].split()[0] == "1"
    assert "402,361 USD" in rows[0]
    assert "≤ -41 %" in rows[0]
    assert "USD" not in rows[1]


def test_regions_stand_side_by_side_and_a_zone_counts_in_its_own(search: Search) -> None:
    answer = search(*ASKED, "--zone", "usw2-az3", "--region", "us-west-2", "--region", "us-east-1")
    west, east = answer["regions"]
    assert {part["zone"] for offer in west["offers"] for part in offer["parts"]} == {"usw2-az3"}
    assert {part["zone"] for offer in east["offers"] for part in offer["parts"]} == {"use1-az4", "use1-az6"}
    assert {location["subnet"] for offer in west["offers"] for location in offer["places"]} == {True}
    assert {location["subnet"] for offer in east["offers"] for location in offer["places"]} == {False}


def test_a_region_that_refuses_keeps_no_other_from_answering(capacity_account: CapacityAccount, search: Search) -> None:
    capacity_account.markets["us-east-1"].faults.append(Fault("search_training_plan_offerings", "error", times=99))
    answer = search(*ASKED, "--region", "us-east-1", "--region", "us-west-2")
    refused, fine = answer["regions"]
    assert refused["problem"].startswith("AWS says: ")
    assert fine["offers"]
    assert answer["code"] == 0


@pytest.mark.parametrize(
    ("arguments", "differs"),
    [
        (("--zone", "usw2-az1"), "is in usw2-az2, not usw2-az1"),
        (("--count", "64", "--zone", "usw2-az3"), "has 16 instances, not 64"),
        (("--count", "3", "--max-upfront", "60000"), "lasts 21 days, not 28"),
        (
            ("--max-upfront", "400000", "--zone", "usw2-az3", "--start-after", "2027-01-04"),
            "above the limit of 400,000",
        ),
        (("--end-before", "2027-01-27", "--zone", "usw2-az3"), "ends 2027-01-29T11:30Z, after 2027-01-27"),
    ],
    ids=["zone", "count", "length", "price", "end"],
)
def test_where_nothing_fits_the_nearest_say_how_they_differ(
    search: Search, arguments: tuple[str, ...], differs: str
) -> None:
    answer = search(*ASKED, *arguments)
    (region,) = answer["regions"]
    assert (answer["code"], region["offers"]) == (1, [])
    texts = [text for offer in region["nearest"] for text in offer["differs"]]
    assert any(differs in text for text in texts), texts
    assert all(offer["differs"] for offer in region["nearest"])
    numbers = [len(offer["differs"]) for offer in region["nearest"]]
    assert numbers == sorted(numbers)
    assert len(numbers) <= 6


def test_later_weeks_are_asked_before_anything_else_is_given_up(
    capacity_account: CapacityAccount, search: Search
) -> None:
    """SageMaker answers with few offers; the first ones may be too dear, and a later one not."""
    answer = search(*ASKED, "--zone", "usw2-az3", "--max-upfront", "440000")
    fitting = answer["regions"][0]["offers"]
    assert answer["code"] == 0
    assert all(datetime.fromisoformat(offer["start"]) > NOW + timedelta(weeks=2) for offer in fitting)
    assert all(offer["upfront"] <= 440_000 for offer in fitting)


def test_nothing_at_all_is_said(capacity_account: CapacityAccount, capsys: pytest.CaptureFixture[str]) -> None:
    capacity_account.plans.ledger.supply.clear()
    assert capacity_account.run("search", "prod", "h200-q1") == 1
    assert "us-west-2: no offer, nor one near it" in capsys.readouterr().out


def test_what_further_searches_could_not_ask_is_said(capacity_account: CapacityAccount, search: Search) -> None:
    capacity_account.plans.faults.append(Fault("search_training_plan_offerings", "throttle", skip=1, times=1))
    region = search(*ASKED, "--zone", "usw2-az1")["regions"][0]
    assert region["nearest"]
    assert "not everything could be asked" in region["problem"]


def test_ultraservers_are_searched_for_by_their_number(capacity_account: CapacityAccount, search: Search) -> None:
    actual = search("--ultraserver-type", "ml.u-p6e-gb200x72", "--ultraserver-count", "1", "--duration", "7d")
    offers = actual["regions"][0]["offers"]
    assert {(part["ultraserver_count"], part["count"]) for offer in offers for part in offer["parts"]} == {(1, 18)}
    whole = next(offer for offer in offers if len(offer["parts"]) == 1)
    assert whole["per_instance_hour"] == pytest.approx(whole["upfront"] / (18 * whole["hours"]), abs=1e-3)
    assert whole["on_demand"] is None
    text = capacity_account.file.read_text().replace(
        "instance_type: ml.p5en.48xlarge\n    count: 16",
        "ultraserver_type: ml.u-p6e-gb200x72\n    ultraserver_count: 2\n    count: 36",
    )
    capacity_account.file.write_text(text.replace("max_upfront_usd: 900000", ""))
    assert search("h200-q1", "--duration", "2d")["asked"].startswith("2 × ml.u-p6e-gb200x72 for 2 days")


def test_options_win_over_the_plan(search: Search) -> None:
    asked = search("h200-q1", "--count", "8", "--zone", "usw2-az3", "--duration", "7d", "--start-after", "2027-01-11")[
        "asked"
    ]
    assert asked == "8 × ml.p5en.48xlarge for 7 days from 2027-01-11 in usw2-az3 for at most 900,000 USD"
    other = search("h200-q1", "--ultraserver-type", "ml.u-p6e-gb200x36", "--ultraserver-count", "1")
    assert other["asked"].startswith("1 × ml.u-p6e-gb200x36")


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        ((), "what shall be searched for?"),
        (("--type", "ml.p5en.48xlarge", "--duration", "7d"), "what shall be searched for?"),
        ((*ASKED, "--ultraserver-type", "ml.u-p6e-gb200x72"), "what shall be searched for?"),
        (("nothing",), "prod has no training plan nothing"),
        (
            ("--type", "ml.p5.49xlarge", "--count", "1", "--duration", "1d"),
            "training plans do not reserve ml.p5.49xlarge",
        ),
        (("--type", "ml.g5.xlarge", "--count", "1", "--duration", "1d"), "they reserve ml.p4d.24xlarge"),
        (
            ("--ultraserver-type", "ml.u-x", "--ultraserver-count", "1", "--duration", "1d"),
            "it takes ml.u-p6e-gb200x36",
        ),
        ((*ASKED, "--duration", "183d"), "--duration in days is 183; allowed are 1 to 182"),
        ((*ASKED, "--count", "257"), "--count is 257; allowed are 1 to 256"),
        ((*ASKED, "--max-upfront", "-1"), "--max-upfront is -1"),
        ((*ASKED, "--zone", "us-west-2a"), "us-west-2a is a zone name"),
        ((*ASKED, "--region", "us-west-9"), "us-west-9 is not a region; did you mean us-west-"),
        ((*ASKED, "--start-after", "2027-02-01", "--end-before", "2027-01-01"), "the end is not after the start"),
    ],
)
def test_what_cannot_be_searched_for_is_2_and_asks_nothing(
    capacity_account: CapacityAccount, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], output: str
) -> None:
    capacity_account.markets.clear()
    assert capacity_account.run("search", "prod", *arguments) == 2
    assert output in capsys.readouterr().err


def test_a_time_that_is_none_is_explained(
    capacity_account: CapacityAccount, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        capacity_account.run("search", "prod", *ASKED, "--start-after", "next week")
    assert stopped.value.code == 2
    assert "a date such as 2027-01-04" in capsys.readouterr().err


def test_a_search_by_options_ends_with_the_lines_for_the_file(
    capacity_account: CapacityAccount, search: Search, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are the plan that `reserve` then takes: in one part, where subnets and file systems are."""
    offers = {offer["id"]: offer for offer in search(*ASKED)["regions"][0]["offers"]}
    assert len(next(iter(offers.values()))["parts"]) == 2
    assert capacity_account.run("search", "prod", *ASKED) == 0
    printed = capsys.readouterr().out
    named = printed.partition("To reserve ")[2].partition(",")[0]
    assert len(offers[named]["parts"]) == 1
    assert offers[named]["places"] == [{"zone": "usw2-az2", "subnet": True, "file_systems": ["lustre"]}]
    piece = printed.partition("  NAME:\n")[2].partition("\n\n")[0]
    capacity_account.file.write_text(
        capacity_account.file.read_text().replace("instance_groups:", f"  other:\n{piece}\ninstance_groups:")
    )
    plan = capacity_account.environment.training_plans["other"]
    assert (plan.zone, plan.instance_type, plan.count, plan.days) == ("usw2-az2", "ml.p5en.48xlarge", 16, 28)
    assert search("other")["code"] == 0
    assert capacity_account.run("search", "prod", "h200-q1") == 0
    assert "put this under training_plans" not in capsys.readouterr().out


def test_what_lies_beside_a_request_stays_within_what_can_be_bought() -> None:
    bounds = limits().training_plan
    for count in (1, 16, 64, 256):
        for days in (1, 2, 28, 182):
            for start in (None, NOW + timedelta(weeks=7)):
                request = Request("e", "p", (), "ml.p5.48xlarge", count, hours=days * 24, start_after=start)
                others = list(beside(request, NOW))
                assert request not in others
                assert len(others) <= 16
                for other in others:
                    assert 24 <= (other.hours or 0) <= bounds.days[1] * 24
                    assert other.count in {count, *bounds.instance_counts}
                    assert other.start_after is None or other.start_after <= NOW + timedelta(weeks=8)
    one = Request("e", "p", (), ultraserver_type="ml.u-p6e-gb200x72", ultraserver_count=1, hours=24)
    assert {other.ultraserver_count for other in beside(one, NOW)} == {1, 2}


def shape(**changed: Any) -> dict[str, Any]:
    part = {
        "InstanceType": "ml.p5en.48xlarge",
        "InstanceCount": 16,
        "AvailabilityZone": "us-west-2a",
        "StartTime": NOW,
        "EndTime": NOW + timedelta(days=28),
    }
    parts = [part | each for each in changed.pop("parts", [{}])]
    return {
        "TrainingPlanOfferingId": "tpo-1",
        "TargetResources": ["hyperpod-cluster"],
        "DurationHours": 28 * 24,
        "UpfrontFee": "1000.00",
        "CurrencyCode": "USD",
        "ReservedCapacityOfferings": parts,
    } | changed


REQUEST = Request("prod", "p", ("usw2-az2",), "ml.p5en.48xlarge", 16, hours=28 * 24, max_upfront_usd=2000)
ZONES = {"us-west-2a": "usw2-az2"}


@pytest.mark.parametrize(
    "answer",
    [
        shape(parts=[]),
        shape(parts=[{"InstanceCount": 0}]),
        {key: value for key, value in shape().items() if key != "ReservedCapacityOfferings"},
        shape(parts=[{"StartTime": None}]),
    ],
    ids=["no parts", "no instances", "parts absent", "no time"],
)
def test_an_answer_that_nobody_could_compare_is_left_aside(answer: dict[str, Any]) -> None:
    assert RegionOffer.of(answer, "us-west-2", ZONES, REQUEST) is None


@pytest.mark.parametrize(
    ("changed", "differs"),
    [
        ({"UpfrontFee": None}, "has the price unknown USD, not one in USD"),
        ({"UpfrontFee": "free"}, "has the price unknown USD, not one in USD"),
        ({"CurrencyCode": "CNY"}, "has the price 1000.00 CNY, not one in USD"),
        ({"TargetResources": ["training-job"]}, "is for training-job, not hyperpod-cluster"),
        ({"parts": [{"AvailabilityZone": "us-west-2q"}]}, "is in us-west-2q, not usw2-az2"),
    ],
)
def test_an_offer_of_which_something_is_unknown_never_fits(changed: dict[str, Any], differs: str) -> None:
    actual = RegionOffer.of(shape(**changed), "us-west-2", ZONES, REQUEST)
    assert actual
    assert differs in actual.differs


def test_prices_that_are_unknown_are_compared_with_nothing() -> None:
    actual = RegionOffer.of(shape(), "us-west-2", ZONES, REQUEST)
    assert actual
    comparison = compared(actual, {"ml.p5en.48xlarge": Price(0.05, "file", "set by the environment")})
    assert str(comparison) == "+86 %"
    assert compared(replace(actual, offer=replace(actual.offer, fee=None)), None) is None
    assert compared(replace(actual, offer=replace(actual.offer, currency="CNY")), None) is None
    assert compared(replace(actual, region="af-south-1"), None) is None


def test_words_for_people() -> None:
    assert span(timedelta(days=1)) == "1 day"
    assert span(timedelta(days=13, hours=22)) == "13.9 days"
    assert span(timedelta(hours=6)) == "6 hours"
    assert span(timedelta(minutes=5)) == "1 hour"
    assert day(datetime(2027, 1, 4, tzinfo=UTC)) == "2027-01-04"
    assert day(datetime(2027, 1, 4, 11, 30, tzinfo=UTC)) == "2027-01-04 11:30Z"
    assert amount(Decimal("1234.5"), "USD") == "1,234.50 USD"
    assert amount(None, "USD") == "unknown"
    assert described(Request("e", "p", (), "ml.p5.48xlarge", 1, hours=24)) == "1 × ml.p5.48xlarge for 1 day"


def test_an_account_that_may_not_see_zones_is_told(capacity_account: CapacityAccount, search: Search) -> None:
    class Blind:
        def describe_availability_zones(self, **_: Any) -> Any:
            raise client_error("describe_availability_zones", "UnauthorizedOperation", "not allowed")

    capacity_account.ec2["us-west-2"] = Blind()
    answer = search("h200-q1")
    assert answer["code"] == 1
    assert "UnauthorizedOperation" in answer["regions"][0]["problem"]


def test_the_supply_of_the_world_is_what_these_tests_think(capacity_account: CapacityAccount) -> None:
    actual = {
        item.zone_id: item.count
        for item in capacity_account.plans.ledger.supply
        if item.instance_type == "ml.p5en.48xlarge"
    }
    assert actual == {"usw2-az2": 64, "usw2-az3": 16, "usw2-az4": 32}
    assert isinstance(capacity_account.plans.ledger.supply[0], Supply)
