"""Listing the nodes of large clusters: each node once, whatever groups are called and whenever nodes were launched."""

import json
import random
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pytest
from botocore.exceptions import ClientError

from live_account import Sagemaker
from loopback import Call, Reply, serving
from podwright.config.errors import CommandError
from podwright.operations.aws.account import Account
from podwright.operations.aws.clusters import Cluster, Node, existing_cluster, nodes_by_group
from refusals import refusal

START = datetime(2026, 11, 21, tzinfo=UTC)


class Service:
    """SageMaker's list of nodes in memory, which records every page that it answers."""

    def __init__(
        self,
        sizes: Mapping[str, int],
        launches: Sequence[int] = (),
        sort: Literal["launch", "creation", "none"] = "launch",
    ) -> None:
        """Lists groups of `sizes` nodes.

        Args:
            sizes: Nodes by group.
            launches: The minute at which each node was launched, in the order of creation; by default all differ.
            sort: What pages are sorted by. `creation` may differ from the launches; `none` ignores SortOrder.
        """
        groups = [name for name, size in sizes.items() for _ in range(size)]
        minutes = launches or range(len(groups))
        self.rows = [
            {
                "InstanceId": f"i-{number:04}",
                "InstanceGroupName": group,
                "InstanceStatus": {"Status": "Running"},
                "LaunchTime": START + timedelta(minutes=minute),
            }
            for number, (group, minute) in enumerate(zip(groups, minutes, strict=True))
        ]
        self.sort, self.refuses = sort, dict[str, str]()
        self.pages: list[tuple[str, str]] = []
        """Group and order of each page."""
        self.threads = set[threading.Thread]()
        self.together: threading.Barrier | None = None
        """Pages that are answered together, until a sequence of pages ends."""

    def client(self, service: str) -> "Service":
        assert service == "sagemaker"
        return self

    def get_paginator(self, operation: str) -> "Service":
        assert operation == "list_cluster_nodes"
        return self

    def paginate(
        self, ClusterName: str, InstanceGroupNameContains: str = "", SortBy: str = "", SortOrder: str = "Ascending"
    ) -> Iterator[dict[str, Any]]:
        if code := self.refuses.get(InstanceGroupNameContains):
            raise refusal(code)
        rows = [row for row in self.rows if InstanceGroupNameContains in row["InstanceGroupName"]]
        falling = SortOrder == "Descending"
        if self.sort == "launch":
            # A stable sort leaves nodes of the same launch time in one sequence in both orders.
            rows.sort(key=lambda row: row["LaunchTime"], reverse=falling)
        elif self.sort == "creation" and falling:
            rows.reverse()
        try:
            for first in range(0, max(len(rows), 1), 100):
                self.pages.append((InstanceGroupNameContains, SortOrder))
                self.threads.add(threading.current_thread())
                if self.together:
                    with suppress(threading.BrokenBarrierError):
                        self.together.wait()
                yield {"ClusterNodeSummaries": rows[first : first + 100]}
        finally:
            if self.together and len(rows) > 100:
                self.together.abort()


def cluster(
    sizes: Mapping[str, int], *, counted: Mapping[str, int] | None = None, status: str = "InService"
) -> Cluster:
    """The cluster as described; `counted` are nodes by group where HyperPod counts others than it lists."""
    counts = {**sizes, **(counted or {})}
    groups = [
        {"InstanceGroupName": name, "CurrentCount": count, "TargetCount": count, "Status": status}
        for name, count in counts.items()
    ]
    return Cluster.of({"ClusterName": "prod", "ClusterStatus": "InService", "InstanceGroups": groups})


def check_each_once(service: Service, result: Sequence[Node]) -> None:
    assert sorted(node.id for node in result) == sorted(row["InstanceId"] for row in service.rows)


def test_a_small_cluster_takes_the_calls_that_it_always_took() -> None:
    sizes = {"system": 4, "h200": 490}
    service = Service(sizes)
    check_each_once(service, nodes_by_group(service, cluster(sizes)))
    assert service.pages == [("", "Ascending")] * 5


@pytest.mark.parametrize(
    "sizes",
    [
        {f"g{number}": 391 for number in range(1, 9)},
        {"h": 40, "h200": 330, "h200-b": 520, "big-h200": 10},
        # The nodes of `a-b` are in the answers for both `a` and `b`.
        {"a": 301, "b": 150, "a-b": 450, "cpu": 2},
        {"only": 3125},
    ],
    ids=["eight groups", "one name in others", "two names in one", "one group"],
)
def test_each_node_of_a_large_cluster_is_listed_once(sizes: Mapping[str, int]) -> None:
    service = Service(sizes)
    check_each_once(service, nodes_by_group(service, cluster(sizes)))


