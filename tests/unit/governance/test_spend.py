"""What teams used and what it cost: from metrics in a real Prometheus, from a budget, and from a bill."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError

from needs import require
from podwright.config.catalog.metrics import metrics
from podwright.config.settings.environment import Environment
from podwright.operations.aws.account import Account
from podwright.operations.programs.prometheus import Prometheus, history, installed
from podwright.operations.spend import measured
from podwright.operations.spend.command import lines, report
from podwright.planning.cost.showback import Hours, Rate, rates, spends
from podwright.planning.monitoring.recordings import recordings
from screens import text_of

END = 1_800_000_000
DAY = 86400
ENVIRONMENT = Environment.model_validate(
    {
        "name": "prod",
        "account": "111122223333",
        "region": "us-west-2",
        "network": {"zones": ["usw2-az1", "usw2-az2"]},
        "training_plans": {
            "q1": {
                "zone": "usw2-az2",
                "instance_type": "ml.p5.48xlarge",
                "count": 4,
                "days": 10,
                "start_after": "2027-01-04",
                "max_upfront_usd": 96000,
            }
        },
        "instance_groups": {
            "system": {"instance_type": "ml.m5.4xlarge", "count": 2},
            "h200": {"instance_type": "ml.p5en.48xlarge", "count": 4, "zone": "usw2-az2"},
            "h100": {
                "instance_type": "ml.p5.48xlarge",
                "count": 4,
                "zone": "usw2-az2",
                "min_count": 0,
                "capacity": {"training_plan": "q1"},
            },
            "burst": {"instance_type": "ml.p4d.24xlarge", "count": 2, "zone": "usw2-az2", "capacity": "spot"},
        },
        "governance": {
            "teams": {"research": {"quota": {"h200": 3, "h100": 2}}, "product": {"quota": {"h200": 1, "burst": 1}}}
        },
        "observability": {"budget_usd_per_month": 400000},
        "prices": {"ml.p5en.48xlarge": 80},
    }
)
GPU = "nvidia.com/gpu"


def samples() -> str:
    """What the recording rules of two days would hold, in so far as they are asked for."""
    days: list[tuple[str, dict[str, str], tuple[float, float]]] = []

    def add(name: str, first: float, second: float, **labels: str) -> None:
        days.append((name, {"cluster_name": "prod"} | labels, (first, second)))

    research = {"team": "research", "flavor": "ml.p5en.48xlarge", "resource": GPU}
    add("team:quota_hours:sum1d", 576, 576, **research)
    add("team:in_quota_hours:sum1d", 400, 576, **research)
    add("team:over_quota_hours:sum1d", 0, 24, **research)
    product = {"team": "product", "flavor": "ml.p4d.24xlarge", "resource": GPU}
    add("team:quota_hours:sum1d", 192, 192, **product)
    add("team:in_quota_hours:sum1d", 10, 0, **product)
    add("namespace:gpu_idle_hours:sum1d", 50, 50, namespace="hyperpod-ns-research")
    add("namespace:gpu_idle_hours:sum1d", 7, 7, namespace="kubeflow")
    add("namespace:gpu_allocated_hours:sum1d", 410, 600, namespace="hyperpod-ns-research")
    series = [(f"{{{_labels(labels)}}}", name, values) for name, labels, values in days]
    text = [f"# TYPE {name} gauge" for name in dict.fromkeys(name for _, name, _ in series)]
    for index, line in reversed(list(enumerate(text))):
        name = line.split()[2]
        text[index + 1 : index + 1] = [
            f"{name}{labels} {value} {timestamp}"
            for labels, actual, values in series
            if actual == name
            for value, timestamp in zip(values, (END - DAY, END), strict=True)
        ]
    minutes = range(END - 3600 + 60, END + 1, 60)
    text += ["# TYPE cluster:gpus:count gauge"]
    text += [f'cluster:gpus:count{{cluster_name="prod"}} 64 {timestamp}' for timestamp in minutes]
    text += ["# TYPE team:lent:sum gauge"]
    text += [f"team:lent:sum{{{_labels({'cluster_name': 'prod'} | research)}}} 8 {timestamp}" for timestamp in minutes]
    for name, value in (
        ("podwright_plan_upfront_usd", 48000),
        ("podwright_plan_start_timestamp_seconds", END - 5 * DAY),
        ("podwright_plan_end_timestamp_seconds", END + 5 * DAY),
        ("podwright_plan_instances", 4),
    ):
        state = ',state="total"' if name.endswith("instances") else ""
        text += [f"# TYPE {name} gauge", f'{name}{{cluster_name="prod",plan="q1"{state}}} {value} {END}']
    return "\n".join([*text, "# EOF", ""])


def _labels(labels: dict[str, str]) -> str:
    return ",".join(f'{name}="{value}"' for name, value in labels.items())


@pytest.fixture(scope="module")
def server() -> Iterator[Prometheus]:
    require(installed(), "Prometheus and promtool: Debian's package prometheus")
    with history(samples()) as server:
        yield server


class Clients:
    """The account's own word on money, and one that refuses."""

    id, region, endpoint = "111122223333", "us-west-2", None

    def __init__(self, *denied: str) -> None:
        self.denied, self.asked = denied, list[dict[str, Any]]()

    def client(self, service: str) -> Any:
        if service in self.denied:
            raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, f"Ask{service}")
        return self

    def get_paginator(self, _: str) -> Any:
        rows = [{"ResourceType": "AWS::Budgets::Budget", "PhysicalResourceId": "prod-Budget-1"}]
        return SimpleNamespace(paginate=lambda **_: [{"StackResourceSummaries": rows}])

    def describe_budget(self, AccountId: str, BudgetName: str) -> dict[str, Any]:
        assert (AccountId, BudgetName) == ("111122223333", "prod-Budget-1")
        spend = {"ActualSpend": {"Amount": "100000", "Unit": "USD"}, "ForecastedSpend": {"Amount": "440000"}}
        limit = {"Amount": "400000", "Unit": "USD"}
        at = datetime(2027, 1, 14, 6, tzinfo=UTC)
        return {"Budget": {"BudgetLimit": limit, "CalculatedSpend": spend, "LastUpdatedTime": at}}

    def get_cost_and_usage(self, **request: Any) -> dict[str, Any]:
        self.asked.append(request)
        first = "NextPageToken" not in request
        service, usd = ("Amazon SageMaker", "90000.5") if first else ("Amazon FSx", "1200")
        group = {"Keys": [service], "Metrics": {"UnblendedCost": {"Amount": usd, "Unit": "USD"}}}
        return {"ResultsByTime": [{"Groups": [group]}]} | ({"NextPageToken": "more"} if first else {})


