"""Kubernetes groups whose members may see nodes, or mark them, and nothing else."""

from collections.abc import Sequence
from typing import Any, Final

import cdk8s
from constructs import Construct

from ..config.catalog.kubernetes_groups import NODE_MARKERS, NODE_READERS
from ..planning.node.quarantine import BY, MARK, MARKED, REASON, SINCE
from .node_changes import API, BINDING, POLICY, denies, only_becomes, only_changes, policy, stays

_MARKERS: Final = "podwright-node-markers"
_SPEC: Final = ("configSource", "externalID", "podCIDR", "podCIDRs", "providerID", "unschedulable")
"""All fields of a node's spec but its taints."""


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
    """Lets the group `NODE_MARKERS` get nodes, and put the mark of a quarantine on them.

    RBAC can only let it patch whole nodes. An admission policy refuses whatever is not the mark: its label and its
    taint, each with its one value, and the annotations that say who, when and why. The group takes no mark away;
    people do. The policy needs Kubernetes 1.30.

    Example:
        cluster.add_cdk8s_chart("node-markers", NodeMarkers(cdk8s.App(), "node-markers"))
    """

    def __init__(self, scope: Construct, chart_id: str) -> None:
        """Defines the policy, the role and their bindings.

        Args:
            scope: Parent construct.
            chart_id: Id within the parent.
        """
        super().__init__(scope, chart_id, disable_resource_name_hashes=True)

        # Before the permission that it limits.
        markers = f"'{NODE_MARKERS}' in request.userInfo.groups"
        _define(self, "policy", POLICY, policy(markers, _only_marks()))
        _define(self, "policy-binding", BINDING, denies(_MARKERS))
        _allow_nodes(self, _MARKERS, NODE_MARKERS, ["get", "patch"])

        self.group = NODE_MARKERS


def _only_marks() -> list[dict[str, str]]:
    """That a change of a node puts the mark of a quarantine on it, and does nothing else."""
    new, old = (f"{side}.spec.?taints.orValue([])" for side in ("object", "oldObject"))
    of_others, of_ours = (f"filter(t, t.key {sign} '{MARK}')" for sign in ("!=", "=="))
    one = f"t.?value.orValue('') == '{MARKED}' && t.effect == 'NoSchedule'"
    same = " && ".join(f"object.spec.?{field} == oldObject.spec.?{field}" for field in _SPEC)
    return [
        only_changes("labels", (MARK,)),
        only_becomes(MARK, (MARKED,)),
        only_changes("annotations", (REASON, BY, SINCE)),
        *(stays(field) for field in ("finalizers", "ownerReferences")),
        {
            "expression": f"{new}.{of_ours}.all(t, {one}) && {new}.{of_ours}.size() >= {old}.{of_ours}.size()",
            "message": f"taint {MARK} may become {MARKED}:NoSchedule only, and stays",
        },
        {"expression": f"{new}.{of_others} == {old}.{of_others}", "message": f"of taints only {MARK} may change"},
        {"expression": same, "message": "of the spec only taints may change"},
    ]


def _define(chart: cdk8s.Chart, construct_id: str, kind: str, spec: dict[str, Any]) -> None:
    metadata = cdk8s.ApiObjectMetadata(name=_MARKERS)
    made = cdk8s.ApiObject(chart, construct_id, api_version=API, kind=kind, metadata=metadata)
    made.add_json_patch(cdk8s.JsonPatch.add("/spec", spec))


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
