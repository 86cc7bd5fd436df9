"""What happens over time: who waits, who overtakes, who is stopped and comes again."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from kueue_objects import Object, cluster_queue, flavor, local_queue, node, workload
from podwright.config.errors import InvalidValue
from podwright.planning.simulation.assumptions import Assumptions, throughput
from podwright.planning.simulation.kueue.admitted import work_in
from podwright.planning.simulation.kueue.events import NOT_READY, simulate
from podwright.planning.simulation.kueue.history import History, Job
from podwright.planning.simulation.kueue.policy import policy

WITHIN = {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"}
HOST = "kubernetes.io/hostname"
AT_ONCE = Assumptions(grace_seconds=0.0, repeated_seconds=0.0)


def history(
    queues: list[Object],
    work: list[tuple[Object, float]],
    assumptions: Assumptions = AT_ONCE,
    configuration: Object | None = None,
) -> History:
    every = [*queues, flavor("default"), *(local_queue(item["metadata"]["name"]) for item in queues)]
    decides = policy(every, configuration)
    return simulate(decides, [Job(work_in(decides, item), seconds) for item, seconds in work], assumptions)


def times(result: History) -> dict[str, list[tuple[float, float]]]:
    first = min(job.work.created for job in result.jobs)
    return {
        job.work.name: [(turn.start - first, (turn.end or result.end) - first) for turn in job.turns]
        for job in result.jobs
    }


def test_what_waits_is_looked_at_a_second_after_quota_became_free() -> None:
    result = history([cluster_queue("a")], [(workload("one", "a", 8), 100), (workload("two", "a", 8, 10), 100)])
    assert times(result) == {"one": [(0, 100)], "two": [(101, 201)]}


def test_what_comes_just_then_overtakes_what_is_parked() -> None:
    work = [(workload("one", "a", 8), 100), (workload("two", "a", 8, 10), 100), (workload("three", "a", 4, 100), 100)]
    assert times(history([cluster_queue("a")], work))["three"] == [(100, 200)]
    strict = history([cluster_queue("a", queueingStrategy="StrictFIFO")], work)
    assert times(strict)["two"] == [(100, 200)], "a strict queue parks nobody"


def test_what_is_like_parked_work_is_parked_as_it_comes() -> None:
    work = [(workload("one", "a", 8), 100), (workload("two", "a", 8, 10), 100), (workload("three", "a", 8, 100), 100)]
    assert times(history([cluster_queue("a")], work)) == {"one": [(0, 100)], "two": [(101, 201)], "three": [(202, 302)]}


def test_a_large_job_blocks_a_strict_queue_alone() -> None:
    work = [(workload("one", "a", 4), 100), (workload("large", "a", 8, 1), 100), (workload("small", "a", 4, 2), 100)]
    assert times(history([cluster_queue("a")], work))["small"] == [(2, 102)]
    strict = times(history([cluster_queue("a", queueingStrategy="StrictFIFO")], work))
    assert strict["small"][0][0] >= strict["large"][0][1]


def test_what_is_parked_holds_nothing_against_others_for_long() -> None:
    reclaims = {"reclaimWithinCohort": "LowerPriority"}
    queues = [cluster_queue("a", "all", {"default": 8}, preemption=reclaims), cluster_queue("b", "all", {"default": 4})]
    work = [
        (workload("running", "a", 4), 100),
        (workload("large", "a", 12, 1, priority=5), 100),
        (workload("borrows", "b", 8, 1), 100),
    ]
    moments = times(history(queues, work))
    # `large` finds nobody to preempt, and holds its quota for the cycle in which it is told so; then it is parked.
    assert moments["borrows"] == [(1, 101)]
    assert moments["large"] == [(101, 201)]


def test_a_stopped_job_comes_again_at_its_old_place_and_repeats_what_it_lost() -> None:
    work = [
        (workload("low", "a", 8), 1000),
        (workload("other", "a", 8, 10), 50),
        (workload("high", "a", 8, 600, priority=5), 100),
    ]
    assumptions = Assumptions(grace_seconds=30.0, repeated_seconds=200.0)
    result = history([cluster_queue("a", preemption=WITHIN)], work, assumptions)
    moments = times(result)
    assert moments["high"] == [(630, 730)], "after the pods of its victim are gone"
    assert moments["low"] == [(0, 630), (731, 731 + 600)], "400 s are done, and it stands before `other` again"
    (preemption,) = result.preemptions
    assert (preemption.victim.work.name, preemption.preemptor.work.name, preemption.reason) == (
        "low", "high", "InClusterQueue",
    )  # fmt: skip


def test_who_preempts_is_not_overtaken_while_its_victims_end() -> None:
    work = [
        (workload("low", "a", 8), 1000),
        (workload("high", "a", 8, 10, priority=5), 100),
        (workload("higher", "a", 8, 20, priority=9), 100),
    ]
    moments = times(history([cluster_queue("a", preemption=WITHIN)], work, Assumptions(grace_seconds=60.0)))
    assert moments["high"][0][0] == 70


@pytest.mark.parametrize(
    ("cohorts", "expected"),
    [
        ([], {"three": [(80, 180)], "cheap": [(80, 180)], "two": [(181, 281)]}),
        ([{"kind": "Cohort", "metadata": {"name": "all"}, "spec": {}}], {"three": [(80, 140)], "two": [(140, 240)]}),
    ],
    ids=["named", "made"],
)
def test_below_a_cohort_that_somebody_made_parked_work_is_looked_at_more_often(
    cohorts: list[Object], expected: dict[str, Any]
) -> None:
    """Seen in Kueue's log: `two`, parked, comes behind `three`, who waits for its victim, and right after it."""

    def parts(name: str, gpus: int, more: int, created: int, priority: int) -> Object:
        item = workload(name, "a", gpus, created, priority=priority)
        pods = workload(name, "a", more)["spec"]["podSets"][0]
        item["spec"]["podSets"].append(pods | {"name": "more"})
        return item

    within = {"withinClusterQueue": "LowerOrNewerEqualPriority"}
    queues = [
        cluster_queue("a", "all", {"x": 4, "y": 0}, preemption=within),
        cluster_queue("lends", "all", {"x": 0, "y": 4}),
    ]
    work = [
        (parts("low", 4, 1, 0, 0), 1000.0),
        (parts("two", 4, 4, 10, 10), 100.0),
        (workload("three", "a", 4, 20, priority=10), 100.0),
        (workload("cheap", "a", 4, 30, priority=5), 100.0),
    ]
    decides = policy([*queues, *cohorts, flavor("x"), flavor("y"), local_queue("a")])
    jobs = [Job(work_in(decides, item), seconds) for item, seconds in work]
    moments = times(simulate(decides, jobs, Assumptions(grace_seconds=60.0, repeated_seconds=0.0)))
    assert {name: moments[name][: len(turns)] for name, turns in expected.items()} == expected


