"""Measures a cluster once a minute by asking about it, and writes what it finds into the Prometheus workspace.

What exporters on nodes do not know is here: how many instances there are and should be, what HyperPod thinks of nodes,
training plans, prices, and the results of benchmarks. A source that cannot be asked is named by a metric and in the
log, and the others are written all the same.
"""

import logging
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from .benchmarks import benchmarks
from .fleet import health, instances, nodes, plans
from .remote_write import Sample, write

Source = Callable[[boto3.Session, dict[str, Any]], Iterator[Sample]]
_SOURCES: Final[dict[str, Source]] = {"instances": instances, "nodes": nodes, "health": health, "plans": plans}
_SLOW_SOURCES: Final[dict[str, Source]] = {"benchmarks": benchmarks}
"""What changes rarely and is much. A query looks five minutes back for a sample."""
_SLOW_EVERY_MINUTES: Final = 4

logger = logging.getLogger()
logger.setLevel(logging.INFO)


def handler(event: dict[str, Any], _: Any) -> dict[str, Any]:
    """Measure once. `event` is what the schedule says: the cluster, and where to look and to write.

    Raises:
        OSError: the workspace took nothing.
    """
    session, timestamp = boto3.Session(), time.time()
    slow = _SLOW_SOURCES if int(timestamp // 60) % _SLOW_EVERY_MINUTES == 0 else {}
    samples: list[Sample] = []
    unseen: list[str] = []
    for name, source in {**_SOURCES, **slow}.items():
        try:
            samples += source(session, event)
        except (BotoCoreError, ClientError, OSError) as error:
            logger.warning("%s is unseen: %s", name, error)
            unseen.append(name)
        samples.append(Sample("podwright_source_seen", {"source": name}, name not in unseen))
    if event["budget"]:
        samples.append(Sample("podwright_budget_usd_per_month", {}, event["budget"]))
    samples.append(Sample("podwright_measured_timestamp_seconds", {}, timestamp))
    # Several clusters may write into one workspace.
    named = (Sample(item.name, {"cluster_name": event["cluster"], **item.labels}, item.value) for item in samples)
    written = write(session, event["endpoint"], named, timestamp)
    logger.info("%d samples written; unseen: %s", written, ", ".join(unseen) or "nothing")
    return {"written": written, "unseen": unseen}
