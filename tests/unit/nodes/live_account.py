"""A cluster on a training plan with teams, as SageMaker and Kubernetes answer for the live view."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
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


def node(number: int, group: str = "h200") -> dict[str, Any]:
    status = "Failure" if number == 7 else "Running"
    return {
        "InstanceGroupName": group,
        "InstanceId": f"i-{number:017x}",
        "InstanceType": "ml.p5en.48xlarge",
        "LaunchTime": 1795262430 + number,
        "InstanceStatus": {"Status": status, "Message": "hardware" if number == 7 else ""},
    }


def _page(asked: dict[str, Any], sizes: Mapping[str, int]) -> dict[str, Any]:
    """A page of at most a hundred nodes, filtered and sorted as asked."""
    groups = [name for name, size in sizes.items() for _ in range(size)]
    text = asked.get("InstanceGroupNameContains", "")
    numbers = [number for number, group in enumerate(groups) if text in group]
    if asked.get("SortOrder") == "Descending":
        numbers.reverse()
    first = int(asked.get("NextToken", 0))
    more = {"NextToken": str(first + 100)} if first + 100 < len(numbers) else {}
    return {"ClusterNodeSummaries": [node(number, groups[number]) for number in numbers[first : first + 100]], **more}


def answers(asked: dict[str, Any], sizes: Mapping[str, int]) -> dict[str, Any]:
    """The answer to `asked` of each operation, for groups of `sizes` nodes."""
    groups = [
        {
            "InstanceGroupName": name,
            "CurrentCount": size - 1,
            "TargetCount": size,
            "Status": "Degraded",
            "TrainingPlanArn": PLAN,
        }
        for name, size in sizes.items()
    ]
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
            "InstanceGroups": groups,
            "NodeProvisioningMode": "Continuous",
        },
        "ListClusterNodes": _page(asked, sizes),
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
        nominal = [{"name": "nvidia.com/gpu", "nominalQuota": "800"}, {"name": "cpu", "nominalQuota": "19200"}]
        spec = {"resourceGroups": [{"flavors": [{"name": "p5en", "resources": nominal}]}]}
        research = {"name": "hyperpod-ns-research-clusterqueue"}
        return [
            {"metadata": research, "spec": spec, "status": used | {"pendingWorkloads": 2}},
            {"metadata": {"name": "hyperpod-ns-guests-clusterqueue"}, "status": {}},
        ]


@dataclass
class Sagemaker:
    """SageMaker's API with one cluster, for a server on loopback."""

    sizes: Mapping[str, int] = field(default_factory=lambda: {"h200": 150})
    """Nodes of each instance group."""
    seconds: float = 0.0
    """Delay of each answer."""

    def __call__(self, call: Call) -> Reply:
        """Answer one call."""
        time.sleep(self.seconds)
        operation = call.headers["X-Amz-Target"].rpartition(".")[2]
        return Reply(body=json.dumps(answers(json.loads(call.body), self.sizes)[operation]).encode())
