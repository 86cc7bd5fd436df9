"""A Kubernetes group whose members may see one Deployment and nothing else."""

from typing import Any, Final

_API: Final = "rbac.authorization.k8s.io"


def deployment_readers(name: str, *, group: str, deployment: str) -> list[dict[str, Any]]:
    """A role and its binding, both called `name`, that let `group` get one Deployment by its name.

    A cluster role, because a role needs the namespace, and what installs the Deployment makes that.
    """
    rule = {"apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": [deployment], "verbs": ["get"]}
    binding = {
        "roleRef": {"apiGroup": _API, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": _API, "kind": "Group", "name": group}],
    }
    return [
        {"apiVersion": f"{_API}/v1", "kind": kind, "metadata": {"name": name}, **fields}
        for kind, fields in (("ClusterRole", {"rules": [rule]}), ("ClusterRoleBinding", binding))
    ]
