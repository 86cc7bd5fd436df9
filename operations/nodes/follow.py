"""Follows the recovery of nodes: HyperPod's events, and the marks of their timelines."""

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
"""Shortest pause between two reads in seconds."""
SANDBOX_POLL_SECONDS: Final = 0.5
"""Shortest pause in seconds for a sandbox, whose recoveries take seconds."""


class Events:
    """The events of a cluster from a time on, each once. Clusters without continuous provisioning have none."""

    def __init__(self, clients: Clients, cluster: str, since: float) -> None:
        """Prepare to read the events from `since` (seconds since the epoch) on."""
        self._clients, self._cluster = clients, cluster
        self._since, self._seen = datetime.fromtimestamp(since, UTC), set[str]()
        self.has_any = existing_cluster(clients, cluster).continuous

    def new(self) -> Iterator[str]:
        """Yield the events since the last read as text."""
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
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Read the nodes until all timelines are done or `seconds` have passed. Write each mark with its time.

    If the Kubernetes API does not answer, the next read tries again: a tunnel may lead through the broken node.
    """
    incomplete, unanswered, pause, end = list(watched), False, poll, clock() + seconds
    while incomplete and clock() < end:
        sleep(pause)
        started = clock()
        try:
            reads = [(observer.observe(), observer, timeline) for observer, timeline in incomplete]
        except Refused as refused:
            # It may take minutes, so one message is enough.
            if not unanswered:
                write(f"{'':13}Kubernetes does not answer, which is tried again: {refused}")
            unanswered = True
            continue
        unanswered = False
        # A read starts several kubectl processes, so slow reads come less often. A node of the sandbox that reboots has
        # its health label for 3 seconds, which one read has to see.
        pause = min(max(poll, 3 * (clock() - started)), 2 * poll)
        for message in events.new():
            write(f"{'':13}{message}")
        for snapshot, observer, timeline in reads:
            node = f"{observer.node.id}: " if len(watched) > 1 else ""
            for mark in timeline.take(snapshot):
                write(f"  {shown(timeline.marks[mark] - timeline.begun):>9}  {node}{MARKS[mark]}")
        incomplete = [(observer, timeline) for observer, timeline in incomplete if not timeline.done]
