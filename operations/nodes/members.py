"""The nodes of a cluster that somebody names."""

from collections.abc import Sequence

from ...config.errors import CommandError
from ..aws.clusters import Node


def chosen(nodes: Sequence[Node], names: Sequence[str]) -> list[Node]:
    """The nodes with these instance ids or Kubernetes names, each once. Raises CommandError for what is not a node."""
    by_id = {node.id: node for node in nodes}
    # People copy either name: SageMaker's of the instance, or Kubernetes' of the node.
    desired = list(dict.fromkeys(name.removeprefix("hyperpod-") for name in names))
    if missing := [name for name in desired if name not in by_id]:
        raise CommandError(f"no node of this cluster: {', '.join(missing)}", "`podwright status ENV` lists the nodes")
    return [by_id[name] for name in desired]
