"""Training plans in environment files: moments, states, and what plans in parts mean for groups."""

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from podwright.config.findings import Finding
from podwright.config.settings.plans import TrainingPlan
from podwright.planning.rules import findings
from rule_pages import loaded

PLAN = "arn: arn:aws:sagemaker:us-west-2:111122223333:training-plan/q1, zone: usw2-az2"
PARTS = (
    "windows: [{start: 2027-01-04, end: 2027-01-18, count: 4, zone: usw2-az2},"
    " {start: 2027-01-11, end: 2027-01-25, count: 2, zone: usw2-az2},"
    " {start: 2027-02-01, end: 2027-02-15, count: 8, zone: usw2-az3}]"
)


def found(id: str, plan: str, groups: str) -> list[Finding]:
    example = loaded(f"training_plans: {{q1: {{{plan}}}}}\ninstance_groups:\n{groups}")
    return [item for item in findings(example.environment, example.source) if item.id == id]


def group(name: str, more: str) -> str:
    return f"  {name}: {{instance_type: ml.p5en.48xlarge, capacity: {{training_plan: q1}}, {more}}}\n"


@pytest.mark.parametrize(
    ("text", "timestamp"),
    [
        ("2027-01-04", datetime(2027, 1, 4, tzinfo=UTC)),
        ("2027-01-04T11:30Z", datetime(2027, 1, 4, 11, 30, tzinfo=UTC)),
        ("2027-01-04 11:30:15", datetime(2027, 1, 4, 11, 30, 15, tzinfo=UTC)),
        ("2027-01-04T01:30+02:00", datetime(2027, 1, 3, 23, 30, tzinfo=UTC)),
    ],
)
def test_moments_are_in_utc(text: str, timestamp: datetime) -> None:
    plan = TrainingPlan.model_validate({"zone": "usw2-az2", "start": text})
    assert plan.start == timestamp
    assert plan.start
    assert plan.start.tzinfo is UTC
    assert TrainingPlan.model_validate(plan.model_dump()) == plan
    assert TrainingPlan.model_validate(plan.model_dump(mode="json")) == plan


@pytest.mark.parametrize(
    "text", ["20270104", "2027-02-30", "2027-1-4", "4711", "tomorrow", "", "0001-01-01T00:00+05:00", "2027-W01-1", True]
)
def test_what_is_no_moment_is_refused(text: object) -> None:
    with pytest.raises(ValidationError, match="a date such as 2027-01-04"):
        TrainingPlan.model_validate({"zone": "usw2-az2", "start": text})


@pytest.mark.parametrize(
    ("more", "state"),
    [
        ({}, "wanted"),
        ({"purchase": "true"}, "purchase"),
        ({"arn": "arn:aws:sagemaker:us-west-2:111122223333:training-plan/q1"}, "exists"),
        ({"arn": "arn:aws:sagemaker:us-west-2:111122223333:training-plan/q1", "purchase": "true"}, "exists"),
    ],
)
def test_a_plan_with_an_arn_is_never_bought(more: dict[str, str], state: str) -> None:
    assert TrainingPlan.model_validate({"zone": "usw2-az2", **more}).state == state


def test_groups_may_be_in_every_zone_of_a_plan() -> None:
    for zone, problems in (("usw2-az2", 0), ("usw2-az3", 0), ("usw2-az1", 1)):
        assert len(found("CAP002", f"{PLAN}, {PARTS}", group("h200", f"count: 1, zone: {zone}"))) == problems


def test_every_zone_of_a_plan_has_a_subnet() -> None:
    (problem,) = found("NET004", f"{PLAN}, {PARTS.replace('usw2-az3', 'usw2-az1')}", group("h200", "count: 1"))
    assert "usw2-az1, which has no subnet" in problem.message


def test_parts_at_one_time_in_one_zone_add_up() -> None:
    two = group("h200", "count: 4, zone: usw2-az2") + group("more", "count: 2, zone: usw2-az2")
    assert not found("CAP025", f"{PLAN}, {PARTS}", two)
    (problem,) = found("CAP025", f"{PLAN}, {PARTS}", two.replace("count: 2", "count: 3"))
    assert "4 in h200 + 3 in more = 7 instances, and no moment of the plan has more than 6" in problem.message
    assert not found("CAP025", f"{PLAN}, {PARTS}", group("h200", "count: 8, zone: usw2-az3"))


@pytest.mark.parametrize(
    ("plan", "says"),
    [
        (f"{PLAN}, {PARTS}", "comes in 3 parts, with no capacity between them"),
        (f"{PLAN}, start: 2027-01-04", "starts 2027-01-04T00:00Z"),
        ("zone: usw2-az2, purchase: true, max_upfront_usd: 1", "may start weeks after the deployment"),
    ],
)
def test_a_minimum_waits_for_the_plan(plan: str, says: str) -> None:
    (problem,) = found("CAP022", plan, group("h200", "count: 4, min_count: 1"))
    assert says in problem.message
    assert "3 hours" in problem.message
    assert not found("CAP022", plan, group("h200", "count: 4, min_count: 0"))


def test_a_purchase_says_all_that_is_missing() -> None:
    (problem,) = found("CAP020", "zone: usw2-az2, purchase: true", group("h200", "count: 1"))
    assert "days, start_after and instance_type with count, or ultraserver_type" in problem.message
    ultraservers = (
        "zone: usw2-az2, purchase: true, days: 28, start_after: 2027-01-04, "
        "ultraserver_type: ml.u-p6e-gb200x72, ultraserver_count: 1"
    )
    assert not found("CAP020", ultraservers, group("h200", "count: 1"))


def test_parts_lie_within_the_plan() -> None:
    dates = "start: 2027-01-05, end: 2027-02-10"
    problems = found("CAP024", f"{PLAN}, {dates}, {PARTS}", group("h200", "count: 1"))
    assert [problem.path for problem in problems] == [
        "training_plans.q1.windows[0].start",
        "training_plans.q1.windows[2].end",
    ]
