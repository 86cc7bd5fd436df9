"""A Kubernetes group whose members may see one Deployment and nothing else."""

from typing import Any

from .named_readers import named_readers


def deployment_readers(name: str, *, group: str, deployment: str) -> list[dict[str, Any]]:
    """A role and its binding, both called `name`, that let `group` get one Deployment by its name.

    A cluster role, because a role needs the namespace, and what installs the Deployment makes that.
    """
    return named_readers(name, group=group, api_group="apps", resource="deployments", names=[deployment])