def found(clients: Clients, url: str | None, *, bill_too: bool = True) -> dict[str, Any]:
    return report(ENVIRONMENT, cast(Account, clients), END, 2, bill_too=bill_too, url=url)


def test_hours_of_teams_become_money(server: Prometheus) -> None:
    made = found(Clients(), server.url)
    product, research = made["teams"]
    assert made["unseen"] == {}
    # 80 dollars an hour for eight GPUs; a p5en-hour that was lent to others is not the team's waste.
    assert (research["guaranteed"], research["in_quota"], research["borrowed"]) == (1152, 976, 24)
    assert (research["lent"], research["unused"]) == (8, 168)
    assert (research["held_usd"], research["unused_usd"]) == (10000, 1680)
    assert (research["idle"], research["idle_usd"]) == (100, 1000)
    # Spot has no price, and none is made up.
    assert (product["held_usd"], product["unpriced"], product["idle"]) == (0, 384, 0)
    assert made["cluster"] == {"gpu_hours": 64, "allocated_hours": 1010, "idle_hours": 114, "instances_usd": None}
    # What the plan cost goes before the price at which the file lets it be bought.
    assert made["rates"][f"ml.p5.48xlarge {GPU}"] == {"usd": 48000 / (4 * 240) / 8, "basis": "what plan q1 cost"}
    text = text_of(lines(made))
    for words in (
        "384 h without a price",
        "Budget of $400,000 a month, $100,000 spent (25%), $440,000 expected (110%)",
    ):
        assert words in text
    assert re.search(r"together +\$91,20[01]", text)


