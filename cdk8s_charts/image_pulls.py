"""Images that nodes pull before the first job asks for them."""

from collections.abc import Mapping
from typing import Any, Final

from ..config.catalog.images import Image
from ..config.settings.groups import InstanceGroup
from ..planning.helm.own_images import BENCHMARK_LABELS_IMAGE
from ..planning.jobs.plan import GROUP_LABEL

_NAMESPACE: Final = "kube-system"


def image_pulls(groups: Mapping[str, InstanceGroup], mirror: Mapping[str, Image] | None = None) -> list[dict[str, Any]]:
    """A DaemonSet for each group with `pull_images`, whose pods run each image for a moment and then sleep.

    They request nothing, so that a job still gets all that the node has left for pods, and tolerate every taint: also a
    node that fails its checks is a node for the next job. All nodes pull a new image at once.

    Args:
        groups: Instance groups by name.
        mirror: Where mirrored images lie, by the original's name.
    """
    return [_daemon_set(name, group, mirror or {}) for name, group in groups.items() if group.pull_images]


def _daemon_set(name: str, group: InstanceGroup, mirror: Mapping[str, Image]) -> dict[str, Any]:
    """The DaemonSet of one group."""
    labels = {"app.kubernetes.io/name": f"podwright-images-{name.lower()}"}
    # A job may run as anybody, and what is pulled does not depend on it.
    security = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    before = [
        {
            "name": f"image-{number}",
            # As jobs name it: theirs are no images of podwright's that a mirror holds.
            "image": image,
            "command": ["/bin/sh", "-c", "true"],
            "securityContext": security,
        }
        for number, image in enumerate(group.pull_images)
    ]
    original = Image.parse(BENCHMARK_LABELS_IMAGE)
    sleeping = {
        "name": "pulled",
        "image": str(mirror.get(original.name, original)),
        "command": ["sleep", "infinity"],
        "securityContext": security,
    }
    pod = {
        "nodeSelector": {GROUP_LABEL: name},
        "tolerations": [{"operator": "Exists"}],
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 0,
        "initContainers": before,
        "containers": [sleeping],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": f"podwright-images-{name.lower()}", "namespace": _NAMESPACE},
        "spec": {
            "selector": {"matchLabels": labels},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "100%"}},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
