"""What the sandbox makes of an environment's EKS cluster: a real control plane with real nodes, or a store."""

from typing import Final

from ...config.catalog.sandbox_account import CONTROL_PLANE
from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ...planning.helm.operators import control_plane_parts
from ..output.console import write_note
from .account import Account
from .sandbox_plans import call

_STORE: Final = "{}: its cluster becomes a store, which keeps jobs and queues and schedules nothing"


def announce_cluster(environment: Environment, account: Account) -> None:
    """Tell the sandbox which parts of the control plane an environment needs, before its cluster is made or changed.

    Prints that the cluster becomes a store where a part is not installed.

    Raises:
        CommandError: The cluster is or must be real, and a part that the environment needs is not installed.
    """
    if environment.cluster.orchestrator != "eks":
        return
    existing = environment.cluster.eks.existing
    name = existing.name if existing else environment.name
    url = f"{account.endpoint}{CONTROL_PLANE}?account={account.id}&new=true"
    answer = call(url, {name: control_plane_parts(environment)})[name]
    if not answer["missing"]:
        return
    lacks = f"the sandbox's control plane lacks {', '.join(answer['missing'])}, which {environment.name} needs"
    command = f"`podwright sandbox kubernetes install {environment.name}`"
    if answer["kubernetes"] == "real":
        raise CommandError(lacks, f"{command}, and run this again")
    write_note(f"{_STORE.format(lacks)}\n    → for a real one stop this, and run {command} first")


def real_nodes(cluster: str, account: Account) -> str:
    """Return how many nodes of a real EKS cluster are real, and why not more, as a clause."""
    described = call(f"{account.endpoint}{CONTROL_PLANE}?account={account.id}", None)[cluster]
    count, why = described["real_nodes"], described["why_simulated"]
    reason = f", since {why}" if why else ""
    if not count:
        return f"no container starts: all nodes are simulated{reason}"
    nodes = "the first node is" if count == 1 else f"the first {count} nodes are"
    return f"{nodes} real, and no container starts on the others{reason}"
