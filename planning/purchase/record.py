"""The record of a purchase: one item of a DynamoDB table, which is lock and memory at once.

All buyers of an account and region share the table. A write succeeds only if nobody wrote since the writer looked
(`revision`), and each write carries a name of its own (`write`): so of several buyers exactly one gets to call, and one
whose write got no answer finds out whether it was that one.

Standard library only: this module travels into the Lambda function that buys, beside `plan_purchase`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any, Final, Literal

from .steps import Call, Sleep, Steps, code_of, is_refusal

TABLE: Final = "podwright-training-plans"
"""Name of the table: one in each account and region. No stack makes or deletes it."""
_KEY: Final = "plan"
# DynamoDB hands numbers over as text, and these are compared.
_NUMBERS: Final = ("generation", "attempt", "revision")
_BUSY: Final = frozenset(
    {"ProvisionedThroughputExceededException", "RequestLimitExceeded", "ThrottlingException", "Throttling"}
)
_PAUSES: Final = (1, 2, 4, 8)
_TABLE_PAUSE: Final = 3
_TABLE_READS: Final = 40


class State(StrEnum):
    """How far a purchase is."""

    INTENDED = "intended"
    """Somebody wants to buy. Nobody called yet."""
    BUYING = "buying"
    """One buyer may call, or has called and not said how it went."""
    BOUGHT = "bought"
    """There is what was bought."""
    REFUSED = "refused"
    """Nothing was bought; the next purchase may try again."""
    UNKNOWN = "unknown"
    """A call got no answer, and nothing of it was seen. Nobody calls again before a person has looked."""


@dataclass(frozen=True, slots=True)
class Record:
    """What is known of one purchase."""

    plan: str
    """The key: `<environment>/<plan>`, or `<ARN of the plan>/extension/<moment from which it is extended>`."""
    kind: Literal["plan", "extension"]
    state: State
    base: str
    """Name of the plan in AWS without its generation; of an extension the plan's ARN."""
    offering: str
    price: str
    currency: str
    terms: str
    """What was asked for, as JSON."""
    more: str
    """Further parameters of the call, as JSON."""
    buyer: str
    """Who: an identity, or a stack."""
    at: str
    """ISO time of the last change of state."""
    write: str
    """Name of the last write."""
    generation: int = 1
    """One more for each plan that failed: its name stays taken."""
    attempt: int = 1
    """One more for each time that somebody set out to buy."""
    revision: int = 1
    """One more for each write."""
    arn: str = ""
    """ARN of the plan that was bought; of an extension the plan's once it is bought."""
    reason: str = ""
    """Why nothing was bought, or why that is unknown."""
    earlier: str = "[]"
    """Earlier attempts, as JSON."""

    @property
    def name(self) -> str:
        """Name of the plan in AWS; of an extension the plan's ARN."""
        return self.base if self.generation == 1 or self.kind == "extension" else f"{self.base}-{self.generation}"

    @property
    # As one text: the table knows no schema that an older podwright could not read.
    def attempts_before(self) -> list[dict[str, Any]]:
        """Earlier attempts, the oldest first: name, offering, price, at, buyer, state, arn and reason of each."""
        return json.loads(self.earlier)

    # Of an earlier attempt what a person needs to recognise it on a bill.
    def retired(self) -> str:
        """`earlier` with this attempt added."""
        retained = ("name", "offering", "price", "currency", "at", "buyer", "state", "arn", "reason")
        return json.dumps([*self.attempts_before, {field: getattr(self, field) for field in retained}])

    def to_item(self) -> dict[str, dict[str, str]]:
        """The record as an item of the table."""
        return {name: {"N" if name in _NUMBERS else "S": str(getattr(self, name))} for name in _FIELDS}

    @classmethod
    def of_item(cls, item: Mapping[str, Mapping[str, str]]) -> "Record":
        """The record that an item holds."""
        # An attribute that a newer podwright wrote is passed by.
        values: dict[str, Any] = {name: next(iter(item[name].values())) for name in _FIELDS}
        for name in _NUMBERS:
            values[name] = int(values[name])
        values["state"] = State(values["state"])
        return cls(**values)


_FIELDS: Final = tuple(each.name for each in fields(Record))


class NotRecorded(Exception):
    """The record could not be written; the text says what that means."""