def test_groups_are_asked_by_themselves_and_a_few_at_a_time() -> None:
    sizes = {f"g{number:02}": 50 for number in range(18)}
    service = Service(sizes)
    service.together = threading.Barrier(6, timeout=300)
    check_each_once(service, nodes_by_group(service, cluster(sizes)))
    assert sorted(service.pages) == [(name, "Ascending") for name in sizes]
    assert not service.together.broken
    assert len(service.threads) == 6


def test_a_name_within_others_lists_them_all() -> None:
    sizes = {"h": 40, "h200": 130, "h200-b": 320, "cpu": 20}
    service = Service(sizes)
    check_each_once(service, nodes_by_group(service, cluster(sizes)))
    assert {name for name, _ in service.pages} == {"h", "cpu"}


def test_a_group_without_nodes_is_asked_only_while_it_changes() -> None:
    sizes = {"h200": 501, "spare": 0}
    service = Service(sizes)
    nodes_by_group(service, cluster(sizes))
    assert {name for name, _ in service.pages} == {"h200"}
    # HyperPod counts no node of a group that it still empties.
    service = Service(sizes | {"spare": 3})
    check_each_once(service, nodes_by_group(service, cluster(sizes, status="Updating")))


def test_a_large_group_is_read_from_both_ends() -> None:
    sizes = {"h200": 3125}
    service = Service(sizes)
    service.together = threading.Barrier(2, timeout=300)
    check_each_once(service, nodes_by_group(service, cluster(sizes)))
    # Of 32 pages both read the one on which they meet, and one reads another before it knows of that.
    assert max(Counter(order for _, order in service.pages).values()) <= 18


@pytest.mark.parametrize("sort", ["launch", "none"])
@pytest.mark.parametrize("counted", [1200, 600, 1300])
@pytest.mark.parametrize("instants", [1, 2, 3, 1200])
def test_nodes_launched_at_one_time_are_not_lost(instants: int, counted: int, sort: Literal["launch", "none"]) -> None:
    """Whatever HyperPod counts, and also of a service that knows only one order."""
    sizes = {"h200": 1200}
    service = Service(sizes, [number % instants for number in range(1200)], sort)
    service.together = threading.Barrier(2, timeout=300)
    check_each_once(service, nodes_by_group(service, cluster(sizes, counted={"h200": counted})))


@pytest.mark.parametrize(
    ("launches", "counted"),
    [
        # The newest nodes by creation were launched first.
        ([*range(5000, 5600), *range(600)], 1200),
        # The first 300 were launched in no order, the last of them late; HyperPod counts half of the nodes.
        ([*range(300, 1, -1), 5000, *range(6000, 6300), *range(600)], 600),
        # The same from the other end.
        ([*range(9000, 9600), *range(3700, 4001), *range(9299, 9000, -1)], 600),
    ],
)
def test_an_order_that_is_not_that_of_launches_loses_no_node(launches: list[int], counted: int) -> None:
    sizes = {"h200": 1200}
    service = Service(sizes, launches, "creation")
    service.together = threading.Barrier(2, timeout=300)
    check_each_once(service, nodes_by_group(service, cluster(sizes, counted={"h200": counted})))


def test_random_clusters() -> None:
    for seed in range(60):
        chance = random.Random(seed)
        names = ["".join(chance.choices("ab", k=chance.randint(1, 4))) for _ in range(chance.randint(1, 6))]
        sizes = {name: chance.choice([0, 1, 99, 100, 101, 520, 700]) for name in names}
        instants = chance.choice([1, 5, 50, 100_000])
        launches = [chance.randrange(instants) for _ in range(sum(sizes.values()))]
        service = Service(sizes, launches)
        counted = {name: size - chance.randint(0, min(size, 3)) if size > 1 else size for name, size in sizes.items()}
        result = nodes_by_group(service, cluster(sizes, counted=counted))
        check_each_once(service, result)


@pytest.mark.parametrize(
    ("code", "error"), [("AccessDeniedException", ClientError), ("ResourceNotFound", CommandError)]
)
def test_a_refusal_for_one_group_is_an_error(code: str, error: type[Exception]) -> None:
    sizes = {"a": 400, "b": 400}
    service = Service(sizes)
    service.refuses["b"] = code
    with pytest.raises(error):
        nodes_by_group(service, cluster(sizes))


def test_throttled_calls_are_made_again() -> None:
    sizes = {"a": 400, "b": 400}
    usual, throttled = Sagemaker(sizes), list[str]()

    def throttle(call: Call) -> Reply:
        if call.headers["X-Amz-Target"].endswith("ListClusterNodes") and len(throttled) < 3:
            throttled.append(call.path)
            return Reply(400, json.dumps({"__type": "ThrottlingException", "message": "Rate exceeded"}).encode())
        return usual(call)

    with serving(throttle) as server:
        account = Account("111122223333", "us-west-2", server.url, {})
        result = nodes_by_group(account, existing_cluster(account, "prod"))
    assert len(result) == len({node.id for node in result}) == 800
    assert len(throttled) == 3
