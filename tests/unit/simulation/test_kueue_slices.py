"""Elastic jobs: a slice takes the place of another of the same job, and needs quota for what it has more."""

import json
from typing import Any

import pytest

from kueue_objects import GPU, Object, cluster_queue, flavor, local_queue, workload
from podwright.planning.simulation.assumptions import Assumptions
from podwright.planning.simulation.kueue.admitted import work_in
from podwright.planning.simulation.kueue.budgets import Budget
from podwright.planning.simulation.kueue.cycle import Scheduler, Status
from podwright.planning.simulation.kueue.events import simulate
from podwright.planning.simulation.kueue.history import History, Job
from podwright.planning.simulation.kueue.policy import Policy, policy
from podwright.planning.simulation.snapshot import read_snapshot
from podwright.planning.simulation.traces.workload_list import read_workloads
from test_kueue_time import times

AT_ONCE = Assumptions(grace_seconds=0.0, repeated_seconds=0.0)
LOWER = {"withinClusterQueue": "LowerPriority"}


def elastic(name: str, count: int, created: int = 0, *, after: str = "", **spec: Any) -> Object:
    """A slice of so many pods with a GPU each."""
    item = workload(name, "a", 1, created, count=count, **spec)
    if after:
        item["metadata"]["annotations"] = {"kueue.x-k8s.io/workload-slice-replacement-for": f"a/{after}"}
    return item


def running(item: Object, count: int, chosen: str = "default", *, since: int = 0) -> Object:
    """It, admitted with so many pods."""
    assigned = {"name": "main", "count": count, "flavors": {GPU: chosen}, "resourceUsage": {GPU: str(count)}}
    time = f"2026-11-25T00:{since // 60:02}:{since % 60:02}Z"
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": time} for kind in ("QuotaReserved", "Admitted")
    ]
    admission = {"clusterQueue": "a", "podSetAssignments": [assigned]}
    return item | {"status": {"admission": admission, "conditions": conditions}}


def deployed(queue: Object | None = None, *others: Object, gates: dict[str, bool] | None = None) -> Policy:
    queues = [queue or cluster_queue("a", quotas={"default": 10}), *others]
    names = [each["name"] for item in queues for each in item["spec"]["resourceGroups"][0]["flavors"]]
    objects = [*queues, *map(flavor, names), *(local_queue(item["metadata"]["name"]) for item in queues)]
    return policy(objects, {"featureGates": gates or {}})


def history(
    decides: Policy, work: list[tuple[Object, float]], assumptions: Assumptions = AT_ONCE, budgets: Any = ()
) -> History:
    jobs = [Job(work_in(decides, item), seconds) for item, seconds in work]
    return simulate(decides, jobs, assumptions, budgets=budgets)


def test_a_larger_slice_needs_quota_for_the_difference_and_does_what_is_left() -> None:
    result = history(deployed(), [(elastic("small", 5), 1000), (elastic("large", 10, 200, after="small"), 9999)])
    # 800 s of five pods are 400 s of ten, and what the trace says of the slice alone is not asked.
    assert times(result) == {"small": [(0, 200)], "large": [(200, 600)]}
    assert all(turn.ended == "finished" and turn.end == job.finished for job in result.jobs for turn in job.turns)


def test_running_pods_go_on_while_those_that_are_new_start() -> None:
    slow = Assumptions(grace_seconds=0.0, repeated_seconds=0.0, startup_seconds=100.0)
    result = history(deployed(), [(elastic("small", 5), 1000), (elastic("large", 10, 200, after="small"), 0)], slow)
    # 100 of 1000 s were done at 200; 450 s of ten pods are left, of which 50 are done by five until 300.
    assert times(result) == {"small": [(0, 200)], "large": [(200, 700)]}


def test_its_quota_is_counted_once() -> None:
    decides = deployed()
    work = [
        (elastic("small", 5), 1000.0),
        (elastic("large", 8, 10, after="small"), 0.0),
        (elastic("other", 2, 20), 50.0),
    ]
    assert times(history(decides, work))["other"] == [(20, 70)]
    assert decides.queues["a"].usage == [0]


def test_a_slice_that_does_not_fit_waits_while_the_old_one_runs() -> None:
    work = [(elastic("other", 4), 500.0), (elastic("small", 5), 1000.0), (elastic("large", 10, 10, after="small"), 0.0)]
    assert times(history(deployed(), work)) == {"other": [(0, 500)], "small": [(0, 501)], "large": [(501, 501 + 249.5)]}


