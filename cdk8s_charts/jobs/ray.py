"""RayJob and RayCluster, of KubeRay 1.6."""

import shlex

from ...config.settings.jobs.kinds import RayCluster, RayHead, RayJob
from ...planning.jobs.plan import JobPlan
from ...planning.jobs.queue import ELASTIC_ANNOTATION, QUEUE_LABEL
from .pod import Manifest, beside_template, metadata, pod_template

_API_VERSION = "ray.io/v1"
# Ray's own ports of the head: where nodes register, the dashboard with its API for jobs, and clients.
_HEAD_PORTS = (("gcs", 6379), ("dashboard", 8265), ("client", 10001))


def manifests(plan: JobPlan) -> list[Manifest]:
    """The job object, with its cluster inside."""
    job: RayJob = plan.job
    spec: Manifest = {
        "entrypoint": shlex.join(job.command),
        # In the head's pod: task governance admits no pod of a job that has no queue of its own, as a submitter's.
        "submissionMode": "SidecarMode",
        "backoffLimit": job.retries,
        # Queues need it: a cluster that stays would keep its quota.
        "shutdownAfterJobFinishes": True,
        "ttlSecondsAfterFinished": job.keep_seconds,
        "rayClusterSpec": _cluster(plan, job),
    }
    if job.active_deadline_seconds is not None:
        spec["activeDeadlineSeconds"] = job.active_deadline_seconds
    return [{"apiVersion": _API_VERSION, "kind": "RayJob", "metadata": _metadata(plan), "spec": spec}]


def cluster_manifests(plan: JobPlan) -> list[Manifest]:
    """The cluster object."""
    job: RayCluster = plan.job
    return [
        {"apiVersion": _API_VERSION, "kind": "RayCluster", "metadata": _metadata(plan), "spec": _cluster(plan, job)}
    ]


def _cluster(plan: JobPlan, job: RayJob | RayCluster) -> Manifest:
    """The spec of a cluster: a head, and workers that have the accelerators."""
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
            "rayStartParams": {"dashboard-host": "0.0.0.0"} | _tasks(job.head),
            "template": beside_template(plan, job.head, {"name": "ray-head", "ports": ports}),
        },
        "workerGroupSpecs": [worker],
    }
    if len(job.sizes) > 1:
        cluster["enableInTreeAutoscaling"] = True
    return cluster


def _tasks(head: RayHead) -> dict[str, str]:
    """What a head says of itself: without processors of its own Ray gives it no tasks; with some, Ray counts them."""
    return {} if head.accelerators else {"num-cpus": "0", "num-gpus": "0"}


def _metadata(plan: JobPlan) -> Manifest:
    elastic = len(plan.job.sizes) > 1 and QUEUE_LABEL in plan.placement.labels
    # Kueue refuses a cluster in a queue that grows by itself, unless it may count what comes as a workload of its own.
    meta = metadata(plan, {ELASTIC_ANNOTATION: "true"} if elastic else None)
    if plan.engine == "yunikorn":
        # KubeRay then tells YuniKorn which pods of the cluster start together.
        meta["labels"]["ray.io/gang-scheduling-enabled"] = "true"
    return meta