def test_fewer_pods_take_longer_in_proportion() -> None:
    elastic = workload("elastic", "a", 1, 1, count=8, minCount=2)
    result = history([cluster_queue("a")], [(workload("one", "a", 4), 50), (elastic, 100)])
    assert times(result)["elastic"] == [(1, 201)]


@pytest.mark.parametrize(("pods", "pace"), [(1, 0.5), (2, 1.0), (3, 1.5), (4, 2.0), (6, 2.5), (8, 3.0), (16, 6.0)])
def test_throughput_is_a_line_between_what_was_measured(pods: int, pace: float) -> None:
    """Beyond it, in proportion: nobody knows more."""
    assumed = Assumptions(throughput=throughput("2=1,4=2,8=3"))
    assert assumed.pace(pods, 2) == pytest.approx(pace)
    assert assumed.pace(pods, pods) == 1.0
    assert Assumptions().pace(pods, 8) == pods / 8


def test_fewer_pods_take_as_long_as_was_measured() -> None:
    elastic = workload("elastic", "a", 1, 1, count=8, minCount=2)
    work = [(workload("one", "a", 4), 50.0), (elastic, 100.0)]
    assumed = Assumptions(grace_seconds=0.0, repeated_seconds=0.0, throughput=throughput("4=8,8=10"))
    assert times(history([cluster_queue("a")], work, assumed))["elastic"] == [(1, 126)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a number of pods"),
        ("4", "not a number of pods"),
        ("x=1,2=2", "not a number of pods"),
        ("1=one,2=2", "not a number of pods"),
        ("1.5=1,2=2", "not a number of pods"),
        ("1=1", "two to compare"),
        ("0=1,2=2", "at least one pod"),
        ("1=0,2=2", "more than nothing"),
        ("1=-1,2=2", "more than nothing"),
        ("1=nan,2=2", "more than nothing"),
        ("1=inf,2=2", "more than nothing"),
        ("2=2,1=1", "comes after 2 pods"),
        ("2=2,2=3", "comes after 2 pods"),
    ],
)
def test_what_is_no_measurement_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        throughput(text)


def test_a_job_that_never_fits_says_why_and_ends_the_simulation() -> None:
    result = history([cluster_queue("a")], [(workload("huge", "a", 9), 10), (workload("small", "a", 1), 10)])
    huge, small = sorted(result.jobs, key=lambda job: job.work.name)
    assert small.finished
    assert (huge.turns, huge.finished) == ([], None)
    assert "9 asked for, 8 at most" in huge.waits_for


