"""The sandbox's own operations refuse what does not exist: nobody turns a control and wonders why nothing happens."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from podwright.config.catalog.sandbox_account import SANDBOX_ACCOUNT, access_key
from podwright.operations.aws import sandbox_server
from podwright.operations.aws.sandbox_server import Running
from podwright.sandbox.authorization import authorization
from podwright.sandbox.server.controls import CONTROLS
from sandbox_network import surroundings
from sandbox_stacks import turn

DEV, NOBODY = "111122223333", "999999999999"
P5 = "ml.p5.48xlarge"
SUPPLY = {"zone_id": "usw2-az2", "count": 1, "usd_per_hour": "40"}
# Of each control, changes that name what does not exist, with the words of the answer: the name, and what there is.
UNKNOWN: dict[str, list[tuple[Any, str, str]]] = {
    "adopted": [
        ({"region": "us-west-2", "rust": 1}, "rust", "Extra inputs"),
        ({"region": "us-wst-2"}, "unknown region us-wst-2", "us-west-2"),
    ],
    "capacity": [
        ([{"zone_id": "usw2-az9"}], "unknown zone usw2-az9", "usw2-az1, usw2-az2"),
        ([{"zone_id": "mars-az1"}], "unknown zone mars-az1", "use1-az1"),
        ([{"zone_id": "usw2-az2", "instance_type": "ml.p5x"}], "unknown instance type ml.p5x", P5),
        ([{"zone_id": "usw2-az2", "type": P5}], "type", "Unexpected keyword"),
    ],
    "control-plane": [({"dev": ["kubernets"]}, "unknown part kubernets", "kueue"), ({"dev": "kueue"}, "dev", "list")],
    "faults": [
        ({"rust": []}, "unknown key rust", "nodes, lifecycle, jobs"),
        ({"nodes": [{"node": "i-0", "kind": "gpu-lost"}]}, "there is no node i-0", "there are i-"),
        ({"lifecycle": {"h20": ["no"]}}, "unknown group of lifecycle h20", "known are h200"),
        ({"verdicts": {"h20": "fail"}}, "unknown group or node of verdicts h20", "known are h200, i-"),
        ({"verdicts": {"h200": "bad"}}, "unknown kind of verdicts bad", "pass, warn, fail"),
        ({"exporters": {"dgcm": "silent"}}, "unknown exporter dgcm", "dcgm"),
        ({"exporters": {"dcgm": "loud"}}, "unknown kind of exporters loud", "silent"),
        ({"jobs": {"podwright-nccl": "rigid"}}, "unknown kind of jobs rigid", "fails, image"),
    ],
    "images": [
        ({"latest": "new"}, "latest", "pattern"),
        ({"newest": "1.1.0"}, "newest", "Extra inputs"),
        ({"security": "no"}, "security", "boolean"),
    ],
    "quotas": [
        ({"ec3": {}}, "unknown service ec3", "sagemaker"),
        ({"sagemaker": {"ml.p5x for cluster usage": 1}}, "unknown quota ml.p5x for cluster usage", P5),
        ({"sagemaker": {f"{P5} for clusters": 1}}, f"unknown quota {P5} for clusters", "{type} for cluster usage"),
    ],
    "training-plans": [
        ({"rust": 1}, "rust", "Extra inputs"),
        ({"region": "us-wst-2"}, "unknown region us-wst-2", "us-west-2"),
        (
            {"faults": [{"operation": "buy", "kind": "error"}]},
            "unknown operation of faults buy",
            "create_training_plan",
        ),
        ({"supply": [SUPPLY | {"zone_id": "use1-az1", "instance_type": P5}]}, "unknown zone of supply", "usw2-az2"),
        ({"supply": [SUPPLY]}, "unknown instance type", P5),
        ({"supply": [SUPPLY | {"ultraserver_type": "ml.u"}]}, "unknown UltraServer type ml.u", "ml.u-p6e-gb200x72"),
    ],
}


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A sandbox where only the account DEV holds something: a cluster of two groups."""
    root = tmp_path_factory.mktemp("controls")
    running = sandbox_server.start(root, port=0, time_scale=0.05, kubernetes="store")
    session = boto3.Session(access_key(DEV), "sandbox", region_name="us-west-2")

    def client(service: str) -> Any:
        return session.client(service, endpoint_url=running.endpoint)

    around = surroundings(client)
    group = {
        "InstanceGroupName": "h200",
        "InstanceType": "ml.p5en.48xlarge",
        "InstanceCount": 1,
        "ExecutionRole": around.role,
        "LifeCycleConfig": {"SourceS3Uri": around.scripts, "OnCreate": "on_create.sh"},
    }
    vpc = {"Subnets": around.subnets[:1], "SecurityGroupIds": [around.security_group]}
    client("sagemaker").create_cluster(
        ClusterName="dev", VpcConfig=vpc, InstanceGroups=[group], NodeProvisioningMode="Continuous"
    )
    yield running
    sandbox_server.stop(root)


