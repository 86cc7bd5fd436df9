"""Following an update of a group, node by node, and saying afterwards whether it is what was asked for."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ..aws.calls import Clients
from ..aws.clusters import Node, existing_cluster, nodes
from ..nodes.timeline import shown
from .software import Software, software

POLL_SECONDS: Final = 15.0
"""Between two looks."""
SANDBOX_POLL_SECONDS: Final = 0.2
"""The same where time is shortened."""
_READS_BEFORE_STARTED: Final = 20
"""So many looks may pass before an update that was asked for shows."""


@dataclass(frozen=True, slots=True)
class Renewed:
    """What became of an update."""

    status: str
    """Succeeded, RollbackComplete, Failed; `waiting` when time was up, `nothing` when HyperPod began none."""
    seconds: float
    message: str
    """HyperPod's own words about a failure."""
    nodes: Mapping[str, float] = field(default_factory=dict)
    """Seconds from the beginning until each node was back, by instance id."""

    @property
    def is_done(self) -> bool:
        """Whether nodes have what was asked for, as HyperPod says."""
        return self.status == "Succeeded"


def follow(
    clients: Clients,
    cluster: str,
    group: str,
    write: Callable[[str], None],
    *,
    started: float,
    resumed: bool,
    before: Mapping[str, str],
    minutes: float | None,
    poll: float,
    jobs: Mapping[str, list[str]],
) -> Renewed:
    """Look until the update of a group is over, and write what is new with its time since `started`.

    An update that was begun by an earlier run, or by somebody else, is followed the same way.

    Args:
        clients: Where the cluster is.
        cluster: Name of the HyperPod cluster.
        group: Name of the group.
        write: Takes a line.
        started: Seconds since the epoch.
        resumed: Whether the update was seen before, so that it may be over already.
        before: Status of each node before it began, by instance id.
        minutes: Follow it for so long at most.
        poll: Seconds between two looks.
        jobs: What runs on nodes, by instance id; named when a node goes.
    """
    statuses = dict(before)
    back: dict[str, float] = {}
    output, observed, reads = "", resumed, 0

    def tell(text: str) -> None:
        write(f"  {shown(time.time() - started):>9}  {text}")

    while True:
        listed = nodes(clients, cluster, group)
        existing = existing_cluster(clients, cluster)
        now, reads = software(existing)[group], reads + 1
        # The cluster as a whole is in SystemUpdating where groups have no status of an update of their own.
        observed = observed or now.is_active or existing.status == "SystemUpdating"
        if observed and now.update and now.update != output:
            output = now.update
            tell(f"{group}: {_words(now)}")
        # Nodes are listed before the group is described, so that `renewed` is not older than what nodes say.
        for node in listed:
            earlier = statuses.get(node.id)
            # A node that was not there before has not gone; it is new.
            if node.status == "SystemUpdating" and earlier not in (None, node.status):
                tell(f"{node.id} goes" + (f"; {', '.join(jobs[node.id])} stops there" if jobs.get(node.id) else ""))
            elif node.status == "Running" and earlier == "SystemUpdating":
                back[node.id] = time.time() - started
                release = f" with {node.release}" if node.release else ""
                tell(f"{node.id} is back{release}; {now.renewed} of {now.nodes} nodes have {now.desired or 'it'}")
            statuses[node.id] = node.status
        over = not now.is_active and existing.status != "SystemUpdating"
        message = existing.message
        if over and (observed or reads > _READS_BEFORE_STARTED):
            # HyperPod tells no status of updates that go over all nodes at once on some clusters.
            # An update without a status has ended well unless the cluster has a message.
            outcome = now.update or ("Failed" if message else "Succeeded")
            ended = outcome if observed else "nothing"
            return Renewed(ended, time.time() - started, message, back)
        if minutes is not None and time.time() - started > minutes * 60:
            return Renewed("waiting", time.time() - started, message, back)
        time.sleep(poll)


def problems(
    desired: str, now: Software, existing: Sequence[Node], kubernetes: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """What is not as it should be after an update.

    Args:
        desired: The release that was asked for; empty for the newest.
        now: The group's software.
        existing: Its nodes as HyperPod lists them.
        kubernetes: Their Kubernetes nodes, by instance id; empty where nobody sees them.
    """
    result = [f"{len(existing)} of {now.nodes} nodes are there"] if len(existing) < now.nodes else []
    release = desired or now.desired
    for node in sorted(existing, key=lambda node: node.id):
        if node.status != "Running":
            result.append(f"{node.id} is {node.status}: {node.message or 'no reason told'}")
        if release and node.release and node.release != release:
            result.append(f"{node.id} has release {node.release}, not {release}")
        joined = kubernetes.get(node.id)
        # Where nothing of Kubernetes is seen nobody can say whether a node has joined.
        if kubernetes and joined is None:
            result.append(f"{node.id} has not joined Kubernetes")
        elif joined and joined["health"] != "Schedulable":
            result.append(f"{node.id} takes no work: {joined['health']}")
        elif joined and not joined["ready"]:
            result.append(f"{node.id} is not Ready in Kubernetes")
    if not desired and now.state not in ("UpToDate", ""):
        result.append(f"HyperPod still calls the image {now.state}")
    return result


def _words(now: Software) -> str:
    match now.update:
        case "Pending":
            return "the update is accepted"
        case "InProgress":
            return f"{now.current or 'its image'} → {now.desired or 'a new one'}"
        case "RollbackInProgress":
            return f"the update is turned back: nodes get {now.desired or 'their old image'} again"
        case "RollbackComplete":
            return f"all nodes have {now.current or 'their old image'} again"
    return now.update
