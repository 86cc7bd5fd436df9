"""Slurm clusters in the sandbox: the order of their nodes, what the service refuses, and a whole environment."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from cloudformation_cdk import podwright
from podwright.operations.aws import sandbox_server as server
from sandbox_network import Surroundings, surroundings
from sandbox_stacks import StackUnderTest, turn
from waiting import until

Aws = Callable[[str], Any]
CONTINUOUS = {"NodeProvisioningMode": "Continuous", "Orchestrator": {"Slurm": {}}}
CONTROLLER, LOGIN = {"NodeType": "Controller"}, {"NodeType": "Login"}
COMPUTE = {"NodeType": "Compute", "PartitionNames": ["training"]}
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def around(aws: Aws) -> Surroundings:
    return surroundings(aws)


def group(around: Surroundings, name: str, slurm: dict[str, Any] | None, count: int = 1) -> dict[str, Any]:
    return {
        "InstanceGroupName": name,
        "InstanceType": "ml.m5.4xlarge",
        "InstanceCount": count,
        "ExecutionRole": around.role,
        "LifeCycleConfig": {"SourceS3Uri": around.scripts, "OnCreate": "on_create.sh"},
        **({"SlurmConfig": slurm} if slurm else {}),
    }


def cluster(around: Surroundings, name: str, groups: dict[str, dict[str, Any] | None], **more: Any) -> dict[str, Any]:
    vpc = {"Subnets": around.subnets[:1], "SecurityGroupIds": [around.security_group]}
    made = [group(around, key, slurm) for key, slurm in groups.items()]
    return {"ClusterName": name, "VpcConfig": vpc, "InstanceGroups": made, **more}


def states(aws: Aws, name: str) -> dict[str, str]:
    """The status of the only node of each group."""
    cluster_node_summaries = aws("sagemaker").list_cluster_nodes(ClusterName=name)["ClusterNodeSummaries"]
    return {node["InstanceGroupName"]: node["InstanceStatus"]["Status"] for node in cluster_node_summaries}


def status(aws: Aws, name: str) -> str:
    return aws("sagemaker").describe_cluster(ClusterName=name)["ClusterStatus"]


def test_the_controller_comes_first_and_the_cluster_waits_for_a_login_node(aws: Aws, around: Surroundings) -> None:
    groups = {"controller": CONTROLLER, "login": LOGIN, "gpu": COMPUTE}
    aws("sagemaker").create_cluster(**cluster(around, "ordered", groups, **CONTINUOUS))
    while status(aws, "ordered") == "Creating":
        observed = states(aws, "ordered")
        assert set(observed) == {"controller"} or observed["controller"] == "Running"
        time.sleep(0.05)
    assert status(aws, "ordered") == "InService"
    assert states(aws, "ordered")["login"] == "Running"
    until(lambda: set(states(aws, "ordered")) == set(groups))
    cluster_node_summaries = aws("sagemaker").list_cluster_nodes(ClusterName="ordered")["ClusterNodeSummaries"]
    assert min(cluster_node_summaries, key=lambda node: node["LaunchTime"])["InstanceGroupName"] == "controller"
    described = aws("sagemaker").describe_cluster(ClusterName="ordered")["InstanceGroups"]
    assert {item["InstanceGroupName"]: item["SlurmConfig"] for item in described} == groups


def test_a_replaced_controller_takes_no_cluster_out_of_service(
    aws: Aws, around: Surroundings, sandbox: server.Running
) -> None:
    sagemaker = aws("sagemaker")
    sagemaker.create_cluster(**cluster(around, "lasting", {"controller": CONTROLLER, "gpu": COMPUTE}, **CONTINUOUS))
    until(lambda: set(states(aws, "lasting").values()) == {"Running"} and len(states(aws, "lasting")) == 2)
    [first] = sagemaker.list_cluster_nodes(ClusterName="lasting", InstanceGroupNameContains="controller")[
        "ClusterNodeSummaries"
    ]
    with pytest.raises(ClientError, match="Slurm controllers cannot be replaced"):
        sagemaker.batch_replace_cluster_nodes(ClusterName="lasting", NodeIds=[first["InstanceId"]])
    turn(sandbox.endpoint, "faults", {"nodes": [{"node": first["InstanceId"], "kind": "gpu-lost"}]})
    until(lambda: states(aws, "lasting")["controller"] == "Pending")
    assert status(aws, "lasting") == "InService"
    assert states(aws, "lasting")["gpu"] == "Running"


def test_a_controller_that_cannot_come_fails_the_cluster(aws: Aws, around: Surroundings, stack: StackUnderTest) -> None:
    made = cluster(around, "headless", {"controller": CONTROLLER, "gpu": COMPUTE}, **CONTINUOUS)
    made["InstanceGroups"][0]["LifeCycleConfig"]["OnCreate"] = "missing.sh"
    resource = {"Type": "AWS::SageMaker::Cluster", "Properties": made}
    assert stack.create({"Cluster": resource}) == "ROLLBACK_COMPLETE"
    assert "Lifecycle scripts did not run successfully" in stack.reasons("Cluster")


DATABASE = {"Endpoint": "db.example.com", "SecretArn": "arn:aws:secretsmanager:us-west-2:123456789012:secret:slurm-1"}


@pytest.mark.parametrize(
    ("groups", "more", "words"),
    [
        ({"a": COMPUTE}, {}, "has no InstanceGroup with Controller node type"),
        ({"a": None}, CONTINUOUS, "has no InstanceGroup with Controller node type"),
        ({"a": CONTROLLER, "b": CONTROLLER}, {}, "2 Controller Groups found"),
        ({"a": CONTROLLER, "b": LOGIN, "c": LOGIN}, {}, "At most one"),
        ({"a": CONTROLLER | {"PartitionNames": ["x"]}}, {}, "Partitions can only be assigned to Compute node types"),
        ({"a": CONTROLLER, "b": {"NodeType": "Compute"}}, {}, "has no PartitionNames"),
        (
            {"a": CONTROLLER},
            {"NodeProvisioningMode": "Continuous", "Orchestrator": {"Slurm": {"SlurmConfigStrategy": "Merge"}}},
            "SlurmConfigStrategy is not supported with continuous",
        ),
        (
            {"a": CONTROLLER},
            {"Orchestrator": {"Slurm": {"AccountingDatabase": DATABASE}}},
            "needs NodeProvisioningMode",
        ),
    ],
)
def test_what_the_service_refuses_of_slurm(
    aws: Aws, around: Surroundings, groups: dict[str, Any], more: dict[str, Any], words: str
) -> None:
    with pytest.raises(ClientError, match=words):
        aws("sagemaker").create_cluster(**cluster(around, "refused", groups, **more))


def test_a_group_stays_what_it_is_to_slurm(aws: Aws, around: Surroundings) -> None:
    aws("sagemaker").create_cluster(**cluster(around, "fixed", {"controller": CONTROLLER, "gpu": COMPUTE}))
    until(lambda: status(aws, "fixed") == "InService")
    with pytest.raises(ClientError, match="NodeType of instance group gpu is Compute and cannot be changed"):
        aws("sagemaker").update_cluster(ClusterName="fixed", InstanceGroups=[group(around, "gpu", LOGIN)])


def test_two_ways_to_configure_slurm_are_one_too_many(aws: Aws, around: Surroundings) -> None:
    bucket, _, prefix = around.scripts.removeprefix("s3://").partition("/")
    aws("s3").put_object(Bucket=bucket, Key=f"both/{prefix}provisioning_parameters.json", Body=b"{}")
    aws("s3").put_object(Bucket=bucket, Key=f"both/{prefix}on_create.sh", Body=b"#!/bin/bash")
    made = cluster(around, "both", {"controller": CONTROLLER})
    made["InstanceGroups"][0]["LifeCycleConfig"]["SourceS3Uri"] = f"s3://{bucket}/both/{prefix}"
    aws("sagemaker").create_cluster(**made)
    until(lambda: status(aws, "both") == "Failed")
    message = aws("sagemaker").describe_cluster(ClusterName="both")["FailureMessage"]
    assert message.startswith("The LifeCycleConfig cannot include both")


def test_a_made_secret_stays_and_a_database_reads_it(aws: Aws, stack: StackUnderTest) -> None:
    def resources(description: str) -> dict[str, Any]:
        made = {"SecretStringTemplate": '{"username": "slurm"}', "GenerateStringKey": "password", "PasswordLength": 32}
        secret = {"Description": description, "GenerateSecretString": made | {"ExcludePunctuation": True}}
        password = ["{{resolve:secretsmanager:", {"Ref": "Secret"}, ":SecretString:password}}"]
        return {
            "Secret": {"Type": "AWS::SecretsManager::Secret", "Properties": secret},
            "Copy": {
                "Type": "AWS::SSM::Parameter",
                "Properties": {"Type": "String", "Value": {"Fn::Join": ["", password]}},
            },
        }

    def value() -> dict[str, str]:
        return json.loads(aws("secretsmanager").get_secret_value(SecretId=stack.physical_id("Secret"))["SecretString"])

    assert stack.create(resources("one")) == "CREATE_COMPLETE"
    first = value()
    assert first["username"] == "slurm"
    assert len(first["password"]) == 32
    assert first["password"].isalnum()
    assert aws("ssm").get_parameter(Name=stack.physical_id("Copy"))["Parameter"]["Value"] == first["password"]
    assert stack.update(resources("two")) == "UPDATE_COMPLETE"
    assert value() == first


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A project with slurm-classic as its only environment, and a sandbox of its own."""
    folder = tmp_path_factory.mktemp("slurm")
    (folder / "environments").mkdir()
    text = (ROOT / "environments/slurm-classic.yaml").read_text().replace("111122223333", "123456789012")
    text = text.replace("region: us-west-2", "region: us-west-2\nprotection: destroy")
    (folder / "environments" / "slurm-classic.yaml").write_text(text)
    running = server.start(folder, port=0, time_scale=0.25)
    yield folder, running.endpoint
    server.stop(folder)