def refused(running: Running, target: str, change: Any = None, method: str = "") -> tuple[int, str]:
    """The status and the words by which a request is refused."""
    body = None if change is None else json.dumps(change).encode()
    method = method or ("GET" if change is None else "PUT")
    with pytest.raises(urllib.error.HTTPError) as refusal:
        urllib.request.urlopen(urllib.request.Request(f"{running.endpoint}/podwright/{target}", body, method=method))
    words = refusal.value.read().decode()
    refusal.value.close()
    return refusal.value.code, words


def test_the_table_has_every_control_that_changes_something() -> None:
    assert {f"/podwright/{control}" for control in UNKNOWN} == set(CONTROLS) - {authorization.PATH}


@pytest.mark.parametrize(
    ("control", "change", "name", "allowed"), [(control, *case) for control, cases in UNKNOWN.items() for case in cases]
)
def test_a_name_that_nothing_has_is_refused(
    elsewhere: Running, control: str, change: Any, name: str, allowed: str
) -> None:
    status, words = refused(elsewhere, f"{control}?account={DEV}", change)
    assert (status, name in words, allowed in words) == (400, True, True), words


@pytest.mark.parametrize("control", UNKNOWN)
def test_an_account_is_named_and_exists(elsewhere: Running, control: str) -> None:
    change: Any = [] if control == "capacity" else {"region": "us-west-2"} if control == "adopted" else {}
    assert refused(elsewhere, control, change) == (
        404,
        f"the account {SANDBOX_ACCOUNT}, which is meant where none is named, holds nothing; say whose: "
        f"?account={DEV}\n",
    )
    status, words = refused(elsewhere, f"{control}?account={NOBODY}", change)
    assert status == 404
    assert f"nothing is in the account {NOBODY}; something is in {DEV}" in words
    assert refused(elsewhere, f"{control}?account=dev", change)[0] == 400
    assert refused(elsewhere, f"{control}?acount={DEV}", change)[0] == 400
    assert refused(elsewhere, f"{control}?account={DEV}", change, "POST")[0] == 405
    turn(elsewhere.endpoint, control, change, DEV)


def test_a_knob_that_there_is_not(elsewhere: Running) -> None:
    status, words = refused(elsewhere, f"fault?account={DEV}", {})
    assert status == 404
    assert words == f"the sandbox has no /podwright/fault; it has {', '.join(CONTROLS)}\n"


def test_what_is_to_come_may_be_named(elsewhere: Running) -> None:
    shown = turn(elsewhere.endpoint, "faults", {"lifecycle": {"b200": ["no"]}}, DEV, new=True)
    assert shown["lifecycle"] == {"b200": ["no"]}
    values = {"sagemaker": {f"{P5} for cluster usage": 0}}
    assert turn(elsewhere.endpoint, "quotas", values, "777766665555", new=True) == values
    with urllib.request.urlopen(f"{elsewhere.endpoint}/podwright/quotas?account={DEV}") as answer:
        assert json.load(answer) == {}


def test_a_bucket_may_have_the_name_of_the_knobs(elsewhere: Running, tmp_path: Path) -> None:
    session = boto3.Session(access_key(DEV), "sandbox", region_name="us-east-1")
    s3 = session.client("s3", endpoint_url=elsewhere.endpoint)
    s3.create_bucket(Bucket="podwright")
    s3.put_object(Bucket="podwright", Key="faults", Body=b"mine")
    assert s3.get_object(Bucket="podwright", Key="faults")["Body"].read() == b"mine"
