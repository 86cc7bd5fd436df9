"""What a refresh of `podwright status --watch` costs: API calls, and seconds where each call takes a fifth of one."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, cast

from table import Report, markdown, verdict
from timing import HELPERS, Timing

sys.path.extend(HELPERS)

from live_account import ENVIRONMENT, Cluster, Sagemaker
from loopback import serving
from podwright.operations.aws.account import Account
from podwright.operations.kubernetes.kubectl import Kubectl
from podwright.operations.live import reader

LIMIT = 5.0
"""Seconds of a refresh."""
SLOW = 0.2
"""Seconds until each answer: more than AWS takes within a region."""


SIZES: Final[Mapping[str, Mapping[str, int]]] = {
    "8 nodes": {"h200": 8},
    "100 nodes": {"h200": 100},
    "1,000 nodes in one group": {"h200": 1000},
    "3,125 nodes in eight groups": {**dict.fromkeys("abcdefg", 391), "h": 388},
    "3,125 nodes in eight groups, the name of one within seven": {
        "p": 388,
        **{f"p-{letter}": 391 for letter in "abcdefg"},
    },
    "3,125 nodes in one group": {"h200": 3125},
}
"""Nodes of each group, by the name of the row."""
_LARGEST: Final = 3125


def report(folder: Path, args: argparse.Namespace) -> Report:
    """The table of a refresh, for clusters of several sizes."""
    return Report(*_table(folder, args.runs, SIZES))


def largest(folder: Path, runs: int) -> tuple[str, bool]:
    """The same for the largest clusters alone, and whether they keep the limit."""
    return _table(folder, runs, {name: sizes for name, sizes in SIZES.items() if sum(sizes.values()) == _LARGEST})


def _table(folder: Path, runs: int, clusters: Mapping[str, Mapping[str, int]]) -> tuple[str, bool]:
    rows: list[list[str]] = []
    is_quick = True
    for name, sizes in clusters.items():
        calls, operations, timing = _refreshes(folder, sizes, runs)
        is_quick = is_quick and timing.median <= LIMIT
        pages = operations["ListClusterNodes"]
        counts = (str(calls), f"{pages} of ListClusterNodes, {calls - pages} others", f"{calls / 10:.1f}")
        rows.append([name, *counts, str(timing), f"≤ {LIMIT:g} s", verdict(timing.median, LIMIT)])
    header = ["a refresh", "calls", "of them", "calls a second, every 10 s", f"seconds, {SLOW:g} s a call", "limit", ""]
    return markdown(header, rows), is_quick


def _refreshes(folder: Path, sizes: Mapping[str, int], runs: int) -> tuple[int, dict[str, int], Timing]:
    """The most calls of a refresh, these by operation, and the seconds of each refresh."""
    # Kubernetes and S3 answer at once here: their requests are made at the same time as those of SageMaker.
    reader.way = lambda *_: cast(Kubectl, Cluster())  # pyrefly: ignore[bad-assignment]
    reader.quarantines = lambda *_: {}  # pyrefly: ignore[bad-assignment]
    with serving(Sagemaker(sizes, SLOW)) as server:
        account = Account("111122223333", "us-west-2", server.url, {})
        live = reader.Live(ENVIRONMENT, account, folder)
        live.read()
        costs = [live.read()["cost"] for _ in range(runs)]
    # Two sequences of pages meet a page earlier or later.
    most = max(costs, key=lambda cost: cost["calls"])
    return most["calls"], most["operations"], Timing(tuple(cost["seconds"] for cost in costs), 0)
