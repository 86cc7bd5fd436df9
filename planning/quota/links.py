"""Links between the clusters of a project: which manager of MultiKueue hands work to which environment, and how."""

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network
from itertools import product
from typing import NamedTuple

from ...config.settings.environment import Environment
from ...config.settings.governance.kueue import MultiKueue, Worker
from ...config.settings.network import Network


class Link(NamedTuple):
    """A manager and one of its workers."""

    manager: str
    """Name of the manager's environment."""
    name: str
    """What the manager calls the worker."""
    worker: Worker
    """What the manager's file says of it."""
    shared: MultiKueue
    """The manager's settings of MultiKueue."""


def shared_work(environment: Environment) -> MultiKueue | None:
    """The settings of MultiKueue of an environment; None where it shares no work."""
    governance = environment.governance
    return governance.kueue.multikueue if governance.engine == "kueue" else None


def links(environments: Mapping[str, Environment]) -> Iterator[Link]:
    """Every link, in the order of the environments and of the files."""
    for name, environment in environments.items():
        shared = shared_work(environment)
        if shared and shared.role == "manager":
            for worker, settings in shared.workers.items():
                yield Link(name, worker, settings, shared)


def worker_of(link: Link, environments: Mapping[str, Environment]) -> Environment | None:
    """The environment at the other end, where it is one of the project that takes work."""
    result = environments.get(link.worker.environment or "")
    shared = shared_work(result) if result and link.worker.environment != link.manager else None
    return result if shared and shared.role == "worker" else None


def is_private(manager: Environment, worker: Environment) -> bool:
    """Whether the manager's way to the worker's control plane leads between the two networks."""
    return worker.cluster.eks.endpoint == "private" or manager.network.endpoints == "closed"


def ranges(network: Network) -> tuple[str, ...]:
    """The ranges of a VPC, new or adopted."""
    return (network.vpc.cidr,) if network.vpc else (network.cidr, *network.secondary_cidrs)


def overlap(one: Network, other: Network) -> tuple[str, str] | None:
    """The first ranges of two networks that hold an address in common."""
    pairs = product(ranges(one), ranges(other))
    return next((pair for pair in pairs if IPv4Network(pair[0]).overlaps(IPv4Network(pair[1]))), None)
