"""Training plans in the sandbox, over HTTP: bought, attached to groups, in their own time, and with faults."""

import time
import urllib.error
import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, HTTPClientError

from podwright.config.catalog.sandbox_account import access_key
from podwright.config.errors import CommandError
from podwright.config.settings.environment import Environment
from podwright.operations.aws.sandbox_plans import register_plan
from podwright.operations.aws.sandbox_server import Running
from sandbox_network import Surroundings, eks_cluster, surroundings
from sandbox_stacks import turn
from waiting import until

# A region of their own: the time of its plans is nobody else's.
REGION = "us-east-2"
ZONES = ("use2-az2", "use2-az3")
NO_CAPACITY = "We currently do not have sufficient capacity for the requested instance type(s). Please try again."
U72 = "ml.u-p6e-gb200x72"
Aws = Callable[[str], Any]


@pytest.fixture(scope="module")
def here(sandbox: Running) -> Aws:
    session = boto3.Session("sandbox", "sandbox")
    config = Config(retries={"total_max_attempts": 1})

    @cache
    def client(service: str) -> Any:
        region = "us-west-2" if service == "s3" else REGION
        return session.client(service, region, endpoint_url=sandbox.endpoint, config=config)

    return client


@pytest.fixture(scope="module")
def around(here: Aws) -> Surroundings:
    return surroundings(here, ZONES)


@pytest.fixture(scope="module")
def controls(sandbox: Running) -> Callable[..., dict[str, Any]]:
    def change(**changes: Any) -> dict[str, Any]:
        return turn(sandbox.endpoint, "training-plans", {"region": REGION, **changes})

    change(payment_seconds=0)
    return change


SetControls = Callable[..., dict[str, Any]]


def offer(here: Aws, **wish: Any) -> dict[str, Any]:
    wish = wish or {"InstanceType": "ml.p5en.48xlarge", "InstanceCount": 2}
    training_plan_offerings = here("sagemaker").search_training_plan_offerings(
        **wish, DurationHours=48, TargetResources=["hyperpod-cluster"]
    )["TrainingPlanOfferings"]
    return next(item for item in training_plan_offerings if len(item["ReservedCapacityOfferings"]) == 1)


def buy(here: Aws, name: str, **wish: Any) -> str:
    identifier = offer(here, **wish)["TrainingPlanOfferingId"]
    request = {"TrainingPlanName": name, "TrainingPlanOfferingId": identifier}
    return here("sagemaker").create_training_plan(**request)["TrainingPlanArn"]


def plan(here: Aws, arn: str) -> dict[str, Any]:
    return here("sagemaker").describe_training_plan(TrainingPlanName=arn)


def zone_id(here: Aws, arn: str) -> str:
    return plan(here, arn)["ReservedCapacitySummaries"][0]["AvailabilityZoneId"]


def create(here: Aws, around: Surroundings, name: str, arn: str, subnet: int = 0, **more: Any) -> None:
    group = {
        "InstanceGroupName": "gpu",
        "InstanceType": "ml.p5en.48xlarge",
        "InstanceCount": 2,
        "ExecutionRole": around.role,
        "LifeCycleConfig": {"SourceS3Uri": around.scripts, "OnCreate": "on_create.sh"},
        "TrainingPlanArn": arn,
        **more.pop("group", {}),
    }
    vpc = {"Subnets": [around.subnets[subnet]], "SecurityGroupIds": [around.security_group]}
    here("sagemaker").create_cluster(ClusterName=name, VpcConfig=vpc, InstanceGroups=[group], **more)


def group(here: Aws, name: str) -> dict[str, Any]:
    """The group once it is as it stays: with no node under way."""
    cluster = dict[str, Any]()

    def settled() -> dict[str, Any] | None:
        nodes = here("sagemaker").list_cluster_nodes(ClusterName=name)["ClusterNodeSummaries"]
        cluster.update(here("sagemaker").describe_cluster(ClusterName=name))
        [instance_groups] = cluster["InstanceGroups"]
        running = {node["InstanceStatus"]["Status"] for node in nodes} <= {"Running"}
        if cluster["ClusterStatus"] not in ("InService", "Failed") or not running:
            return None
        return instance_groups | {"Cluster": cluster, "Nodes": nodes}

    return until(settled, lambda: cluster)


