"""The nodes of a cluster that somebody names, and what Slurm calls them."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ..aws.account import Account
from ..aws.clusters import Node, node_details


def chosen(nodes: Sequence[Node], names: Sequence[str]) -> list[Node]:
    """The nodes with these instance ids or Kubernetes names, each once. Raises CommandError for what is not a node."""
    by_id = {node.id: node for node in nodes}
    # People copy either name: SageMaker's of the instance, or Kubernetes' of the node.
    desired = list(dict.fromkeys(name.removeprefix("hyperpod-") for name in names))
    if missing := [name for name in desired if name not in by_id]:
        raise CommandError(f"no node of this cluster: {', '.join(missing)}", "`podwright status ENV` lists the nodes")
    return [by_id[name] for name in desired]


def slurm_names(environment: Environment, account: Account, nodes: Sequence[Node]) -> dict[str, str]:
    """What Slurm calls nodes, by instance id. Raises CommandError as `slurm_name`."""
    details = {node.id: node_details(account, environment.cluster.name, node.id) for node in nodes}
    return {id: slurm_name(id, answer) for id, answer in details.items()}


def slurm_name(id: str, details: Mapping[str, Any]) -> str:
    """What Slurm calls a node, by DescribeClusterNode's answer. Raises CommandError for one without a name yet."""
    name = details.get("PrivateDnsHostname", "").partition(".")[0]
    if not name:
        raise CommandError(f"HyperPod does not say what {id} is called in Slurm", "try again when it is Running")
    return name
