"""The HyperPod service: its clusters, the checks of requests, and the Node objects of clusters."""

import threading
import uuid
from collections import Counter
from datetime import timedelta
from functools import lru_cache
from typing import Any

from botocore.session import Session

from ...config.catalog.instance_types import catalog
from ..eks.service import Eks
from ..hyperpod import events as hyperpod_events
from ..hyperpod import logs as hyperpod_logs
from ..hyperpod import repair as hyperpod_repair
from ..hyperpod import software as hyperpod_software
from ..hyperpod.answers import kubernetes_node
from ..hyperpod.boot import EFA_FAILED, LIFECYCLE_FAILED, efa_can_work, lifecycle_script_exists
from ..hyperpod.cluster import HEALTHY, NO_CAPACITY, Cluster, Group, Node, Shortage, Timing
from ..hyperpod.in_progress import FaultKind, Repair
from ..hyperpod.quotas import check_quotas
from ..hyperpod.repair import DRILL_LABEL, PENDING, drilled, xid_fault
from ..hyperpod.slurm import check, check_immutable, two_masters
from ..hyperpod.verdicts import publish
from ..protocol.clients import Clients
from ..protocol.clock import now
from ..protocol.json_objects import JsonObject, merged, picked, tags_of, without
from ..protocol.service import refuse
from ..services.event_bus import EventBus
from ..services.quotas import Quotas
from ..training_plans.service import TrainingPlanService
from .schedulers import Schedulers

FAULTS = ("jobs", "verdicts", "exporters")
# Every installation of the HyperPod Helm chart has its subchart for deep health checks.
_DEPENDENCY = ("v1", "ServiceAccount", "deep-health-check-service-account", "aws-hyperpod")


@lru_cache(maxsize=1)
def instance_types() -> list[str]:
    """Return HyperPod's instance types, from SageMaker's service model."""
    model = Session().get_service_model("sagemaker")
    return list(model.shape_for("ClusterInstanceType").enum)  # pyrefly: ignore[missing-attribute]


