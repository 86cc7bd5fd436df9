"""Work that runs on a cluster that is to go."""

from collections import Counter
from pathlib import Path
from typing import Final

from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ..aws.account import Account
from ..kubernetes.kubectl import Refused, way

# Owners of pods that come with every cluster; whatever else owns a running pod is somebody's work.
_OF_THE_CLUSTER: Final = ("DaemonSet", "Node", "ReplicaSet", "StatefulSet")


def running_work(project: Path, environment: Environment, account: Account) -> tuple[list[str], list[str]]:
    """Who has pods running, and what could not be looked at."""
    if environment.cluster.orchestrator != "eks":
        hint = f"`podwright connect {environment.name}`, then `squeue`, prints them"
        return [], [f"jobs of Slurm: only its own nodes know them; {hint}"]
    try:
        kubectl = way(project, environment, account)
        if kubectl is None:
            return [], ["jobs: the Kubernetes API cannot be reached from here; `podwright connect` opens a way"]
        pods = kubectl.items("pods", "--all-namespaces", "--field-selector=status.phase=Running")
    except (Refused, CommandError) as error:
        return [], [f"jobs: {error}"]
    owned = Counter(
        f"{owner['kind']} {owner['name']} in {pod['metadata']['namespace']}"
        for pod in pods
        for owner in pod["metadata"].get("ownerReferences", [])[:1]
        if owner["kind"] not in _OF_THE_CLUSTER
    )
    return [f"{name}: {count} pod{'s' if count > 1 else ''}" for name, count in sorted(owned.items())], []
