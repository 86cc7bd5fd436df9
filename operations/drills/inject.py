"""Injects a fault with a short-lived pod, a label or deleted pods. It changes nothing else in the cluster."""

import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from ...config.catalog.drills import HEALTH_LABEL, DrillKind
from ...config.catalog.images import Image
from ...config.errors import CommandError
from ...planning.helm.own_images import BENCHMARK_LABELS_IMAGE
from ..aws.clusters import Node
from ..kubernetes.kubectl import Kubectl, Refused
from ..nodes.snapshot import Snapshot

NAMESPACE: Final = "kube-system"
"""Namespace of the pod. It mounts a folder of the node, which teams' namespaces do not allow."""
DRILL_LABEL: Final = "podwright.io/drill"
"""Label of the pod; its value is the kind of fault."""
_SECONDS: Final = 120
_POLL: Final = 2.0
# The message as the driver writes it (NVIDIA Xid documentation), in the form of a syslog line.
_SCRIPT: Final = """\
set -eu
log=/host/log/messages
test -w "$log" || { echo "the node has no /var/log/messages"; exit 3; }
printf '%s %s kernel: NVRM: Xid (PCI:0000:53:00): %s\\n' "$(date '+%b %e %H:%M:%S')" "$NODE" "$XID" >> "$log"
"""


def fault_pod(kind: DrillKind, node: str, image: str) -> dict[str, Any]:
    """Return the pod that writes the driver's message of a fault into the kernel log of a node.

    Its manifest names the node, so no scheduler or taint delays it. It has no rights in Kubernetes, mounts only the
    node's folder of logs, and ends by itself.
    """
    container = {
        "name": "fault",
        "image": image,
        "command": ["sh", "-c", _SCRIPT],
        "env": [{"name": "NODE", "value": node}, {"name": "XID", "value": kind.text}],
        "volumeMounts": [{"name": "log", "mountPath": "/host/log"}],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}},
        "securityContext": {
            # The log belongs to root.
            "runAsUser": 0,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            # With one name for each node, Kubernetes refuses a second drill at the same time.
            "name": f"podwright-drill-{node.removeprefix('hyperpod-')}",
            "namespace": NAMESPACE,
            "labels": {DRILL_LABEL: kind.name},
        },
        "spec": {
            # The node may be full of jobs, so no scheduler would place it.
            "nodeName": node,
            "restartPolicy": "Never",
            # Kubernetes ends it if this command is killed.
            "activeDeadlineSeconds": _SECONDS,
            # It does not use the Kubernetes API.
            "automountServiceAccountToken": False,
            "tolerations": [{"operator": "Exists"}],
            "containers": [container],
            "volumes": [{"name": "log", "hostPath": {"path": "/var/log", "type": "Directory"}}],
        },
    }


def image_of(mirror: Mapping[str, Image]) -> str:
    """Return the pod's image, or the mirror's copy of it."""
    original = Image.parse(BENCHMARK_LABELS_IMAGE)
    return str(mirror.get(original.name, original))


def inject(kind: DrillKind, node: Node, before: Snapshot, kubectl: Kubectl, image: str) -> float:
    """Inject the fault. Returns its time in seconds since the epoch.

    Raises:
        CommandError: Kubernetes refuses, or the pod could not write. Nothing remains in the cluster.
    """
    try:
        match kind.way:
            case "log":
                return _by_pod(fault_pod(kind, node.kubernetes_name, image), kubectl)
            case "label":
                # The label may take effect before the call returns.
                started = time.time()
                label = f"{HEALTH_LABEL}={kind.label}"
                # HyperPod may have acted on it and removed it before a second run, which would break the node again.
                kubectl.run("label", "node", node.kubernetes_name, label, "--overwrite", repeatable=False)
                return started
            case "pods":
                started = time.time()
                _delete_pods(before, kubectl)
                return started
            case "by_hand":
                raise ValueError(f"{kind.name} is made by hand")
    except Refused as refused:
        raise CommandError(
            f"the fault could not be made: {refused}",
            "fix this first; after a timeout, see in `podwright status` whether the fault happened",
        ) from None


def _by_pod(pod: dict[str, Any], kubectl: Kubectl) -> float:
    """Run a pod to its end and delete it. Returns its end in seconds since the epoch. Raises Refused."""
    name = pod["metadata"]["name"]
    kubectl.apply([pod])
    try:
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline:
            status = kubectl.one("pod", name, f"--namespace={NAMESPACE}").get("status", {})
            if status.get("phase") == "Succeeded":
                return _finished(status) or time.time()
            if status.get("phase") == "Failed":
                message = kubectl.run("logs", name, f"--namespace={NAMESPACE}")
                raise Refused(f"pod {name} failed: {message or status.get('message', 'it says nothing')}")
            time.sleep(_POLL)
        raise Refused(f"pod {name} did not end within {_SECONDS} s: is its image there, and the node up?")
    finally:
        kubectl.run("delete", "pod", name, f"--namespace={NAMESPACE}", "--wait=false", "--ignore-not-found")


def _finished(status: dict[str, Any]) -> float | None:
    """Return the end of the container by the node's clock, which is more exact than the time of a read."""
    ended = [item.get("state", {}).get("terminated", {}) for item in status.get("containerStatuses", ())]
    if not ended or "finishedAt" not in ended[0]:
        return None
    return datetime.fromisoformat(ended[0]["finishedAt"]).timestamp()


def _delete_pods(before: Snapshot, kubectl: Kubectl) -> None:
    on_node = {uid for pods in before.jobs.values() for uid in pods.on_node}
    for namespace in sorted({job.namespace for job in before.jobs}):
        existing = kubectl.items("pods", f"--namespace={namespace}")
        names = [item["metadata"]["name"] for item in existing if item["metadata"]["uid"] in on_node]
        if names:
            # Replacements may have the same names.
            kubectl.run("delete", "pods", *names, f"--namespace={namespace}", "--wait=false", repeatable=False)