class HyperPod:
    """The clusters of all regions, the missing capacity, and the time scale."""

    def __init__(self, clients: Clients, eks: Eks, timing: Timing):
        """Start without clusters and faults."""
        self.clients, self.eks, self.timing = clients, eks, timing
        self.clusters: dict[tuple[str, str], Cluster] = {}
        self.shortages: list[Shortage] = []
        self.failing: dict[str, list[str]] = {}
        """Output of failing lifecycle scripts, by group."""
        self.images: dict[str, Any] = {"latest": hyperpod_software.FIRST_RELEASE}
        """The newest release of HyperPod's image."""
        self.lock = threading.RLock()
        """Lock for changes of clusters, by requests and the clock."""
        self.faults: dict[str, dict[str, str]] = {name: {} for name in FAULTS}
        """Faults of jobs, verdicts and exporters, by key of `/podwright/faults`."""
        self.quotas = Quotas()
        self.plans = TrainingPlanService(clients, self._in_use)
        self.schedulers = Schedulers(eks, self.cluster, timing)

    def all(self, region: str) -> list[Cluster]:
        """Return the clusters of a region in their current state, except for deleted ones."""
        with self.lock:
            # A copy, since deleted clusters are removed meanwhile.
            for (scope, name), cluster in list(self.clusters.items()):
                self._settle(cluster)
                if cluster.outcome == "Deleting" and now() >= cluster.busy_until:
                    del self.clusters[scope, name]
            return [cluster for (scope, _), cluster in self.clusters.items() if scope == region]

    def _settle(self, cluster: Cluster) -> None:
        timestamp = now()
        cluster.settle(self, timestamp)
        hyperpod_repair.proceed(cluster, self, timestamp)
        hyperpod_software.proceed(cluster, self, timestamp)
        for node in cluster.nodes:
            if not node.logged and node.group in cluster.groups and node.ready <= timestamp:
                node.logged = True
                hyperpod_logs.lifecycle(cluster, node.group, node.instance_id, [hyperpod_logs.SUCCEEDED], node.launched)
                publish(self.clients.client("s3", cluster.region), cluster, node, self.faults["verdicts"])

    def tick(self, bus: EventBus) -> bool:
        """Advance the clusters with repairs or events. Returns True if there was one."""
        # A request advances its cluster. Clients that follow a repair in Kubernetes or wait for an event send no
        # request to SageMaker.
        waiting = False
        for cluster in list(self.clusters.values()):
            listened = bus.listens(cluster.region)
            waiting |= listened or bool(cluster.repairs)
            with self.lock:
                if listened or cluster.repairs:
                    self._settle(cluster)
                if not listened:
                    hyperpod_events.skip_events(cluster, now())
                    continue
                events = hyperpod_events.cluster_events(cluster, now())
            # Without the lock, since a function that gets the event may call SageMaker before it returns.
            for detail_type, detail in events:
                bus.send(cluster.region, detail_type, cluster.arn, detail)
        return waiting

    def node(self, instance_id: str) -> tuple[Cluster, Node]:
        """Return a node of any cluster. Raises ValueError."""
        for cluster in self.clusters.values():
            for node in cluster.nodes:
                if node.instance_id == instance_id and not node.deleted:
                    return cluster, node
        known = [node.instance_id for cluster in self.clusters.values() for node in cluster.nodes if not node.deleted]
        raise ValueError(f"there is no node {instance_id}; there are {', '.join(known) or 'none so far'}")

    def break_node(self, cluster: Cluster, node: Node, fault: FaultKind) -> None:
        """Cause a fault of a node that the health agent detects."""
        with self.lock:
            cluster.repairs.append(Repair(node.instance_id, fault.action, fault))

    def patch_node(self, region: str, eks_cluster: str, name: str, patch: JsonObject) -> None:
        """Change a node's Kubernetes object. HyperPod acts on a new health label."""
        for cluster in self._of_eks(region, eks_cluster):
            for node in cluster.nodes:
                if f"hyperpod-{node.instance_id}" != name or node.deleted:
                    continue
                labels = dict(patch.get("metadata", {}).get("labels") or {})
                health = labels.pop("sagemaker.amazonaws.com/node-health-status", node.health)
                rest = {**patch, "metadata": {**patch.get("metadata", {}), "labels": labels}}
                node.patch = merged(node.patch, rest)
                actions: dict[str, Any] = {label: action for action, label in PENDING.items()}
                if health != node.health and health in actions:
                    with self.lock:
                        cluster.repairs.append(Repair(node.instance_id, actions[health], None))
                elif health == HEALTHY:
                    node.health, node.fault = HEALTHY, {}

    @property
    def job_faults(self) -> dict[str, str]:
        """Faults of jobs by a prefix of their names."""
        return self.faults["jobs"]

    def run_pod(self, region: str, eks_cluster: str, pod: JsonObject) -> JsonObject | None:
        """Run a drill on a simulated node: the health agent detects the Xid that the pod would write."""
        if DRILL_LABEL not in (pod["metadata"].get("labels") or {}):
            return None
        for cluster in self._of_eks(region, eks_cluster):
            for node in cluster.nodes:
                if f"hyperpod-{node.instance_id}" == pod["spec"].get("nodeName") and not node.deleted:
                    self.break_node(cluster, node, drilled(pod))
                    ended = {"exitCode": 0, "reason": "Completed", "finishedAt": now().strftime("%Y-%m-%dT%H:%M:%SZ")}
                    return {"phase": "Succeeded", "containerStatuses": [{"state": {"terminated": ended}}]}
        return None

    def find_xid(self, region: str, eks_cluster: str, name: str, text: str) -> None:
        """Let the health agent of a real node act on an Xid in the node's log."""
        for cluster in self._of_eks(region, eks_cluster):
            for node in cluster.nodes:
                if f"hyperpod-{node.instance_id}" == name and not node.deleted:
                    self.break_node(cluster, node, xid_fault(text))

    def _of_eks(self, region: str, eks_cluster: str) -> list[Cluster]:
        """Return the HyperPod cluster of an EKS cluster; None without one."""
        eks = self.eks.clusters.get((region, eks_cluster))
        return [
            cluster
            for cluster in self.all(region)
            if eks
            and cluster.request.get("Orchestrator", {}).get("Eks", {}).get("ClusterArn") == eks.description["arn"]
        ]

    def cluster(self, region: str, name_or_arn: str) -> Cluster:
        """Return a cluster by name or ARN. Raises ResourceNotFound."""
        for cluster in self.all(region):
            if name_or_arn in (cluster.name, cluster.arn):
                return cluster
        raise refuse("ResourceNotFound", f"Cluster with name '{name_or_arn}' not found (sandbox)")

    def create(self, region: str, values: JsonObject) -> Cluster:
        """Create a cluster. Raises the API's errors."""
        with self.lock:
            return self._create(region, values)

    def _create(self, region: str, values: JsonObject) -> Cluster:
        """Create a cluster, or raise SageMaker's error."""
        name = values["ClusterName"]
        if any(cluster.name == name for cluster in self.all(region)):
            raise refuse(
                "ResourceInUse",
                f"Resource Already Exists: Cluster with name {name} already exists. Choose a different name.",
            )
        self._check_orchestrator(values)
        request = without(values, "InstanceGroups", "RestrictedInstanceGroups", "Tags")
        identifier = uuid.uuid4().hex[:12]
        cluster = Cluster(
            name,
            f"arn:aws:sagemaker:{region}:{self.clients.account}:cluster/{identifier}",
            region,
            request,
            self.timing,
            tags=tags_of(values),
        )
        groups = self._groups(values)
        if not groups:
            raise refuse("ValidationException", "At least one instance group is needed (sandbox)")
        check(name, request, groups)
        self.plans.check(region, {}, groups)
        check_quotas(self.quotas, [], groups, self._others(region, name))
        # With continuous provisioning, a Slurm cluster becomes InService when its controller and login nodes run.
        cluster.begun = not cluster.continuous or all(group.slurm_type is None for group in groups)
        cluster.groups = {group.name: group for group in groups}
        self._look_up_subnets(cluster)
        self.clusters[region, name] = cluster
        self._install_karpenter(cluster)
        cluster.note("Cluster", f"Cluster {name} is being created.")
        cluster.converge(self, "Creating")
        return cluster

    def update(self, region: str, values: JsonObject) -> Cluster:
        """Change groups and settings. Groups that the request does not name are unchanged."""
        with self.lock:
            return self._update(region, values)

    def _update(self, region: str, values: JsonObject) -> Cluster:
        """Check a request, then change groups and settings of a cluster."""
        cluster = self._idle(region, values["ClusterName"])
        groups, removed = self._groups(values), values.get("InstanceGroupsToDelete", [])
        check_immutable(cluster.groups, groups)
        self.plans.check(region, cluster.groups, groups)
        retained = {name: group for name, group in cluster.groups.items() if name not in removed}
        later = retained | {group.name: group for group in groups}
        check(cluster.name, cluster.request | values, list(later.values()))
        before, others = list(cluster.groups.values()), self._others(region, cluster.name)
        check_quotas(self.quotas, before, list(later.values()), others)
        for group in groups:
            # An update replaces the specification of a group. Only UpdateClusterSoftware changes its nodes' image.
            if earlier := cluster.groups.get(group.name):
                group.release, group.update = earlier.release, earlier.update
            cluster.groups[group.name] = group
        for name in removed:
            group = cluster.groups.pop(name, None)
            if group is None:
                raise refuse("ValidationException", f"Instance group {name} does not exist (sandbox)")
            cluster.retire(cluster.members(name, now()))
        for key in (
            "NodeRecovery",
            "NodeProvisioningMode",
            "TieredStorageConfig",
            "ClusterRole",
            "AutoScaling",
            "RestrictedInstanceGroupsConfig",
            "Orchestrator",
        ):
            if key in values:
                cluster.request[key] = values[key]
        self._install_karpenter(cluster)
        self._look_up_subnets(cluster)
        cluster.converge(self, "Updating")
        return cluster

    def delete(self, region: str, name: str) -> Cluster:
        """Delete a cluster and its nodes."""
        with self.lock:
            cluster = self.cluster(region, name)
            cluster.retire([node for node in cluster.nodes if not node.deleted])
            wait = self.timing.shutdown * self.timing.scale
            cluster.busy, cluster.outcome = "Deleting", "Deleting"
            cluster.busy_until = max([now(), *(node.deleted for node in cluster.nodes if node.deleted)])
            cluster.busy_until += timedelta(seconds=wait)
            return cluster

    def obstacle(self, cluster: Cluster, group: Group) -> str | None:
        """Return why a group gets no new nodes: no capacity, no lifecycle script, or a network without EFA traffic."""
        if group.plan and (reason := self.plans.obstacle(cluster, group)):
            return reason
        if not group.plan and cluster.short_of(group, self.shortages):
            return NO_CAPACITY
        if both := two_masters(self.clients.client("s3", cluster.region), list(cluster.groups.values())):
            return both
        if not lifecycle_script_exists(self.clients.client("s3", cluster.region), group):
            return LIFECYCLE_FAILED.format(instance=f"i-{uuid.uuid4().hex[:17]}")
        if group.name in self.failing:
            return self._failed_scripts(cluster, group)
        if not efa_can_work(self.clients.client("ec2", cluster.region), cluster, group):
            return EFA_FAILED.format(instance=f"i-{uuid.uuid4().hex[:17]}")
        return None

    def _failed_scripts(self, cluster: Cluster, group: Group) -> str:
        """Let an instance fail in its lifecycle scripts, and write their output once."""
        lines = self.failing[group.name]
        known = cluster.told.get(f"failed {group.name}")
        if known is None or known[0] != lines:
            instance = f"i-{uuid.uuid4().hex[:17]}"
            printed = [*lines, hyperpod_logs.FAILED.format(code=1)]
            hyperpod_logs.lifecycle(cluster, group.name, instance, printed, now())
            message = LIFECYCLE_FAILED.format(instance=instance)
            known = cluster.told[f"failed {group.name}"] = (lines, message)
            region = f"To view lifecycle script logs, visit log group {hyperpod_logs.group_of(cluster)}"
            cluster.note(
                "Instance",
                f"Instance lifecycle script execution for EC2 Instance {instance} has Failed. {region}",
                "Error",
                group.name,
                instance,
                {"Instance": {"LcsExecutionState": "Failed", "FailureMessage": message}},
            )
        return known[1]

    def waits(self, cluster: Cluster, group: Group) -> str | None:
        """Return the window of its training plan that a group waits for."""
        return self.plans.waits(cluster, group) if group.plan else None

    def places(self, cluster: Cluster, group: Group) -> list[JsonObject] | None:
        """Return the remaining nodes of a group's training plan; None without a plan."""
        return self.plans.places(cluster, group) if group.plan else None

    def surplus(self, cluster: Cluster, group: Group) -> int:
        """Return the number of a group's nodes that its training plan no longer provides."""
        return self.plans.surplus(cluster, group) if group.plan else 0

    def _in_use(self, region: str, plan: str, zone_id: str) -> Counter[str]:
        """Return a training plan's nodes in a zone, by UltraServer."""
        return Counter(
            node.ultraserver.get("Id", "")
            for (scope, _), cluster in list(self.clusters.items())
            if scope == region
            for node in cluster.nodes
            if not node.deleted and node.zone_id == zone_id
            if (group := cluster.groups.get(node.group)) and group.plan == plan
        )

    def kubernetes_version(self, cluster: Cluster) -> str:
        """Return the Kubernetes version for which HyperPod chooses images; `none` without EKS."""
        eks_cluster = self.eks.by_arn(cluster.request.get("Orchestrator", {}).get("Eks", {}).get("ClusterArn", ""))
        return eks_cluster.description["version"] if eks_cluster else "none"

    def update_software(self, region: str, values: JsonObject) -> Cluster:
        """Start an update of nodes' software."""
        with self.lock:
            cluster = self.cluster(region, values["ClusterName"])
            hyperpod_software.begin(cluster, self, values)
            return cluster

    def kubernetes_nodes(self, region: str, eks_cluster: str) -> list[JsonObject]:
        """Return the Node objects of an EKS cluster: of the HyperPod nodes that have been running."""
        timestamp = now()
        return [
            kubernetes_node(cluster, node, timestamp)
            for cluster in self._of_eks(region, eks_cluster)
            for node in cluster.nodes
            if node.status(timestamp) == "Running"
            or (not node.deleted and (node.boots or node.checked or node.updating_until))
        ]

    def first_nodes(self, region: str, eks_cluster: str) -> list[str]:
        """Return the names of all present and future nodes: accelerated first, then by group and position."""
        nodes = [
            (
                not _is_accelerated(node.instance_type),
                list(cluster.groups).index(node.group),
                node.spot,
                node.instance_id,
            )
            for cluster in self._of_eks(region, eks_cluster)
            for node in cluster.nodes
            if node.group in cluster.groups and not node.deleted
        ]
        return [f"hyperpod-{instance_id}" for *_, instance_id in sorted(nodes)]

    def _others(self, region: str, name: str) -> list[Group]:
        """Return the groups of all other clusters of a region."""
        return [group for other in self.all(region) if other.name != name for group in other.groups.values()]

    def _idle(self, region: str, name: str) -> Cluster:
        cluster = self.cluster(region, name)
        status = cluster.status(now())
        if status != "InService" and not (cluster.continuous and status == "Updating"):
            raise refuse(
                "ConflictException", f"Cluster {cluster.name} is in status {status} and cannot be changed (sandbox)"
            )
        return cluster

    def _groups(self, values: JsonObject) -> list[Group]:
        """Check the groups of a request without the cluster's state, and return them."""
        groups = [Group(dict(item)) for item in values.get("InstanceGroups", [])]
        groups += [Group(dict(item), True) for item in values.get("RestrictedInstanceGroups", [])]
        names = [group.name for group in groups]
        for name in names:
            if names.count(name) > 1:
                raise refuse("ValidationException", f"Instance group name {name} is used more than once (sandbox)")
        for index, group in enumerate(groups, 1):
            if group.instance_type not in instance_types():
                raise refuse(
                    "ValidationException",
                    f"1 validation error detected: Value '{group.instance_type}' at 'instanceGroups.{index}."
                    "member.instanceType' failed to satisfy constraint: Member must satisfy enum value set: "
                    f"[{', '.join(instance_types())}]",
                )
            source = group.specification.get("LifeCycleConfig", {}).get("SourceS3Uri", "s3://sagemaker-")
            if not source.startswith("s3://sagemaker"):
                raise refuse(
                    "ValidationException",
                    f"Validation Error: SourceS3Uri {source} does not start with 's3://sagemaker'.",
                )
        return groups

    def _look_up_subnets(self, cluster: Cluster) -> None:
        """Record the zones of subnets for their nodes. Raises EC2's error for an unknown security group."""
        own = [group.specification.get("OverrideVpcConfig") for group in cluster.groups.values()]
        vpcs = [vpc for vpc in (cluster.request.get("VpcConfig"), *own) if vpc]
        names = {subnet for vpc in vpcs for subnet in vpc["Subnets"]}
        groups = sorted({group for vpc in vpcs for group in vpc.get("SecurityGroupIds", ())})
        if groups:
            # Before the cluster is stored: later its nodes would fail, and it could not be created again.
            self.clients.client("ec2", cluster.region).describe_security_groups(GroupIds=groups)
        unknown = sorted(names - cluster.subnets.keys())
        if unknown:
            answer = self.clients.client("ec2", cluster.region).describe_subnets(SubnetIds=unknown)
            cluster.subnets |= {
                subnet["SubnetId"]: picked(subnet, "SubnetId", "AvailabilityZone", "AvailabilityZoneId", "CidrBlock")
                for subnet in answer["Subnets"]
            }

    def _install_karpenter(self, cluster: Cluster) -> None:
        """Serve the kinds of Karpenter in a cluster whose groups HyperPod scales. Its controller does not run."""
        eks_cluster = self.eks.by_arn(cluster.request.get("Orchestrator", {}).get("Eks", {}).get("ClusterArn", ""))
        if eks_cluster and cluster.request.get("AutoScaling", {}).get("Mode") == "Enable":
            self.eks.kubernetes.objects(cluster.region, eks_cluster.description["name"]).install("hyperpod-karpenter")

    def _check_orchestrator(self, values: JsonObject) -> None:
        """Refuse an EKS cluster that is unknown or authenticates only by ConfigMap."""
        arn = values.get("Orchestrator", {}).get("Eks", {}).get("ClusterArn")
        if not arn:
            return
        eks = self.eks.by_arn(arn)
        if eks is None:
            raise refuse("ValidationException", f"Amazon EKS cluster {arn} does not exist (sandbox)")
        if eks.description["accessConfig"]["authenticationMode"] == "CONFIG_MAP":
            raise refuse(
                "ValidationException",
                "The authentication mode of the Amazon EKS orchestrator cluster must be "
                "API or API_AND_CONFIG_MAP (sandbox)",
            )
        objects = self.eks.kubernetes.objects(eks.description["arn"].split(":")[3], eks.description["name"])
        if objects.find(*_DEPENDENCY) is None:
            # Source of the message: readme of the HyperPod Helm chart (aws/sagemaker-hyperpod-cli), note 1.
            raise refuse(
                "ValidationException",
                "Amazon EKS orchestrator cluster is missing required dependencies. Install the HyperPod Helm chart "
                "first (sandbox)",
            )
        for cluster in self.clusters.values():
            if cluster.request.get("Orchestrator", {}).get("Eks", {}).get("ClusterArn") == arn:
                raise refuse(
                    "ResourceInUse",
                    f"Amazon EKS cluster {arn} already belongs to HyperPod cluster {cluster.name} (sandbox)",
                )
        if "VpcConfig" not in values:
            raise refuse("ValidationException", "VpcConfig is needed with an Amazon EKS orchestrator (sandbox)")


def _is_accelerated(instance_type: str) -> bool:
    row = catalog().find(instance_type)
    return row is not None and row.accelerator_count > 0
