"""What a refresh of `podwright status --watch` costs: API calls, and seconds where each call takes a fifth of one."""

import argparse
import statistics
import sys
from pathlib import Path
from typing import cast

import boto3

from table import Report, markdown, verdict
from timing import HELPERS, Timing

sys.path.extend(HELPERS)

from live_account import ENVIRONMENT, Cluster, Sagemaker
from loopback import serving
from podwright.operations.aws.account import Account
from podwright.operations.kubernetes.kubectl import Kubectl
from podwright.operations.live import reader

LIMIT = 5.0
SLOW = 0.2
"""Seconds of an answer: more than AWS takes within a region."""


def report(folder: Path, args: argparse.Namespace) -> Report:
    """A refresh for clusters of several sizes. Calls of a second are what a refresh every ten seconds makes."""
    rows: list[list[str]] = []
    retained = True
    for nodes in (8, 100, 1000):
        calls, operations, timing = _refreshes(folder, nodes, args.runs)
        retained = retained and timing.median <= LIMIT
        pages = operations["ListClusterNodes"]
        rows.append(
            [
                f"{nodes:,} nodes",
                str(calls),
                f"{pages} of ListClusterNodes, {calls - pages} others",
                f"{calls / 10:.1f}",
                str(timing),
                f"≤ {LIMIT:g} s",
                verdict(timing.median, LIMIT),
            ]
        )
    header = ["a refresh", "calls", "of them", "calls a second, every 10 s", f"seconds, {SLOW:g} s a call", "limit", ""]
    return Report(markdown(header, rows), retained)


def _refreshes(folder: Path, nodes: int, runs: int) -> tuple[int, dict[str, int], Timing]:
    # Kubernetes answers at once here: its two requests go beside those of SageMaker.
    reader.way = lambda *_: cast(Kubectl, Cluster())  # pyrefly: ignore[bad-assignment]
    with serving(Sagemaker(nodes, SLOW)) as server:
        account = Account("111122223333", "us-west-2", None, {})
        session = boto3.Session("key", "secret", region_name="us-west-2")
        account._clients["sagemaker"] = session.client("sagemaker", endpoint_url=server.url)
        live = reader.Live(ENVIRONMENT, account, folder)
        live.read()
        costs = [live.read()["cost"] for _ in range(runs)]
    assert statistics.pstdev(cost["calls"] for cost in costs) == 0
    seconds = tuple(cost["seconds"] for cost in costs)
    return costs[0]["calls"], costs[0]["operations"], Timing(seconds, 0)
