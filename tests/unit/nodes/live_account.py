"""A cluster on a training plan with teams, as SageMaker and Kubernetes answer for the live view."""

import json
import time
from dataclasses import dataclass
from typing import Any

from loopback import Call, Reply
from podwright.cdk8s_charts.benchmark_labels.handler.benchmark_labeller import DEGRADED
from podwright.config.catalog.drills import HEALTH_LABEL
from podwright.config.settings.environment import Environment
from podwright.operations.kubernetes.kubectl import Refused

ENVIRONMENT = Environment.model_validate(
    {
        "name": "prod",
        "account": "111122223333",
        "region": "us-west-2",
        "network": {"zones": ["usw2-az1", "usw2-az2"]},
        "instance_groups": {"h200": {"instance_type": "ml.p5en.48xlarge", "count": 150, "zone": "usw2-az2"}},
        "governance": {"teams": {"research": {"quota": {"h200": 100}}, "guests": {}}},
    }
)
ARN = "arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdefabcdef"
PLAN = "arn:aws:sagemaker:us-west-2:111122223333:training-plan/q1"


def node(number: int) -> dict[str, Any]:
    status = "Failure" if number == 7 else "Running"
    return {
        "InstanceGroupName": "h200",
        "InstanceId": f"i-{number:017x}",
        "InstanceType": "ml.p5en.48xlarge",
        "LaunchTime": 1795262430,
        "InstanceStatus": {"Status": status, "Message": "hardware" if number == 7 else ""},
    }


def answers(asked: dict[str, Any], nodes: int) -> dict[str, Any]:
    """What each operation answers; nodes come in pages of a hundred."""
    first = int(asked.get("NextToken", 0))
    more = {"NextToken": str(first + 100)} if first + 100 < nodes else {}
    group = {
        "InstanceGroupName": "h200",
        "CurrentCount": 149,
        "TargetCount": 150,
        "Status": "Degraded",
        "TrainingPlanArn": PLAN,
    }
    config = {"ComputeQuotaResources": [{"InstanceType": "ml.p5en.48xlarge", "Count": 100}]}
    quota = {
        "ComputeQuotaArn": "arn",
        "ComputeQuotaId": "abcdefabcdef",
        "Name": "research",
        "Status": "Created",
        "CreationTime": 1795262430,
        "ComputeQuotaConfig": config,
        "ComputeQuotaTarget": {"TeamName": "research", "FairShareWeight": 10},
    }
    window = {"ReservedCapacityArn": "arn", "InstanceType": "ml.p5en.48xlarge", "TotalInstanceCount": 150}
    window |= {"Status": "Active", "StartTime": 1795262430, "EndTime": 4102444800}
    return {
        "DescribeCluster": {
            "ClusterArn": ARN,
            "ClusterStatus": "InService",
            "InstanceGroups": [group],
            "NodeProvisioningMode": "Continuous",
        },
        "ListClusterNodes": {
            "ClusterNodeSummaries": [node(number) for number in range(first, min(first + 100, nodes))],
            **more,
        },
        "ListClusterEvents": {
            "Events": [
                {
                    "EventId": "00000000-0000-0000-0000-000000000000",
                    "ClusterArn": ARN,
                    "ClusterName": "prod",
                    "ResourceType": "Instance",
                    "InstanceId": node(7)["InstanceId"],
                    "EventTime": 1795262430,
                    "EventLevel": "Warn",
                    "Description": "is being replaced",
                }
            ]
        },
        "ListComputeQuotas": {"ComputeQuotaSummaries": [quota]},
        "DescribeTrainingPlan": {
            "TrainingPlanArn": PLAN,
            "TrainingPlanName": "q1",
            "Status": "Active",
            "TotalInstanceCount": 150,
            "InUseInstanceCount": 149,
            "AvailableInstanceCount": 1,
            "ReservedCapacitySummaries": [window],
        },
    }


class Cluster:
    """kubectl on the cluster."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.refuses = False

    def items(self, kind: str, *arguments: str) -> list[Any]:
        self.asked += arguments
        if self.refuses:
            raise Refused("Unauthorized")
        if f"--selector={DEGRADED}" in arguments:
            return [{"metadata": {"name": f"hyperpod-{node(9)['InstanceId']}", "labels": {DEGRADED: "clock.ssh"}}}]
        if kind == "nodes":
            labels = {HEALTH_LABEL: "UnschedulablePendingReplacement", "sagemaker.amazonaws.com/fault-types": "Xid"}
            return [{"metadata": {"name": f"hyperpod-{node(8)['InstanceId']}", "labels": labels}}]
        resources = [
            {"name": "nvidia.com/gpu", "total": "816", "borrowed": "16"},
            {"name": "cpu", "total": "19584", "borrowed": "0"},
        ]
        used = {"flavorsUsage": [{"name": "p5en", "resources": resources}], "admittedWorkloads": 3}
        return [
            {"metadata": {"name": "hyperpod-ns-research-clusterqueue"}, "status": used | {"pendingWorkloads": 2}},
            {"metadata": {"name": "hyperpod-ns-guests-clusterqueue"}, "status": {}},
        ]


@dataclass
class Sagemaker:
    """SageMaker's API with a cluster of so many nodes, each answer after so many seconds."""

    nodes: int = 150
    seconds: float = 0.0

    def __call__(self, call: Call) -> Reply:
        """One answer."""
        time.sleep(self.seconds)
        operation = call.headers["X-Amz-Target"].rpartition(".")[2]
        return Reply(body=json.dumps(answers(json.loads(call.body), self.nodes)[operation]).encode())