def test_the_bill_is_asked_for_by_tag_and_only_when_wanted(server: Prometheus) -> None:
    clients = Clients()
    assert list(found(clients, server.url)["bill"]) == ["Amazon SageMaker", "Amazon FSx"]
    assert clients.asked[0]["Filter"] == {"Tags": {"Key": "podwright:environment", "Values": ["prod"]}}
    assert clients.asked[0]["TimePeriod"] == {"Start": "2027-01-14", "End": "2027-01-16"}
    free = Clients()
    assert found(free, server.url, bill_too=False)["bill"] is None
    assert free.asked == []


def test_what_cannot_be_seen_is_named_and_the_rest_shown() -> None:
    made = found(Clients("ce"), "http://127.0.0.1:1")
    assert made["teams"] is None
    assert "refused" in made["unseen"]["metrics"]
    assert made["unseen"]["bill"] == "AccessDeniedException on Askce"
    assert made["budget"]["actual_usd"] == 100000
    assert "not seen: bill: AccessDeniedException on Askce" in text_of(lines(made))


def test_teams_that_nobody_counts_are_named(server: Prometheus) -> None:
    governance = ENVIRONMENT.governance.model_copy(update={"engine": "kai"})
    of_kai = ENVIRONMENT.model_copy(update={"governance": governance})
    made = report(of_kai, cast(Account, Clients()), END, 2, bill_too=False, url=server.url)
    assert "with engines hyperpod and kueue" in made["unseen"]["teams"]
    assert made["cluster"]["gpu_hours"] == 64


def test_every_name_that_is_asked_for_is_recorded_or_measured() -> None:
    queries = [*measured._OF_TEAMS.values(), *measured._OF_CLUSTER.values(), measured._PLAN_USD]
    known = {item.name for item in recordings()} | set(metrics())
    names = {name for query in queries for name in re.findall(r"([a-z][a-z0-9_:]*)\{", query)}
    assert len(names) >= 12
    assert names - known == set()


def test_rates() -> None:
    known = rates(ENVIRONMENT, {})
    assert known["ml.p5en.48xlarge", GPU] == Rate(10.0, "set by the environment")
    assert known["ml.p5.48xlarge", GPU] == Rate(96000 / (4 * 240) / 8, "at most, by plan q1")
    assert known["ml.p4d.24xlarge", GPU].usd is None


def test_what_was_paid_for_a_plan_is_its_rate_and_its_metrics_know_better() -> None:
    plan = ENVIRONMENT.training_plans["q1"].model_copy(
        update={"arn": "arn:aws:sagemaker:us-west-2:111122223333:training-plan/q1", "paid_usd": 76800}
    )
    paid = ENVIRONMENT.model_copy(update={"training_plans": {"q1": plan}})
    rate = rates(paid, {})["ml.p5.48xlarge", GPU]
    assert rate == Rate(10.0, "$76,800 paid for plan q1, spread over its 960 instance-hours")
    assert rates(paid, {"q1": 88.0})["ml.p5.48xlarge", GPU] == Rate(11.0, "what plan q1 cost")


def test_hours_that_others_held_are_not_unused() -> None:
    hours = Hours("a", "f", GPU, guaranteed=100, in_quota=20, borrowed=5, lent=90)
    assert (hours.held, hours.unused) == (25, 0)
    (spend,) = spends([hours], {("f", GPU): Rate(2.0, "")}, {})
    assert (spend.held_usd, spend.idle, spend.idle_usd) == (50, None, None)
