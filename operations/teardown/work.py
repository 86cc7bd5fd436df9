"""Work that runs on a cluster that is to go."""

import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ..aws.account import Account
from ..cdk.progress import Progress
from ..jobs.cluster_jobs import finished, read_cluster
from ..kubernetes.kubectl import Refused, way

# Owners of pods that come with every cluster; whatever else owns a running pod is somebody's work.
_OF_THE_CLUSTER: Final = ("DaemonSet", "Node", "ReplicaSet", "StatefulSet")
_POLL_SECONDS: Final = 2.0
# As long as an elastic job may take to save its state.
_WAIT_SECONDS: Final = 660.0


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


def end_work(project: Path, environment: Environment, account: Account, progress: Progress) -> None:
    """Delete the jobs of teams, and wait until nothing of them is left in a queue.

    Kueue keeps a ClusterQueue until no work is in it, so its stack could not be deleted. Jobs that wait go too: one of
    them would start where another has ended. So do jobs that have ended: Kubernetes keeps a claim while there are pods
    that mount it, ended ones among them. Sources: Kueue 0.19, finalizer `kueue.x-k8s.io/resource-in-use`; Kubernetes
    1.34, finalizer `kubernetes.io/pvc-protection`.

    Raises:
        CommandError: something has not ended in eleven minutes.
    """
    if environment.cluster.orchestrator != "eks" or not environment.governance.teams:
        return
    try:
        kubectl = way(project, environment, account)
        if kubectl is None or not kubectl.is_real:
            return
        jobs = [job for job in read_cluster(kubectl, environment).jobs if job.team]
        if jobs:
            kubectl.delete([_reference(job.item) for job in jobs])
            progress.say("jobs", f"{len(jobs)} of teams are deleted; their pods end within their grace periods")
        deadline = time.monotonic() + _WAIT_SECONDS
        while left := [item for item in read_cluster(kubectl, environment).kind("Workload") if not finished(item)]:
            if time.monotonic() > deadline:
                names = ", ".join(
                    sorted(f"{item['metadata']['namespace']}/{item['metadata']['name']}" for item in left)
                )
                raise CommandError(
                    f"{names} have not ended, so their queues would stay", "end them, then run this again"
                )
            progress.tick()
            time.sleep(_POLL_SECONDS)
    except Refused as refused:
        progress.say("jobs", f"are not ended, and a queue stays as long as work is in it: {refused}")


def _reference(item: dict[str, Any]) -> dict[str, Any]:
    metadata = {key: item["metadata"][key] for key in ("name", "namespace")}
    return {"apiVersion": item["apiVersion"], "kind": item["kind"], "metadata": metadata}
