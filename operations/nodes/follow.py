"""Following what HyperPod does with a node, event by event."""

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from ..kubernetes.kubectl import Refused
from .snapshot import Observer
from .timeline import MARKS, Timeline, shown

POLL_SECONDS: Final = 5.0
"""Between two looks."""
SANDBOX_POLL_SECONDS: Final = 0.5
"""The same where time is shortened."""


class Events:
    """The events of a cluster since a moment, each once. Clusters without continuous provisioning have none."""

    def __init__(self, client: Any, cluster: str, since: float) -> None:
        """Of `cluster`, from `since` (seconds since the epoch) on."""
        self._client, self._cluster = client, cluster
        self._since, self._seen = datetime.fromtimestamp(since, UTC), set[str]()
        self.has_any = client.describe_cluster(ClusterName=cluster).get("NodeProvisioningMode") == "Continuous"

    def new(self) -> Iterator[str]:
        """What was said since the last look."""
        if not self.has_any:
            return
        pages = self._client.get_paginator("list_cluster_events").paginate(
            ClusterName=self._cluster, EventTimeAfter=self._since, SortBy="EventTime", SortOrder="Ascending"
        )
        for event in (event for page in pages for event in page["Events"]):
            if event["EventId"] not in self._seen:
                self._seen.add(event["EventId"])
                about = event.get("InstanceId") or event.get("InstanceGroupName") or event["ResourceType"]
                yield f"{event.get('EventLevel', 'Info')}: {about}: {event.get('Description', '')}"


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
            looks = [(observer.look(), observer, timeline) for observer, timeline in left]
        except Refused as refused:
            if not unanswered:
                write(f"{'':13}Kubernetes does not answer, which is tried again: {refused}")
            unanswered = True
            continue
        unanswered = False
        for said in events.new():
            write(f"{'':13}{said}")
        for snapshot, observer, timeline in looks:
            over = max(over, snapshot.at - timeline.begun)
            node = f"{observer.node.id}: " if len(watched) > 1 else ""
            for mark in timeline.take(snapshot):
                write(f"  {shown(timeline.marks[mark] - timeline.begun):>9}  {node}{MARKS[mark]}")
        left = [(observer, timeline) for observer, timeline in left if not timeline.done]
