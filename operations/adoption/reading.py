"""Reading a running HyperPod cluster, and what it stands on, by calls that change nothing."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Final, NamedTuple, TypeVar

from ...config.errors import CommandError
from ..aws.account import Account, Patience
from ..aws.calls import Reader
from ..aws.clusters import nodes
from ..aws.unseen import Unseen, unseen

T = TypeVar("T")
_PATIENCE: Final = Patience(5, 20, attempts=4)
_ABSENT: Final = ("ResourceNotFound", "ResourceNotFoundException", "FileSystemNotFound", "NoSuchKey", "NoSuchEntity")
# IAM has another word for it than the API.
_ACTIONS: Final = {"s3:ListObjectsV2": "s3:ListBucket"}
_FILE_SYSTEM: Final = re.compile(r"\bfs-[0-9a-f]{8,17}\b")
# Scripts are text; archives that they install from are not, and may have gigabytes.
_MOST_BYTES: Final = 262_144
_MOST_FILES: Final = 100
_ADMINISTRATOR: Final = "cluster-access-policy/AmazonEKSClusterAdminPolicy"


class Gap(NamedTuple):
    """Something that could not be read."""

    what: str
    why: str
    action: str = ""
    """The IAM action that is missing, where that is why."""

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


@dataclass(slots=True)
class RunningCluster:
    """A cluster and what it stands on, as AWS's own operations show them."""

    account: str
    region: str
    cluster: Mapping[str, Any]
    """DescribeCluster's answer."""
    tags: Mapping[str, str] = field(default_factory=dict)
    nodes: Mapping[str, int] | None = None
    """Nodes that are there, by group."""
    subnets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The VPC's subnets by id."""
    vpc: Mapping[str, Any] = field(default_factory=dict)
    rules: Sequence[Mapping[str, Any]] = ()
    """Rules of the nodes' security groups and of the EKS cluster's."""
    eks: Mapping[str, Any] | None = None
    """Its EKS cluster; None with Slurm."""
    addons: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    administrators: Sequence[str] = ()
    """Roles that are administrators of the EKS cluster."""
    quotas: Sequence[Mapping[str, Any]] = ()
    scheduler: Mapping[str, Any] | None = None
    plans: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """DescribeTrainingPlan's answers by ARN."""
    file_systems: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Those that the cluster names, by id."""
    file_system_groups: dict[str, Sequence[str]] = field(default_factory=dict)
    """Their security groups."""
    others: Sequence[str] = ()
    """Ids of further file systems in the VPC."""
    slurm: Mapping[str, Any] | None = None
    """What `provisioning_parameters.json` among its scripts says."""
    gaps: list[Gap] = field(default_factory=list)


def read(account: Account, name: str) -> RunningCluster:
    """Read the cluster `name`.

    Raises:
        CommandError: there is no such cluster, or what no file can be written without may not be read.
    """
    return _Reading(account, name).running


class _Reading:
    """One cluster's reading; what is not answered becomes a gap, except for what the file needs."""

    def __init__(self, account: Account, name: str) -> None:
        self._aws: Reader = account.reader(_PATIENCE)
        self._region = account.region
        self.running = RunningCluster(account.id, account.region, self._needed(self._cluster, name))
        self._read()

    def _read(self) -> None:
        """Everything beside the cluster itself, what the file needs first."""
        running, cluster = self.running, self.running.cluster
        self._note("tags", self._tags)
        self._note("the nodes that are there", self._nodes)
        placements = [cluster["VpcConfig"]] if "VpcConfig" in cluster else []
        placements += [group["OverrideVpcConfig"] for group in groups(cluster) if "OverrideVpcConfig" in group]
        if not placements:
            raise CommandError(
                f"{cluster['ClusterName']} is in no VPC of this account, but in one of SageMaker's",
                "a file describes clusters in a VPC of the account only; make a new one, and move the work",
            )
        subnets = sorted({subnet for each in placements for subnet in each["Subnets"]})
        security_groups = {group for each in placements for group in each["SecurityGroupIds"]}
        self._needed(self._network, subnets)
        if arn := cluster.get("Orchestrator", {}).get("Eks", {}).get("ClusterArn"):
            name = arn.rpartition("/")[2]
            running.eks = self._needed(lambda: self._aws.get("eks", "describe_cluster", name=name)["cluster"])
            security_groups.add(running.eks["resourcesVpcConfig"]["clusterSecurityGroupId"])
            self._note("add-ons of the EKS cluster", self._addons, name)
            self._note("administrators of the EKS cluster", self._administrators, name)
            self._note("quotas of teams", self._quotas)
            self._note("priorities and sharing", self._scheduler)
        self._note("rules of security groups", self._rules, sorted(security_groups))
        for plan in sorted({group["TrainingPlanArn"] for group in groups(cluster) if "TrainingPlanArn" in group}):
            self._note(f"training plan {plan.rpartition('/')[2]}", self._plan, plan)
        named = set(_FILE_SYSTEM.findall(json.dumps([*groups(cluster)], default=str)))
        sources = {group.get("LifeCycleConfig", {}).get("SourceS3Uri") for group in ordinary(cluster)}
        for source in sorted(filter(None, sources)):
            named |= self._note(f"scripts of {source}", self._scripts, source) or set()
        self._note("file systems", self._file_systems, named)

    def _needed(self, question: Callable[..., T], *arguments: Any) -> T:
        """What nothing can be written without."""
        from botocore.exceptions import ClientError

        try:
            return question(*arguments)
        except Unseen as reason:
            action = action_of(reason)
            hint = f"a role needs {action} for this" if action else "run this again"
            raise CommandError(f"{reason.what} is not answered: {reason.why}", hint) from None
        except ClientError as error:
            raise CommandError(f"AWS says: {error}", "run this again") from None

    def _note(self, what: str, question: Callable[..., T], *arguments: Any) -> T | None:
        """What the file can do without: a gap where it is not answered."""
        from botocore.exceptions import ClientError

        try:
            return question(*arguments)
        except Unseen as reason:
            self.running.gaps.append(Gap(what, f"{reason.what}: {reason.why}", action_of(reason)))
        except ClientError as error:
            reason = error.response["Error"]
            self.running.gaps.append(Gap(what, f"{reason['Code']}: {reason.get('Message', '')}"))
        return None

    def _cluster(self, name: str) -> Mapping[str, Any]:
        answer = self._aws.find("sagemaker", "describe_cluster", _ABSENT, ClusterName=name)
        if answer is not None:
            return answer
        known = [row["ClusterName"] for row in self._aws.pages("sagemaker", "list_clusters", "ClusterSummaries")]
        close = get_close_matches(name, known, 1)
        listed = f"its clusters: {', '.join(sorted(known))}" if known else "there is none; name another with --region"
        raise CommandError(
            f"there is no HyperPod cluster {name} in {self._region}",
            f"did you mean {close[0]}?" if close else listed,
            2,
        )

    def _tags(self) -> None:
        arn = self.running.cluster["ClusterArn"]
        rows = self._aws.pages("sagemaker", "list_tags", "Tags", ResourceArn=arn)
        self.running.tags = {row["Key"]: row["Value"] for row in rows}

    def _nodes(self) -> None:
        from botocore.exceptions import ClientError

        name = self.running.cluster["ClusterName"]
        counts = {group["InstanceGroupName"]: 0 for group in groups(self.running.cluster)}
        try:
            present = nodes(self._aws, name)
        except ClientError as error:
            raise unseen(error, "sagemaker list-cluster-nodes") or error from None
        for node in present:
            counts[node.group] = counts.get(node.group, 0) + 1
        self.running.nodes = counts

    def _network(self, subnets: Sequence[str]) -> None:
        rows = self._aws.pages("ec2", "describe_subnets", "Subnets", SubnetIds=subnets)
        vpc = rows[0]["VpcId"]
        filters = [{"Name": "vpc-id", "Values": [vpc]}]
        rows = self._aws.pages("ec2", "describe_subnets", "Subnets", Filters=filters)
        self.running.subnets = {row["SubnetId"]: row for row in rows}
        (self.running.vpc,) = self._aws.pages("ec2", "describe_vpcs", "Vpcs", VpcIds=[vpc])

    def _rules(self, security_groups: Sequence[str]) -> None:
        filters = [{"Name": "group-id", "Values": security_groups}]
        operation = "describe_security_group_rules"
        self.running.rules = self._aws.pages("ec2", operation, "SecurityGroupRules", Filters=filters)

    def _addons(self, name: str) -> None:
        names = self._aws.pages("eks", "list_addons", "addons", clusterName=name)
        self.running.addons = {
            addon: self._aws.get("eks", "describe_addon", clusterName=name, addonName=addon)["addon"] for addon in names
        }

    def _administrators(self, name: str) -> None:
        """Roles with an access entry that makes them administrators of the whole cluster."""
        results = list[str]()
        for principal in self._aws.pages("eks", "list_access_entries", "accessEntries", clusterName=name):
            policies = self._aws.pages(
                "eks",
                "list_associated_access_policies",
                "associatedAccessPolicies",
                clusterName=name,
                principalArn=principal,
            )
            administers = any(
                policy["policyArn"].endswith(_ADMINISTRATOR) and policy["accessScope"]["type"] == "cluster"
                for policy in policies
            )
            if administers and ":role/" in principal:
                results.append(principal)
        self.running.administrators = sorted(results)

    def _quotas(self) -> None:
        of_cluster = {"ClusterArn": self.running.cluster["ClusterArn"]}
        rows = self._aws.pages("sagemaker", "list_compute_quotas", "ComputeQuotaSummaries", **of_cluster)
        self.running.quotas = [
            self._aws.get("sagemaker", "describe_compute_quota", ComputeQuotaId=row["ComputeQuotaId"]) for row in rows
        ]

    def _scheduler(self) -> None:
        of_cluster = {"ClusterArn": self.running.cluster["ClusterArn"]}
        operation = "list_cluster_scheduler_configs"
        rows = self._aws.pages("sagemaker", operation, "ClusterSchedulerConfigSummaries", **of_cluster)
        for row in rows[:1]:
            id = row["ClusterSchedulerConfigId"]
            self.running.scheduler = self._aws.get(
                "sagemaker", "describe_cluster_scheduler_config", ClusterSchedulerConfigId=id
            )

    def _plan(self, arn: str) -> None:
        name = arn.rpartition("/")[2]
        answer = self._aws.get("sagemaker", "describe_training_plan", TrainingPlanName=name)
        self.running.plans = {**self.running.plans, arn: answer}

    def _scripts(self, source: str) -> set[str]:
        """Ids of the file systems that scripts name; what they say of Slurm is kept."""
        bucket, _, prefix = source.partition("://")[2].partition("/")
        rows = self._aws.pages("s3", "list_objects_v2", "Contents", Bucket=bucket, Prefix=prefix)
        named = set[str]()
        small = [row["Key"] for row in rows if row["Size"] <= _MOST_BYTES]
        if len(small) > _MOST_FILES:
            why = f"{_MOST_FILES} of its {len(small)} small files were searched for ids of file systems"
            self.running.gaps.append(Gap(f"scripts of {source}", why))
        for key in small[:_MOST_FILES]:
            text = self._object(bucket, key)
            named |= set(_FILE_SYSTEM.findall(text))
            if key.endswith("provisioning_parameters.json"):
                self._provisioning(f"s3://{bucket}/{key}", text)
        return named

    def _object(self, bucket: str, key: str) -> str:
        # Its body is read once, so the answer cannot be kept for who asks again.
        answer = self._aws.get("s3", "get_object", Bucket=bucket, Key=key)
        return answer["Body"].read().decode("utf-8", "replace")

    def _provisioning(self, uri: str, text: str) -> None:
        try:
            value = json.loads(text)
        except ValueError as error:
            self.running.gaps.append(Gap(uri, f"it is not JSON: {error}"))
            return
        if isinstance(value, dict) and value.get("workload_manager", "slurm") == "slurm":
            self.running.slurm = value

    def _file_systems(self, named: set[str]) -> None:
        rows = {row["FileSystemId"]: row for row in self._aws.pages("fsx", "describe_file_systems", "FileSystems")}
        here = {id: row for id, row in rows.items() if row.get("VpcId") == self.running.vpc["VpcId"]}
        for id in sorted(named - here.keys()):
            self.running.gaps.append(Gap(f"file system {id}", "FSx has none of that id in the cluster's VPC"))
        self.running.file_systems = {id: row for id, row in sorted(here.items()) if id in named}
        self.running.others = sorted(here.keys() - named)
        if self.running.file_systems:
            self._note("security groups of file systems", self._interfaces)

    def _interfaces(self) -> None:
        systems = self.running.file_systems
        ids = sorted({id for row in systems.values() for id in row["NetworkInterfaceIds"]})
        rows = self._aws.pages("ec2", "describe_network_interfaces", "NetworkInterfaces", NetworkInterfaceIds=ids)
        of_interface = {row["NetworkInterfaceId"]: row["Groups"] for row in rows}
        for id, row in systems.items():
            members = [group for each in row["NetworkInterfaceIds"] for group in of_interface.get(each, ())]
            self.running.file_system_groups[id] = sorted({group["GroupId"] for group in members})


def ordinary(cluster: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The ordinary instance groups of DescribeCluster's answer."""
    return cluster.get("InstanceGroups") or ()


def restricted(cluster: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Its restricted ones."""
    return cluster.get("RestrictedInstanceGroups") or ()


def groups(cluster: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """All of its groups."""
    yield from ordinary(cluster)
    yield from restricted(cluster)


def action_of(reason: Unseen) -> str:
    """The IAM action that a call needs that was denied; empty where something else kept it from being answered."""
    service, _, operation = reason.what.partition(" ")
    if not reason.denied:
        return ""
    action = f"{service}:{''.join(word.capitalize() for word in operation.split('-'))}"
    return _ACTIONS.get(action, action)
