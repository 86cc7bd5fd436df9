"""The verdicts of nodes' set-ups, which lie beside the published lifecycle scripts."""

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
# Clocks of a node and of AWS.
_SKEW: Final = timedelta(minutes=5)


def setup_records(environment: Environment, account: Account, nodes: Sequence[Node]) -> dict[str, SetupRecord]:
    """The records of nodes by instance id, without those of an earlier life of an instance.

    Raises:
        CommandError: an object in a record's position is none.
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
            f"{source} is not the verdict of a node's set-up: {error}", "look who else writes there"
        ) from error