def test_a_slice_stays_on_its_flavor() -> None:
    decides = deployed(cluster_queue("a", quotas={"one": 6, "two": 20}))
    small = work_in(decides, running(elastic("small", 5), 5, "one"))
    (entry,) = Scheduler(decides).cycle([work_in(decides, elastic("large", 12, 1, after="small"))], 1e12)
    assert entry.status is Status.NO_FIT
    assert "two flavor since the original workload is assigned: one" in entry.reason
    assert small.usage == {0: 5}
    (entry,) = Scheduler(decides).cycle([work_in(decides, elastic("larger", 6, 1, after="small"))], 1e12)
    assert (entry.status, entry.usage, entry.work.usage) == (Status.ADMITTED, {0: 1}, {0: 6})


def test_a_slice_preempts_for_the_difference_and_never_itself() -> None:
    decides = deployed(cluster_queue("a", quotas={"default": 10}, preemption=LOWER))
    work = [
        (elastic("small", 4, priority=5), 1000.0),
        (elastic("low", 3), 1000.0),
        (elastic("lower", 3, 1, priority=-1), 1000.0),
        (elastic("large", 7, 10, after="small", priority=5), 0.0),
    ]
    result = history(decides, work)
    assert [each.victim.work.name for each in result.preemptions] == ["lower"]
    assert times(result)["large"][0][0] == 10


def test_a_preempted_slice_leaves_its_job_to_the_one_that_waits() -> None:
    decides = deployed(cluster_queue("a", quotas={"default": 10}, preemption=LOWER))
    work = [
        (elastic("small", 5), 1000.0),
        (elastic("large", 12, 10, after="small"), 0.0),
        (elastic("high", 8, 100, priority=9), 100.0),
    ]
    result = history(decides, work)
    assert times(result) == {"small": [(0, 100)], "large": [], "high": [(100, 200)]}
    assert [job.finished is None for job in result.jobs] == [False, True, False]


def test_a_slice_ends_with_its_job() -> None:
    work = [
        (elastic("small", 5), 100.0),
        (elastic("large", 11, 10, after="small"), 500.0),
        (elastic("next", 11, 20), 0.0),
    ]
    small, large, _ = history(deployed(), work).jobs
    assert (large.turns, large.finished) == ([], small.finished)
    assert large.waits_for == "the elastic job of which it is a slice has ended"
    late = history(deployed(), [(elastic("small", 5), 100.0), (elastic("large", 9, 300, after="small"), 500.0)]).jobs[1]
    assert (late.turns, late.finished is None) == ([], False)


def test_a_job_that_waits_becomes_its_larger_slice_where_it_has_waited() -> None:
    work = [
        (elastic("first", 10), 100.0),
        (elastic("small", 4, 10), 1000.0),
        (elastic("other", 4, 20), 1000.0),
        (elastic("large", 8, 30, after="small"), 0.0),
    ]
    result = times(history(deployed(), work))
    assert (result["small"], result["large"]) == ([], [(101, 601)])
    assert result["other"] == [(602, 1602)], "large has waited since small came"


def test_a_slice_of_a_job_that_no_queue_takes_waits_alone() -> None:
    lost = elastic("small", 4)
    lost["spec"]["queueName"] = "none"
    result = history(deployed(), [(lost, 1000.0), (elastic("large", 8, 30, after="small"), 0.0)])
    assert times(result) == {"small": [], "large": [(30, 530)]}


def test_a_slice_takes_nobodys_place_in_another_namespace() -> None:
    decides = deployed()
    work_in(decides, running(elastic("small", 5), 5))
    item = elastic("large", 8, 1, after="small")
    item["metadata"]["namespace"] = "b"
    decides.local_queues["b", "main"] = "a"
    (entry,) = Scheduler(decides).cycle([work_in(decides, item)], 1e12)
    assert entry.status is Status.NO_CANDIDATES


def test_a_budget_counts_a_slice_once() -> None:
    limit = Budget("a", 100.0, lambda _: 1e12)
    work = [(elastic("small", 5), 7200.0), (elastic("large", 10, 3600, after="small"), 0.0)]
    (use,) = history(deployed(), work, budgets=[limit]).uses
    # Five for an hour, and ten for the half hour that is left of the second.
    assert use.hours == pytest.approx(10.0)


def test_a_budget_that_holds_work_back_knows_when_a_slice_is_over() -> None:
    limit = Budget("a", 5.0, lambda _: 1e12, "hold")
    work = [(elastic("small", 5), 7200.0), (elastic("large", 10, 4000, after="small"), 0.0)]
    small, large = history(deployed(), work, budgets=[limit]).jobs
    assert (large.turns, large.finished) == ([], small.finished)


