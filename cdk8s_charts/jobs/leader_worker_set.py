"""LeaderWorkerSet, of LeaderWorkerSet 0.9."""

from ...config.settings.jobs.kinds import LeaderWorkerSet
from ...planning.jobs.plan import JobPlan
from .pod import Manifest, metadata, pod_template

_RESTARTS = {"group": "RecreateGroupOnPodRestart", "pod": "None"}


def manifests(plan: JobPlan) -> list[Manifest]:
    """The job object: groups of equal pods, of which the first one leads."""
    job: LeaderWorkerSet = plan.job
    template: Manifest = {
        "size": job.start,
        "restartPolicy": _RESTARTS[job.restart],
        "workerTemplate": pod_template(plan, _container("worker", job.command)),
    }
    if job.leader_command:
        template["leaderTemplate"] = pod_template(plan, _container("leader", job.leader_command))
    spec: Manifest = {
        "replicas": job.replicas,
        "startupPolicy": "LeaderReady" if job.wait_for_leader else "LeaderCreated",
        "leaderWorkerTemplate": template,
    }
    meta = metadata(plan)
    return [{"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": meta, "spec": spec}]


def _container(name: str, command: tuple[str, ...]) -> Manifest:
    return {"name": name} | ({"command": list(command)} if command else {})
