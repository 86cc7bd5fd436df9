"""Which notices went out: the same one is not sent twice in an hour, and no more than so many in all.

One failure makes hundreds of events on a large cluster, and a channel full of them is one that nobody reads. What was
held back is counted, and said with the next notice of its kind.
"""

from dataclasses import dataclass
from typing import Any, Final

from botocore.exceptions import ClientError

AGAIN_SECONDS: Final = 3600
"""Until the same notice is sent once more."""
MOST_IN_AN_HOUR: Final = 20
"""Notices of an environment in an hour of the clock; one more says that there were more."""
# DynamoDB deletes what has expired within days, so the number is no promise.
_KEPT_SECONDS: Final = 7 * 24 * 3600


@dataclass(frozen=True)
class Verdict:
    """What happens to a notice."""

    send: bool
    held_back: int = 0
    """How many of its kind were held back since the last one."""
    last: bool = False
    """Whether it is the one that says that there will be no more this hour."""


def admit(table: Any, key: str, event: str, now: int) -> Verdict:
    """Whether to send a notice. The same event gets the same answer again, since Lambda repeats what failed.

    Args:
        table: The DynamoDB table, a resource of boto3.
        key: What the notice is about.
        event: Id of the event.
        now: Seconds since 1970.
    """
    try:
        old = table.update_item(
            # One conditional write: two events at the same moment run in two functions, and only one of them gets
            # through.
            Key={"Key": f"notice#{key}"},
            UpdateExpression="SET Sent = :now, Event = :event, Held = :none, Expires = :expires",
            ConditionExpression="attribute_not_exists(Sent) OR Sent <= :before OR Event = :event",
            ExpressionAttributeValues={
                ":now": now,
                ":event": event,
                ":none": 0,
                ":before": now - AGAIN_SECONDS,
                ":expires": now + _KEPT_SECONDS,
            },
            ReturnValues="ALL_OLD",
        ).get("Attributes", {})
    except ClientError as error:
        if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
            raise
        _count(table, f"notice#{key}", "Held", now)
        return Verdict(False)
    # By the clock's hour, which needs no list of what was sent when.
    sent = _count(table, f"hour#{now // 3600}", "Sent", now)
    held = int(old.get("Held", 0))
    return Verdict(sent <= MOST_IN_AN_HOUR + 1, held, last=sent == MOST_IN_AN_HOUR + 1)


def remember(table: Any, instance: str, now: int) -> None:
    """Keep in mind that people know of an unhealthy instance."""
    table.put_item(Item={"Key": f"instance#{instance}", "Expires": now + _KEPT_SECONDS})


def forget(table: Any, instance: str) -> bool:
    """Whether people know of an unhealthy instance, which is healthy now."""
    return "Attributes" in table.delete_item(Key={"Key": f"instance#{instance}"}, ReturnValues="ALL_OLD")


def _count(table: Any, key: str, name: str, now: int) -> int:
    answer = table.update_item(
        Key={"Key": key},
        UpdateExpression="ADD #name :one SET Expires = :expires",
        ExpressionAttributeNames={"#name": name},
        ExpressionAttributeValues={":one": 1, ":expires": now + _KEPT_SECONDS},
        ReturnValues="UPDATED_NEW",
    )
    return int(answer["Attributes"][name])
