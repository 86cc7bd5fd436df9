"""Which faults a node had: what follows from one that fails again and again is decided by their number."""

from typing import Any, Final

from botocore.exceptions import ClientError

_SAME_SECONDS: Final = 600
"""What comes within this time, with no word that the node is healthy between, is the same fault."""
_KEPT_SECONDS: Final = 7 * 24 * 3600


def count(table: Any, instance: str, event: str, now: int, within: int) -> int:
    """Faults of an instance in the last `within` seconds, with the one that an event tells of; 0 if it is no new one.

    The same event gets the same answer again, since Lambda repeats what failed.

    Args:
        table: The DynamoDB table, a resource of boto3.
        instance: Its id.
        event: Id of the event.
        now: Seconds since 1970.
        within: Seconds.
    """
    key = {"Key": f"faults#{instance}"}
    try:
        item = table.update_item(
            Key=key,
            UpdateExpression="SET Since = :now, Event = :event, Expires = :expires ADD Times :times",
            ConditionExpression="attribute_not_exists(Since) OR Since <= :before",
            ExpressionAttributeValues={
                ":now": now,
                ":event": event,
                ":times": {now},
                ":before": now - _SAME_SECONDS,
                ":expires": now + _KEPT_SECONDS,
            },
            ReturnValues="ALL_NEW",
        )["Attributes"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
            raise
        item = table.get_item(Key=key, ConsistentRead=True).get("Item", {})
        if item.get("Event") != event:
            return 0
    return sum(1 for time in item["Times"] if time > now - within)


def over(table: Any, instance: str) -> None:
    """Keep in mind that an instance is healthy again: what comes next is another fault."""
    try:
        table.update_item(
            Key={"Key": f"faults#{instance}"},
            UpdateExpression="REMOVE Since",
            ConditionExpression="attribute_exists(Times)",
        )
    except ClientError as error:
        # Nobody heard of a fault of it.
        if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
            raise
