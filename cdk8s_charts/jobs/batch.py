"""Kubernetes' own Job."""

from ...config.settings.jobs.kinds import BatchJob, GpuShare
from ...planning.jobs.plan import JobPlan
from .pod import Manifest, metadata, pod_template


def manifests(plan: JobPlan) -> list[Manifest]:
    """The job object."""
    job: BatchJob = plan.job
    container: Manifest = {"name": "main"} | ({"command": list(job.command)} if job.command else {})
    template = pod_template(plan, container, restartPolicy="Never")
    if job.gpu_share:
        template["metadata"].setdefault("annotations", {}).update(_gpu_share(job.gpu_share))
    spec: Manifest = {
        "parallelism": job.start,
        "completions": job.start,
        "completionMode": "Indexed",
        "backoffLimit": job.retries,
        "ttlSecondsAfterFinished": job.keep_seconds,
        "template": template,
    }
    if job.active_deadline_seconds is not None:
        spec["activeDeadlineSeconds"] = job.active_deadline_seconds
    return [{"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata(plan), "spec": spec}]


def _gpu_share(share: GpuShare) -> dict[str, str]:
    """What KAI reads. Source: KAI Scheduler documentation, GPU sharing, 2026-11."""
    part = {"gpu-fraction": f"{share.fraction:g}"} if share.fraction else {"gpu-memory": str(share.memory_mib)}
    return part | ({"gpu-fraction-num-devices": str(share.devices)} if share.devices > 1 else {})
