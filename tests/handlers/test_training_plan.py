"""The handler of training plans: what exists is resolved, all else is bought once, has to fit, and is reminded of."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from handler_account import FUNCTION_ARN, NEEDS, REQUEST, TOPIC, HandlerAccount
from podwright.sandbox.training_plans.faults import Fault


@pytest.fixture
def handler_account(monkeypatch: pytest.MonkeyPatch) -> HandlerAccount:
    return HandlerAccount(monkeypatch)


def succeeded(answer: dict[str, Any] | None) -> str:
    """The physical id of an answer that is a success."""
    assert answer
    assert answer["Status"] == "SUCCESS", answer
    return answer["PhysicalResourceId"]


def failed(answer: dict[str, Any] | None) -> str:
    """The reason of an answer that is a failure."""
    assert answer
    assert answer["Status"] == "FAILED", answer
    return answer["Reason"]


def test_a_plan_that_exists_is_resolved_and_never_bought(handler_account: HandlerAccount) -> None:
    arn = handler_account.bought()
    assert succeeded(handler_account.run(Arn=arn)) == arn
    assert handler_account.answers[-1]["Data"] == {"Status": "Scheduled"}
    assert len(handler_account.charges) == 1
    assert not handler_account.clients["dynamodb"].ledger.items
    handler_account.now += timedelta(days=10)
    assert succeeded(handler_account.run("Update", Arn=arn, PhysicalResourceId=arn)) == arn
    assert handler_account.answers[-1]["Data"] == {"Status": "Active"}


def test_a_plan_is_bought_once_whatever_comes_after(handler_account: HandlerAccount) -> None:
    arn = succeeded(handler_account.run())
    assert arn.endswith(":training-plan/prod-q1")
    assert len(handler_account.charges) == 1
    # Lambda may run a request twice; a stack may be rolled back and made again; it may be updated.
    assert succeeded(handler_account.run()) == arn
    assert succeeded(handler_account.run("Delete", PhysicalResourceId=arn)) == arn
    assert succeeded(handler_account.run()) == arn
    assert succeeded(handler_account.run("Update", PhysicalResourceId=arn)) == arn
    # From now on the file has its ARN.
    assert succeeded(handler_account.run("Update", Arn=arn, PhysicalResourceId=arn)) == arn
    assert len(handler_account.charges) == 1


def test_the_buyer_is_the_stack_and_tags_go_along(
    handler_account: HandlerAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    provided: list[dict[str, Any]] = []
    buy = handler_account.plans.create_training_plan
    monkeypatch.setattr(
        handler_account.plans, "create_training_plan", lambda **each: provided.append(each) or buy(**each)
    )
    succeeded(handler_account.run())
    (item,) = handler_account.clients["dynamodb"].ledger.items.values()
    assert item["buyer"] == {"S": "stack"}
    assert provided[0]["Tags"] == [{"Key": "team", "Value": "x"}]


def test_a_payment_is_waited_for(handler_account: HandlerAccount) -> None:
    handler_account.plans.ledger.payment = timedelta(minutes=5)
    succeeded(handler_account.run())
    assert handler_account.answers[-1]["Data"] == {"Status": "Scheduled"}


def test_a_purchase_without_an_answer_is_found_by_looking(handler_account: HandlerAccount) -> None:
    handler_account.plans.faults.append(Fault("create_training_plan", "timeout", after=True))
    handler_account.plans.ledger.stale_lists = 3
    succeeded(handler_account.run())
    assert len(handler_account.charges) == 1


def test_what_nobody_knows_fails_the_stack_and_is_never_tried_again(handler_account: HandlerAccount) -> None:
    handler_account.plans.faults.append(Fault("create_training_plan", "timeout", after=False))
    reason = failed(handler_account.run())
    assert "is unknown" in reason
    assert "SageMaker console" in reason
    assert "is unknown" in failed(handler_account.run())
    assert handler_account.charges == []


@pytest.mark.parametrize("kind", ["throttle", "error"])
def test_what_is_refused_before_the_purchase_fails_the_stack(handler_account: HandlerAccount, kind: Any) -> None:
    handler_account.plans.faults.append(Fault("list_training_plans", kind))
    failed(handler_account.run())
    assert handler_account.charges == []
    succeeded(handler_account.run())
    assert len(handler_account.charges) == 1


def test_no_offer_names_those_that_there_are(handler_account: HandlerAccount) -> None:
    reason = failed(handler_account.run(Request=replace(REQUEST, max_upfront_usd=1000).to_properties()))
    assert "above the limit of 1,000" in reason
    assert "podwright capacity search prod q1" in reason
    assert handler_account.charges == []


def test_a_failed_payment_fails_the_stack_and_the_next_deployment_buys_a_successor(
    handler_account: HandlerAccount,
) -> None:
    handler_account.plans.ledger.payment_failure = "the card was refused"
    reason = failed(handler_account.run())
    assert "training-plan/prod-q1 failed: the card was refused; deploying again" in reason
    handler_account.plans.ledger.payment_failure = ""
    assert succeeded(handler_account.run()).endswith(":training-plan/prod-q1-2")


def test_a_plan_of_the_name_that_nobody_recorded_is_not_bought_again(handler_account: HandlerAccount) -> None:
    other = handler_account.bought()
    handler_account.plans.ledger.plans[0].name = "prod-q1"
    reason = failed(handler_account.run())
    assert "Write its ARN into the file" in reason
    assert other in reason
    assert len(handler_account.charges) == 1


def test_an_arn_that_is_not_there(handler_account: HandlerAccount) -> None:
    reason = failed(handler_account.run(Arn="arn:aws:sagemaker:us-west-2:111122223333:training-plan/gone"))
    assert "there is no training plan arn:aws:sagemaker:us-west-2:111122223333:training-plan/gone" in reason
    assert "correct `arn` of q1" in reason


def test_a_plan_that_is_over(handler_account: HandlerAccount) -> None:
    arn = handler_account.bought()
    handler_account.now += timedelta(days=60)
    assert "ended at 2027-01-04T11:30Z, and its instances are gone" in failed(handler_account.run(Arn=arn))


@pytest.mark.parametrize(
    ("change", "output"),
    [
        ({"Zone": "usw2-az3"}, ["h200 stands in usw2-az3", "capacity in usw2-az2", "move there", "plan in usw2-az3"]),
        ({"InstanceType": "ml.p5.48xlarge"}, ["h200 has ml.p5.48xlarge", "reserves ml.p5en.48xlarge", "change the"]),
        ({"Count": "5"}, ["5 in h200 = 5 instances in usw2-az2", "more than 4", "lower the counts by 1"]),
        ({"Zone": "", "Count": "5"}, ["5 in h200 = 5 instances, and", "more than 4"]),
    ],
)
def test_a_plan_that_does_not_fit(handler_account: HandlerAccount, change: dict[str, str], output: list[str]) -> None:
    reason = failed(handler_account.run(Arn=handler_account.bought(), Needs=[NEEDS[0] | change]))
    assert [words for words in output if words not in reason] == []
    assert handler_account.schedules.there == {}


def test_groups_count_together(handler_account: HandlerAccount) -> None:
    arn = handler_account.bought()
    two = [NEEDS[0] | {"Count": "2"}, NEEDS[0] | {"Group": "more", "Count": "3"}]
    assert "2 in h200 + 3 in more = 5 instances" in failed(handler_account.run(Arn=arn, Needs=two))
    assert succeeded(handler_account.run(Arn=arn, Needs=[two[0], two[1] | {"Count": "2"}])) == arn


def test_spares_of_ultraservers_are_for_nobody(handler_account: HandlerAccount) -> None:
    wish = {"InstanceType": "", "UltraServerType": "ml.u-p6e-gb200x72", "UltraServerCount": 1}
    arn = handler_account.bought(**wish)
    zone = handler_account.plans.ledger.plans[0].windows[0].zone_id
    need = NEEDS[0] | {"InstanceType": "ml.p6e-gb200.36xlarge", "Zone": zone}
    assert succeeded(handler_account.run(Arn=arn, Needs=[need | {"Count": "17"}])) == arn
    reason = failed(handler_account.run(Arn=arn, Needs=[need | {"Count": "18"}]))
    assert "never has more than 17 there, 1 kept as spares left aside; lower the counts by 1" in reason


def test_a_plan_for_something_else(handler_account: HandlerAccount) -> None:
    reason = failed(handler_account.run(Arn=handler_account.bought(target="training-job")))
    assert "serves training-job, and instance groups need hyperpod-cluster" in reason
    assert "reserve another plan for hyperpod-cluster" in reason


def test_parts_that_follow_each_other_do_not_add_up(handler_account: HandlerAccount) -> None:
    arn = handler_account.bought(parts=2)
    zones = {window.zone_id for window in handler_account.plans.ledger.plans[0].windows}
    need = NEEDS[0] | {"Zone": min(zones)}
    assert succeeded(handler_account.run(Arn=arn, Needs=[need])) == arn
    assert "never has more than 4" in failed(handler_account.run(Arn=arn, Needs=[need | {"Count": "8"}]))


@pytest.mark.parametrize(
    ("changes", "output"),
    [
        ({"count": 8}, "has 4 instances, not 8"),
        ({"zones": ("usw2-az4",)}, "is in usw2-az2, not usw2-az4"),
        ({"hours": 56 * 24}, "lasts 28 days, not 56"),
    ],
)
def test_what_was_bought_cannot_be_changed_by_the_file(
    handler_account: HandlerAccount, changes: dict[str, Any], output: str
) -> None:
    arn = succeeded(handler_account.run())
    other = replace(REQUEST, max_upfront_usd=10_000_000, **changes).to_properties()
    reason = failed(handler_account.run("Update", Request=other, PhysicalResourceId=arn))
    assert f"prod-q1 is bought already and {output}" in reason
    assert "under a name of its own" in reason
    # CloudFormation goes back to the request before.
    assert succeeded(handler_account.run("Update", PhysicalResourceId=arn)) == arn
    assert len(handler_account.charges) == 1


def test_a_plan_that_was_extended_is_what_was_asked_for(handler_account: HandlerAccount) -> None:
    arn = succeeded(handler_account.run())
    extend(handler_account, arn)
    assert succeeded(handler_account.run("Update", PhysicalResourceId=arn)) == arn


def extend(handler_account: HandlerAccount, arn: str) -> None:
    training_plan_extension_offerings = handler_account.plans.search_training_plan_offerings(TrainingPlanArn=arn)[
        "TrainingPlanExtensionOfferings"
    ]
    handler_account.plans.extend_training_plan(
        TrainingPlanExtensionOfferingId=training_plan_extension_offerings[-1]["TrainingPlanExtensionOfferingId"]
    )
    handler_account.now += handler_account.plans.ledger.payment


def times(handler_account: HandlerAccount) -> dict[str, str]:
    return {name: each["ScheduleExpression"] for name, each in handler_account.schedules.there.items()}


def test_people_are_reminded_four_times(handler_account: HandlerAccount) -> None:
    arn = handler_account.bought()
    succeeded(handler_account.run(Arn=arn))
    assert times(handler_account) == {
        "20270104T1130Z-14d": "at(2026-12-21T11:30:00)",
        "20270104T1130Z-7d": "at(2026-12-28T11:30:00)",
        "20270104T1130Z-1d": "at(2027-01-03T11:30:00)",
        "20270104T1130Z-1h": "at(2027-01-04T10:30:00)",
    }
    last = handler_account.schedules.there["20270104T1130Z-1h"]
    assert (last["ScheduleExpressionTimezone"], last["ActionAfterCompletion"]) == ("UTC", "DELETE")
    assert last["Target"]["Arn"] == "arn:aws:scheduler:::aws-sdk:sns:publish"
    message = json.loads(last["Target"]["Input"])
    assert (message["TopicArn"], message["Subject"]) == (TOPIC, "Training plan q1 of prod ends in 1 hour")
    assert "30 minutes before, at 2027-01-04 11:00 UTC: jobs must have written a checkpoint" in message["Message"]
    assert "podwright capacity extend prod q1" in message["Message"]
    assert arn in message["Message"]


@pytest.mark.parametrize(
    ("days", "left"), [(10, {"14d", "7d", "1d", "1h"}), (25, {"7d", "1d", "1h"}), (33, {"1d", "1h"}), (33.95, {"1h"})]
)
def test_past_reminders_are_left_out(handler_account: HandlerAccount, days: float, left: set[str]) -> None:
    arn = handler_account.bought()
    handler_account.now += timedelta(days=days)
    succeeded(handler_account.run(Arn=arn))
    assert {name.partition("-")[2] for name in times(handler_account)} == left


def test_a_short_plan_is_not_announced_before_it_begins(handler_account: HandlerAccount) -> None:
    succeeded(handler_account.run(Arn=handler_account.bought(DurationHours=3 * 24)))
    assert {name.partition("-")[2] for name in times(handler_account)} == {"1d", "1h"}


def test_an_extension_moves_the_reminders(handler_account: HandlerAccount) -> None:
    arn = handler_account.bought()
    succeeded(handler_account.run(Arn=arn))
    before = set(times(handler_account))
    extend(handler_account, arn)
    succeeded(handler_account.run("Update", Arn=arn, End="2027-02-01T11:30Z", PhysicalResourceId=arn))
    assert len(times(handler_account)) == 4
    assert before.isdisjoint(times(handler_account))


def test_each_part_of_a_plan_has_its_end(handler_account: HandlerAccount) -> None:
    arn = handler_account.bought(parts=2)
    zones = {window.zone_id for window in handler_account.plans.ledger.plans[0].windows}
    succeeded(handler_account.run(Arn=arn, Needs=[NEEDS[0] | {"Zone": min(zones)}]))
    ends = sorted({name.partition("-")[0] for name in times(handler_account)})
    assert len(ends) == 2
    output = [json.loads(handler_account.schedules.there[f"{end}-1h"]["Target"]["Input"])["Message"] for end in ends]
    assert "A part of plan q1 of prod ends" in output[0]
    assert "The next part starts at" in output[0]
    assert "Training plan q1 of prod ends" in output[1]


def test_reminders_that_two_runs_make_at_once(handler_account: HandlerAccount) -> None:
    arn = handler_account.bought()
    succeeded(handler_account.run(Arn=arn))
    handler_account.schedules.hidden = set(handler_account.schedules.there)
    assert succeeded(handler_account.run(Arn=arn)) == arn
    assert len(times(handler_account)) == 4


def test_delete_cancels_nothing_and_says_so(handler_account: HandlerAccount) -> None:
    arn = succeeded(handler_account.run())
    assert succeeded(handler_account.run("Delete", PhysicalResourceId=arn)) == arn
    (message,) = handler_account.published.calls
    assert message["Subject"] == "Training plan q1 of prod was not cancelled"
    assert "paid for until its end" in message["Message"]
    assert arn in message["Message"]
    assert handler_account.plans.describe_training_plan(TrainingPlanName=arn)["Status"] == "Scheduled"


def test_delete_succeeds_when_nobody_can_be_told(handler_account: HandlerAccount) -> None:
    arn = succeeded(handler_account.run())
    handler_account.published.error = RuntimeError("the topic is gone")
    assert succeeded(handler_account.run("Delete", PhysicalResourceId=arn)) == arn


def test_delete_of_what_never_came_to_be_says_nothing(handler_account: HandlerAccount) -> None:
    assert succeeded(handler_account.run("Delete", PhysicalResourceId="Plan-not-created")) == "Plan-not-created"
    assert handler_account.published.calls == []


def test_a_long_wait_goes_on_in_another_invocation_that_buys_nothing(handler_account: HandlerAccount) -> None:
    handler_account.plans.ledger.payment = timedelta(minutes=20)
    assert handler_account.run() is None
    (call,) = handler_account.invoked.calls
    assert (call["FunctionName"], call["InvocationType"]) == (FUNCTION_ARN, "Event")
    again = json.loads(call["Payload"])
    assert again["Arn"].endswith("prod-q1")
    handler_account.plans.faults.append(Fault("create_training_plan", "error"))
    assert succeeded(handler_account.run_event(again)) == again["Arn"]
    assert len(handler_account.charges) == 1


def test_a_plan_that_fails_during_a_long_wait_fails_this_deployment(handler_account: HandlerAccount) -> None:
    handler_account.plans.ledger.payment = timedelta(minutes=15)
    handler_account.plans.ledger.payment_failure = "the card was refused"
    assert handler_account.run() is None
    handler_account.now += timedelta(minutes=10)
    assert "failed: the card was refused" in failed(
        handler_account.run_event(json.loads(handler_account.invoked.calls[0]["Payload"]))
    )
    assert len(handler_account.charges) == 1


def test_a_payment_that_does_not_come_through_is_told(handler_account: HandlerAccount) -> None:
    handler_account.plans.ledger.payment = timedelta(hours=3)
    event, answer = handler_account.event(), None
    runs = 0
    while answer is None:
        answer = handler_account.run_event(event)
        event = json.loads(handler_account.invoked.calls[-1]["Payload"])
        runs += 1
    assert "is still Pending after 55 minutes" in failed(answer)
    assert runs == 5
    handler_account.now += timedelta(hours=3)
    succeeded(handler_account.run())
    assert len(handler_account.charges) == 1
