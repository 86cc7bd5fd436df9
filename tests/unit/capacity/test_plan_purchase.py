"""Buying a training plan: what is asked of AWS, what is refused before, and what people are told."""

import json
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.validate import ParamValidator
from moto import mock_aws

from podwright.config.settings.plans import TrainingPlan
from podwright.planning.purchase.observations import find
from podwright.planning.purchase.offers import Offer, Part, Plan, Request, best, misfits
from podwright.planning.purchase.purchase import NoOffer, NothingToClose, acquire, close, extend, reserve
from podwright.planning.purchase.record import TABLE, NotRecorded, Record, State, ensure_table, read, write
from podwright.planning.purchase.requests import plan_request
from podwright.planning.purchase.run import NotSold, Result
from podwright.planning.purchase.steps import ONE_ATTEMPT, Call, Engine, Steps
from podwright.sandbox.training_plans.faults import Fault
from podwright.sandbox.training_plans.plans import TrainingPlans
from purchase_account import REQUEST, TAGS, Buyer, alone, closed
from purchase_aws import ARN, END, NOW, START, Bought, Flow, PurchaseAccount, Refusal, plan_shape

FLOWS: tuple[Flow, ...] = ("reserve", "acquire", "extend")
NO_REGION = {"region_name": "us-west-2", "aws_access_key_id": "x", "aws_secret_access_key": "x"}


class Client:
    """A world's operations with the methods of a boto3 client."""

    def __init__(self, purchase_account: PurchaseAccount) -> None:
        self.account = purchase_account

    def __getattr__(self, operation: str) -> Any:
        if not hasattr(PurchaseAccount, operation):
            raise AttributeError(operation)
        return lambda **parameters: self.account.call(Call("sagemaker", operation, parameters), "somebody")


def carried_out(steps: Steps[Any], purchase_account: PurchaseAccount, **clients: Any) -> Any:
    def sleep(seconds: float) -> None:
        purchase_account.time += timedelta(seconds=seconds)

    service = Client(purchase_account)
    named: dict[Any, Any] = dict.fromkeys(("sagemaker", "seller", "dynamodb", "ec2"), service)
    named.update(clients)
    return Engine(named, clock=lambda: purchase_account.time, sleep=sleep).run(steps)


def offer(**changes: Any) -> Offer:
    part = Part("usw2-az2", "ml.p5en.48xlarge", 16, START, END)
    return replace(Offer("o", ("hyperpod-cluster",), Decimal(1000), "USD", END - START, (part,)), **changes)


@pytest.mark.parametrize("flow", FLOWS)
def test_every_call_is_one_that_aws_knows(flow: Flow) -> None:
    clients = {name: boto3.client(name, **NO_REGION) for name in ("sagemaker", "dynamodb", "ec2")}
    purchase_account = PurchaseAccount(table="")
    validated = []

    def validate(call: Call) -> None:
        client = clients[call.service.replace("seller", "sagemaker")]
        operation = client.meta.method_to_api_mapping[call.operation]
        shape = client.meta.service_model.operation_model(operation).input_shape
        report = ParamValidator().validate(dict(call.parameters), shape)
        assert not report.has_errors(), report.generate_report()
        validated.append(call.operation)

    buyer = Buyer(flow, "one", purchase_account)
    carry_out = buyer._called
    buyer._called = lambda call, fault: (validate(call), carry_out(call, fault))[1]
    assert alone(buyer).outcome
    assert {"create_table", "put_item", "get_item"} <= set(validated)
    assert {"create_training_plan", "extend_training_plan"} & set(validated)