def test_life_of_a_slurm_environment(project: tuple[Path, str]) -> None:
    folder, endpoint = project
    made = podwright(folder, "deploy", "--json").document
    assert {stack["name"] for stack in made["stacks"]} == {
        f"slurm-classic-{name}" for name in ("network", "storage", "cluster", "observability")
    }
    assert made["cluster"]["status"] == "InService"
    assert made["recorded_only"] == {}
    assert {group["name"]: group["target"] for group in made["groups"]} == {
        "controller": 1,
        "login": 2,
        "h200": 8,
        "cpu": 4,
    }
    assert {node["status"] for node in made["nodes"] if node["group"] == "controller"} == {"Running"}

    client = boto3.Session("sandbox", "sandbox", region_name="us-west-2").client
    (database,) = client("rds", endpoint_url=endpoint).describe_db_clusters()["DBClusters"]
    slurm = client("sagemaker", endpoint_url=endpoint).describe_cluster(ClusterName="slurm-classic")["Orchestrator"][
        "Slurm"
    ]
    assert slurm["AccountingDatabase"]["Endpoint"] == database["Endpoint"]
    assert "SlurmConfigStrategy" not in slurm

    table = podwright(folder, "status").output
    assert "Cluster slurm-classic: InService" in table
    assert "controller" in table

    podwright(folder, "destroy", "--yes")
    assert podwright(folder, "status", "--json").document["stacks"] == []
    assert client("rds", endpoint_url=endpoint).describe_db_clusters()["DBClusters"] == []
