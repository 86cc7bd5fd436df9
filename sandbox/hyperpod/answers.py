"""Groups and nodes in the form of the SageMaker and Kubernetes APIs."""

import json
import uuid
from datetime import datetime
from typing import Any, Final

from ...config.catalog.instance_types import catalog
from ...planning.node.allocatable import HUGE_PAGES_MIB, kubelet_allocatable
from ...planning.quota.amounts import EFA, GPU, NEURON
from ..protocol.json_objects import JsonObject, merged
from .cluster import HEALTHY, Cluster, Group, Node


def group_answer(cluster: Cluster, group: Group, timestamp: datetime, plan_status: str | None) -> JsonObject:
    """Return a group in the form of DescribeCluster. `plan_status` is the status of its training plan."""
    specification: dict[str, Any] = {
        key: value
        for key, value in group.specification.items()
        if key
        not in (
            "InstanceCount",
            "MinInstanceCount",
            "InstanceRequirements",
            "KubernetesConfig",
            "ImageId",
            "ImageReleaseVersion",
            "NetworkInterface",
        )
    }
    if plan_status:
        specification["TrainingPlanStatus"] = plan_status
    answer = {
        **specification,
        "TargetCount": group.target,
        "Status": cluster.group_status(group, timestamp),
        "CurrentCount": cluster.running(group.name, timestamp),
    }
    if "MinInstanceCount" in group.specification:
        answer["MinCount"] = group.specification["MinInstanceCount"]
    if "InstanceRequirements" in group.specification:
        types = group.specification["InstanceRequirements"]["InstanceTypes"]
        answer["InstanceRequirements"] = {"CurrentInstanceTypes": types, "DesiredInstanceTypes": types}
    if "KubernetesConfig" in group.specification:
        config = group.specification["KubernetesConfig"]
        answer["KubernetesConfig"] = {
            f"{state}{key}": config[key]
            for state in ("Current", "Desired")
            for key in ("Labels", "Taints")
            if key in config
        }
    return answer


def node_answer(cluster: Cluster, node: Node, timestamp: datetime, details: bool) -> JsonObject:
    """Return a node in the form of ListClusterNodes, or with `details` of DescribeClusterNode."""
    answer: JsonObject = {
        "InstanceGroupName": node.group,
        "InstanceId": node.instance_id,
        "NodeLogicalId": node.logical_id,
        "InstanceType": node.instance_type,
        "LaunchTime": node.launched,
        "InstanceStatus": {"Status": node.status(timestamp) or "NotFound", "Message": ""},
        "PrivateDnsHostname": f"ip-{node.address.replace('.', '-')}.{cluster.region}.compute.internal",
    }
    if node.ultraserver:
        answer["UltraServerInfo"] = dict(node.ultraserver)
    if node.software_updated:
        answer["LastSoftwareUpdateTime"] = node.software_updated
    if details:
        specification = cluster.groups[node.group].specification if node.group in cluster.groups else {}
        answer |= {
            key: specification[key]
            for key in ("LifeCycleConfig", "OverrideVpcConfig", "ThreadsPerCore", "InstanceStorageConfigs")
            if key in specification
        }
        # A node keeps the scripts that it was set up with until its software is updated.
        if node.scripts and "LifeCycleConfig" in answer:
            answer["LifeCycleConfig"] = {**answer["LifeCycleConfig"], "SourceS3Uri": node.scripts}
        spot = "Spot" in specification.get("CapacityRequirements", {})
        answer |= {
            "PrivatePrimaryIp": node.address,
            "CapacityType": "Spot" if spot else "OnDemand",
            "Placement": {"AvailabilityZone": node.zone, "AvailabilityZoneId": node.zone_id},
        }
    return answer


_LABEL = "sagemaker.amazonaws.com/"
_NODES_BELOW: Final = {f"topology.k8s.aws/network-node-layer-{layer}": 4 ** (5 - layer) for layer in (1, 2, 3)}
"""Number of nodes under a switch of each network layer, by the layer's label. Simulated."""


