"""Collecting what nodes wrote to CloudWatch: lifecycle scripts, health agent and deep health checks."""

from collections.abc import Container, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from ...config.catalog.names import cluster_log_group
from ..aws.calls import Reader
from ..aws.unseen import Unseen, code_of
from ..output.moving import under_way
from .bundle import SOURCES

if TYPE_CHECKING:
    from .collection import Collection

_MOST_STREAMS: Final = 40
"""Of each kind: every node has a stream of its own, and thousands would tell no more."""
_MOST_LINES: Final = 1_000
"""Of a stream, the last ones."""
_CALLS_AT_ONCE: Final = 8


def collect_logs(collection: "Collection", cluster: dict[str, Any], unhealthy: Container[str]) -> None:
    """Add the logs of a cluster's nodes, first of those that are not well."""
    group = cluster_log_group(cluster["ClusterName"], cluster["ClusterArn"].rpartition("/")[2])
    for source in ("lifecycle_logs", "health_logs", "deep_check_logs"):
        under_way(f"reading {source.replace('_', ' ')}")
        try:
            names = _streams(collection.aws, group, SOURCES[source].file.removeprefix("logs/"), unhealthy)
            with ThreadPoolExecutor(_CALLS_AT_ONCE) as pool:
                texts = list(pool.map(lambda name: _text(collection.aws, group, name), names))
        except Unseen as error:
            collection.unseen[source] = str(error)
            continue
        for name, text in zip(names, texts, strict=True):
            collection.files[f"logs/{name}.log"] = text


def _streams(aws: Reader, group: str, prefix: str, unhealthy: Container[str]) -> list[str]:
    """The streams with that prefix, of unhealthy nodes and those written last; none without such a log group."""
    from botocore.exceptions import ClientError

    try:
        pages = aws.pages("logs", "describe_log_streams", "logStreams", logGroupName=group, logStreamNamePrefix=prefix)
    except ClientError as error:
        if code_of(error) == "ResourceNotFoundException":
            return []
        raise
    pages.sort(
        key=lambda stream: (
            stream["logStreamName"].rpartition("/")[2] in unhealthy,
            stream.get("lastEventTimestamp", 0),
        ),
        reverse=True,
    )
    return [stream["logStreamName"] for stream in pages[:_MOST_STREAMS]]


def _text(aws: Reader, group: str, stream: str) -> str:
    """The end of a stream: one line an event, each with its time."""
    answer = aws.get("logs", "get_log_events", logGroupName=group, logStreamName=stream, limit=_MOST_LINES)
    return "".join(f"{line}\n" for line in _lines(answer["events"]))


def _lines(events: Iterable[dict[str, Any]]) -> Iterable[str]:
    for event in events:
        time = datetime.fromtimestamp(event["timestamp"] / 1000, UTC).isoformat(timespec="milliseconds")
        for line in event["message"].splitlines():
            yield f"{time} {line}"