def test_without_the_gate_a_slice_is_a_job_of_its_own() -> None:
    decides = deployed(gates={"ElasticJobsViaWorkloadSlices": False})
    work = [(elastic("small", 5), 1000), (elastic("large", 10, 200, after="small"), 300)]
    assert times(history(decides, work)) == {"small": [(0, 1000)], "large": [(1001, 1301)]}


def test_a_job_that_shrank_holds_what_its_pods_need() -> None:
    decides = deployed()
    work = work_in(decides, running(elastic("less", 3), 8))
    assert (work.counts, decides.queues["a"].usage) == ((3,), [3])


@pytest.mark.parametrize(("is_on", "held"), [(True, 2), (False, 8)])
def test_pods_that_have_done_their_part_hold_nothing(is_on: bool, held: int) -> None:
    decides = deployed(gates={"ReclaimablePods": is_on})
    item = running(elastic("job", 8), 8)
    item["status"]["reclaimablePods"] = [{"name": "main", "count": 6}]
    work = work_in(decides, item)
    assert (sum(pods.count for pods in work.pod_sets), decides.queues["a"].usage) == (held, [held])


def ended(item: Object, at: int, reason: str = "Succeeded") -> Object:
    time = f"2026-11-25T{at // 3600:02}:{at // 60 % 60:02}:{at % 60:02}Z"
    item["status"]["conditions"].append(
        {"type": "Finished", "status": "True", "reason": reason, "lastTransitionTime": time}
    )
    return item


def slices() -> list[Object]:
    """A job that grew after ten minutes, and ended after thirty."""
    return [
        ended(running(elastic("small", 5), 5), 600, "WorkloadSliceReplaced"),
        ended(running(elastic("large", 10, 590, after="small"), 10, since=600), 1800),
    ]


def test_a_trace_says_what_a_job_does_in_all_its_slices() -> None:
    trace = read_workloads(json.dumps({"items": slices()}), {"a": "red"})
    assert [(job.name, job.seconds, job.replaces) for job in trace.jobs] == [
        ("small", 600.0 + 2 * 1200.0, ""),
        ("large", 1200.0, "small"),
    ]


def test_a_trace_with_slices_of_nothing_is_read() -> None:
    own = ended(running(elastic("own", 2, after="own"), 2), 60)
    nothing = ended(running(elastic("nothing", 0), 0), 60, "WorkloadSliceReplaced")
    more = ended(running(elastic("more", 2, 60, after="nothing"), 2, since=60), 120)
    trace = read_workloads(json.dumps({"items": [own, nothing, more]}), {"a": "red"})
    assert [(job.name, job.seconds) for job in trace.jobs] == [("own", 60.0), ("nothing", 60.0), ("more", 60.0)]


def test_a_state_of_a_cluster_takes_slices_for_one_job() -> None:
    # The durations of fewer than three jobs are no history.
    others = [ended(running(elastic(f"whole-{number}", 5), 5), 1800) for number in range(2)]
    objects = [cluster_queue("a"), *slices(), *others, running(elastic("now", 2), 2, since=60)]
    objects += [running(elastic("more", 4, 600, after="now"), 4, since=1200)]
    objects[-2] = ended(objects[-2], 1200, "WorkloadSliceReplaced")
    document = {"items": [{"kind": "Workload", **item} for item in objects]}
    snapshot = read_snapshot(json.dumps(document), 60.0)
    # The jobs before ran for 30 minutes, one of them in two slices, and this one has for 19 in its first.
    assert snapshot.seconds == {"a/more": 1800.0 - 1140.0}


@pytest.mark.parametrize(("is_on", "started"), [(True, True), (False, False)])
def test_without_the_gate_nothing_is_admitted_in_part(is_on: bool, started: bool) -> None:
    decides = deployed(gates={"PartialAdmission": is_on})
    (job,) = history(decides, [(elastic("part", 12, minCount=4), 100.0)]).jobs
    assert bool(job.turns) is started


def test_slices_that_name_each_other_are_read() -> None:
    circle = [running(elastic("one", 2, after="two"), 2), running(elastic("two", 2, after="one"), 2)]
    document = {"items": [{"kind": "Workload", **item} for item in circle] + [cluster_queue("a")]}
    assert read_snapshot(json.dumps(document), 60.0).seconds == {"a/one": 60.0, "a/two": 60.0}
    decides = deployed()
    assert [job.finished for job in history(decides, [(elastic("own", 2, after="own"), 60.0)]).jobs] != [None]