def test_with_block_admission_the_next_job_waits_until_the_last_is_ready() -> None:
    configuration = {"waitForPodsReady": {"timeout": "30m0s", "blockAdmission": True}}
    work = [(workload("one", "a", 1), 500), (workload("two", "b", 1), 500)]
    queues = [cluster_queue("a"), cluster_queue("b")]
    slow = Assumptions(startup_seconds=60.0)
    assert {start for ((start, _),) in times(history(queues, work, slow, configuration)).values()} == {0, 60}
    assert {start for ((start, _),) in times(history(queues, work, slow)).values()} == {0}


def test_assumptions_under_which_nothing_runs_are_refused() -> None:
    configuration = {"waitForPodsReady": {"timeout": "1m0s"}}
    with pytest.raises(InvalidValue, match="sends work back after 60 s"):
        history([cluster_queue("a")], [], Assumptions(startup_seconds=61.0), configuration)
    with pytest.raises(InvalidValue, match="would never end"):
        history([cluster_queue("a")], [(workload("one", "a", 8), 10)], Assumptions(failures_per_node_hour=3.0))


LATE: dict[str, Any] = {"timeout": "5m0s", "requeuingStrategy": {"backoffBaseSeconds": 100, "backoffMaxSeconds": 250}}


def late(
    startup: float | None,
    strategy: Object,
    assumptions: Assumptions = AT_ONCE,
    others: Sequence[tuple[Object, float]] = (),
) -> History:
    """The history of a job of the whole queue whose pods take so long, and of others."""
    wait = LATE | {"requeuingStrategy": LATE["requeuingStrategy"] | strategy}
    decides = policy([cluster_queue("a"), local_queue("a"), flavor("default")], {"waitForPodsReady": wait})
    jobs = [Job(work_in(decides, workload("late", "a", 8)), 1000.0, startup=startup)]
    jobs += [Job(work_in(decides, item), seconds) for item, seconds in others]
    return simulate(decides, jobs, assumptions)


def test_what_is_not_ready_in_time_waits_longer_each_time_and_is_set_aside() -> None:
    result = late(301.0, {"backoffLimitCount": 3})
    # Five minutes, then 100, 200 and 250 seconds until it is tried again.
    assert times(result)["late"] == [(0, 300), (400, 700), (900, 1200), (1450, 1750)]
    (job,) = result.jobs
    assert {turn.ended for turn in job.turns} == {NOT_READY}
    assert job.waits_for == "its pods were not ready within 300 s 4 times, and it is tried no more (waitForPodsReady)"
    assert job.left == 1000.0, "before it is ready it has done nothing"
    assert result.preemptions == []


def test_no_further_try_is_one_eviction() -> None:
    assert times(late(301.0, {"backoffLimitCount": 0}))["late"] == [(0, 300)]


def test_its_pods_hold_quota_while_they_end_and_the_backoff_counts_from_the_eviction() -> None:
    assumed = Assumptions(grace_seconds=30.0, repeated_seconds=0.0)
    assert times(late(301.0, {"backoffLimitCount": 1}, assumed))["late"] == [(0, 330), (400, 730)]
    slow = Assumptions(grace_seconds=150.0, repeated_seconds=0.0)
    assert times(late(301.0, {"backoffLimitCount": 1}, slow))["late"] == [(0, 450), (450, 900)]


def test_what_is_ready_just_in_time_runs() -> None:
    assert times(late(300.0, {"backoffLimitCount": 0}))["late"] == [(0, 1300)]


@pytest.mark.parametrize(("timestamp", "first"), [("Eviction", "between"), ("Creation", "late")])
def test_who_comes_first_after_an_eviction(timestamp: str, first: str) -> None:
    """While another one runs, from 301 to 501, a job waits since 200, and the late one since 0 or since 300."""
    urgent, between = workload("urgent", "a", 8, 100, priority=1), workload("between", "a", 8, 200)
    strategy = {"backoffLimitCount": 1, "timestamp": timestamp}
    result = times(late(301.0, strategy, others=[(urgent, 200.0), (between, 10.0)]))
    assert result["urgent"] == [(301, 501)]
    starts = {"late": result["late"][1][0], "between": result["between"][0][0]}
    assert min(starts, key=lambda name: starts[name]) == first


def test_tries_without_an_end_end_the_simulation() -> None:
    job, short = late(301.0, {}, others=[(workload("short", "a", 8, 10), 10.0)]).jobs
    assert short.finished is not None
    assert (job.timeouts, job.is_set_aside) == (101, True)
    with pytest.raises(InvalidValue, match="nothing would ever run"):
        late(None, {}, Assumptions(startup_seconds=301.0))
    (all_late,) = late(None, {"backoffLimitCount": 2}, Assumptions(startup_seconds=301.0)).jobs
    assert (all_late.timeouts, all_late.finished) == (3, None)


