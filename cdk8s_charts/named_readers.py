"""A Kubernetes group whose members may get objects of one kind by their names and nothing else."""

from collections.abc import Sequence
from typing import Any, Final

_API: Final = "rbac.authorization.k8s.io"


def named_readers(
    name: str, *, group: str, api_group: str, resource: str, names: Sequence[str]
) -> list[dict[str, Any]]:
    """A cluster role and its binding, both called `name`, that let `group` get the objects `names` of a resource."""
    rule = {"apiGroups": [api_group], "resources": [resource], "resourceNames": list(names), "verbs": ["get"]}
    binding = {
        "roleRef": {"apiGroup": _API, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": _API, "kind": "Group", "name": group}],
    }
    return [
        {"apiVersion": f"{_API}/v1", "kind": kind, "metadata": {"name": name}, **fields}
        for kind, fields in (("ClusterRole", {"rules": [rule]}), ("ClusterRoleBinding", binding))
    ]