@pytest.mark.parametrize("mode", ["Continuous", None])
def test_a_group_has_nodes_while_its_plan_has_a_window(
    here: Aws, around: Surroundings, controls: SetControls, mode: str | None
) -> None:
    name = f"plan-{mode or 'whole'}".lower()
    arn = buy(here, name)
    start, end = (plan(here, arn)[key] for key in ("StartTime", "EndTime"))
    settings: dict[str, Any] = {"NodeProvisioningMode": mode} if mode else {}
    create(here, around, name, arn, **settings)
    waiting = group(here, name)
    assert (waiting["TrainingPlanStatus"], waiting["CurrentCount"], waiting["TargetCount"]) == ("Scheduled", 0, 2)
    assert waiting["Cluster"]["ClusterStatus"] == "InService"
    if mode:
        [event, *_] = here("sagemaker").list_cluster_events(ClusterName=name, ResourceType="InstanceGroup")["Events"]
        assert f"training plan {name} has its next instances at {start:%F %H:%M} UTC" in event["Description"]
    controls(at=start)
    running = group(here, name)
    assert (running["TrainingPlanStatus"], running["CurrentCount"]) == ("Active", 2)
    assert (plan(here, arn)["InUseInstanceCount"], plan(here, arn)["AvailableInstanceCount"]) == (2, 0)
    controls(at=end - timedelta(minutes=31))
    assert group(here, name)["CurrentCount"] == 2
    controls(at=end - timedelta(minutes=29))
    assert (group(here, name)["CurrentCount"], plan(here, arn)["Status"]) == (0, "Active")
    controls(at=end)
    assert group(here, name)["TrainingPlanStatus"] == "Expired"


def test_a_plan_of_another_zone_gives_no_capacity(here: Aws, around: Surroundings, controls: SetControls) -> None:
    arn = buy(here, "elsewhere")
    controls(advance_hours=1)
    assert zone_id(here, arn) == ZONES[0]
    create(here, around, "elsewhere", arn, subnet=1)
    cluster = group(here, "elsewhere")["Cluster"]
    assert (cluster["ClusterStatus"], cluster["FailureMessage"]) == ("Failed", NO_CAPACITY)


def test_groups_share_a_plan_as_far_as_it_goes(here: Aws, around: Surroundings, controls: SetControls) -> None:
    arn = buy(here, "shared", InstanceType="ml.p5en.48xlarge", InstanceCount=3)
    controls(advance_hours=1)
    for name in ("first", "second"):
        create(here, around, f"shared-{name}", arn, NodeProvisioningMode="Continuous")
    assert [group(here, f"shared-{name}")["CurrentCount"] for name in ("first", "second")] == [2, 1]
    here("sagemaker").delete_cluster(ClusterName="shared-first")
    assert group(here, "shared-second")["CurrentCount"] == 2


def test_nodes_of_ultraservers_say_which(here: Aws, around: Surroundings, controls: SetControls) -> None:
    arn = buy(here, "domain", UltraServerType=U72, UltraServerCount=2)
    controls(advance_hours=1)
    eks = eks_cluster(here, around, "domain")
    sized = {"InstanceType": "ml.p6e-gb200.36xlarge", "InstanceCount": 20}
    create(here, around, "domain", arn, group=sized)
    servers = [node["UltraServerInfo"] for node in group(here, "domain")["Nodes"]]
    [capacity] = plan(here, arn)["ReservedCapacitySummaries"]
    ultra_servers = here("sagemaker").list_ultra_servers_by_reserved_capacity(
        ReservedCapacityArn=capacity["ReservedCapacityArn"]
    )["UltraServers"]
    assert [(server["InUseInstanceCount"], server["AvailableInstanceCount"]) for server in ultra_servers] == [
        (17, 0),
        (3, 14),
    ]
    assert servers == [
        {"Id": server["UltraServerId"], "Type": U72}
        for server in ultra_servers
        for _ in range(server["InUseInstanceCount"])
    ]
    assert eks["status"]


@pytest.mark.parametrize(
    ("target", "kind", "words"),
    [
        ("training-job", "ml.p5en.48xlarge", "is for training-job, not for hyperpod-cluster"),
        ("hyperpod-cluster", "ml.p5.48xlarge", "reserves ml.p5en.48xlarge, not ml.p5.48xlarge"),
        (None, "ml.p5en.48xlarge", "does not exist"),
    ],
)
def test_a_plan_that_does_not_fit_is_refused(
    here: Aws, around: Surroundings, controls: SetControls, target: str | None, kind: str, words: str
) -> None:
    arn = f"arn:aws:sagemaker:{REGION}:123456789012:training-plan/unknown"
    if target:
        sagemaker = here("sagemaker")
        [actual, *_] = sagemaker.search_training_plan_offerings(
            InstanceType="ml.p5en.48xlarge", InstanceCount=1, TargetResources=[target]
        )["TrainingPlanOfferings"]
        arn = sagemaker.create_training_plan(
            TrainingPlanName=f"for-{target}", TrainingPlanOfferingId=actual["TrainingPlanOfferingId"]
        )["TrainingPlanArn"]
    with pytest.raises(ClientError, match=words):
        create(here, around, "refused", arn, group={"InstanceType": kind})


def test_a_plan_whose_payment_failed_is_refused(here: Aws, around: Surroundings, controls: SetControls) -> None:
    controls(payment_failure="The payment was declined")
    arn = buy(here, "unpaid")
    controls(payment_failure="")
    assert (plan(here, arn)["Status"], plan(here, arn)["StatusMessage"]) == ("Failed", "The payment was declined")
    with pytest.raises(ClientError, match="is Failed; only one that is Scheduled or Active"):
        create(here, around, "refused", arn)


