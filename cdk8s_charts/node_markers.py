"""A Kubernetes group whose members may mark nodes and nothing else."""

import cdk8s
from constructs import Construct

from ..config.catalog.kubernetes_groups import NODE_MARKERS


class NodeMarkers(cdk8s.Chart):
    """Lets the group `NODE_MARKERS` get and patch nodes: Kubernetes knows no permission for taints alone.

    Example:
        cluster.add_cdk8s_chart("node-markers", NodeMarkers(cdk8s.App(), "node-markers"))
    """

    def __init__(self, scope: Construct, chart_id: str) -> None:
        """Defines the role and its binding.

        Args:
            scope: Parent construct.
            chart_id: Id within the parent.
        """
        super().__init__(scope, chart_id, disable_resource_name_hashes=True)

        name = cdk8s.ApiObjectMetadata(name="podwright-node-markers")
        role = cdk8s.ApiObject(
            self, "role", api_version="rbac.authorization.k8s.io/v1", kind="ClusterRole", metadata=name
        )
        role.add_json_patch(
            cdk8s.JsonPatch.add(
                "/rules", [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]}]
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
                "/subjects", [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": NODE_MARKERS}]
            ),
        )

        self.group = NODE_MARKERS
