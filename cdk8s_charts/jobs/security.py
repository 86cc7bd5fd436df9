"""As whom the containers of a job run, and those that run before them."""

from typing import Any

from ...config.settings.jobs.pods import InitContainer, Security
from ...planning.jobs.plan import JobPlan
from ...planning.quota.amounts import CPU, MEMORY, Quantities, quantity

_Object = dict[str, Any]


def pod_security(plan: JobPlan) -> _Object:
    """Security context of the job's pods.

    The team's folders belong to the team's group, and an image may run as any user. AWS's model of HyperPodPyTorchJob
    has no supplementalGroups in pods, and containerd starts no container with a group and without a user.
    """
    security: Security = plan.job.security
    own = plan.job.kind == "hyperpod_pytorch"
    ids = {"runAsUser": security.run_as_user, "runAsGroup": security.run_as_group, "fsGroup": security.fs_group}
    context: _Object = {name: value for name, value in ids.items() if value is not None}
    if plan.gid is None:
        return context
    if own:
        return context if security.run_as_user is None else {"runAsGroup": plan.gid} | context
    return context | {"supplementalGroups": [plan.gid]}


def container_security(plan: JobPlan) -> _Object:
    """Security context of the job's containers."""
    security: Security = plan.job.security
    capabilities = {"add": list(security.capabilities), "drop": list(security.drop)}
    capabilities = {name: names for name, names in capabilities.items() if names}
    return ({"privileged": True} if security.privileged else {}) | (
        {"capabilities": capabilities} if capabilities else {}
    )


def init_containers(plan: JobPlan, described: _Object) -> list[_Object]:
    """Containers that run before the job's own, which `described` describes.

    They may use its processors and memory: a pod asks for the most that any of them or the job's own asks for, so none
    of them makes it larger. Where the job runs as another user than root, one of them opens scratch, which the kubelet
    makes for root, to all users; only the team's pods mount it.
    """
    specified: dict[str, InitContainer] = plan.job.init
    same = ("imagePullPolicy", "volumeMounts", "securityContext")
    base = {name: described[name] for name in same if name in described}
    sizes = {"requests": _size(plan.pod.resources), "limits": _size({**plan.pod.resources, **plan.pod.limits})}
    containers: list[_Object] = [
        {
            "name": name,
            "image": container.image or plan.job.image,
            "command": list(container.command),
            "env": described["env"] + _values(container.env),
            "resources": sizes,
        }
        | base
        for name, container in specified.items()
    ]
    if plan.job.scratch and plan.job.security.run_as_user:
        mounts = [mount for mount in described["volumeMounts"] if mount["name"] == "scratch"]
        opens: _Object = {"name": "scratch", "image": plan.job.image, "command": ["chmod", "1777", plan.job.scratch]}
        opens |= {"resources": sizes, "volumeMounts": mounts, "securityContext": {"runAsUser": 0}}
        containers.insert(0, opens)
    return containers


def _size(amounts: Quantities) -> dict[str, str]:
    return {name: quantity(name, amounts[name]) for name in (CPU, MEMORY)}


def _values(variables: dict[str, str]) -> list[_Object]:
    return [{"name": name, "value": value} for name, value in variables.items()]
