"""PyTorchJob, of Kubeflow's training operator.

Sources: Kubeflow Training Operator 1.9; SageMaker Developer Guide, automatic resumption of jobs on EKS, 2026-11.
"""

from ...config.settings.jobs.pytorch import PyTorchJob
from ...planning.jobs.plan import JobPlan
from .pod import Manifest, metadata, pod_template

_CLEAN_PODS = {"all": "All", "running": "Running", "none": "None"}


def manifests(plan: JobPlan) -> list[Manifest]:
    """The job object: workers alone, which are one pod set for quotas and topology.

    Decision 69 says why a job of fixed size has neither a Master nor an elastic policy.
    """
    job: PyTorchJob = plan.job
    annotations = (
        {
            "sagemaker.amazonaws.com/enable-job-auto-resume": "true",
            "sagemaker.amazonaws.com/job-max-retry-count": str(job.auto_resume),
        }
        if job.auto_resume
        else None
    )
    container: Manifest = {"name": "pytorch"}
    if job.command:
        container["command"] = list(job.command)
    run_policy: Manifest = {
        "cleanPodPolicy": _CLEAN_PODS[job.clean_pods],
        # The operator fails a job by the sum of restarts over its pods, and a fault restarts each of them once.
        "backoffLimit": job.retries * job.sizes[-1],
        "ttlSecondsAfterFinished": job.keep_seconds,
    }
    if job.active_deadline_seconds is not None:
        run_policy["activeDeadlineSeconds"] = job.active_deadline_seconds
    worker: Manifest = {"replicas": job.start, "restartPolicy": "OnFailure", "template": pod_template(plan, container)}
    processes = plan.pod.ranks
    spec: Manifest = {"runPolicy": run_policy, "pytorchReplicaSpecs": {"Worker": worker}}
    if job.elastic:
        spec["elasticPolicy"] = {
            "minReplicas": job.elastic.min_replicas,
            "maxReplicas": job.elastic.max_replicas,
            "maxRestarts": job.elastic.max_restarts,
            "rdzvBackend": "c10d",
            "nProcPerNode": processes,
        }
    else:
        spec["nprocPerNode"] = str(processes)
    meta = metadata(plan, annotations)
    return [{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": meta, "spec": spec}]
