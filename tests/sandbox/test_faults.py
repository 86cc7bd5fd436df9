"""Faults on command in the sandbox: what HyperPod, CloudWatch Logs and EventBridge then say, as boto3 hears it."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from podwright.config.catalog.sandbox_account import SANDBOX_ACCOUNT
from podwright.operations.aws.sandbox_server import Running
from podwright.sandbox.hyperpod.cluster import Cluster, Group, Node, Timing
from podwright.sandbox.protocol.clock import now
from podwright.sandbox.protocol.service import Refusal
from podwright.sandbox.sagemaker.node_health_api import HealthOperations
from sandbox_network import Surroundings, surroundings
from sandbox_stacks import turn
from waiting import until

Aws = Callable[[str], Any]
NAME = "breaking"


@pytest.fixture(scope="module")
def around(aws: Aws) -> Surroundings:
    return surroundings(aws)


@pytest.fixture(scope="module")
def put(sandbox: Running) -> Iterator[Callable[..., Any]]:
    def send(**provided: Any) -> Any:
        return turn(sandbox.endpoint, "faults", provided)

    yield send
    send(lifecycle={})


@pytest.fixture(scope="module")
def cluster(aws: Aws, around: Surroundings) -> dict[str, Any]:
    group = {
        "InstanceGroupName": "gpu",
        "InstanceType": "ml.p5en.48xlarge",
        "InstanceCount": 1,
        "ExecutionRole": around.role,
        "LifeCycleConfig": {"SourceS3Uri": around.scripts, "OnCreate": "on_create.sh"},
    }
    vpc = {"Subnets": around.subnets[:1], "SecurityGroupIds": [around.security_group]}
    asked = {"ClusterName": NAME, "VpcConfig": vpc, "InstanceGroups": [group], "NodeProvisioningMode": "Continuous"}
    aws("sagemaker").create_cluster(**asked)
    until(lambda: [node["InstanceStatus"]["Status"] for node in nodes(aws)] == ["Running"])
    return group


def nodes(aws: Aws) -> list[dict[str, Any]]:
    return aws("sagemaker").list_cluster_nodes(ClusterName=NAME)["ClusterNodeSummaries"]


def lines(aws: Aws, stream: str) -> list[str]:
    arn = aws("sagemaker").describe_cluster(ClusterName=NAME)["ClusterArn"]
    group = f"/aws/sagemaker/Clusters/{NAME}/{arn.rpartition('/')[2]}"
    events = aws("logs").filter_log_events(logGroupName=group, logStreamNamePrefix=stream)["events"]
    return [event["message"] for event in events]


def test_a_broken_node_is_replaced_and_everybody_hears(aws: Aws, cluster: dict[str, Any], put: Any) -> None:
    sqs, events, sagemaker = aws("sqs"), aws("events"), aws("sagemaker")
    queue = sqs.create_queue(QueueName="heard")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    events.put_rule(Name="hear", EventPattern=json.dumps({"source": ["aws.sagemaker"]}))
    events.put_targets(Rule="hear", Targets=[{"Id": "queue", "Arn": arn}])
    heard = list[dict[str, Any]]()

    def hear(kind: str) -> list[dict[str, Any]]:
        answer = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10)
        for message in answer.get("Messages", []):
            sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
            heard.append(json.loads(message["Body"]))
        return [event["detail"] for event in heard if event["detail-type"] == f"SageMaker HyperPod Cluster {kind}"]

    [first] = nodes(aws)
    before = sagemaker.list_cluster_events(ClusterName=NAME, SortOrder="Ascending")["Events"][-1]["EventTime"]
    assert put(nodes=[{"node": first["InstanceId"], "kind": "xid-replace"}])["lifecycle"] == {}
    [messages] = until(lambda: hear("Node Health Event"))
    assert messages["InstanceId"] == first["InstanceId"]
    assert "NvidiaErrorTerminate" in messages["HealthSummary"]["HealthStatusReason"]
    assert "Xid (PCI:0000:53:00): 74" in "".join(lines(aws, "SagemakerHealthMonitoringAgent/gpu/"))

    def fresh() -> list[dict[str, Any]]:
        return [node for node in nodes(aws) if node["InstanceId"] != first["InstanceId"]]

    [new] = until(lambda: [node for node in fresh() if node["InstanceStatus"]["Status"] == "Running"])
    assert new["NodeLogicalId"] == first["NodeLogicalId"]
    until(lambda: any("instance replacement" in item["EventDetails"]["Description"] for item in hear("Event")))
    later = sagemaker.list_cluster_events(ClusterName=NAME, EventTimeAfter=before, NodeId=new["InstanceId"])["Events"]
    described = [
        sagemaker.describe_cluster_event(ClusterName=NAME, EventId=event["EventId"])["EventDetails"] for event in later
    ]
    known = [item["EventDetails"]["EventMetadata"]["Instance"] for item in described if "EventDetails" in item]
    logical = [item.get("NodeLogicalId") for item in known]
    assert first["NodeLogicalId"] in logical
    events.remove_targets(Rule="hear", Ids=["queue"])
    events.delete_rule(Name="hear")


def test_failing_lifecycle_scripts_leave_their_log(aws: Aws, cluster: dict[str, Any], put: Any) -> None:
    sagemaker = aws("sagemaker")
    put(lifecycle={"gpu": ["mount /fsx", "mount.lustre: Connection timed out"]})
    sagemaker.update_cluster(ClusterName=NAME, InstanceGroups=[cluster | {"InstanceCount": 2}])
    listed = sagemaker.list_cluster_events(ClusterName=NAME, ResourceType="Instance")["Events"]
    [failed] = [event for event in listed if event["EventLevel"] == "Error"]
    assert "visit log group /aws/sagemaker/Clusters/breaking/" in failed["Description"]
    details = sagemaker.describe_cluster_event(ClusterName=NAME, EventId=failed["EventId"])["EventDetails"]
    message = details["EventDetails"]["EventMetadata"]["Instance"]["FailureMessage"]
    assert "Lifecycle scripts did not run successfully" in message
    assert "mount.lustre: Connection timed out" in lines(aws, f"LifecycleConfig/gpu/{failed['InstanceId']}")
    assert len(nodes(aws)) == 1
    put(lifecycle={})
    until(lambda: [node["InstanceStatus"]["Status"] for node in nodes(aws)] == ["Running"] * 2)


def test_a_deep_health_check_takes_nodes_out_of_work(aws: Aws, cluster: dict[str, Any]) -> None:
    sagemaker = aws("sagemaker")
    expected = {"InstanceGroupName": "gpu", "DeepHealthChecks": ["InstanceStress"]}
    sagemaker.start_cluster_health_check(ClusterName=NAME, DeepHealthCheckConfigurations=[expected])
    [operation] = sagemaker.list_cluster_operations(ClusterName=NAME, Type="DeepHealthCheck")[
        "ClusterOperationSummaries"
    ]
    assert operation["Status"] in ("InProgress", "Done")
    until(lambda: {node["InstanceStatus"]["Status"] for node in nodes(aws)} == {"Running"})
    assert sagemaker.list_cluster_operations(ClusterName=NAME, Status="InProgress")["ClusterOperationSummaries"] == []
    assert lines(aws, "DeepHealthCheckResults/")


def test_nodes_under_a_deep_health_check_are_not_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process, where the check takes an hour: over HTTP a slow machine would ask again after its end."""
    group = Group({"InstanceGroupName": "gpu", "InstanceType": "ml.p5en.48xlarge", "InstanceCount": 1})
    node = Node("gpu", group.instance_type, "", "", "", "", 0.0, 0.0, 0.0, asked_check_seconds=3600.0)
    arn = f"arn:aws:sagemaker:us-west-2:{SANDBOX_ACCOUNT}:cluster/under-check"
    cluster = Cluster("under-check", arn, "us-west-2", {}, Timing(), groups={"gpu": group}, nodes=[node])
    service = SimpleNamespace(cluster=lambda region, name: cluster, lock=nullcontext())
    monkeypatch.setattr(HealthOperations, "service", service, raising=False)

    def asked(members: dict[str, Any]) -> HealthOperations:
        operations = HealthOperations()
        operations.region, operations.params, operations.uri_match = "us-west-2", members, {}
        return operations

    expected = {"InstanceGroupName": "gpu", "DeepHealthChecks": ["InstanceStress"]}
    request = asked({"DeepHealthCheckConfigurations": [expected]})
    request.start_cluster_health_check()
    assert node.status(now()) == "DeepHealthCheckInProgress"
    answer: Any = asked({}).list_cluster_operations().result
    [operation] = answer["ClusterOperationSummaries"]
    assert (operation["Type"], operation["Status"]) == ("DeepHealthCheck", "InProgress")
    with pytest.raises(Refusal, match=f"{node.instance_id} cannot be checked now"):
        request.start_cluster_health_check()


