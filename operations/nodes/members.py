"""The nodes of a cluster as HyperPod lists them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...config.errors import CommandError


@dataclass(frozen=True, slots=True)
class Member:
    """A node of a HyperPod cluster."""

    id: str
    """Instance id."""
    group: str
    type: str
    status: str
    message: str
    updated: bool
    """Whether its software was ever updated, without which HyperPod may refuse to replace it."""

    @property
    def kubernetes_name(self) -> str:
        """Its name in Kubernetes. Source: HyperPod field notes, 2026-07."""
        return f"hyperpod-{self.id}"


def members(client: Any, cluster: str, group: str = "") -> list[Member]:
    """The nodes of a cluster, or of one of its groups. Raises CommandError when there is no such cluster."""
    try:
        pages = client.get_paginator("list_cluster_nodes").paginate(
            ClusterName=cluster, **({"InstanceGroupNameContains": group} if group else {})
        )
        rows = [row for page in pages for row in page["ClusterNodeSummaries"]]
    except client.exceptions.ResourceNotFound:
        raise CommandError(f"there is no HyperPod cluster {cluster}", "deploy the environment first") from None
    return [
        Member(
            row["InstanceId"],
            row["InstanceGroupName"],
            row["InstanceType"],
            row["InstanceStatus"]["Status"],
            row["InstanceStatus"].get("Message", ""),
            "LastSoftwareUpdateTime" in row,
        )
        for row in rows
        if not group or row["InstanceGroupName"] == group
    ]


def chosen(there: Sequence[Member], names: Sequence[str]) -> list[Member]:
    """The nodes with these instance ids or Kubernetes names, each once. Raises CommandError for what is not a node."""
    by_id = {member.id: member for member in there}
    wanted = list(dict.fromkeys(name.removeprefix("hyperpod-") for name in names))
    if missing := [name for name in wanted if name not in by_id]:
        raise CommandError(f"no node of this cluster: {', '.join(missing)}", "`podwright status ENV` lists the nodes")
    return [by_id[name] for name in wanted]
