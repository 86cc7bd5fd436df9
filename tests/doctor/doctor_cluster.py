"""A HyperPod cluster that is healthy, as a bundle shows it: what AWS answers, with the noise of working days.

Everything comes from a seed: names, ids, times, order, and which of the harmless lines of doctor/cases/noise.toml lie
in which log. doctor_kubernetes.py adds what Kubernetes says; doctor_corpus.py breaks such a cluster in the way of a
case.
"""

import json
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

CASES = Path(__file__).parent / "cases"
ACCOUNT = "111122223333"
Tree = dict[str, Any]

_REGIONS = {
    "us-west-2": "usw2",
    "us-east-1": "use1",
    "us-east-2": "use2",
    "eu-north-1": "eun1",
    "ap-northeast-1": "apne1",
}
_TYPES = ("ml.p5.48xlarge", "ml.p5en.48xlarge", "ml.p4d.24xlarge", "ml.p6-b200.48xlarge")
_NAMES = ("atlas", "borealis", "fm-train", "llm-prod", "quartz", "research-a", "tundra", "vega")
_STACKS = ("network", "storage", "eks", "cluster", "governance")


@dataclass(frozen=True)
class Node:
    """An instance of the cluster."""

    group: str
    type: str
    id: str
    ip: str
    launched: datetime

    @property
    def name(self) -> str:
        """Its name in Kubernetes."""
        return f"hyperpod-{self.id}"


@cache
def noise() -> dict[str, Any]:
    """The harmless lines, by place."""
    return tomllib.loads((CASES / "noise.toml").read_text())


