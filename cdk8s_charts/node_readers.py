"""A Kubernetes group whose members may see nodes and nothing else."""

import cdk8s
from constructs import Construct

from ..config.catalog.kubernetes_groups import NODE_READERS


class NodeReaders(cdk8s.Chart):
    """Lets the group `NODE_READERS` get, list and watch nodes.

    Example:
        cluster.add_cdk8s_chart("node-readers", NodeReaders(cdk8s.App(), "node-readers"))
    """

    def __init__(self, scope: Construct, chart_id: str) -> None:
        """Defines the role and its binding.

        Args:
            scope: Parent construct.
            chart_id: Id within the parent.
        """
        super().__init__(scope, chart_id, disable_resource_name_hashes=True)

        name = cdk8s.ApiObjectMetadata(name="podwright-node-readers")
        role = cdk8s.ApiObject(
            self, "role", api_version="rbac.authorization.k8s.io/v1", kind="ClusterRole", metadata=name
        )
        role.add_json_patch(
            cdk8s.JsonPatch.add(
                "/rules", [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}]
            )
        )
        binding = cdk8s.ApiObject(
            self, "binding", api_version="rbac.authorization.k8s.io/v1", kind="ClusterRoleBinding", metadata=name
        )
        binding.add_json_patch(
            cdk8s.JsonPatch.add(
                "/roleRef", {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role.name}
            ),
            cdk8s.JsonPatch.add(
                "/subjects", [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": NODE_READERS}]
            ),
        )

        self.group = NODE_READERS
