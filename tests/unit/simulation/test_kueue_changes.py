"""Policies and nodes that change over time: who waits for nodes, who loses them, and what smaller quotas do."""

import random
from typing import Any

import pytest

from kueue_objects import Object, cluster_queue, flavor, local_queue, node, workload
from podwright.planning.simulation.assumptions import Assumptions
from podwright.planning.simulation.kueue.admitted import work_in
from podwright.planning.simulation.kueue.events import NODES_GONE, Change, simulate
from podwright.planning.simulation.kueue.history import History, Job
from podwright.planning.simulation.kueue.policy import policy
from test_kueue_time import AT_ONCE, HOST, random_work, times

BEGIN = 1795564800
"""When `workload` has its first work come."""
TOPOLOGY = {"kind": "Topology", "metadata": {"name": "net"}, "spec": {"levels": [{"nodeLabel": HOST}]}}
Work = list[tuple[Object, float]]


def played(
    first: list[Object], later: dict[float, list[Object]], work: Work, assumptions: Assumptions = AT_ONCE
) -> History:
    """The history of work under objects that are others from some seconds on."""
    every = [item for objects in (first, *later.values()) for item in objects]
    decides = policy(first, {}, every)
    changes = [Change(BEGIN + seconds, policy(objects, {}, every)) for seconds, objects in later.items()]
    jobs = [Job(work_in(decides, item), seconds) for item, seconds in work]
    return simulate(decides, jobs, assumptions, changes=changes)


def on_nodes(*names: str, quota: int = 16) -> list[Object]:
    placed = flavor("default", nodeLabels={"pool": "gpu"}, topologyName="net")
    return [cluster_queue("a", quotas={"default": quota}), local_queue("a"), placed, TOPOLOGY, *map(node, names)]


def test_work_waits_for_nodes_that_come_later() -> None:
    result = played(on_nodes(), {3600.0: on_nodes("n0", "n1")}, [(workload("one", "a", 8, count=2), 100)])
    assert times(result) == {"one": [(3601, 3701)]}


def test_who_loses_a_node_stops_and_comes_again_with_what_it_repeats() -> None:
    work = [(workload("lost", "a", 8), 1000.0), (workload("kept", "a", 8, 1), 2000.0)]
    later = {600.0: on_nodes("n1"), 5000.0: on_nodes("n0", "n1")}
    result = played(on_nodes("n0", "n1"), later, work, Assumptions(grace_seconds=30.0, repeated_seconds=100.0))
    placed = {job.work.name: job.turns[0].placements[0].domain[-1] for job in result.jobs}
    assert placed == {"lost": "n0", "kept": "n1"}
    # Without its node nothing is left to end in an orderly way; it gets the other node when that is free.
    assert times(result) == {"lost": [(0, 600), (2002, 2502)], "kept": [(1, 2001)]}
    (lost, _) = result.jobs
    assert [turn.ended for turn in lost.turns] == [NODES_GONE, "finished"]
    assert result.preemptions == []


def test_changes_after_the_last_job_are_no_part_of_it() -> None:
    result = played(on_nodes("n0"), {9000.0: on_nodes()}, [(workload("one", "a", 8), 100)])
    assert result.end == BEGIN + 101


def test_a_smaller_quota_stops_nobody_and_lets_nobody_in() -> None:
    work: Work = [
        (workload("one", "a", 8), 1000),
        (workload("two", "a", 8), 2000),
        (workload("three", "a", 8, 500), 10),
    ]
    result = played(on_nodes("n0", "n1", "n2"), {200.0: on_nodes("n0", "n1", "n2", quota=8)}, work)
    # The first end leaves as much in use as the quota is.
    assert times(result) == {"one": [(0, 1000)], "two": [(0, 2000)], "three": [(2001, 2011)]}


def test_a_larger_quota_is_used_a_second_later() -> None:
    work = [(workload("one", "a", 8), 1000.0), (workload("two", "a", 8, 1), 10.0)]
    result = played(on_nodes("n0", "n1", quota=8), {300.0: on_nodes("n0", "n1")}, work)
    assert times(result)["two"] == [(301, 311)]


def test_work_of_a_flavor_that_the_policy_loses_runs_to_its_end() -> None:
    def queues(*names: str) -> list[Object]:
        queue = cluster_queue("a", quotas=dict.fromkeys(names, 8))
        return [queue, local_queue("a"), *map(flavor, names)]

    work: Work = [
        (workload("one", "a", 8), 1000),
        (workload("two", "a", 8, 1), 1000),
        (workload("late", "a", 8, 600), 10),
    ]
    result = played(queues("x", "y"), {500.0: queues("y")}, work)
    assert times(result) == {"one": [(0, 1000)], "two": [(1, 1001)], "late": [(1001, 1011)]}


@pytest.mark.parametrize("seed", range(6))
def test_a_change_to_the_same_makes_no_difference_to_who_is_admitted_when(seed: int) -> None:
    queues, work = random_work(seed)
    for item in queues:
        # Whoever may preempt finds others to preempt whenever it is looked at again.
        del item["spec"]["preemption"]
    every = [*queues, flavor("default"), *(local_queue(item["metadata"]["name"]) for item in queues)]
    without = played(every, {}, work, Assumptions())
    changes: dict[float, Any] = dict.fromkeys((1801.5, 3599.5, 7200.5), every)
    assert times(played(every, changes, work, Assumptions())) == times(without)


@pytest.mark.parametrize("seed", range(6))
def test_no_node_holds_more_than_it_has_whenever_nodes_come_and_go(seed: int) -> None:
    source = random.Random(seed)
    names = [f"n{number}" for number in range(6)]
    later = {600.0 * step: on_nodes(*source.sample(names, source.randrange(1, 7)), quota=48) for step in range(1, 12)}
    later[7200.0] = on_nodes(*names, quota=48)
    work: Work = [
        (workload(f"w{number}", "a", source.choice((2, 4, 8)), number * 60, count=source.choice((1, 2))), 900.0)
        for number in range(60)
    ]
    result = played(on_nodes(*names, quota=48), later, work, Assumptions(repeated_seconds=300.0))
    held: list[tuple[float, int, str]] = []
    for turn in [turn for job in result.jobs for turn in job.turns]:
        assert turn.end is not None
        for placement in turn.placements:
            name, gpus = placement.domain[-1], placement.pods * dict(placement.requests)["nvidia.com/gpu"]
            held += [(turn.start, gpus, name), (turn.end, -gpus, name)]
            during = [objects for at, objects in later.items() if turn.start < BEGIN + at < turn.end]
            assert all(name in {item["metadata"]["name"] for item in objects} for objects in during)
    assert all(job.finished is not None for job in result.jobs)
    assert any(turn.ended == NODES_GONE for job in result.jobs for turn in job.turns)
    used = dict.fromkeys(names, 0)
    for _, gpus, name in sorted(held):
        used[name] += gpus
        assert 0 <= used[name] <= 8
