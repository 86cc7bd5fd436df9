"""Doctor against the sandbox, with real clients: what breaks there is found, by its own words."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from governed_cluster import GovernedCluster
from podwright.config.catalog.sandbox_account import SANDBOX_ACCOUNT
from podwright.config.loading.load import load_environment
from podwright.config.settings.environment import Environment
from podwright.operations.aws.account import Account
from podwright.operations.aws.sandbox_server import Running
from podwright.operations.doctor import collect as collecting
from podwright.operations.doctor import collect_kubernetes
from podwright.operations.doctor.collect import collect
from podwright.operations.doctor.diagnose import Diagnosis, diagnose
from podwright.operations.kubernetes.connect import write_kubeconfig
from podwright.operations.kubernetes.kubectl import Kubectl
from sandbox_network import Surroundings, surroundings
from sandbox_stacks import turn
from waiting import until

FILE = """
account: "{account}"
region: us-west-2
network: {{zones: [usw2-az1, usw2-az2]}}
storage: {{lustre: {{}}}}
cluster: {{orchestrator: slurm, name: {name}}}
instance_groups:
  controller: {{instance_type: ml.m5.4xlarge, count: 1}}
  gpu: {{instance_type: ml.p5en.48xlarge, count: 2, zone: usw2-az1}}
"""


@pytest.fixture(scope="module")
def around(aws: Callable[[str], Any]) -> Surroundings:
    return surroundings(aws)


@pytest.fixture
def put(sandbox: Running) -> Iterator[Callable[[str, Any], None]]:
    def send(control: str, value: Any) -> None:
        # Groups are named before there is a cluster that has them.
        turn(sandbox.endpoint, control, value, new=True)

    yield send
    send("faults", {"lifecycle": {}})
    send("capacity", [])


@pytest.fixture
def diagnosed(
    sandbox: Running, aws: Callable[[str], Any], around: Surroundings, tmp_path: Path
) -> Callable[..., Diagnosis]:
    """Makes a cluster, waits until it is in some state, and asks doctor."""

    def run(name: str, ready: Callable[[dict[str, Any]], bool]) -> Diagnosis:
        group = {
            "InstanceGroupName": "gpu",
            "InstanceType": "ml.p5en.48xlarge",
            "InstanceCount": 2,
            "ExecutionRole": around.role,
            "LifeCycleConfig": {"SourceS3Uri": around.scripts, "OnCreate": "on_create.sh"},
        }
        vpc = {"Subnets": around.subnets[:1], "SecurityGroupIds": [around.security_group]}
        sagemaker = aws("sagemaker")
        sagemaker.create_cluster(
            ClusterName=name, VpcConfig=vpc, InstanceGroups=[group], NodeProvisioningMode="Continuous"
        )
        until(lambda: ready(sagemaker.describe_cluster(ClusterName=name)))
        (tmp_path / f"{name}.yaml").write_text(FILE.format(account=SANDBOX_ACCOUNT, name=name))
        account = Account(SANDBOX_ACCOUNT, "us-west-2", sandbox.endpoint, dict(os.environ))
        environment = load_environment(tmp_path / f"{name}.yaml").environment
        bundle = collect(environment, account, tmp_path)
        assert bundle.index.unseen == {}
        return diagnose(bundle)

    return run


def test_missing_capacity_is_found(diagnosed: Callable[..., Diagnosis], put: Callable[[str, Any], None]) -> None:
    put("capacity", [{"zone_id": "usw2-az1", "instance_type": "ml.p5en.48xlarge"}])
    diagnosis = diagnosed("doctor-capacity", lambda cluster: cluster["ClusterStatus"] in ("InService", "Failed"))
    assert diagnosis.classes == {"capacity"}, diagnosis.to_json()


def test_a_failed_lifecycle_step_is_found_in_its_log(
    diagnosed: Callable[..., Diagnosis], put: Callable[[str, Any], None], aws: Callable[[str], Any]
) -> None:
    put("faults", {"lifecycle": {"gpu": ["mount /fsx", "mount.lustre: Connection timed out"]}})

    def failed(cluster: dict[str, Any]) -> bool:
        events = aws("sagemaker").list_cluster_events(ClusterName=cluster["ClusterName"])["Events"]
        return any(event["EventLevel"] == "Error" for event in events)

    diagnosis = diagnosed("doctor-lifecycle", failed)
    assert diagnosis.classes == {"storage"}, diagnosis.to_json()


def test_a_broken_node_is_found_and_forgotten_once_it_is_replaced(
    sandbox: Running,
    aws: Callable[[str], Any],
    put: Callable[[str, Any], None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    GovernedCluster(aws, "doctored")
    environment = Environment.model_validate(
        {"name": "doctored", "account": SANDBOX_ACCOUNT, "region": "us-west-2", "cluster": {"name": "doctored"}}
        | {"network": {"zones": ["usw2-az1", "usw2-az2"]}}
        | {"instance_groups": {"h200": {"instance_type": "ml.p5en.48xlarge", "count": 2, "zone": "usw2-az1"}}}
    )
    account = Account(SANDBOX_ACCOUNT, "us-west-2", sandbox.endpoint, sandbox.environment("us-west-2"))
    description = aws("eks").describe_cluster(name="doctored")["cluster"]
    file = write_kubeconfig(tmp_path, environment, account, description, description["endpoint"])
    kubectl = Kubectl(file, is_real=False)
    monkeypatch.setattr(collect_kubernetes, "way", lambda *_: kubectl)
    monkeypatch.setattr(collecting, "eks_cluster_name", lambda *_: "doctored")

    def observe() -> Diagnosis:
        return diagnose(collect(environment, account, tmp_path))

    until(lambda: len(kubectl.items("nodes")) == 2)
    assert until(lambda: observe().verdict == "well")

    def broken() -> Diagnosis:
        """What is found right after a node broke: on a busy machine it may be replaced before doctor has looked."""
        node = aws("sagemaker").list_cluster_nodes(ClusterName="doctored")["ClusterNodeSummaries"][0]["InstanceId"]
        put("faults", {"nodes": [{"node": node, "kind": "xid-replace"}]})
        return observe()

    assert until(lambda: broken().classes) == {"node_health"}
    assert until(lambda: observe().verdict == "well")
    aws("sagemaker").delete_cluster(ClusterName="doctored")


def test_a_cluster_that_came_up_is_well(diagnosed: Callable[..., Diagnosis]) -> None:
    def full(cluster: dict[str, Any]) -> bool:
        return all(group["CurrentCount"] == group["TargetCount"] for group in cluster["InstanceGroups"])

    assert diagnosed("doctor-well", full).verdict == "well"