@pytest.mark.parametrize(
    ("fault", "error", "bought"),
    [
        ({"kind": "throttle"}, ClientError, False),
        ({"kind": "error", "after": True}, ClientError, True),
        ({"kind": "timeout"}, HTTPClientError, False),
        ({"kind": "timeout", "after": True}, HTTPClientError, True),
        ({"kind": "vanish"}, ClientError, False),
    ],
)
def test_faults_reach_the_client(
    here: Aws, controls: SetControls, fault: dict[str, Any], error: type[Exception], bought: bool
) -> None:
    name = "-".join(["fault", *map(str, fault.values())])
    controls(faults=[{"operation": "create_training_plan", **fault}])
    with pytest.raises(error) as raised:
        buy(here, name)
    if isinstance(raised.value, ClientError):
        statuses = {"ThrottlingException": 400, "InternalFailure": 500, "ResourceNotFound": 400}
        answer = raised.value.response
        assert answer["ResponseMetadata"]["HTTPStatusCode"] == statuses[answer["Error"]["Code"]]
    listed = here("sagemaker").list_training_plans()["TrainingPlanSummaries"]
    assert (name in {item["TrainingPlanName"] for item in listed}) is bought


def test_time_can_go_faster(here: Aws, controls: SetControls) -> None:
    began = time.monotonic()
    before = datetime.fromisoformat(controls(speed=36_000)["at"])
    time.sleep(0.2)
    after = datetime.fromisoformat(controls(speed=1)["at"])
    longest = timedelta(seconds=36_000 * (time.monotonic() - began))
    assert timedelta(hours=2) <= after - before <= longest


def test_plans_of_elsewhere_can_be_made_known(here: Aws, around: Surroundings, controls: SetControls) -> None:
    arn = f"arn:aws:sagemaker:{REGION}:111122223333:training-plan/known"
    parts = [
        {"zone": ZONES[0], "count": 18},
        {"zone": ZONES[1], "count": 18, "start": datetime(2032, 1, 1, tzinfo=UTC)},
    ]
    shown = controls(existing=[{"arn": arn, "ultraserver_type": U72, "spares": 1, "parts": parts}])
    assert {"arn": arn, "status": "Active", "end": "2032-01-29T00:00:00+00:00"} in shown["plans"]
    actual = plan(here, arn)
    assert (actual["AvailableInstanceCount"], actual["TotalUltraServerCount"]) == (17, 1)
    assert [part["AvailabilityZoneId"] for part in actual["ReservedCapacitySummaries"]] == list(ZONES)


def test_plans_that_a_file_names_are_known_once_its_sandbox_is_used(sandbox: Running) -> None:
    session = boto3.Session(access_key("111122223333"), "sandbox", region_name=REGION)

    def here(service: str) -> Any:
        return session.client(service, endpoint_url=sandbox.endpoint)

    arn = f"arn:aws:sagemaker:{REGION}:111122223333:training-plan/named"
    values = {
        "name": "prod",
        "account": "111122223333",
        "region": REGION,
        "network": {"zones": [*ZONES]},
        "training_plans": {"named": {"arn": arn, "zone": ZONES[0], "instance_type": "ml.p5en.48xlarge", "count": 4}},
        "instance_groups": {"gpu": {"instance_type": "ml.p5en.48xlarge", "count": 4, "zone": ZONES[0]}},
    }
    with pytest.raises(ClientError, match="ResourceNotFound"):
        plan(here, arn)
    for _ in range(2):
        register_plan(Environment.model_validate(values), sandbox.endpoint)
    assert (plan(here, arn)["Status"], plan(here, arn)["AvailableInstanceCount"]) == ("Active", 4)
    values["training_plans"] = {"named": {"arn": f"{arn}-2", "zone": "use2-az9", "count": 4}}
    with pytest.raises(CommandError, match="us-east-2 has the zones use2-az1"):
        register_plan(Environment.model_validate(values), sandbox.endpoint)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"stale": 3}, "Extra inputs are not permitted"),
        ({"faults": [{"operation": "list_training_plans", "kind": "timeout", "when": "after"}]}, "faults.0.when"),
        ({"existing": [{"arn": "a", "parts": [{"zone": "usw2-az1", "count": 1}]}]}, "us-east-2 has the zones use2-az1"),
        (
            {"existing": [{"arn": "a", "ultraserver_type": "u", "parts": [{"zone": "z", "count": 1}]}]},
            "unknown UltraServer type u",
        ),
    ],
)
def test_what_the_sandbox_cannot_do_is_refused_with_the_reason(
    controls: SetControls, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(urllib.error.HTTPError) as raised:
        controls(**changes)
    assert raised.value.code == 400
    assert words in raised.value.read().decode()
