"""HyperPod's reaction to a faulty node: a label and taint, a record, a reboot or a new instance, and events.

Durations are shortened. Sources: SageMaker Developer Guide, "Resilience-related Kubernetes labels",
"Health Monitoring System" and "SageMaker HyperPod cluster events reference" (the words of events), 2026-11. That a
replacement keeps the node's logical id is our reading of "NodeLogicalId".
"""

import dataclasses
from datetime import datetime, timedelta
from typing import Final

from ..protocol.clock import now
from ..protocol.json_objects import JsonObject
from . import logs as hyperpod_logs
from .cluster import HEALTHY, Cluster, Node, Provisioning
from .in_progress import FaultKind, Repair

PENDING: Final = {
    "reboot": "UnschedulablePendingReboot",
    "replace": "UnschedulablePendingReplacement",
    "none": "Unschedulable",
}
"""The health label before each action."""
_DETECTION_SECONDS: Final = 0.5
_REPAIR_SECONDS: Final = 1.0


FAULT_KINDS: Final = {
    "xid-reboot": FaultKind(
        "reboot", "NvidiaErrorReboot", "XidHardwareFailure", "NVRM: Xid (PCI:0000:53:00): 73, pid=<unknown>"
    ),
    "xid-replace": FaultKind(
        "replace",
        "NvidiaErrorTerminate",
        "XidHardwareFailure",
        "NVRM: Xid (PCI:0000:53:00): 74, pid=<unknown>, name=<unknown>, NVLink: fatal error detected on link 0",
    ),
    "gpu-lost": FaultKind(
        "replace",
        "NvidiaErrorTerminate",
        "XidHardwareFailure",
        "NVRM: Xid (PCI:0000:53:00): 79, pid=<unknown>, name=<unknown>, GPU has fallen off the bus.",
    ),
    "xid-application": FaultKind(
        "none", "", "XidUserAppError", "NVRM: Xid (PCI:0000:53:00): 31, pid=4711, name=python, Ch 00000008, MMU Fault"
    ),
}
"""Faults by name. For the last one, the agent only writes a record."""


DRILL_LABEL: Final = "podwright.io/drill"
"""Label of drills' pods, which write a fault into a node's kernel log."""


def drilled(pod: JsonObject) -> FaultKind:
    """Return the health agent's fault for the Xid that a drill's pod writes."""
    values = {item["name"]: item.get("value", "") for item in pod["spec"]["containers"][0].get("env", [])}
    return xid_fault(values.get("XID", ""))


def xid_fault(text: str) -> FaultKind:
    """Return the health agent's fault for the driver's message of an Xid, which starts with its number."""
    kinds = {"73": FAULT_KINDS["xid-reboot"], "74": FAULT_KINDS["xid-replace"], "79": FAULT_KINDS["gpu-lost"]}
    kind = kinds.get(text.partition(",")[0], FAULT_KINDS["xid-application"])
    return dataclasses.replace(kind, message=f"NVRM: Xid (PCI:0000:53:00): {text}")


def proceed(cluster: Cluster, provisioning: Provisioning, timestamp: datetime) -> None:
    """Perform the due steps of a cluster's repairs."""
    scale = cluster.timing.scale
    for repair in list(cluster.repairs):
        node = next((item for item in cluster.nodes if item.instance_id == repair.instance_id), None)
        if node is None or node.deleted:
            cluster.repairs.remove(repair)
            continue
        detected = repair.at + timedelta(seconds=_DETECTION_SECONDS * scale)
        if not repair.labelled and (repair.fault is None or timestamp >= detected):
            _label(cluster, node, repair, timestamp)
        due = detected + timedelta(seconds=_REPAIR_SECONDS * scale)
        if repair.labelled and not repair.acted and timestamp >= due and repair in cluster.repairs:
            _act(cluster, node, repair, provisioning, timestamp)
        if repair.acted and repair.action == "reboot" and node.status(timestamp) == "Running":
            _healthy_again(cluster, node, repair)


def _label(cluster: Cluster, node: Node, repair: Repair, timestamp: datetime) -> None:
    """Label a faulty node for reboot or replacement, and write the health monitoring agent's log."""
    repair.labelled, fault = True, repair.fault
    if fault:
        hyperpod_logs.health(cluster, node, fault.condition or fault.reason, fault.reason, fault.message, timestamp)
    if fault and repair.action == "none" and not fault.condition:
        cluster.repairs.remove(repair)
        return
    node.health = PENDING[repair.action]
    if fault:
        node.fault = {"type": fault.condition, "reason": fault.reason, "details": fault.message}
        reason = (
            f"HyperPod Health Monitoring Agent (HMA) has detected fault type {fault.condition} on this node and is "
            "unhealthy."
        )
        cluster.note_health(node, reason, repair.action.capitalize())
    if cluster.continuous and "Eks" in cluster.request.get("Orchestrator", {}):
        cluster.note(
            "Instance",
            f"Instance {node.instance_id} in Cluster {cluster.name} and IG {node.group} is {node.health} (sandbox)",
            "Warn",
            node.group,
            node.instance_id,
        )
    if repair.action == "none" or cluster.request.get("NodeRecovery") == "None":
        # Without recovery, the node only gets the label.
        cluster.repairs.remove(repair)


def _act(cluster: Cluster, node: Node, repair: Repair, provisioning: Provisioning, timestamp: datetime) -> None:
    group, location = cluster.groups[node.group], f"Cluster {cluster.name} and IG {node.group}"
    if repair.action == "replace" and provisioning.obstacle(cluster, group) is not None:
        return  # It stays labelled until there is capacity.
    repair.acted = True
    if repair.action == "reboot":
        reboot(cluster, node)
    else:
        cluster.repairs.remove(repair)
        replace(cluster, node, provisioning)
        cluster.note("Instance", f"Replacement of Instance {node.instance_id} in {location} has begun (sandbox)")


def reboot(cluster: Cluster, node: Node) -> None:
    """Reboot a node. Its disks remain."""
    node.launched, node.boots = now(), node.boots + 1
    cluster.note(
        "Instance",
        f"Reboot of EC2 Instance {node.instance_id} is currently in progress on Cluster {cluster.name} and IG "
        f"{node.group}",
        group=node.group,
        instance_id=node.instance_id,
    )


def replace(cluster: Cluster, node: Node, provisioning: Provisioning) -> None:
    """Terminate a node and launch its replacement with the same logical id."""
    cluster.retire([node])
    before = len(cluster.nodes)
    cluster.launch(cluster.groups[node.group], 1, provisioning)
    for fresh in cluster.nodes[before:]:
        fresh.logical_id = node.logical_id
        cluster.note(
            "Instance",
            f"Instance {fresh.instance_id} is starting as part of instance replacement in Cluster {cluster.name} and "
            f"IG {node.group}",
            group=node.group,
            instance_id=fresh.instance_id,
            metadata={"Instance": {"NodeLogicalId": fresh.logical_id}},
        )


def _healthy_again(cluster: Cluster, node: Node, repair: Repair) -> None:
    cluster.repairs.remove(repair)
    node.health, node.fault = HEALTHY, {}
    cluster.note_health(node, "", "None")
