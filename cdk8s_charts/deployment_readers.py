"""A Kubernetes group whose members may see one Deployment and nothing else."""

from typing import Any

import cdk8s
from constructs import Construct

_API = "rbac.authorization.k8s.io"


class DeploymentReaders(cdk8s.Chart):
    """Lets a group get one Deployment by its name, in whatever namespace.

    A cluster role, because a role needs the namespace, and what installs the Deployment makes that.

    Example:
        DeploymentReaders(cdk8s.App(), "dns-readers", group="dns-readers", deployment="coredns")
    """

    def __init__(self, scope: Construct, chart_id: str, *, group: str, deployment: str) -> None:
        """Defines the role and its binding.

        Args:
            scope: Parent construct.
            chart_id: Id within the parent, which is the name of both too.
            group: The group.
            deployment: Name of the Deployment.
        """
        super().__init__(scope, chart_id, disable_resource_name_hashes=True)

        rule = {"apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": [deployment], "verbs": ["get"]}
        self._object("ClusterRole", chart_id, {"rules": [rule]})
        self._object(
            "ClusterRoleBinding",
            chart_id,
            {
                "roleRef": {"apiGroup": _API, "kind": "ClusterRole", "name": chart_id},
                "subjects": [{"apiGroup": _API, "kind": "Group", "name": group}],
            },
        )

        self.group = group

    def _object(self, kind: str, name: str, fields: dict[str, Any]) -> None:
        made = cdk8s.ApiObject(
            self, kind, api_version=f"{_API}/v1", kind=kind, metadata=cdk8s.ApiObjectMetadata(name=name)
        )
        made.add_json_patch(*(cdk8s.JsonPatch.add(f"/{field}", value) for field, value in fields.items()))
