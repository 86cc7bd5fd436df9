"""What costs change by date: support of Kubernetes, terms of training plans, and what Karpenter may add."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from podwright.config.settings.environment import Environment
from podwright.operations import cli
from podwright.operations.environments.costs import brief, lines
from podwright.planning.cost.costs import costs, total
from podwright.planning.cost.months import months, price_changes
from podwright.planning.cost.scaled import limit_words, scaled_types
from podwright.planning.rules import findings
from rule_pages import loaded
from screens import text_of

DAY = date(2026, 11, 26)
PLAN = """
    cluster: {eks: {support: standard}}
    training_plans:
      q1: {arn: "arn:aws:sagemaker:us-west-2:111122223333:training-plan/q1", zone: usw2-az2, %s}
    instance_groups: {h200: {capacity: {training_plan: q1}}}
    """


def environment(piece: str) -> Environment:
    return loaded(piece).environment


def rows(actual: Environment, day: date = DAY) -> dict[str, float]:
    return {f"{month.first:%Y-%m}": month.total.monthly for month in months(actual, day)}


def words(actual: Environment, day: date = DAY) -> list[str]:
    return [text for month in months(actual, day) for text in month.why]


def test_extended_support_costs_more_from_its_day_on() -> None:
    actual = environment("{}")
    (change,) = price_changes(actual, DAY)
    assert (change.name, change.on) == ("eks_extended_support", date(2026, 12, 2))
    assert (change.hourly, change.monthly) == (pytest.approx(0.5), pytest.approx(365))
    assert price_changes(actual, date(2026, 12, 2)) == []


def test_the_month_of_the_change_has_both_prices_by_days() -> None:
    actual = rows(environment("{}"))
    assert list(actual) == ["2026-11", "2026-12", "2027-01"]
    before = total(costs(environment("{}"), DAY)).monthly
    assert actual["2026-11"] == pytest.approx(before)
    # One of 31 days is still in standard support.
    assert actual["2026-12"] == pytest.approx(before + 365 * 30 / 31)
    assert actual["2027-01"] == pytest.approx(before + 365)
    assert words(environment("{}")) == ["extended support from 2026-12-02: +$0.50 an hour, +$365 a month"]


@pytest.mark.parametrize(
    ("day", "expected"), [(date(2026, 12, 1), "eks_control_plane"), (date(2026, 12, 2), "eks_extended_support")]
)
def test_the_day_itself_is_in_extended_support(day: date, expected: str) -> None:
    assert expected in {item.name for item in costs(environment("{}"), day)}


@pytest.mark.parametrize(
    "piece",
    [
        "cluster: {eks: {support: standard}}",
        "cluster: {eks: {version: '1.37'}}",
        "cluster: {eks: {existing: {name: a, security_group: sg-00000000, "
        "kubectl_role: 'arn:aws:iam::111122223333:role/K'}}}",
    ],
)
def test_nothing_changes_where_extended_support_is_not_paid(piece: str) -> None:
    assert price_changes(environment(piece), DAY) == []
    assert months(environment(piece), DAY) == []


def test_what_changes_after_a_year_is_no_row_yet() -> None:
    assert months(environment("{}"), date(2025, 12, 31)) == []
    # In twelve months, this one included.
    assert list(rows(environment("{}"), date(2026, 1, 1)))[-1] == "2026-12"


def test_months_that_cost_the_same_are_one_row() -> None:
    (first, *_) = months(environment("{}"), date(2026, 8, 26))
    assert (first.first, first.last) == (date(2026, 8, 1), date(2026, 11, 1))


@pytest.mark.parametrize(
    ("settings", "paid"),
    [
        # 4 instances from the middle of one month to the middle of the next.
        ("count: 4, start: 2027-01-20, end: 2027-02-10T12:00Z, paid_usd: 26880", 26880),
        (
            "windows: [{start: 2027-01-04, end: 2027-01-11, count: 4, zone: usw2-az2}, "
            "{start: 2027-02-01, end: 2027-02-08, count: 2, zone: usw2-az2}], paid_usd: 40320",
            40320,
        ),
    ],
)
def test_all_months_of_a_plan_come_to_what_was_paid(settings: str, paid: int) -> None:
    actual = environment(PLAN % settings)
    assert list(rows(actual)) == ["2026-11", "2027-01", "2027-02", "2027-03"]
    of_plan = {f"{month.first:%Y-%m}": month.total.prepaid for month in months(actual, DAY)}
    assert of_plan["2026-11"] == of_plan["2027-03"] == 0
    assert sum(of_plan.values()) == pytest.approx(paid)
    assert of_plan["2027-01"] > of_plan["2027-02"] > 0
    assert words(actual)[0].startswith("plan q1 from 2027-01-")


def test_a_plan_without_dates_leaves_months_unknown() -> None:
    actual = environment(PLAN.replace("support: standard", "support: extended") % "count: 4, days: 7, paid_usd: 26880")
    assert [month.total.misleading for month in months(actual, DAY)] == [True, True, True]


def test_a_month_above_the_budget_is_named() -> None:
    before = int(total(costs(environment("{}"), DAY)).monthly) + 1
    actual = environment(f"observability: {{budget_usd_per_month: {before + 100}}}")
    printed = " ".join(text_of(lines(actual, costs(actual, DAY), DAY)).split())
    assert printed.count(f"above the budget of ${before + 100:,}") == 2


def test_the_line_of_check_says_it_90_days_before() -> None:
    assert "+$365.00 a month from 2026-12-02" in brief(environment("{}"), date(2026, 9, 3))["summary"]
    assert "from 2026-12-02" not in brief(environment("{}"), date(2026, 9, 2))["summary"]


@pytest.mark.parametrize(
    ("day", "message"),
    [
        (date(2026, 9, 2), ""),
        (date(2026, 9, 3), "standard support of Kubernetes 1.34 ends on 2026-12-02; extended support costs more"),
        (date(2026, 12, 2), "standard support of Kubernetes 1.34 ended on 2026-12-02"),
    ],
)
def test_a_rule_warns_90_days_before(day: date, message: str) -> None:
    actual = [item for item in findings(environment("{}"), None, day) if item.id == "UPG002"]
    assert [(item.level, item.path) for item in actual] == ([("warning", "cluster.eks.version")] if message else [])
    assert all(item.message.startswith(message) for item in actual)


def test_without_a_day_the_rule_and_what_accepts_it_are_silent() -> None:
    accepting = environment("acknowledge: [{rule: UPG002, reason: upgraded in January}]")
    assert findings(accepting) == []
    (accepted,) = findings(accepting, None, DAY)
    assert (accepted.id, accepted.acknowledged) == ("UPG002", "upgraded in January")
    assert [item.id for item in findings(accepting, None, date(2026, 1, 1))] == ["ENV012"]


def test_check_and_cost_take_a_day(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "environments").mkdir()
    text = 'account: "111122223333"\nregion: us-west-2\nnetwork: {zones: [usw2-az1, usw2-az2]}\n'
    text += "instance_groups: {system: {instance_type: ml.m5.4xlarge, count: 2}}\n"
    (tmp_path / "environments/one.yaml").write_text(text)

    def answer(command: str, day: str) -> Any:
        assert cli.main([command, "one", "--date", day, "--json", "--project", str(tmp_path)]) == 0
        return json.loads(capsys.readouterr().out)

    def ids(day: str) -> set[str]:
        (checked,) = answer("check", day)["environments"]
        return {item["id"] for item in checked["findings"]}

    assert ids("2026-11-26") - ids("2026-08-01") == {"UPG002"}
    cost = answer("cost", "2026-11-26")
    assert cost["price_changes"] == [
        {
            "name": "eks_extended_support",
            "on": "2026-12-02",
            "hourly": pytest.approx(0.5),
            "monthly": pytest.approx(365),
        }
    ]
    assert [(month["first"], bool(month["why"])) for month in cost["months"]] == [
        ("2026-11", False),
        ("2026-12", True),
        ("2027-01", False),
    ]
    assert answer("cost", "2026-12-02")["price_changes"] == []


SCALED = """
    cluster: {autoscaling: {karpenter: {groups: [burst, mixed], limits: {%s}}}}
    instance_groups:
      burst: {instance_type: ml.g5.12xlarge, count: 0, zone: usw2-az2}
      mixed: {instance_types: [ml.g5.12xlarge, ml.c5.18xlarge], count: 0, zone: usw2-az2}
    """


@pytest.mark.parametrize(
    ("limits", "nodes"),
    [
        # Of four GPUs and 48 vCPUs; of none and 72.
        ("accelerators: 10, vcpu: 384", [2, 5]),
        ("vcpu: 100", [2, 1]),
        ("accelerators: 8", [2, None]),
        ("memory_gib: 192", [1, 1]),
    ],
)
def test_karpenter_may_add_so_many_of_each_type(limits: str, nodes: list[int | None]) -> None:
    kinds = scaled_types(environment(SCALED % limits))
    assert [kind.instance_type for kind in kinds] == ["ml.g5.12xlarge", "ml.c5.18xlarge"]
    assert [kind.groups for kind in kinds] == [("burst", "mixed"), ("mixed",)]
    assert [kind.nodes for kind in kinds] == nodes
    assert all(
        kind.hourly is None or (kind.price and kind.hourly == kind.price.usd * (kind.nodes or 0)) for kind in kinds
    )


def test_what_karpenter_may_add_is_in_no_sum() -> None:
    actual = environment(SCALED % "accelerators: 8")
    printed = " ".join(text_of(lines(actual, costs(actual, DAY), DAY)).split())
    assert "Not in the sums: nodes that Karpenter adds while pods wait, up to 8 accelerators together." in printed
    assert "ml.c5.18xlarge mixed no limit" in printed
    karpenter = environment(SCALED % "accelerators: 8, vcpu: 1000, memory_gib: 64").cluster.karpenter
    assert karpenter
    assert limit_words(karpenter) == "8 accelerators, 1,000 vCPUs and 64 GiB of memory"
    assert scaled_types(environment("{}")) == []