def test_dynamodb_lets_one_buyer_win() -> None:
    with mock_aws():
        dynamodb = boto3.client("dynamodb", **NO_REGION)
        purchase_account = PurchaseAccount()
        first = carried_out(acquire(REQUEST, buyer="one", run="1", tags=TAGS), purchase_account, dynamodb=dynamodb)
        again = carried_out(acquire(REQUEST, buyer="two", run="2", tags=TAGS), purchase_account, dynamodb=dynamodb)
        assert (first.result, first.paid, again.result, again.paid) == (Result.BOUGHT, True, Result.BOUGHT, False)
        assert first.arn == again.arn == f"{ARN}0"
        assert "could not be written" not in first.text + again.text
        assert len(purchase_account.plans) == 1
        table = dynamodb.describe_table(TableName=TABLE)["Table"]
        assert table["DeletionProtectionEnabled"]
        assert table["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
        backups = dynamodb.describe_continuous_backups(TableName=TABLE)["ContinuousBackupsDescription"]
        assert backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "ENABLED"
        record: Record = carried_out(read("prod/q1"), purchase_account, dynamodb=dynamodb)
        assert (record.state, record.buyer, record.price) == (State.BOUGHT, "one", "442552.32")


def test_two_who_make_the_table_at_once() -> None:
    purchase_account = PurchaseAccount(table="")

    def come_first(steps: Steps[None]) -> None:
        for step in steps:
            if isinstance(step, Call) and step.operation == "describe_table":
                break
        steps.close()

    come_first(ensure_table())
    carried_out(ensure_table(), purchase_account)
    assert purchase_account.table == "ACTIVE"


@pytest.mark.parametrize("duplicates", ["refuse", "allow"])
def test_finds_in_the_sandbox_what_a_time_out_hid(duplicates: Any) -> None:
    purchase_account = PurchaseAccount()
    plans = TrainingPlans(lambda: purchase_account.time, duplicates)
    plans.ledger.stale_lists = 2
    plans.faults.append(Fault("create_training_plan", "timeout", after=True))
    outcome = carried_out(
        acquire(REQUEST, buyer="one", run="1", tags=TAGS), purchase_account, sagemaker=plans, seller=plans
    )
    assert (outcome.result, outcome.paid) == (Result.BOUGHT, False)
    assert [arn for arn, _ in plans.ledger.charges] == [outcome.arn]
    assert "ReadTimeout" in outcome.record.reason


@pytest.mark.parametrize(
    ("fee", "currency", "problem"),
    [(Decimal(900_001), "USD", "above the limit of 900,000"), (None, "USD", "unknown"), (Decimal(1), "EUR", "EUR")],
)
def test_refuses_a_price_before_anything_is_called(fee: Decimal | None, currency: str, problem: str) -> None:
    with pytest.raises(NotSold, match=problem):
        next(reserve(REQUEST, "o", fee, currency, buyer="one", run="1", tags={}))
    with pytest.raises(NotSold, match="nothing was bought"):
        next(extend(f"{ARN}0", "o", END, fee, currency, 900_000, buyer="one", run="1"))


def test_a_deployment_buys_nothing_without_a_limit() -> None:
    with pytest.raises(NotSold, match="max_upfront_usd"):
        next(acquire(replace(REQUEST, max_upfront_usd=None), buyer="one", run="1", tags={}))


def test_says_how_the_offers_differ_when_none_fits() -> None:
    purchase_account = PurchaseAccount()
    with pytest.raises(NoOffer, match=r"tpo-1 costs 442,552\.32 USD, above the limit of 400,000"):
        carried_out(acquire(replace(REQUEST, max_upfront_usd=400_000), buyer="one", run="1", tags={}), purchase_account)
    assert not purchase_account.items


def test_refuses_a_client_that_would_send_the_purchase_again() -> None:
    purchase_account = PurchaseAccount()
    seller = boto3.client("sagemaker", **NO_REGION)
    with pytest.raises(ValueError, match=r"make it with Config\(\*\*ONE_ATTEMPT\)"):
        carried_out(acquire(REQUEST, buyer="one", run="1", tags={}), purchase_account, seller=seller)
    assert purchase_account.calls == 0
    once = boto3.client("sagemaker", config=Config(**ONE_ATTEMPT), **NO_REGION)
    assert once.meta.config.retries["total_max_attempts"] == 1


def test_a_name_that_would_be_too_long_is_not_bought() -> None:
    purchase_account = PurchaseAccount()
    with pytest.raises(NotSold, match="more than 64 characters"):
        carried_out(acquire(replace(REQUEST, plan="q" * 60), buyer="one", run="1", tags={}), purchase_account)
    assert not purchase_account.plans


def test_a_plan_that_failed_gets_a_new_name() -> None:
    purchase_account = PurchaseAccount()
    alone(Buyer("reserve", "one", purchase_account))
    purchase_account.plans[0].shape |= {"Status": "Failed", "StatusMessage": "the card expired"}
    buyer = alone(Buyer("acquire", "two", purchase_account))
    assert buyer.outcome
    record = buyer.outcome.record
    assert (record.name, record.generation, record.attempt) == ("prod-q1-2", 2, 2)
    assert [plan.shape["TrainingPlanName"] for plan in purchase_account.plans] == ["prod-q1", "prod-q1-2"]
    assert [each["arn"] for each in record.attempts_before] == [f"{ARN}0"]
    assert any("the card expired" in text for text in buyer.said)


def test_what_shows_after_a_person_closed_it_counts_as_bought() -> None:
    purchase_account = PurchaseAccount(stale=40)
    first = alone(Buyer("reserve", "one", purchase_account, {7: "lost after"}))
    assert first.outcome
    assert first.outcome.result is Result.UNKNOWN
    assert "called by one at" in first.outcome.text
    steps = close("prod/q1", buyer="a person", run="closing")
    assert carried_out(steps, purchase_account).text == "prod-q1 was not bought: a person saw that nothing was bought"
    purchase_account.settle()
    second = alone(Buyer("reserve", "two", purchase_account))
    assert second.outcome
    assert (second.outcome.result, second.outcome.arn, len(purchase_account.plans)) == (Result.BOUGHT, f"{ARN}0", 1)


def test_closing_finds_what_is_there_after_all() -> None:
    purchase_account = PurchaseAccount(stale=7)
    first = alone(Buyer("reserve", "one", purchase_account, {7: "lost after"}))
    closing = closed(first)
    assert closing.outcome
    assert (closing.outcome.result, closing.outcome.arn) == (Result.BOUGHT, f"{ARN}0")


def test_nobody_gives_up_a_call_that_may_be_under_way() -> None:
    purchase_account = PurchaseAccount()
    assert alone(Buyer("reserve", "one", purchase_account, {7: "crash before"})).crashed
    won = purchase_account.time
    second = alone(Buyer("reserve", "two", purchase_account))
    assert second.outcome
    assert second.outcome.result is Result.UNKNOWN
    assert purchase_account.time - won > timedelta(seconds=30 + 5 + 60)
    assert any("one has been buying prod-q1" in text for text in second.said)


def test_closes_only_what_is_unknown() -> None:
    purchase_account = PurchaseAccount()
    with pytest.raises(NothingToClose, match="not recorded"):
        carried_out(close("prod/q1", buyer="a person", run="1"), purchase_account)
    alone(Buyer("reserve", "one", purchase_account))
    with pytest.raises(NothingToClose, match="prod/q1 is bought"):
        carried_out(close("prod/q1", buyer="a person", run="1"), purchase_account)


def test_two_plans_of_one_name_are_a_persons_to_look_at() -> None:
    purchase_account = PurchaseAccount(duplicates="allow")
    purchase_account.plans += [Bought(plan_shape("prod-q1", f"{ARN}{name}"), "one") for name in "ab"]
    record = Record(
        "prod/q1", "plan", State.BUYING, "prod-q1", "o", "1", "USD", json.dumps(REQUEST.to_properties()), "{}", "one",
        (NOW - timedelta(hours=1)).isoformat(), "w",
    )  # fmt: skip
    purchase_account.items["prod/q1"] = record.to_item()
    outcome = carried_out(acquire(REQUEST, buyer="two", run="2", tags={}), purchase_account)
    assert outcome.result is Result.UNKNOWN
    assert f"{ARN}a, {ARN}b all fit" in outcome.text


def test_a_plan_that_is_no_more_what_the_file_asks_for_is_told() -> None:
    purchase_account = PurchaseAccount()
    alone(Buyer("acquire", "one", purchase_account))
    outcome = carried_out(
        acquire(replace(REQUEST, count=32, hours=14 * 24), buyer="two", run="2", tags={}), purchase_account
    )
    assert (outcome.result, len(purchase_account.plans)) == (Result.BOUGHT, 1)
    assert outcome.differs == ("has 16 instances, not 32", "lasts 28 days, not 14")


def test_a_plan_bought_by_hand_is_named_and_not_bought_again() -> None:
    purchase_account = PurchaseAccount()
    purchase_account.plans.append(Bought(plan_shape("prod-q1", f"{ARN}by-hand"), "somebody"))
    outcome = alone(Buyer("acquire", "one", purchase_account)).outcome
    assert outcome
    assert outcome.result is Result.FOUND
    assert f"Write its ARN into the file, or use another name: {ARN}by-hand" in outcome.text


@pytest.mark.parametrize(
    ("changes", "reasons"),
    [
        ({}, []),
        ({"targets": ("training-job",)}, ["is for training-job, not hyperpod-cluster"]),
        ({"fee": Decimal("900000.01")}, ["costs 900,000.01 USD, above the limit of 900,000"]),
        ({"length": timedelta(days=27, hours=1)}, []),
        ({"length": timedelta(days=27)}, ["lasts 27 days, not 28"]),
        ({"parts": (Part("usw2-az1", "ml.p5en.48xlarge", 16, START, END),)}, ["is in usw2-az1, not usw2-az2"]),
        (
            {"parts": (Part("usw2-az2", "ml.p5.48xlarge", 16, START, END),)},
            ["has ml.p5.48xlarge, not ml.p5en.48xlarge"],
        ),
        ({"parts": (Part("usw2-az2", "ml.p5en.48xlarge", 8, START, END),)}, ["has 8 instances, not 16"]),
        ({"parts": (Part("usw2-az2", "ml.p5en.48xlarge", 32, START, END),)}, ["has 32 instances, not 16"]),
        (
            {"parts": (Part("usw2-az2", "ml.p5en.48xlarge", 16, NOW - timedelta(days=1), END),)},
            ["starts 2026-12-31T00:00Z, before 2027-01-01T00:00Z"],
        ),
    ],
)
def test_says_how_an_offer_differs(changes: dict[str, Any], reasons: list[str]) -> None:
    assert misfits(REQUEST, offer(**changes)) == reasons


def test_the_cheapest_offer_in_one_part_is_the_best() -> None:
    part = offer().parts[0]
    halves = (replace(part, end=START + timedelta(days=14)), replace(part, start=START + timedelta(days=14)))
    offers = [offer(id="dear", fee=Decimal(3)), offer(id="split", fee=Decimal(1), parts=halves), offer(fee=Decimal(2))]
    assert getattr(best(REQUEST, offers), "id", None) == "o"
    assert best(REQUEST, offers[1:2]) is None


def test_an_existing_plan_may_hold_more_than_is_asked_for() -> None:
    plan = Plan.of(plan_shape("x", ARN, count=32))
    assert misfits(replace(REQUEST, max_upfront_usd=1), plan) == []
    assert misfits(replace(REQUEST, count=64), plan) == ["has 32 instances, not 64"]


def test_a_request_survives_cloudformation() -> None:
    whole = replace(REQUEST, end_before=END, ultraserver_type="ml.u-p6e-gb200x72", ultraserver_count=1)
    assert Request.of_properties({"ServiceToken": "arn", **whole.to_properties()}) == whole
    assert all(isinstance(value, str | list) for value in whole.to_properties().values())


def test_the_file_makes_the_request() -> None:
    fields: dict[str, Any] = {
        "zone": "usw2-az2", "instance_type": "ml.p5en.48xlarge", "count": "16", "days": "28",
        "start_after": "2027-01-01", "max_upfront_usd": "900000",
    }  # fmt: skip
    assert plan_request(TrainingPlan.model_validate(fields), "prod", "q1") == REQUEST
    existing = TrainingPlan.model_validate({**fields, "arn": f"{ARN}0"})
    assert (existing.state, plan_request(existing, "prod", "q1").hours) == ("exists", None)
    search = REQUEST.search(datetime.fromisoformat("2027-02-01T00:00Z"))
    assert search["StartTimeAfter"] == datetime.fromisoformat("2027-02-01T00:00Z")


def test_only_a_client_that_sends_a_purchase_once_is_taken() -> None:
    once = boto3.client("sagemaker", config=Config(**ONE_ATTEMPT), **NO_REGION)
    Engine({"seller": once})
    twice = boto3.client("sagemaker", config=Config(retries={"total_max_attempts": 2}), **NO_REGION)
    with pytest.raises(ValueError, match="ONE_ATTEMPT"):
        Engine({"seller": twice})


def under_way(kind: Any = "plan", base: str = "prod-q1", **terms: Any) -> Record:
    """The record of a purchase whose call was made and not answered."""
    return Record(
        "prod/q1", kind, State.BUYING, base, "ours", "1", "USD", json.dumps(terms), "{}", "one", NOW.isoformat(), "w"
    )


def test_an_extension_from_the_same_moment_is_found_whoever_bought_it() -> None:
    """A second one for the same days would be paid for nothing."""
    purchase_account = PurchaseAccount()
    for id, start in (("theirs", END), ("later", END + timedelta(days=7))):
        shape = {"TrainingPlanExtensionOfferingId": id, "StartDate": start}
        purchase_account.extensions.append(Bought(shape, "somebody"))
    record = under_way("extension", f"{ARN}0", start=END.isoformat())
    result = carried_out(find(record, 1), purchase_account)
    assert [(each.arn, each.fits) for each in result] == [(f"{ARN}0", False)]


def test_there_is_a_pause_between_two_looks_and_none_before_the_first() -> None:
    spent = []
    for reads in (1, 2, 3):
        purchase_account = PurchaseAccount()
        assert carried_out(find(under_way(**REQUEST.to_properties()), reads), purchase_account) == []
        spent.append(purchase_account.time - NOW)
    assert spent[0] == timedelta() < spent[1]
    assert spent[2] == 2 * spent[1]


def test_a_plan_in_parts_holds_what_they_hold_at_one_moment() -> None:
    part, middle = offer().parts[0], START + timedelta(days=14)
    plan = Plan.of(plan_shape("x", ARN))
    growing = replace(plan, parts=(replace(part, count=8), replace(part, count=8, start=middle)))
    assert misfits(REQUEST, growing) == []
    in_turn = replace(plan, parts=(replace(part, end=middle), replace(part, start=middle)))
    assert misfits(replace(REQUEST, count=32), in_turn) == ["has 16 instances, not 32"]


@pytest.mark.parametrize("operation", ["describe_table", "put_item"])
def test_a_table_that_nobody_may_use_ends_it_at_once(operation: str) -> None:
    purchase_account = PurchaseAccount()

    def refuse(*_: Any, **__: Any) -> Any:
        raise Refusal("AccessDeniedException")

    setattr(purchase_account, operation, refuse)
    steps: Steps[Any] = ensure_table() if operation == "describe_table" else write(under_way(), None)
    with pytest.raises(Refusal, match="AccessDenied"):
        carried_out(steps, purchase_account)
    assert purchase_account.time == NOW


def test_nothing_is_bought_without_a_table() -> None:
    with pytest.raises(NotRecorded, match="is not active after 120 seconds"):
        carried_out(ensure_table(), PurchaseAccount(table="CREATING"))
