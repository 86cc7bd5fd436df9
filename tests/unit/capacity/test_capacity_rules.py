"""Rules on capacity where one example a page is too few."""

import pytest

from podwright.planning.rules import findings
from rule_pages import loaded

ARN = "arn:aws:sagemaker:us-west-2:111122223333:training-plan/q1"


def found(plan: str, *groups: str) -> dict[str, str]:
    """Findings on capacity by id, for groups that draw on a plan of GB200 UltraServers."""
    lines = [
        f"  {chr(97 + index)}: {{instance_type: ml.p6e-gb200.36xlarge, {group}}}" for index, group in enumerate(groups)
    ]
    example = loaded(
        f'training_plans:\n  q1: {{arn: "{ARN}", zone: usw2-az2, ultraserver_type: ml.u-p6e-gb200x72, {plan}}}\n'
        + "\n".join(["instance_groups:", *lines])
    )
    all_found = findings(example.environment, example.source)
    return {item.id: item.message for item in all_found if item.id.startswith("CAP") and item.id != "CAP038"}


ON_PLAN = "capacity: {training_plan: q1}"


@pytest.mark.parametrize(
    ("plan", "counts", "ids"),
    [
        ("ultraserver_count: 1", [18], set()),
        ("ultraserver_count: 1", [19], {"CAP004", "CAP014"}),
        ("ultraserver_count: 2", [18, 18], set()),
        ("ultraserver_count: 2", [18, 36], {"CAP004"}),
        ("ultraserver_count: 1, spares_per_ultraserver: 1", [17], set()),
        ("ultraserver_count: 1, spares_per_ultraserver: 1", [18], {"CAP035"}),
        ("ultraserver_count: 1, spares_per_ultraserver: 0", [18], set()),
        ("ultraserver_count: 1, spares_per_ultraserver: 17", [1], set()),
        ("ultraserver_count: 1, spares_per_ultraserver: 18", [18], {"CAP034"}),
        ("ultraserver_count: 2, spares_per_ultraserver: 2", [16, 16], set()),
        ("ultraserver_count: 2, spares_per_ultraserver: 2", [16, 17], {"CAP014", "CAP035"}),
        ("ultraserver_count: 1", [17], {"CAP014"}),
    ],
)
def test_groups_share_the_ultraservers_of_a_plan(plan: str, counts: list[int], ids: set[str]) -> None:
    assert set(found(plan, *(f"count: {count}, {ON_PLAN}" for count in counts))) == ids


def test_the_sum_names_its_parts() -> None:
    message = found("ultraserver_count: 1", f"count: 9, {ON_PLAN}", f"count: 18, {ON_PLAN}")["CAP004"]
    assert "9 in a + 18 in b = 27 instances, and the plan has 18" in message


def test_an_empty_on_demand_group_takes_nothing_of_the_account_team() -> None:
    example = loaded("""
        instance_groups:
          h200: {capacity: account_team}
          more: {instance_type: ml.p5en.48xlarge, count: 0, zone: usw2-az2}
          elsewhere: {instance_type: ml.p5en.48xlarge, count: 2, zone: usw2-az3}
        """)
    assert "CAP032" not in {item.id for item in findings(example.environment, example.source)}


@pytest.mark.parametrize(("count", "messages"), [(1, False), (2, True)])
def test_two_instances_are_enough_to_need_a_compute_domain(count: int, messages: bool) -> None:
    example = loaded(f"instance_groups:\n  a: {{instance_type: ml.p6e-gb200.36xlarge, count: {count}}}\n")
    assert ("CAP038" in {item.id for item in findings(example.environment, example.source)}) is messages