def _network_labels(node: Node) -> dict[str, str]:
    """Return the network topology labels that nodes of this type have. The number of nodes per switch is simulated."""
    row = catalog().find(node.instance_type)
    spots = {label: node.spot // count for label, count in _NODES_BELOW.items() if row and label in row.topology_labels}
    return {
        label: f"nn-{uuid.uuid5(uuid.NAMESPACE_OID, f'{node.zone_id}/{label}/{spot}').hex[:17]}"
        for label, spot in spots.items()
    }


def kubernetes_node(cluster: Cluster, node: Node, timestamp: datetime) -> JsonObject:
    """Return the Node object that a running node registers."""
    group = cluster.groups[node.group].specification if node.group in cluster.groups else {}
    config = group.get("KubernetesConfig", {})
    status = node.status(timestamp)
    done = "InProgress" if status == "DeepHealthCheckInProgress" else "Passed"
    checked = {f"{_LABEL}deep-health-check-status": done} if node.check_seconds or node.checked else {}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}
    # The node controller's message for a kubelet without heartbeat: the instance restarts.
    if status in ("Pending", "SystemUpdating"):
        words = "Kubelet stopped posting node status."
        ready = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": words}
    health = "Unschedulable" if status == "DeepHealthCheckInProgress" else node.health
    row = catalog().find(node.instance_type)
    architecture = row.kubernetes_architecture if row else "amd64"
    resources = _resources(node.instance_type)
    unhealthy = {"key": f"{_LABEL}node-health-status", "effect": "NoSchedule", "value": "Unschedulable"}
    taints = [unhealthy] if health != HEALTHY else []
    results = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": f"hyperpod-{node.instance_id}",
            "creationTimestamp": node.ready.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "labels": {
                "kubernetes.io/hostname": f"hyperpod-{node.instance_id}",
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": architecture,
                "node.kubernetes.io/instance-type": node.instance_type,
                "topology.kubernetes.io/region": cluster.region,
                "topology.kubernetes.io/zone": node.zone,
                "topology.k8s.aws/zone-id": node.zone_id,
                "sagemaker.amazonaws.com/cluster-name": cluster.name,
                "sagemaker.amazonaws.com/instance-group-name": node.group,
                f"{_LABEL}node-health-status": health,
                **checked,
                **({f"{_LABEL}fault-types": node.fault["type"]} if node.fault else {}),
                **({f"{_LABEL}fault-reasons": node.fault["reason"]} if node.fault else {}),
                **({"topology.k8s.aws/ultraserver-id": node.ultraserver["Id"]} if node.ultraserver else {}),
                **_network_labels(node),
                **config.get("Labels", {}),
            },
            "annotations": {f"{_LABEL}fault-details": json.dumps([node.fault["details"]])} if node.fault else {},
        },
        "spec": {
            "taints": taints
            + [
                {"key": taint["Key"], "effect": taint["Effect"], "value": taint.get("Value", "")}
                for taint in config.get("Taints", [])
            ]
        },
        "status": {
            "conditions": [ready],
            "addresses": [
                {"type": "InternalIP", "address": node.address},
                {"type": "Hostname", "address": f"hyperpod-{node.instance_id}"},
            ],
            "capacity": resources,
            "allocatable": resources,
            # Clients generated from Kubernetes' API require all of these.
            "nodeInfo": {
                "bootID": str(uuid.uuid5(uuid.NAMESPACE_OID, f"{node.instance_id}/{node.boots}/{node.updating_until}")),
                "architecture": architecture,
                "kubeletVersion": f"v{node.kubelet}.0-sandbox",
                "kubeProxyVersion": f"v{node.kubelet}.0-sandbox",
                "machineID": uuid.uuid5(uuid.NAMESPACE_OID, node.instance_id).hex,
                "systemUUID": str(uuid.uuid5(uuid.NAMESPACE_OID, node.instance_id)),
                "operatingSystem": "linux",
                **dict.fromkeys(("osImage", "kernelVersion", "containerRuntimeVersion"), "sandbox"),
            },
        },
    }
    answer = merged(results, node.patch)
    if changed := node.patch.get("spec", {}).get("taints"):
        # A client that changes taints sends the whole list; HyperPod still adds and removes its own.
        answer["spec"]["taints"] = taints + [taint for taint in changed if taint["key"] != unhealthy["key"]]
    return answer


def _resources(instance_type: str) -> dict[str, str]:
    """Return a node's allocatable resources, including those of device plugins and EFA software."""
    row = catalog().find(instance_type)
    if row is None:
        return {"cpu": "1", "memory": "1Gi", "pods": "10"}
    allocatable = kubelet_allocatable(row)
    resources = {
        "cpu": f"{allocatable.cpu_millis}m",
        "memory": f"{allocatable.memory_mib}Mi",
        "pods": str(allocatable.pods),
        "ephemeral-storage": "100Gi",
    }
    devices = {"nvidia": GPU, "neuron": NEURON}
    if row.accelerator_vendor in devices:
        resources[devices[row.accelerator_vendor]] = str(row.accelerator_count)
    if row.efa_interfaces:
        resources |= {EFA: str(row.efa_interfaces), "hugepages-2Mi": f"{HUGE_PAGES_MIB}Mi"}
    return resources
