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
_LOOKS_BEFORE_BEGUN: Final = 20
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
    begun: float,
    resumed: bool,
    before: Mapping[str, str],
    minutes: float | None,
    poll: float,
    jobs: Mapping[str, list[str]],
) -> Renewed:
    """Look until the update of a group is over, and write what is new with its time since `begun`.

    An update that was begun by an earlier run, or by somebody else, is followed the same way.

    Args:
        clients: Where the cluster is.
        cluster: Name of the HyperPod cluster.
        group: Name of the group.
        write: Takes a line.
        begun: Seconds since the epoch.
        resumed: Whether the update was seen before, so that it may be over already.
        before: Status of each node before it began, by instance id.
        minutes: Follow it for so long at most.
        poll: Seconds between two looks.
        jobs: What runs on nodes, by instance id; named when a node goes.
    """
    statuses = dict(before)
    back: dict[str, float] = {}
    said, seen, looks = "", resumed, 0

    def tell(text: str) -> None:
        write(f"  {shown(time.time() - begun):>9}  {text}")

    while True:
        listed = nodes(clients, cluster, group)
        there = existing_cluster(clients, cluster)
        now, looks = software(there)[group], looks + 1
        seen = seen or now.is_active or there.status == "SystemUpdating"
        if seen and now.update and now.update != said:
            said = now.update
            tell(f"{group}: {_words(now)}")
        for node in listed:
            earlier = statuses.get(node.id)
            if node.status == "SystemUpdating" and earlier not in (None, node.status):
                tell(f"{node.id} goes" + (f"; {', '.join(jobs[node.id])} stops there" if jobs.get(node.id) else ""))
            elif node.status == "Running" and earlier == "SystemUpdating":
                back[node.id] = time.time() - begun
                release = f" with {node.release}" if node.release else ""
                tell(f"{node.id} is back{release}; {now.renewed} of {now.nodes} nodes have {now.desired or 'it'}")
            statuses[node.id] = node.status
        over = not now.is_active and there.status != "SystemUpdating"
        message = there.message
        if over and (seen or looks > _LOOKS_BEFORE_BEGUN):
            # HyperPod tells no status of updates that go over all nodes at once on some clusters.
            ended = (now.update or ("Failed" if message else "Succeeded")) if seen else "nothing"
            return Renewed(ended, time.time() - begun, message, back)
        if minutes is not None and time.time() - begun > minutes * 60:
            return Renewed("waiting", time.time() - begun, message, back)
        time.sleep(poll)


def problems(
    wanted: str, now: Software, there: Sequence[Node], kubernetes: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """What is not as it should be after an update.

    Args:
        wanted: The release that was asked for; empty for the newest.
        now: The group's software.
        there: Its nodes as HyperPod lists them.
        kubernetes: Their Kubernetes nodes, by instance id; empty where nobody sees them.
    """
    found = [f"{len(there)} of {now.nodes} nodes are there"] if len(there) < now.nodes else []
    release = wanted or now.desired
    for node in sorted(there, key=lambda node: node.id):
        if node.status != "Running":
            found.append(f"{node.id} is {node.status}: {node.message or 'no reason told'}")
        if release and node.release and node.release != release:
            found.append(f"{node.id} has release {node.release}, not {release}")
        joined = kubernetes.get(node.id)
        if kubernetes and joined is None:
            found.append(f"{node.id} has not joined Kubernetes")
        elif joined and joined["health"] != "Schedulable":
            found.append(f"{node.id} takes no work: {joined['health']}")
        elif joined and not joined["ready"]:
            found.append(f"{node.id} is not Ready in Kubernetes")
    if not wanted and now.state not in ("UpToDate", ""):
        found.append(f"HyperPod still calls the image {now.state}")
    return found


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
