"""Which faults a node had: what follows from one that fails again and again is decided by their number."""

from collections.abc import Iterable
from typing import Any, Final

_SAME_SECONDS: Final = 600
"""What comes within this time, with no event between that the node is healthy, is the same fault."""
_KEPT_SECONDS: Final = 7 * 24 * 3600
_SEPARATOR: Final = "#"


def count(table: Any, instance: str, event: str, time: int, within: int, *, healthy: bool) -> int:
    """Record an event about an instance, and count the instance's faults; 0 if this event adds no fault.

    EventBridge promises no order, and two events run in two functions at once. So all events are kept, and the faults
    are counted by the times of the events, not by the order in which they arrive. A late event that a node is healthy
    can show that two reports were two faults. The same event gets the same answer again, since Lambda repeats what
    failed.

    Args:
        table: The DynamoDB table, a resource of boto3.
        instance: Its id.
        event: Id of the event.
        time: When EventBridge got the event, in seconds since 1970.
        within: Seconds before `time` in which faults count.
        healthy: Whether the event says that the instance is healthy.
    """
    entry = f"{time}{_SEPARATOR}{event}"
    item = table.update_item(
        Key={"Key": f"faults#{instance}"},
        UpdateExpression="SET Expires = :expires ADD #status :entry",
        ExpressionAttributeNames={"#status": "Healthy" if healthy else "Unhealthy"},
        ExpressionAttributeValues={":entry": {entry}, ":expires": time + _KEPT_SECONDS},
        ReturnValues="ALL_NEW",
    )["Attributes"]
    unhealthy, ends = item.get("Unhealthy", set()), item.get("Healthy", set())
    faults = _faults(unhealthy, ends)
    if len(faults) <= len(_faults(unhealthy - {entry}, ends - {entry})):
        return 0
    return sum(1 for start in faults if start > time - within)


def _faults(unhealthy: Iterable[str], healthy: Iterable[str]) -> list[int]:
    """When each fault began, in seconds since 1970.

    Times of events are whole seconds. A "healthy" event of the same second as a fault counts as the end of that fault.
    """
    ends, starts = _times(healthy), list[int]()
    for time in _times(unhealthy):
        if not starts or time - starts[-1] >= _SAME_SECONDS or any(starts[-1] <= end <= time for end in ends):
            starts.append(time)
    return starts


def _times(entries: Iterable[str]) -> list[int]:
    return sorted(int(entry.partition(_SEPARATOR)[0]) for entry in entries)
