"""The function that tells of a cluster's events, run for real by the sandbox: a fault on command becomes a message."""

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from podwright.constructs.observability.cluster_events.handler import notices
from podwright.operations.aws.sandbox_server import Running
from podwright.planning.node import quarantine
from sandbox_network import surroundings
from sandbox_stacks import turn
from waiting import until

Aws = Callable[[str], Any]
NAME = "telling"
_HANDLER = "podwright/constructs/observability/cluster_events/handler"


def code() -> bytes:
    """The handler as a deployment ships it."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for file in Path(notices.__file__).parent.glob("*.py"):
            archive.write(file, f"{_HANDLER}/{file.name}")
        archive.write(quarantine.__file__, f"podwright/{quarantine.SHIPPED}")
    return packed.getvalue()


def mailbox(aws: Aws, name: str) -> tuple[str, str]:
    """ARN of a topic and URL of a queue that hears it."""
    topic = aws("sns").create_topic(Name=name)["TopicArn"]
    queue = aws("sqs").create_queue(QueueName=name)["QueueUrl"]
    arn = aws("sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    aws("sns").subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn, Attributes={"RawMessageDelivery": "true"})
    return topic, queue


def heard(aws: Aws, queue: str, word: str) -> str:
    """The first message in a queue with a word in it."""
    others = list[str]()

    def first() -> str | None:
        for message in aws("sqs").receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages", []):
            aws("sqs").delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
            others.append(message["Body"])
        return next((text for text in others if word in text), None)

    return until(first, lambda: f"no message has {word}: {others}")


def test_a_fault_becomes_a_message(aws: Aws, sandbox: Running) -> None:
    around = surroundings(aws)
    (mail, mails), (chat, chats) = mailbox(aws, "mail"), mailbox(aws, "chat")
    aws("dynamodb").create_table(
        TableName="memory",
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "Key", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "Key", "KeyType": "HASH"}],
    )
    actions = ["dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:UpdateItem", "sns:Publish"]
    actions += ["sagemaker:DescribeCluster", "sagemaker:DescribeClusterEvent"]
    policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": actions, "Resource": "*"}]}
    role = around.role.rpartition("/")[2]
    aws("iam").put_role_policy(RoleName=role, PolicyName="tell", PolicyDocument=json.dumps(policy))
    function = aws("lambda").create_function(
        FunctionName="tell",
        Runtime="python3.14",
        Role=around.role,
        Handler=f"{_HANDLER}/index.handler",
        Code={"ZipFile": code()},
        Timeout=60,
        Environment={
            "Variables": {"TABLE": "memory", "ENVIRONMENT": "sandbox", "MAIL_TOPIC": mail, "CHAT_TOPIC": chat}
        },
    )
    aws("events").put_rule(Name="tell", EventPattern=json.dumps({"detail-type": [notices.HEALTH]}))
    aws("events").put_targets(Rule="tell", Targets=[{"Id": "tell", "Arn": function["FunctionArn"]}])
    group = {
        "InstanceGroupName": "gpu",
        "InstanceType": "ml.p5en.48xlarge",
        "InstanceCount": 1,
        "ExecutionRole": around.role,
        "LifeCycleConfig": {"SourceS3Uri": around.scripts, "OnCreate": "on_create.sh"},
    }
    vpc = {"Subnets": around.subnets[:1], "SecurityGroupIds": [around.security_group]}
    sagemaker = aws("sagemaker")
    sagemaker.create_cluster(ClusterName=NAME, VpcConfig=vpc, InstanceGroups=[group], NodeProvisioningMode="Continuous")

    def running() -> list[dict[str, Any]]:
        nodes = sagemaker.list_cluster_nodes(ClusterName=NAME)["ClusterNodeSummaries"]
        return [node for node in nodes if node["InstanceStatus"]["Status"] == "Running"]

    [node] = until(running)
    turn(sandbox.endpoint, "faults", {"nodes": [{"node": node["InstanceId"], "kind": "xid-replace"}]})

    text = heard(aws, mails, node["InstanceId"])
    assert f"Instance {node['InstanceId']} of {NAME} is Unhealthy" in text
    assert "NvidiaErrorTerminate" in text
    shown = json.loads(heard(aws, chats, node["InstanceId"]))
    assert shown["source"] == "custom"
    assert "NvidiaErrorTerminate" in shown["content"]["description"]
    aws("events").remove_targets(Rule="tell", Ids=["tell"])
    aws("events").delete_rule(Name="tell")
