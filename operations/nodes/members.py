"""Finds nodes of a cluster by the names that a user gives, and their names in Slurm."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ..aws.account import Account
from ..aws.clusters import Node, node_details


def chosen(nodes: Sequence[Node], names: Sequence[str]) -> list[Node]:
    """Return the nodes with these instance ids or Kubernetes names. Raises CommandError if the cluster lacks one."""
    by_id = {node.id: node for node in nodes}
    # Users copy the instance id from SageMaker or the node name from Kubernetes.
    desired = list(dict.fromkeys(name.removeprefix("hyperpod-") for name in names))
    if missing := [name for name in desired if name not in by_id]:
        raise CommandError(f"no node of this cluster: {', '.join(missing)}", "`podwright status ENV` lists the nodes")
    return [by_id[name] for name in desired]


def slurm_names(environment: Environment, account: Account, nodes: Sequence[Node]) -> dict[str, str]:
    """Return the Slurm names of nodes by instance id. Raises CommandError as `slurm_name` does."""
    details = {node.id: node_details(account, environment.cluster.name, node.id) for node in nodes}
    return {id: slurm_name(id, answer) for id, answer in details.items()}


def slurm_name(id: str, details: Mapping[str, Any]) -> str:
    """Return a node's Slurm name from DescribeClusterNode's answer. Raises CommandError if it has no name yet."""
    name = details.get("PrivateDnsHostname", "").partition(".")[0]
    if not name:
        raise CommandError(f"HyperPod has no host name of {id} yet", "try again when it is Running")
    return name
