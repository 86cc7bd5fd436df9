"""Following what HyperPod does with a node, event by event."""

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from ..aws.calls import Clients
from ..aws.clusters import events_since, existing_cluster
from ..kubernetes.kubectl import Refused
from .snapshot import Observer
from .timeline import MARKS, Timeline, shown

POLL_SECONDS: Final = 5.0
"""Between two looks."""
SANDBOX_POLL_SECONDS: Final = 0.5
"""The same where time is shortened."""


class Events:
    """The events of a cluster since a moment, each once. Clusters without continuous provisioning have none."""

    def __init__(self, clients: Clients, cluster: str, since: float) -> None:
        """Of `cluster`, from `since` (seconds since the epoch) on."""
        self._clients, self._cluster = clients, cluster
        self._since, self._seen = datetime.fromtimestamp(since, UTC), set[str]()
        self.has_any = existing_cluster(clients, cluster).continuous

    def new(self) -> Iterator[str]:
        """What was said since the last read."""
        if not self.has_any:
            return
        for event in events_since(self._clients, self._cluster, self._since):
            if event.id not in self._seen:
                self._seen.add(event.id)
                yield f"{event.level}: {event.about}: {event.text}"


def follow(
    watched: Sequence[tuple[Observer, Timeline]],
    events: Events,
    seconds: float,
    write: Callable[[str], None],
    *,
    poll: float = POLL_SECONDS,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Look until all timelines are done or `seconds` are over, and write what is new with its time since the fault.

    An API that is away for a while, as behind a tunnel through the node itself, is looked at again.
    """
    left, unanswered, over = list(watched), False, 0.0
    while left and over < seconds:
        sleep(poll)
        over += poll
        try:
            reads = [(observer.observe(), observer, timeline) for observer, timeline in left]
        except Refused as refused:
            # Said once, as it may take minutes.
            if not unanswered:
                write(f"{'':13}Kubernetes does not answer, which is tried again: {refused}")
            unanswered = True
            continue
        unanswered = False
        for message in events.new():
            write(f"{'':13}{message}")
        for snapshot, observer, timeline in reads:
            # By the time of the look: with many nodes a round takes longer than its pause.
            over = max(over, snapshot.at - timeline.begun)
            node = f"{observer.node.id}: " if len(watched) > 1 else ""
            for mark in timeline.take(snapshot):
                write(f"  {shown(timeline.marks[mark] - timeline.begun):>9}  {node}{MARKS[mark]}")
        left = [(observer, timeline) for observer, timeline in left if not timeline.done]
