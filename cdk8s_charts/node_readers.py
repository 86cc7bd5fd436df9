"""Kubernetes groups whose members may see nodes, or mark them, and nothing else."""

from collections.abc import Sequence

import cdk8s
from constructs import Construct

from ..config.catalog.kubernetes_groups import NODE_MARKERS, NODE_READERS


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

        _allow_nodes(self, "podwright-node-readers", NODE_READERS, ["get", "list", "watch"])

        self.group = NODE_READERS


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

        _allow_nodes(self, "podwright-node-markers", NODE_MARKERS, ["get", "patch"])

        self.group = NODE_MARKERS


def _allow_nodes(chart: cdk8s.Chart, name: str, group: str, verbs: Sequence[str]) -> None:
    """A role for nodes, and its binding to a group."""
    metadata, api = cdk8s.ApiObjectMetadata(name=name), "rbac.authorization.k8s.io"
    role = cdk8s.ApiObject(chart, "role", api_version=f"{api}/v1", kind="ClusterRole", metadata=metadata)
    role.add_json_patch(
        cdk8s.JsonPatch.add("/rules", [{"apiGroups": [""], "resources": ["nodes"], "verbs": list(verbs)}])
    )
    binding = cdk8s.ApiObject(chart, "binding", api_version=f"{api}/v1", kind="ClusterRoleBinding", metadata=metadata)
    binding.add_json_patch(
        cdk8s.JsonPatch.add("/roleRef", {"apiGroup": api, "kind": "ClusterRole", "name": role.name}),
        cdk8s.JsonPatch.add("/subjects", [{"apiGroup": api, "kind": "Group", "name": group}]),
    )