class SimulatedCluster:
    """A cluster that is healthy, as AWS shows it."""

    def __init__(self, seed: str, orchestrator: str = "eks", size: int = 4, scripts: str = "") -> None:
        self.scripts = f"lifecycle_{scripts or orchestrator}"
        self.random = Random(seed)
        self.orchestrator = orchestrator
        self.region = self.random.choice(list(_REGIONS))
        self.taken = datetime(2026, 9, 1, 6, tzinfo=UTC) + timedelta(minutes=self.random.randrange(100_000))
        self.name = f"{self.random.choice(_NAMES)}-{self.hex(3)}"
        self.environment = self.random.choice(("prod", "staging", "dev", "research"))
        self.id = self.letters(12)
        self.arn = f"arn:aws:sagemaker:{self.region}:{ACCOUNT}:cluster/{self.id}"
        self.type = self.random.choice(_TYPES)
        self.group = self.random.choice(("h100", "train", "workers", "accelerated"))
        self.zone = f"{_REGIONS[self.region]}-az{self.random.randrange(1, 4)}"
        self.subnet, self.sg = f"subnet-{self.hex(17)}", f"sg-{self.hex(17)}"
        self.fs, self.mount = f"fs-{self.hex(17)}", self.letters(8)
        support = {"system": 2} if orchestrator == "eks" else {"controller": 1, "login": 1}
        self.groups = {**dict.fromkeys(support, "ml.m5.4xlarge"), self.group: self.type}
        self.nodes = [
            Node(group, kind, f"i-{self.hex(17)}", self.ip(), self.ago(self.random.randrange(4_000, 40_000)))
            for group, kind in self.groups.items()
            for _ in range(support.get(group, size))
        ]
        self._words: dict[str, dict[str, str]] = {}
        self.files: dict[str, Any] = {}
        self.logs: dict[str, list[tuple[datetime, str]]] = {}
        self._cluster()
        self._cloud()
        self._stacks()
        self._logs()

    def hex(self, length: int) -> str:
        """A piece of an id."""
        return "".join(self.random.choices("0123456789abcdef", k=length))

    def letters(self, length: int) -> str:
        """The id of a cluster."""
        return "".join(self.random.choices("abcdefghijkmnpqrstuvwxyz0123456789", k=length))

    def uuid(self) -> str:
        """The id of an event."""
        return "-".join(self.hex(length) for length in (8, 4, 4, 4, 12))

    def ip(self) -> str:
        """An address of the network."""
        return f"10.{self.random.randrange(16, 32)}.{self.random.randrange(256)}.{self.random.randrange(4, 255)}"

    def ago(self, minutes: float) -> datetime:
        """A moment before the bundle was taken."""
        return self.taken - timedelta(minutes=minutes, seconds=self.random.randrange(60))

    def members(self, group: str) -> list[Node]:
        """The instances of a group."""
        return [node for node in self.nodes if node.group == group]

    def words(self, node: Node | None = None) -> dict[str, str]:
        """What the words in braces of cases and noise stand for."""
        node = node or self.members(self.group)[0]
        known = self._words.get(node.id)
        if known is None:
            known = self._words[node.id] = self._drawn(node)
        return known

    def _drawn(self, node: Node) -> dict[str, str]:
        return {
            "account": ACCOUNT,
            "arn": self.arn,
            "cluster": self.name,
            "cluster_id": self.id,
            "environment": self.environment,
            "fs": self.fs,
            "group": node.group,
            "instance": node.id,
            "ip": node.ip,
            "dashed": node.ip.replace(".", "-"),
            "node": node.name,
            "pci": f"0000:{self.random.choice(('53', '64', '75', '86', '97', 'a8', 'b9', 'ca'))}:00",
            "pid": str(self.random.randrange(4_000, 400_000)),
            "region": self.region,
            "request": self.uuid(),
            "sg": self.sg,
            "subnet": self.subnet,
            "type": node.type,
            "ec2_type": node.type.removeprefix("ml."),
            "zone": self.zone,
            "zone_name": self.region + "abc"[int(self.zone[-1]) - 1],
            "letters": self.letters(8),
            "mount": self.mount,
            "booted": _time(node.launched + timedelta(minutes=4)),
            "stamp": self.taken.strftime("%Y-%m-%d %H:%M:%S"),
        }

    def fill(self, text: str, node: Node | None = None) -> str:
        """A line of a case or of the noise, its words in braces filled in. Other braces stay."""
        if "{" in text:
            for word, value in self.words(node).items():
                text = text.replace("{" + word + "}", value)
        return text

    def some(self, location: str, least: int, most: int) -> list[Any]:
        """Some of the harmless lines of a place, in their order."""
        pool = noise()[location]
        retained = set(self.random.sample(range(len(pool)), min(len(pool), self.random.randint(least, most))))
        return [item for number, item in enumerate(pool) if number in retained]

    def _cluster(self) -> None:
        slurm = self.orchestrator == "slurm"
        groups = [
            {
                "InstanceGroupName": group,
                "InstanceType": kind,
                "CurrentCount": len(self.members(group)),
                "TargetCount": len(self.members(group)),
                "Status": "InService",
                "ExecutionRole": f"arn:aws:iam::{ACCOUNT}:role/{self.environment}-{group}-role",
                "LifeCycleConfig": {
                    "SourceS3Uri": f"s3://sagemaker-{self.environment}-lifecycle-{self.letters(6)}/{self.hex(8)}",
                    "OnCreate": "on_create.sh",
                },
                "OverrideVpcConfig": {"Subnets": [self.subnet], "SecurityGroupIds": [self.sg]},
            }
            for group, kind in self.groups.items()
        ]
        orchestrator = {"Slurm": {}} if slurm else {"Eks": {"ClusterArn": self._eks_arn}}
        self.files["cluster.json"] = {
            "ClusterArn": self.arn,
            "ClusterName": self.name,
            "ClusterStatus": "InService",
            "CreationTime": self.ago(60_000),
            "InstanceGroups": groups,
            "Orchestrator": orchestrator,
            "NodeRecovery": "Automatic",
            "NodeProvisioningMode": "Continuous",
            "VpcConfig": {"SecurityGroupIds": [self.sg], "Subnets": [self.subnet]},
        }
        self.files["nodes.json"] = {"ClusterNodeSummaries": [self.summary(node) for node in self.nodes]}
        self.files["node-details.json"] = {}
        self.files["events.json"] = {"Events": []}
        self.files["event-details.json"] = {}
        for item in self.some("events", 4, 9):
            node = self.random.choice(self.members(self.group))
            self.event(item, node, self.random.randrange(2_000, 20_000))

    @property
    def _eks_arn(self) -> str:
        return f"arn:aws:eks:{self.region}:{ACCOUNT}:cluster/{self.environment}-eks"

    def summary(self, node: Node, status: str = "Running", message: str = "") -> Tree:
        """A node as ListClusterNodes shows it."""
        state = {"Status": status} | ({"Message": message} if message else {})
        return {
            "InstanceGroupName": node.group,
            "InstanceId": node.id,
            "InstanceType": node.type,
            "LaunchTime": node.launched,
            "InstanceStatus": state,
        }

    def event(self, item: Tree, node: Node, minutes: float) -> None:
        """Add an event of the cluster, and what DescribeClusterEvent says of it."""
        scope = item.get("scope", "Instance")
        event = {
            "EventId": self.uuid(),
            "ClusterArn": self.arn,
            "ClusterName": self.name,
            "ResourceType": scope,
            "EventTime": self.ago(minutes),
            "EventLevel": item.get("level", "Info"),
            "Description": self.fill(item["text"], node),
        }
        if scope != "Cluster":
            event["InstanceGroupName"] = node.group
        if scope == "Instance":
            event["InstanceId"] = node.id
        self.files["events.json"]["Events"].append(event)
        metadata: Tree = {scope: dict(fields) for scope, fields in item.get("metadata", {}).items()}
        if "failure" in item:
            metadata.setdefault(scope, {})["FailureMessage"] = self.fill(item["failure"], node)
        details = {**event, "EventDetails": {"EventMetadata": metadata}} if metadata else event
        self.files["event-details.json"][event["EventId"]] = details

    def _cloud(self) -> None:
        slurm = self.orchestrator == "slurm"
        to_itself = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": self.sg, "UserId": ACCOUNT}], "IpRanges": []}
        outside = {"IpProtocol": "-1", "UserIdGroupPairs": [], "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
        self.files["subnets.json"] = {
            "Subnets": [
                {
                    "SubnetId": self.subnet,
                    "AvailabilityZone": self.words()["zone_name"],
                    "AvailabilityZoneId": self.zone,
                    "CidrBlock": "10.16.0.0/20",
                    "AvailableIpAddressCount": self.random.randrange(1_500, 3_900),
                    "MapPublicIpOnLaunch": False,
                    "State": "available",
                }
            ]
        }
        self.files["security-groups.json"] = {
            "SecurityGroups": [
                {
                    "GroupId": self.sg,
                    "GroupName": f"{self.environment}-efa",
                    "IpPermissions": [to_itself],
                    "IpPermissionsEgress": [to_itself, outside],
                }
            ]
        }
        self.files["file-systems.json"] = {
            "FileSystems": [
                {
                    "FileSystemId": self.fs,
                    "FileSystemType": "LUSTRE",
                    "Lifecycle": "AVAILABLE",
                    "StorageCapacity": 38_400,
                    "SubnetIds": [self.subnet],
                    "DNSName": f"{self.fs}.fsx.{self.region}.amazonaws.com",
                    "LustreConfiguration": {"MountName": self.mount, "DeploymentType": "PERSISTENT_2"},
                }
            ]
        }
        self.files["service-quotas.json"] = {
            "Quotas": [
                {"QuotaName": f"{kind} for cluster usage", "QuotaCode": f"L-{self.hex(8).upper()}", "Value": 64.0}
                for kind in dict.fromkeys(self.groups.values())
            ]
        }
        if slurm:
            return
        versions = {
            "vpc-cni": "v1.21.1-eksbuild.1",
            "coredns": "v1.12.4-eksbuild.1",
            "kube-proxy": "v1.34.1-eksbuild.2",
        }
        versions |= {
            "eks-pod-identity-agent": "v1.3.10-eksbuild.1",
            "amazon-sagemaker-hyperpod-taskgovernance": "v1.4.0",
        }
        self.files["addons.json"] = {
            name: {"addonName": name, "status": "ACTIVE", "addonVersion": version, "health": {"issues": []}}
            for name, version in versions.items()
        }
        self.files["eks-cluster.json"] = {
            "cluster": {
                "name": f"{self.environment}-eks",
                "arn": self._eks_arn,
                "version": "1.34",
                "status": "ACTIVE",
                "health": {"issues": []},
                "accessConfig": {"authenticationMode": "API"},
            }
        }

    def _stacks(self) -> None:
        self.files["stacks.json"] = {"Stacks": []}
        self.files["stack-events.json"] = {}
        for short in _STACKS if self.orchestrator == "eks" else _STACKS[:2] + _STACKS[3:4]:
            self.stack(short, self.random.randrange(9_000, 30_000))

    def stack(self, short: str, minutes: float, parent: str = "") -> str:
        """Add a stack that is healthy; its name."""
        name = f"{self.environment}-{short}"
        stack_id = f"arn:aws:cloudformation:{self.region}:{ACCOUNT}:stack/{name}/{self.uuid()}"
        stack: Tree = {"StackName": name, "StackId": stack_id, "StackStatus": "UPDATE_COMPLETE"}
        stack |= {"CreationTime": self.ago(minutes + 30_000), "LastUpdatedTime": self.ago(minutes)}
        self.files["stacks.json"]["Stacks"].append(stack | ({"ParentId": parent, "RootId": parent} if parent else {}))
        self.files["stack-events.json"][name] = []
        own = {"resource": name, "type": "AWS::CloudFormation::Stack"}
        self.stack_event(name, minutes, {**own, "status": "UPDATE_IN_PROGRESS", "reason": "User Initiated"})
        for item in self.some("stack_events", 2, 5):
            self.stack_event(name, minutes - 1, item)
        self.stack_event(name, minutes - 4, {**own, "status": "UPDATE_COMPLETE"})
        return name

    def stack_event(self, name: str, minutes: float, item: Tree) -> None:
        """Add an event of a stack, the newest."""
        event = {
            "EventId": self.uuid(),
            "StackName": name,
            "LogicalResourceId": self.fill(item["resource"]),
            "ResourceType": item["type"],
            "ResourceStatus": item["status"],
            "Timestamp": self.ago(minutes),
        }
        if item.get("reason"):
            event["ResourceStatusReason"] = self.fill(item["reason"])
        self.files["stack-events.json"][name].insert(0, event)

    def log(self, kind: str, node: Node) -> list[tuple[datetime, str]]:
        """The log of a node: `LifecycleConfig` or `SagemakerHealthMonitoringAgent`."""
        return self.logs.setdefault(f"logs/{kind}/{node.group}/{node.id}.log", [])

    def write(self, log: list[tuple[datetime, str]], lines: Iterable[str], start: datetime, node: Node) -> None:
        """Append lines, some seconds apart."""
        for line in lines:
            start += timedelta(seconds=self.random.uniform(0.02, 6))
            log.append((start, self.fill(line, node)))

    def _logs(self) -> None:
        for node in self.random.sample(self.nodes, k=min(3, len(self.nodes))):
            start = node.launched + timedelta(minutes=4)
            self.write(self.log("LifecycleConfig", node), self.booted(), start, node)
        for node in self.random.sample(self.members(self.group), k=2):
            lines = self.some("health", 2, 6)
            self.write(self.log("SagemakerHealthMonitoringAgent", node), lines, self.ago(3_000), node)

    def booted(self) -> list[str]:
        """The lines of lifecycle scripts that ran through: the steps, with harmless lines between them."""
        steps: list[str] = list(noise()[self.scripts])
        for line in self.some(f"{self.scripts}_harmless", 3, 7):
            steps.insert(self.random.randrange(2, len(steps) - 1), line)
        return [part for step in steps for part in step.splitlines()]

    def texts(self, unseen: dict[str, str]) -> dict[str, str]:
        """The files of the bundle by path."""
        for path, key in (("nodes.json", "ClusterNodeSummaries"), ("events.json", "Events")):
            if path in self.files:
                self.random.shuffle(self.files[path][key])
        for path in [path for path in self.files if path.startswith("kubernetes/")]:
            self.random.shuffle(self.files[path]["items"])
        index = {
            "format": 1,
            "podwright": "0.7.0",
            "taken": self.taken,
            "cluster": self.name,
            "environment": self.environment,
            "orchestrator": self.orchestrator,
            "account": ACCOUNT,
            "region": self.region,
            "unseen": unseen,
        }
        texts = {
            path: json.dumps(content, default=_time) for path, content in {"bundle.json": index, **self.files}.items()
        }
        for path, lines in self.logs.items():
            texts[path] = "".join(f"{_time(time)} {text}\n" for time, text in sorted(lines, key=lambda line: line[0]))
        return texts


def _time(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
