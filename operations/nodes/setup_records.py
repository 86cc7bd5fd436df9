"""Reads the results of nodes' set-ups from the bucket of the lifecycle scripts."""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Final

from pydantic import ValidationError

from ...config.catalog.names import lifecycle_bucket_name, setup_prefix
from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ...planning.node.setup_record import SetupRecord
from ..aws.account import Account
from ..aws.clusters import Node
from ..aws.objects import read_text

_AT_ONCE: Final = 8
# Difference between the clocks of a node and of AWS.
_SKEW: Final = timedelta(minutes=5)


def setup_records(environment: Environment, account: Account, nodes: Sequence[Node]) -> dict[str, SetupRecord]:
    """Return the records of nodes by instance id, without records from before an instance's launch.

    Raises:
        CommandError: An object with a record's key is not a record.
    """
    bucket = environment.storage.buckets.lifecycle or lifecycle_bucket_name(
        environment.name, account.id, environment.region
    )
    prefix = setup_prefix(environment.cluster.name)

    def read(node: Node) -> SetupRecord | None:
        key = f"{prefix}/{node.group}/{node.id}.json"
        text = read_text(account, bucket, key)
        return _parsed(text, f"s3://{bucket}/{key}") if text else None

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        results = list(pool.map(read, nodes))
    return {
        node.id: record
        for node, record in zip(nodes, results, strict=True)
        if record and not (node.launched and record.ended < node.launched - _SKEW)
    }


def _parsed(text: str, source: str) -> SetupRecord:
    try:
        return SetupRecord.model_validate(json.loads(text))
    except (ValidationError, ValueError) as error:
        raise CommandError(
            f"{source} is not the result of a node's set-up: {error}", "find out who else writes to that key"
        ) from error
