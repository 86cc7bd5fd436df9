"""The sandbox's training plans in memory: offers, purchases, a plan's life, extensions, UltraServers and faults.

Every answer is held against the shapes of SageMaker's service model.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError
from botocore.session import Session
from botocore.validate import ParamValidator

from podwright.sandbox.training_plans.faults import Fault
from podwright.sandbox.training_plans.lifecycle import Plan, Window
from podwright.sandbox.training_plans.offers import Supply
from podwright.sandbox.training_plans.plans import TrainingPlans

NOW = datetime(2026, 12, 1, 9, 13, tzinfo=UTC)
WISH: dict[str, Any] = {"InstanceType": "ml.p5en.48xlarge", "InstanceCount": 16, "DurationHours": 28 * 24}
U72 = "ml.u-p6e-gb200x72"


@cache
def model() -> Any:
    return Session().get_service_model("sagemaker")


def fits(shape: Any, value: Any) -> None:
    report = ParamValidator().validate(value, shape)
    assert not report.has_errors(), report.generate_report()
    known = set(shape.members)
    assert set(value) <= known, set(value) - known


class Checked:
    """The double with its requests and answers held against the service model."""

    def __init__(self, plans: TrainingPlans):
        self.plans = plans

    def __getattr__(self, name: str) -> Callable[..., Any]:
        operation = model().operation_model("".join(word.title() for word in name.split("_")))

        def call(**request: Any) -> Any:
            fits(operation.input_shape, request)
            answer = getattr(self.plans, name)(**request)
            fits(operation.output_shape, answer)
            return answer

        return call


class TrainingPlanDouble:
    def __init__(self, **settings: Any):
        self.moment = NOW
        self.plans = TrainingPlans(lambda: self.moment, **settings)
        self.ledger, self.api = self.plans.ledger, Checked(self.plans)

    def offers(self, **wish: Any) -> list[dict[str, Any]]:
        request = {**WISH, "TargetResources": ["hyperpod-cluster"], **wish}
        request = {key: value for key, value in request.items() if value is not None}
        return self.api.search_training_plan_offerings(**request)["TrainingPlanOfferings"]

    def buy(self, offer: dict[str, Any], name: str = "h200", **more: Any) -> str:
        identifier = offer["TrainingPlanOfferingId"]
        return self.api.create_training_plan(TrainingPlanName=name, TrainingPlanOfferingId=identifier, **more)[
            "TrainingPlanArn"
        ]

    def status(self, arn: str) -> str:
        return self.api.describe_training_plan(TrainingPlanName=arn)["Status"]

    def listed(self, **request: Any) -> list[str]:
        summaries = self.api.list_training_plans(**request)["TrainingPlanSummaries"]
        return [plan["TrainingPlanName"] for plan in summaries]


@pytest.fixture
def account() -> TrainingPlanDouble:
    return TrainingPlanDouble()


def refused(code: str, words: str = "") -> Any:
    return pytest.raises(ClientError, match=f"\\({code}\\).*{words}")


def parts(offer: dict[str, Any]) -> list[tuple[str, datetime, datetime]]:
    return [
        (part["AvailabilityZone"], part["StartTime"], part["EndTime"]) for part in offer["ReservedCapacityOfferings"]
    ]


def test_offers_differ_in_zone_week_and_price_and_keep_their_ids(account: TrainingPlanDouble) -> None:
    offers = account.offers()
    single = [offer for offer in offers if len(offer["ReservedCapacityOfferings"]) == 1]
    assert {zone for offer in single for zone, _, _ in parts(offer)} == {"us-west-2a", "us-west-2c", "us-west-2d"}
    assert len({start for offer in single for _, start, _ in parts(offer)}) == 3
    assert len({offer["UpfrontFee"] for offer in single}) > 1
    assert account.offers() == offers


def test_an_offer_at_once_begins_in_half_an_hour_and_ends_at_half_past_eleven(account: TrainingPlanDouble) -> None:
    (_, start, end), *_ = parts(account.offers()[0])
    assert (start, end) == (NOW.replace(minute=40), datetime(2026, 12, 29, 11, 30, tzinfo=UTC))
    assert (account.offers()[0]["DurationHours"], account.offers()[0]["DurationMinutes"]) == (673, 50)


def test_offers_come_split_in_one_zone_and_in_two(account: TrainingPlanDouble) -> None:
    split = [parts(offer) for offer in account.offers() if len(offer["ReservedCapacityOfferings"]) == 2]
    assert [[zone for zone, _, _ in offer] for offer in split] == [
        ["us-west-2a", "us-west-2a"], ["us-west-2a", "us-west-2d"],
    ]  # fmt: skip
    for (_, _, end), (_, start, _) in split:
        assert start - end == timedelta(days=3)


@pytest.mark.parametrize(
    ("wish", "offered"),
    [
        ({"InstanceCount": 64}, True),
        ({"InstanceCount": 65}, False),
        ({"DurationHours": 182 * 24}, True),
        ({"DurationHours": 183 * 24}, False),
        ({"StartTimeAfter": NOW + timedelta(weeks=7)}, True),
        ({"StartTimeAfter": NOW + timedelta(weeks=9)}, False),
        ({"EndTimeBefore": NOW + timedelta(days=29)}, True),
        ({"EndTimeBefore": NOW + timedelta(days=27)}, False),
        ({"InstanceType": None, "UltraServerType": U72, "InstanceCount": None, "UltraServerCount": 2}, True),
        ({"InstanceType": None, "UltraServerType": U72, "InstanceCount": None, "UltraServerCount": 3}, False),
        ({"InstanceType": "ml.p6e-gb200.36xlarge"}, False),
    ],
)
def test_what_is_offered(account: TrainingPlanDouble, wish: dict[str, Any], offered: bool) -> None:
    assert bool(account.offers(**wish)) is offered


def test_offers_are_for_one_target_and_for_training_jobs_when_nobody_says(account: TrainingPlanDouble) -> None:
    assert account.offers()[0]["TargetResources"] == ["hyperpod-cluster"]
    assert account.offers(TargetResources=None)[0]["TargetResources"] == ["training-job"]


def test_a_wish_names_a_type_or_an_ultraserver(account: TrainingPlanDouble) -> None:
    with refused("ValidationException", "either InstanceType or UltraServerType"):
        account.offers(UltraServerType=U72)
    with refused("ValidationException"):
        account.offers(InstanceType=None)


def test_a_plan_goes_through_its_states(account: TrainingPlanDouble) -> None:
    arn = account.buy(account.offers(StartTimeAfter=NOW + timedelta(days=7))[-1])
    observed = []
    for days in (0, 1, 7, 13, 20, 22, 26, 60):
        account.moment = NOW + timedelta(days=days, hours=3)
        if not days:
            account.moment = NOW
        plan = account.api.describe_training_plan(TrainingPlanName=arn)
        observed.append((days, plan["Status"], plan["AvailableInstanceCount"]))
    assert observed == [
        (0, "Pending", 0), (1, "Scheduled", 0), (7, "Active", 16), (13, "Active", 16),
        (20, "Active", 16), (22, "Scheduled", 0), (26, "Active", 16), (60, "Expired", 0),
    ]  # fmt: skip


def test_instances_go_half_an_hour_before_the_end(account: TrainingPlanDouble) -> None:
    arn = account.buy(account.offers()[0])
    end = account.api.describe_training_plan(TrainingPlanName=arn)["EndTime"]
    for minutes, free in ((31, 16), (30, 0)):
        account.moment = end - timedelta(minutes=minutes)
        plan = account.api.describe_training_plan(TrainingPlanName=arn)
        assert (plan["Status"], plan["AvailableInstanceCount"]) == ("Active", free)


def test_a_failed_payment_fails_the_plan_and_frees_its_capacity(account: TrainingPlanDouble) -> None:
    account.ledger.payment_failure = "The payment was declined"
    [offer, *_] = account.offers(InstanceCount=64)
    arn = account.buy(offer)
    soon = NOW + timedelta(hours=1)
    assert not [other for other in account.offers(InstanceCount=64) if parts(other)[0][1] < soon]
    account.moment += timedelta(minutes=1)
    plan = account.api.describe_training_plan(TrainingPlanName=arn)
    assert (plan["Status"], plan["StatusMessage"]) == ("Failed", "The payment was declined")
    assert {summary["Status"] for summary in plan["ReservedCapacitySummaries"]} == {"Failed"}
    assert [other for other in account.offers(InstanceCount=64) if parts(other)[0][1] < soon]


def test_what_is_sold_is_offered_no_more(account: TrainingPlanDouble) -> None:
    first, second = account.offers(InstanceCount=64), account.offers(InstanceCount=64)
    account.buy(first[0])
    with refused("ResourceNotFound", "is not available"):
        account.buy(second[0], "other")
    assert first[0] not in account.offers(InstanceCount=64)
    assert len(account.ledger.charges) == 1


def test_offers_vanish_and_grow_old(account: TrainingPlanDouble) -> None:
    [offer, later, *_] = account.offers()
    account.plans.withdraw()
    with refused("ResourceNotFound"):
        account.buy(later)
    account.offers()
    account.moment += timedelta(hours=1)
    with refused("ResourceNotFound"):
        account.buy(offer)
    assert not account.ledger.charges


def test_a_second_plan_of_a_name_is_refused_or_bought_as_the_setting_says(account: TrainingPlanDouble) -> None:
    offers = account.offers()
    account.buy(offers[0])
    with refused("ResourceInUse", "h200 already exists"):
        account.buy(offers[1])
    other = TrainingPlanDouble(duplicate_names="allow")
    arns = [other.buy(offer) for offer in other.offers()[:1] * 2]
    assert len(set(arns)) == 2
    assert [arn for arn, _ in other.ledger.charges] == arns
    assert other.api.describe_training_plan(TrainingPlanName="h200")["TrainingPlanArn"] == arns[1]
    assert other.api.describe_training_plan(TrainingPlanName=arns[0])["TrainingPlanArn"] == arns[0]


def test_names_are_checked(account: TrainingPlanDouble) -> None:
    for name in ("-a", "a_b", "a" * 65):
        with refused("ValidationException"):
            account.plans.create_training_plan(TrainingPlanName=name, TrainingPlanOfferingId="tpo-1")


def test_lists_are_stale_for_as_many_reads_as_asked(account: TrainingPlanDouble) -> None:
    account.ledger.stale_lists = 2
    arn = account.buy(account.offers()[0])
    assert [account.listed() for _ in range(4)] == [[], [], ["h200"], ["h200"]]
    account.moment += timedelta(minutes=1)
    [extension, *_] = account.api.search_training_plan_offerings(TrainingPlanArn=arn)["TrainingPlanExtensionOfferings"]
    identifier = extension["TrainingPlanExtensionOfferingId"]
    account.api.extend_training_plan(TrainingPlanExtensionOfferingId=identifier)
    reads = [
        account.api.describe_training_plan_extension_history(TrainingPlanArn=arn)["TrainingPlanExtensions"]
        for _ in range(3)
    ]
    assert [len(read) for read in reads] == [0, 0, 1]


def test_lists_are_paged_sorted_and_filtered(account: TrainingPlanDouble) -> None:
    offers = account.offers(InstanceCount=8)
    for name, offer in zip("bca", offers[2::-1], strict=True):
        account.buy(offer, name)
    account.moment += timedelta(hours=1)
    first = account.api.list_training_plans(MaxResults=2, SortBy="TrainingPlanName")
    rest = account.api.list_training_plans(MaxResults=2, SortBy="TrainingPlanName", NextToken=first["NextToken"])
    names = [plan["TrainingPlanName"] for page in (first, rest) for plan in page["TrainingPlanSummaries"]]
    assert (names, "NextToken" in rest) == (["a", "b", "c"], False)
    assert account.listed() == ["a", "c", "b"]
    assert account.listed(SortOrder="Descending") == ["b", "c", "a"]
    assert account.listed(Filters=[{"Name": "Status", "Value": "Active"}]) == ["a"]
    assert account.listed(StartTimeAfter=NOW + timedelta(hours=1), StartTimeBefore=NOW + timedelta(days=1)) == ["c"]


def test_an_extension_counts_once_it_is_paid(account: TrainingPlanDouble) -> None:
    arn = account.buy(account.offers()[0])
    assert not account.api.search_training_plan_offerings(TrainingPlanArn=arn)["TrainingPlanExtensionOfferings"]
    account.moment += timedelta(minutes=1)
    search_training_plan_offerings = account.api.search_training_plan_offerings(TrainingPlanArn=arn, DurationHours=48)
    [offer] = search_training_plan_offerings["TrainingPlanExtensionOfferings"]
    end = account.api.describe_training_plan(TrainingPlanName=arn)["EndTime"]
    assert (offer["StartDate"], offer["EndDate"]) == (end, end + timedelta(hours=48))
    [extension] = account.api.extend_training_plan(
        TrainingPlanExtensionOfferingId=offer["TrainingPlanExtensionOfferingId"]
    )["TrainingPlanExtensions"]
    assert (extension["Status"], extension["AvailabilityZoneId"]) == ("Pending", "usw2-az2")
    assert account.api.describe_training_plan(TrainingPlanName=arn)["EndTime"] == end
    account.moment += timedelta(minutes=1)
    plan = account.api.describe_training_plan(TrainingPlanName=arn)
    assert (plan["EndTime"], plan["DurationHours"]) == (end + timedelta(hours=48), 673 + 48)
    with refused("ResourceNotFound"):
        account.api.extend_training_plan(TrainingPlanExtensionOfferingId=offer["TrainingPlanExtensionOfferingId"])
    assert [offering for _, offering in account.ledger.charges][1:] == [offer["TrainingPlanExtensionOfferingId"]]
    account.moment = end + timedelta(hours=1)
    assert account.status(arn) == "Active"


def test_where_duplicates_are_allowed_an_extension_can_be_bought_twice() -> None:
    account = TrainingPlanDouble(duplicate_names="allow")
    arn = account.buy(account.offers()[0])
    account.moment += timedelta(minutes=1)
    [offer] = account.api.search_training_plan_offerings(TrainingPlanArn=arn, DurationHours=24)[
        "TrainingPlanExtensionOfferings"
    ]
    for _ in range(2):
        account.api.extend_training_plan(TrainingPlanExtensionOfferingId=offer["TrainingPlanExtensionOfferingId"])
    account.moment += timedelta(minutes=1)
    plan = account.api.describe_training_plan(TrainingPlanName=arn)
    assert plan["EndTime"] == offer["EndDate"] + timedelta(hours=24)


def test_ultraservers_keep_spares_back(account: TrainingPlanDouble) -> None:
    wish = {"InstanceType": None, "InstanceCount": None, "UltraServerType": U72, "UltraServerCount": 2}
    [offer, *_] = account.offers(**wish)
    [part] = offer["ReservedCapacityOfferings"]
    assert (part["ReservedCapacityType"], part["UltraServerCount"], part["InstanceCount"]) == ("UltraServer", 2, 36)
    arn = account.buy(offer, SpareInstanceCountPerUltraServer=2)
    account.moment += timedelta(hours=1)
    account.plans.in_use = lambda plan, zone: {f"us-{plan.rpartition('/')[2]}-1-1": 16, f"us-{'h200'}-1-2": 4}
    plan = account.api.describe_training_plan(TrainingPlanName=arn)
    counts = [plan[f"{name}Count"] for name in ("TotalInstance", "AvailableInstance", "InUseInstance")]
    assert (counts, plan["TotalUltraServerCount"], plan["AvailableSpareInstanceCount"]) == ([36, 12, 20], 2, 4)
    [summary] = plan["ReservedCapacitySummaries"]
    capacity = account.api.describe_reserved_capacity(ReservedCapacityArn=summary["ReservedCapacityArn"])
    assert capacity["UltraServerSummary"]["AvailableSpareInstanceCount"] == 4
    pages = [
        account.api.list_ultra_servers_by_reserved_capacity(
            ReservedCapacityArn=summary["ReservedCapacityArn"], MaxResults=1, **token
        )
        for token in ({}, {"NextToken": "1"})
    ]
    servers = [page["UltraServers"][0] for page in pages]
    assert [(server["AvailableInstanceCount"], server["InUseInstanceCount"]) for server in servers] == [
        (0, 16),
        (12, 4),
    ]
    assert account.plans.places(account.ledger.plans[0], "usw2-az2") == [servers[1]["UltraServerId"]] * 12


@pytest.mark.parametrize(
    ("fault", "error", "charged"),
    [
        (Fault("create_training_plan", "throttle"), ClientError, 0),
        (Fault("create_training_plan", "error"), ClientError, 0),
        (Fault("create_training_plan", "error", after=True), ClientError, 1),
        (Fault("create_training_plan", "timeout"), ReadTimeoutError, 0),
        (Fault("create_training_plan", "timeout", after=True), ReadTimeoutError, 1),
        (Fault("create_training_plan", "vanish"), ClientError, 0),
        (Fault("create_training_plan", "throttle", skip=1), None, 1),
        (Fault("list_training_plans", "throttle"), None, 1),
    ],
)
def test_faults_meet_a_call_before_or_after_it_is_done(
    account: TrainingPlanDouble, fault: Fault, error: type[Exception] | None, charged: int
) -> None:
    account.plans.faults.append(fault)
    [offer, *_] = account.offers()
    if error:
        with pytest.raises(error):
            account.buy(offer)
        assert not account.plans.faults
    else:
        account.buy(offer)
        assert account.plans.faults == [fault]
    assert len(account.ledger.charges) == len(account.ledger.plans) == charged


def test_a_fault_meets_as_many_calls_as_it_says(account: TrainingPlanDouble) -> None:
    account.plans.faults.append(Fault("list_training_plans", "throttle", times=2))
    for _ in range(2):
        with refused("ThrottlingException"):
            account.listed()
    assert account.listed() == []


def test_what_is_for_sale_can_be_set(account: TrainingPlanDouble) -> None:
    account.ledger.supply = [Supply("usw2-az4", 4, "1.00", "ml.p5.4xlarge")]
    [offer, *_] = account.offers(InstanceType="ml.p5.4xlarge", InstanceCount=4, DurationHours=24)
    assert (parts(offer)[0][0], offer["UpfrontFee"]) == ("us-west-2d", "103.33")
    assert not account.offers()


def test_what_does_not_exist_is_not_found(account: TrainingPlanDouble) -> None:
    arn = "arn:aws:sagemaker:us-west-2:123456789012:training-plan/none"
    capacity = arn.replace("training-plan", "reserved-capacity")
    for call, request in (
        ("describe_training_plan", {"TrainingPlanName": "none"}),
        ("search_training_plan_offerings", {"TrainingPlanArn": arn}),
        ("describe_training_plan_extension_history", {"TrainingPlanArn": arn}),
        ("describe_reserved_capacity", {"ReservedCapacityArn": capacity}),
        ("list_ultra_servers_by_reserved_capacity", {"ReservedCapacityArn": capacity}),
        ("extend_training_plan", {"TrainingPlanExtensionOfferingId": "tpeo-1"}),
    ):
        with refused("ResourceNotFound"):
            getattr(account.api, call)(**request)


def test_a_plan_in_parts_ends_with_the_last_and_counts_its_largest() -> None:
    def window(instances: int, begin: int, end: int) -> Window:
        days = (NOW + timedelta(days=day) for day in (begin, end))
        return Window("ml.p5en.48xlarge", instances, "us-west-2b", "usw2-az2", *days)

    plan = Plan("n", "arn", "o", NOW, NOW, [window(16, 0, 7), window(8, 9, 14)], Decimal(1), ["hyperpod-cluster"])
    described = plan.describe(NOW, 0)
    assert (plan.end(NOW), described["EndTime"]) == (NOW + timedelta(days=14),) * 2
    assert described["TotalInstanceCount"] == 16
    statuses = [plan.status(NOW + timedelta(days=day)) for day in (1, 8, 10, 14)]
    assert statuses == ["Active", "Scheduled", "Active", "Expired"]
