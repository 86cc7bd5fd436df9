"""JobSet, of JobSet 0.11, which Kubeflow Trainer brings."""

from ...config.settings.jobs.kinds import JobSet
from ...planning.jobs.plan import JobPlan
from ...planning.jobs.rendezvous import JOBSET_NODE
from .pod import Manifest, metadata, pod_template


def manifests(plan: JobPlan) -> list[Manifest]:
    """The job object: one replicated Job, of which each slice is one."""
    job: JobSet = plan.job
    container: Manifest = {"name": "main"} | ({"command": list(job.command)} if job.command else {})
    batch: Manifest = {
        "parallelism": job.start // job.slices,
        "completions": job.start // job.slices,
        "completionMode": "Indexed",
        # A pod that fails fails its Job, and with it the set, which makes all of them anew.
        "backoffLimit": 0,
        "template": pod_template(plan, container, restartPolicy="Never"),
    }
    if job.active_deadline_seconds is not None:
        batch["activeDeadlineSeconds"] = job.active_deadline_seconds
    spec: Manifest = {
        "replicatedJobs": [{"name": JOBSET_NODE, "replicas": job.slices, "template": {"spec": batch}}],
        "failurePolicy": {"maxRestarts": job.retries},
        "ttlSecondsAfterFinished": job.keep_seconds,
    }
    return [{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata(plan), "spec": spec}]