def read(key: str) -> Steps[Record | None]:
    """The record of a purchase; None when nobody ever set out to make it."""
    try:
        answer = yield Call(
            # An ordinary read may show what was there before somebody's write.
            "dynamodb",
            "get_item",
            {"TableName": TABLE, "Key": {_KEY: {"S": key}}, "ConsistentRead": True},
        )
    except Exception as error:
        # Without a table nothing was ever bought.
        if code_of(error) == "ResourceNotFoundException":
            return None
        raise
    return Record.of_item(answer["Item"]) if answer.get("Item") else None


def write(record: Record, observed: Record | None) -> Steps[Record]:
    """Write `record` if nobody wrote since `observed` was read, and return what the table holds then.

    It is `record` exactly when the write was ours: an answer that got lost is told by `Record.write`.

    Raises:
        NotRecorded: the table answered no more. The write may yet take place.
    """
    record = replace(record, revision=observed.revision + 1 if observed else 1)
    condition: dict[str, Any] = (
        {
            "ConditionExpression": "revision = :seen",
            "ExpressionAttributeValues": {":seen": {"N": str(observed.revision)}},
            # Compared and written in one request, which no other buyer can come between.
        }
        if observed
        else {"ConditionExpression": "attribute_not_exists(revision)"}
    )
    problem: Exception | None = None
    # Zero after the last try, for nobody waits for a further one.
    for pause in (*_PAUSES, 0):
        try:
            yield Call("dynamodb", "put_item", {"TableName": TABLE, "Item": record.to_item(), **condition})
            return record
        except Exception as error:
            # A refused condition is somebody else's write, or our own that arrived twice; the table tells which.
            if is_refusal(error) and code_of(error) not in {"ConditionalCheckFailedException", *_BUSY}:
                raise
            problem = error
        try:
            # A client that sent the write twice is refused by its own first one, so only the table tells who won.
            existing = yield from read(record.plan)
        except Exception as error:  # noqa: BLE001  asked again, and told at the end
            problem = error
        else:
            # Another revision than the one that was seen: somebody has written, perhaps we.
            if existing is not None and existing.revision != (observed.revision if observed else 0):
                return existing
        yield Sleep(pause)
    raise NotRecorded(f"the record {record.plan} in DynamoDB table {TABLE} could not be written: {problem}")


def ensure_table() -> Steps[None]:
    """Make the table if this account has none in this region; whoever comes first does.

    Decided for you: paid by request, point-in-time recovery, protection against deletion, DynamoDB's own key. It holds
    names, prices and identities.

    Raises:
        NotRecorded: it did not become usable.
    """
    for _ in range(_TABLE_READS):
        try:
            status = (yield Call("dynamodb", "describe_table", {"TableName": TABLE}))["Table"]["TableStatus"]
        except Exception as error:
            if code_of(error) != "ResourceNotFoundException":
                raise
            yield from _create()
        else:
            if status == "ACTIVE":
                break
        yield Sleep(_TABLE_PAUSE)
    else:
        raise NotRecorded(f"DynamoDB table {TABLE} is not active after {_TABLE_READS * _TABLE_PAUSE} seconds")
    backups = yield Call("dynamodb", "describe_continuous_backups", {"TableName": TABLE})
    recovery = backups["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
    # Also for a table that an earlier podwright made.
    if recovery.get("PointInTimeRecoveryStatus") != "ENABLED":
        yield Call(
            "dynamodb",
            "update_continuous_backups",
            {"TableName": TABLE, "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True}},
        )


def _create() -> Steps[None]:
    """Make the table of records, protected from deletion; one that somebody else made meanwhile will do."""
    # DynamoDB's own key encrypts it: a key of an environment would go with its stack, and records outlive stacks.
    try:
        yield Call(
            "dynamodb",
            "create_table",
            {
                "TableName": TABLE,
                "AttributeDefinitions": [{"AttributeName": _KEY, "AttributeType": "S"}],
                "KeySchema": [{"AttributeName": _KEY, "KeyType": "HASH"}],
                "BillingMode": "PAY_PER_REQUEST",
                # Who deletes the record makes every purchase possible once more.
                "DeletionProtectionEnabled": True,
                "Tags": [{"Key": "podwright", "Value": "training-plans"}],
            },
        )
    except Exception as error:
        # Another buyer came first.
        if code_of(error) != "ResourceInUseException":
            raise
