"""The topology of an instance group: the labels that place its nodes in the network, and the name that they go by."""

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from .instance_types import Catalog

HOSTNAME: Final = "kubernetes.io/hostname"
"""The lowest level of every topology. Kueue heeds taints and failures of nodes only where it is there."""


class Topology(NamedTuple):
    """Levels in which Kueue or KAI looks for nodes that are near one another."""

    name: str
    """Of the instance families; where some of their types carry more labels than all of these have, with their number
    or `-hosts`."""
    levels: tuple[str, ...]
    """Node labels, the widest domain first and HOSTNAME last."""


def topology(instance_types: Iterable[str], types: Catalog) -> Topology:
    """The topology of nodes that are of any of these types: only labels that each of them has.

    A scheduler that places by topology leaves out nodes that lack one of its labels, so one that a single type lacks
    is left out instead. Types without facts have none but their own name.
    """
    names = tuple(instance_types)
    labels = [row.topology_labels if (row := types.find(name)) else () for name in names]
    counts = Counter(label for own in labels for label in own)
    common = tuple(label for label, count in counts.items() if count == len(labels))
    # Sorted, so that the order of types in a file is not another topology.
    families = sorted({family(name) for name in names})
    most = max((len(row.topology_labels) for row in types if family(row.name) in families), default=0)
    # The name says how many levels there are, so that another set of levels is another object to Kueue and KAI, which
    # take no change of a topology in use.
    suffix = f"-{len(common)}" if common else "-hosts"
    if len(common) == most:
        suffix = ""
    return Topology("-".join(families) + suffix, (*common, HOSTNAME))


def family(instance_type: str) -> str:
    """The instance family: `p5en` of `ml.p5en.48xlarge`."""
    return instance_type.split(".")[1]
