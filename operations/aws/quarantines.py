"""Who took which nodes out of work, when and why: records in the bucket of lifecycle scripts."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from ...config.catalog.names import lifecycle_bucket_name, quarantine_prefix
from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ...planning.node.quarantine import record, record_key
from .account import Account
from .calls import change
from .objects import list_objects, read_text, write_json_text


@dataclass(frozen=True, slots=True)
class Quarantine:
    """Why a node takes no work."""

    node: str
    """Instance id."""
    reason: str
    by: str
    """ARN of who did it, or of the function that did it by rule."""
    since: str
    """In ISO 8601."""

    def __str__(self) -> str:
        return f"in quarantine since {self.since} by {_who(self.by)}: {self.reason}"


def quarantines(environment: Environment, account: Account) -> dict[str, Quarantine]:
    """The nodes in quarantine by instance id, those that are gone since included.

    Raises:
        CommandError: an object in a record's position is none.
    """
    bucket, prefix = _location(environment, account)
    result: dict[str, Quarantine] = {}
    for item in list_objects(account, bucket, f"{prefix}/"):
        text = read_text(account, bucket, item["Key"])
        if text is None:
            continue  # Released since the list was made.
        try:
            entry = Quarantine(**json.loads(text))
        except (TypeError, ValueError) as error:
            where = f"s3://{bucket}/{item['Key']}"
            raise CommandError(
                f"{where} is not the record of a quarantine: {error}", "look who else writes there"
            ) from None
        result[entry.node] = entry
    return result


def remember(environment: Environment, account: Account, entries: Sequence[Quarantine]) -> None:
    """Write records, each in the place of an earlier one of its node."""
    bucket, prefix = _location(environment, account)
    for entry in entries:
        text = json.dumps(record(entry.node, entry.reason, entry.by, entry.since), indent=2) + "\n"
        write_json_text(account, bucket, record_key(prefix, entry.node), text)


def forget(environment: Environment, account: Account, instances: Sequence[str]) -> None:
    """Remove the records of nodes, as of those that are gone."""
    bucket, prefix = _location(environment, account)
    for instance in instances:
        change(account, "s3", "delete_object", Bucket=bucket, Key=record_key(prefix, instance))


def _location(environment: Environment, account: Account) -> tuple[str, str]:
    """The bucket, and the prefix of the records in it."""
    own = environment.storage.buckets.lifecycle
    bucket = own or lifecycle_bucket_name(environment.name, account.id, environment.region)
    return bucket, quarantine_prefix(environment.cluster.name)


def _who(by: str) -> str:
    """The name at the end of an ARN; what is no ARN stays."""
    return by.rpartition("/")[2].rpartition(":")[2]