def test_with_block_admission_an_eviction_lets_the_next_in() -> None:
    wait = {"timeout": "1m0s", "blockAdmission": True, "requeuingStrategy": {"backoffLimitCount": 0}}
    objects = [cluster_queue("a"), local_queue("a"), flavor("default")]
    decides = policy(objects, {"waitForPodsReady": wait})
    jobs = [Job(work_in(decides, workload("late", "a", 1)), 100.0, startup=90.0)]
    jobs += [Job(work_in(decides, workload("next", "a", 1, 1)), 100.0)]
    assert times(simulate(decides, jobs, AT_ONCE)) == {"late": [(0, 60)], "next": [(60, 160)]}


def test_failures_of_nodes_make_jobs_longer() -> None:
    assumptions = Assumptions(repeated_seconds=360.0, failures_per_node_hour=1.0)
    result = history([cluster_queue("a")], [(workload("one", "a", 8), 900)], assumptions)
    assert times(result) == {"one": [(0, 1000)]}


def test_nothing_happens_after_the_end_of_the_only_job_that_is_asked_for() -> None:
    decides = policy([cluster_queue("a"), flavor("default"), local_queue("a")])
    items = [workload(name, "a", 8, created) for created, name in enumerate(("first", "wanted", "last"))]
    jobs = [Job(work_in(decides, item), 60) for item in items]
    result = simulate(decides, jobs, AT_ONCE, requested=jobs[1])
    assert [job.finished is not None for job in jobs] == [True, True, False]
    assert result.end == jobs[1].finished


def test_a_strict_queue_that_tries_its_flavors_for_ever_lets_time_go_on() -> None:
    """Quota of the first flavor is free, its nodes are too small, and the second one does not go by topology."""
    topology = {"kind": "Topology", "metadata": {"name": "net"}, "spec": {"levels": [{"nodeLabel": HOST}]}}
    flavors = [flavor("default", nodeLabels={"pool": "gpu"}, topologyName="net"), flavor("other"), topology]
    queue = cluster_queue("a", quotas={"default": 16, "other": 16}, queueingStrategy="StrictFIFO")
    items = [queue, local_queue("a"), *flavors, node("n0"), node("n1")]
    decides = policy(items)
    gang = workload("gang", "a", 8, count=2, topologyRequest={"required": HOST})
    late = workload("late", "a", 1, 60, priority=1, topologyRequest={"required": HOST})
    result = simulate(decides, [Job(work_in(decides, item), 60) for item in (gang, late)], AT_ONCE)
    assert [job.finished is not None for job in result.jobs] == [False, True]
    assert "fit only 1 out of 2" in result.jobs[0].waits_for or "TopologyAwareScheduling" in result.jobs[0].waits_for


def random_work(seed: int) -> tuple[list[Object], list[tuple[Object, float]]]:
    source = random.Random(seed)
    queues = [
        cluster_queue(name, "all", {"default": source.choice((4, 8, (8, 8), (4, None, 2)))}, preemption=WITHIN)
        for name in "abcd"
    ]
    work: list[tuple[Object, float]] = []
    for number in range(120):
        arguments: dict[str, Any] = {"priority": source.choice((0, 0, 10, 20))}
        item = workload(f"{number}", source.choice("abcd"), source.choice((1, 2, 4)), number * 37, **arguments)
        work.append((item, float(source.randrange(60, 3600))))
    return queues, work


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("is_fair", [False, True])
def test_quota_is_never_exceeded_but_by_victims_that_end_and_all_that_fits_ends(seed: int, is_fair: bool) -> None:
    queues, work = random_work(seed)
    configuration = {"fairSharing": {"enable": True}} if is_fair else {}
    result = history(queues, work, Assumptions(), configuration)
    notified = {(id(each.victim), each.time) for each in result.preemptions}
    changes: list[tuple[float, int]] = []
    for job in result.jobs:
        assert job.finished is not None, job.waits_for
        gpus = sum(pods.count * pods.requests["nvidia.com/gpu"] for pods in job.work.pod_sets)
        for turn in job.turns:
            assert turn.end is not None
            # Kueue admits beside victims whose pods have not ended yet.
            times_of_notice = [time for victim, time in notified if victim == id(job) and time >= turn.start]
            changes += [(turn.start, gpus), (min(times_of_notice, default=turn.end), -gpus)]
    total = sum(int(item["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"]) for item in queues)
    used = 0
    for _, change in sorted(changes):
        used += change
        assert 0 <= used <= total
    assert result.preemptions


@pytest.mark.parametrize("is_fair", [False, True])
def test_a_second_simulation_of_the_same_work_is_equal(is_fair: bool) -> None:
    configuration = {"fairSharing": {"enable": True}} if is_fair else {}
    first, second = (history(*random_work(0), Assumptions(), configuration) for _ in range(2))
    assert times(first) == times(second)
    assert len(first.preemptions) == len(second.preemptions) > 0