def test_an_extension_is_installed_changed_and_removed(aws: Aws, cluster: dict[str, Any]) -> None:
    sagemaker = aws("sagemaker")
    location = {"ClusterArn": sagemaker.describe_cluster(ClusterName=NAME)["ClusterArn"]}
    asked = {"ExtensionName": "sagemaker-observability", "ExtensionVersion": "1.0.0", "ClientToken": "once", **location}
    values = json.dumps({"metricsProvider": {"nodeMetrics": {"level": "BASIC"}, "networkMetrics": {"level": "BASIC"}}})
    tags = [{"Key": "a", "Value": "b"}]
    arn = sagemaker.create_cluster_extension(**asked, ConfigurationValues=values, Tags=tags)["ExtensionArn"]
    assert sagemaker.create_cluster_extension(**asked)["ExtensionArn"] == arn
    with pytest.raises(ClientError, match="ConflictException"):
        sagemaker.create_cluster_extension(**asked | {"ClientToken": "again"})
    assert sagemaker.list_tags(ResourceArn=arn)["Tags"] == tags
    named = {"ExtensionArn": arn, **location}

    def status() -> str:
        return sagemaker.describe_cluster_extension(**named)["ExtensionDetails"]["Status"]

    assert status() in ("Creating", "Active")
    until(lambda: status() == "Active")
    change = json.dumps({"metricsProvider": {"networkMetrics": None}})
    sagemaker.update_cluster_extension(**named, ExtensionVersion="1.1.0", ConfigurationValues=change)
    until(lambda: status() == "Active")
    details = sagemaker.describe_cluster_extension(**named)["ExtensionDetails"]
    assert json.loads(details["ConfigurationValues"]) == {"metricsProvider": {"nodeMetrics": {"level": "BASIC"}}}
    with pytest.raises(ClientError, match="earlier version"):
        sagemaker.update_cluster_extension(**named, ExtensionVersion="1.0.0")
    sagemaker.delete_cluster_extension(**named)
    until(lambda: not sagemaker.list_cluster_extensions(**location)["Extensions"])


def test_what_a_fault_cannot_be(cluster: dict[str, Any], aws: Aws, put: Any) -> None:
    for provided, words in (
        ({"nodes": [{"node": "i-0", "kind": "xid-replace"}]}, "there is no node i-0"),
        ({"nodes": [{"node": nodes(aws)[0]["InstanceId"], "kind": "rust"}]}, "unknown kind of nodes rust; known are "),
        ({"nodes": [{"node": nodes(aws)[0]["InstanceId"], "kind": "hangs"}]}, "is a simulated node, or does not run; "),
        ({"rust": []}, "unknown key rust; known are nodes, lifecycle, "),
        ({"queues": {"research": "stopped"}}, "unknown key queues"),
        ({"exporters": {"dgcm": "silent"}}, "unknown exporter dgcm; known are "),
        ({"jobs": {"podwright-nccl": "rigid"}}, "unknown kind of jobs rigid; known are fails, "),
        ({"jobs": {"podwright-nccl": "slow"}}, "no job runs on the stores of this sandbox"),
    ):
        with pytest.raises(urllib.error.HTTPError) as refusal:
            put(**provided)
        assert words in refusal.value.read().decode()
        refusal.value.close()
