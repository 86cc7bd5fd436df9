"""Workspace, of the SageMaker Spaces add-on.

Sources: hyperpod-space-template 1.1.0 and jupyter-k8s, API workspace.jupyter.org/v1alpha1, 2026-11.
"""

from ...config.settings.jobs.pods import Security
from ...config.settings.jobs.services import Space
from ...planning.jobs.plan import JobPlan
from .pod import Manifest, metadata, pod_spec, resources


def manifests(plan: JobPlan) -> list[Manifest]:
    """The space."""
    job: Space = plan.job
    pod = pod_spec(plan, {"name": "space"})
    (container,) = pod["containers"]
    owner = "OwnerOnly" if job.private else "Public"
    storage = {"size": f"{job.home_gib}Gi"} | ({"storageClassName": job.storage_class} if job.storage_class else {})
    spec: Manifest = {
        "displayName": job.title or plan.name,
        "image": job.image,
        "desiredStatus": "Running",
        "ownershipType": owner,
        "accessType": owner,
        "resources": resources(plan),
        "storage": storage,
        "env": container["env"],
        "nodeSelector": pod["nodeSelector"],
        "affinity": pod["affinity"],
    }
    if job.mounts:
        spec["volumes"] = [
            {"name": f"claim-{index}", "persistentVolumeClaimName": mount.claim, "mountPath": path}
            for index, (path, mount) in enumerate(job.mounts.items())
        ]
    if job.command:
        spec["containerConfig"] = {"command": list(job.command)}
    if "tolerations" in pod:
        spec["tolerations"] = pod["tolerations"]
    if "securityContext" in container:
        spec["containerSecurityContext"] = container["securityContext"]
    if job.security != Security():
        spec["podSecurityContext"] = pod["securityContext"]
    if job.service_account:
        spec["serviceAccountName"] = job.service_account
    if job.template:
        spec["templateRef"] = {"name": job.template}
    if job.idle_minutes is not None:
        spec["idleShutdown"] = {"enabled": True, "idleTimeoutInMinutes": job.idle_minutes, "detection": {}}
    return [
        {"apiVersion": "workspace.jupyter.org/v1alpha1", "kind": "Workspace", "metadata": metadata(plan), "spec": spec}
    ]
