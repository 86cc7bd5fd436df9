"""RayJob, of KubeRay 1.6."""

import shlex

from ...config.settings.jobs.kinds import RayJob
from ...planning.jobs.plan import JobPlan
from .pod import Manifest, beside_template, metadata, pod_template

# Ray's own ports of the head: where nodes register, the dashboard with its API for jobs, and clients.
_HEAD_PORTS = (("gcs", 6379), ("dashboard", 8265), ("client", 10001))


def manifests(plan: JobPlan) -> list[Manifest]:
    """The job object, with its cluster inside."""
    job: RayJob = plan.job
    head, _ = job.beside
    ports = [{"name": name, "containerPort": port} for name, port in _HEAD_PORTS]
    worker: Manifest = {
        "groupName": "workers",
        "replicas": job.start,
        "minReplicas": job.start,
        "maxReplicas": job.sizes[-1],
        "rayStartParams": {},
        "template": pod_template(plan, {"name": "ray-worker"}),
    }
    cluster: Manifest = {
        "rayVersion": job.ray_version,
        "headGroupSpec": {
            # Without processors of its own, Ray gives it no tasks.
            "rayStartParams": {"dashboard-host": "0.0.0.0", "num-cpus": "0", "num-gpus": "0"},
            "template": beside_template(plan, head, {"name": "ray-head", "ports": ports}),
        },
        "workerGroupSpecs": [worker],
    }
    if len(job.sizes) > 1:
        cluster["enableInTreeAutoscaling"] = True
    spec: Manifest = {
        "entrypoint": shlex.join(job.command),
        # In the head's pod: task governance admits no pod of a job that has no queue of its own, as a submitter's.
        "submissionMode": "SidecarMode",
        "backoffLimit": job.retries,
        # Queues need it: a cluster that stays would keep its quota.
        "shutdownAfterJobFinishes": True,
        "ttlSecondsAfterFinished": job.keep_seconds,
        "rayClusterSpec": cluster,
    }
    if job.active_deadline_seconds is not None:
        spec["activeDeadlineSeconds"] = job.active_deadline_seconds
    meta = metadata(plan)
    if plan.engine == "yunikorn":
        # KubeRay then tells YuniKorn which pods of the cluster start together.
        meta["labels"]["ray.io/gang-scheduling-enabled"] = "true"
    return [{"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": meta, "spec": spec}]
