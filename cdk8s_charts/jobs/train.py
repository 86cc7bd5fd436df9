"""TrainJob, of Kubeflow Trainer 2.3.

A runtime says how pods of a job find each other; what belongs to the group's nodes is a patch of it.
"""

from ...config.settings.jobs.kinds import TrainJob
from ...config.settings.jobs.pods import Security
from ...planning.jobs.plan import JobPlan
from .pod import Manifest, metadata, pod_metadata, pod_spec, resources
from .volumes import variables

# Trainer refuses a name without a domain.
_MANAGER = "podwright/jobs"
# What Trainer's own runtimes call the job and the container that train.
_NODE = "node"


def manifests(plan: JobPlan) -> list[Manifest]:
    """The job object."""
    job: TrainJob = plan.job
    trainer: Manifest = {
        "image": job.image,
        "numNodes": job.start,
        "numProcPerNode": plan.pod.ranks,
        "resourcesPerNode": resources(plan),
        "env": variables(plan),
    }
    if job.command:
        trainer["command"] = list(job.command)
    pod = pod_spec(plan, {"name": _NODE})
    (container,) = pod.pop("containers")
    allowed = ("nodeSelector", "affinity", "tolerations", "serviceAccountName", "volumes", "imagePullSecrets")
    patch = {name: pod[name] for name in allowed if name in pod}
    if job.security != Security():
        patch["securityContext"] = pod["securityContext"]
    described = {name: container[name] for name in ("volumeMounts", "securityContext") if name in container}
    if described:
        patch["containers"] = [{"name": _NODE, **described}]
    patched = {"metadata": pod_metadata(plan), "spec": patch}
    spec: Manifest = {
        "runtimeRef": {"name": job.runtime},
        "trainer": trainer,
        "runtimePatches": [
            {
                "manager": _MANAGER,
                "trainingRuntimeSpec": {
                    "template": {
                        "spec": {"replicatedJobs": [{"name": _NODE, "template": {"spec": {"template": patched}}}]}
                    }
                },
            }
        ],
    }
    if job.active_deadline_seconds is not None:
        spec["activeDeadlineSeconds"] = job.active_deadline_seconds
    meta = metadata(plan)
    return [{"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": meta, "spec": spec}]
