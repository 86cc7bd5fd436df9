"""Budgets of accelerator-hours over time: when one is reached, what it does to work then, and when it begins anew."""

import math
from typing import Any

import pytest

from kueue_objects import Object, cluster_queue, flavor, local_queue, workload
from podwright.planning.simulation.kueue.admitted import work_in
from podwright.planning.simulation.kueue.budgets import Budget
from podwright.planning.simulation.kueue.events import simulate
from podwright.planning.simulation.kueue.history import History, Job
from podwright.planning.simulation.kueue.policy import policy
from test_kueue_time import AT_ONCE, random_work, times

BEGIN = 1795564800
"""When `workload` has its first work come."""
HOUR, DAY = 3600.0, 86400.0
Work = list[tuple[Object, float]]


def played(budget: dict[str, Any], work: Work, queues: list[Object] | None = None) -> History:
    """The history of work, with a budget of team a that begins anew each day."""
    objects = queues or [cluster_queue("a"), local_queue("a")]
    decides = policy([*objects, flavor("default")])
    jobs = [Job(work_in(decides, item), seconds) for item, seconds in work]
    limit = Budget("a", ends=lambda time: BEGIN + DAY * (1 + (time - BEGIN) // DAY), start=BEGIN, **budget)
    return simulate(decides, jobs, AT_ONCE, budgets=[limit])


def test_a_budget_counts_what_is_held_by_period() -> None:
    result = played({"hours": 100.0}, [(workload("one", "a", 4), 30 * HOUR)])
    assert [(use.end - BEGIN, use.hours) for use in result.uses] == [(DAY, 96.0), (2 * DAY, 24.0)]
    assert [use.reached for use in result.uses] == [None, None]
    assert times(result) == {"one": [(0, 30 * HOUR)]}


def test_a_budget_that_warns_changes_nothing() -> None:
    result = played({"hours": 16.0}, [(workload(name, "a", 8), 2 * HOUR) for name in ("one", "two")])
    assert times(result) == {"one": [(0, 7200)], "two": [(7201, 14401)]}
    (use,) = result.uses
    assert (use.reached, round(use.hours, 2)) == (BEGIN + 2 * HOUR, 32.0)


def test_held_work_waits_for_the_next_period_and_what_runs_keeps_running() -> None:
    work = [(workload("runs", "a", 4), 3 * HOUR), (workload("late", "a", 4, 9000), HOUR)]
    result = played({"hours": 8.0, "when_reached": "hold"}, work)
    assert times(result) == {"runs": [(0, 3 * HOUR)], "late": [(DAY, DAY + HOUR)]}
    assert [(use.reached, use.hours) for use in result.uses] == [(BEGIN + 2 * HOUR, 12.0), (None, 4.0)]


def test_what_is_parked_when_it_is_reached_is_held_as_well() -> None:
    work = [(workload("runs", "a", 8), 2 * HOUR), (workload("parked", "a", 8, 60), HOUR)]
    assert times(played({"hours": 8.0, "when_reached": "hold"}, work))["parked"] == [(DAY, DAY + HOUR)]


def test_hold_says_for_what_work_waits() -> None:
    work = [(workload("runs", "a", 8), 2 * HOUR), (workload("never", "a", 8, 60), HOUR)]
    result = played({"hours": 8.0, "when_reached": "hold"}, work, [cluster_queue("a"), local_queue("a")])
    assert all(job.waits_for == "" for job in result.jobs)
    decides = policy([cluster_queue("a"), local_queue("a"), flavor("default")])
    jobs = [Job(work_in(decides, item), seconds) for item, seconds in work]
    limit = Budget("a", 8.0, lambda _: math.inf, "hold", start=BEGIN)
    _, never = simulate(decides, jobs, AT_ONCE, budgets=[limit]).jobs
    assert never.waits_for == "the team's budget of 8 accelerator-hours is used; it waits until the period ends"


def test_hours_before_the_beginning_count() -> None:
    work = [(workload("one", "a", 8), HOUR), (workload("two", "a", 8, 60), HOUR)]
    result = played({"hours": 20.0, "used": 14.0, "when_reached": "hold"}, work)
    assert times(result) == {"one": [(0, HOUR)], "two": [(DAY, DAY + HOUR)]}
    assert result.uses[0].reached == BEGIN + 0.75 * HOUR
    used = played({"hours": 20.0, "used": 20.0, "when_reached": "hold"}, work[:1])
    assert times(used) == {"one": [(DAY, DAY + HOUR)]}, "what is used up admits nothing"


def shared() -> list[Object]:
    """Two teams without quota, which borrow what is nobody's by the priority of their work."""
    preemption = {"withinClusterQueue": "LowerPriority"}
    cohort = {"kind": "Cohort", "metadata": {"name": "all"}, "spec": cluster_queue("x", quotas={"default": 8})["spec"]}
    cohort["spec"] = {"resourceGroups": cohort["spec"]["resourceGroups"]}
    queues = [cluster_queue(name, "all", {"default": 0}, preemption=preemption) for name in ("a", "b")]
    return [cohort, *queues, local_queue("a"), local_queue("b")]


def test_demoted_work_comes_after_that_of_others_until_the_period_ends() -> None:
    work = [
        (workload("first", "a", 8, priority=100), 2 * HOUR),
        (workload("mine", "a", 8, 60, priority=100), HOUR),
        (workload("theirs", "b", 8, 120, priority=50), HOUR),
        (workload("again", "a", 8, 30, priority=100), HOUR),
    ]
    equal = times(played({"hours": 1000.0, "when_reached": "demote", "priority": 10}, work, shared()))
    assert [equal[name][0][0] // HOUR for name in ("again", "mine", "theirs")] == [2, 3, 4]
    result = played({"hours": 8.0, "when_reached": "demote", "priority": 10}, work, shared())
    assert [times(result)[name][0][0] // HOUR for name in ("theirs", "again", "mine")] == [2, 3, 4]
    assert result.uses[0].reached == BEGIN + HOUR
    late = [*work[:1], (workload("late", "a", 8, 7000, priority=100), HOUR), *work[2:3]]
    submitted = times(played({"hours": 8.0, "when_reached": "demote", "priority": 10}, late, shared()))
    assert submitted["theirs"] < submitted["late"], "work that comes later is demoted as it comes"


def test_running_work_that_is_demoted_gives_way_to_its_teams_own() -> None:
    """Work of the class that is demoted to stops nobody; work of another one between the two does."""
    queues = [cluster_queue("a", preemption={"withinClusterQueue": "LowerPriority"}), local_queue("a")]
    work = [(workload("runs", "a", 8, priority=100), 30 * HOUR)]
    budget = {"hours": 8.0, "when_reached": "demote", "priority": 40}
    low = played(budget, [*work, (workload("low", "a", 8, 60, priority=40), HOUR)], queues)
    assert times(low)["runs"] == [(0, 30 * HOUR)]
    assert low.jobs[0].work.priority == 100, "it has its own again in the next period"
    # What comes later is demoted, too.
    later = played(budget, [*work, (workload("late", "a", 4, 2 * 3600, priority=60), HOUR)], queues)
    assert later.preemptions == []


def test_a_class_of_higher_priority_is_not_raised() -> None:
    work = [(workload("runs", "a", 8, priority=5), 2 * HOUR)]
    result = played({"hours": 8.0, "when_reached": "demote", "priority": 40}, work)
    assert result.jobs[0].work.priority == 5


def test_work_without_an_end_ends_the_simulation() -> None:
    result = played({"hours": 8.0, "when_reached": "demote"}, [(workload("one", "a", 8), math.inf)])
    assert result.end < BEGIN + DAY
    high = [(workload("one", "a", 8, priority=9), math.inf)]
    assert played({"hours": 8.0, "when_reached": "demote"}, high).end == BEGIN + DAY + 1
    unfit = [(workload("one", "a", 4), HOUR), (workload("large", "a", 16), HOUR)]
    assert played({"hours": 8.0}, unfit).end == BEGIN + HOUR + 1


@pytest.mark.parametrize("when_reached", ["demote", "hold"])
@pytest.mark.parametrize("seed", range(40))
def test_all_that_fits_ends_whatever_a_budget_does(seed: int, when_reached: str) -> None:
    queues, work = random_work(seed)
    free = simulated(queues, work, [])
    names = [item["metadata"]["name"] for item in queues if item["kind"] == "ClusterQueue"]
    ends = [Budget(name, 0.5, lambda time: time + 1000.0, when_reached, -5, BEGIN) for name in names]  # type: ignore[arg-type]
    result = simulated(queues, work, ends)
    ended = {job.work.name for job in free.jobs if job.finished is not None}
    assert {job.work.name for job in result.jobs if job.finished is not None} == ended
    held = sum(
        (turn.end - turn.start) * count * pods.requests["nvidia.com/gpu"] / 3600
        for job in result.jobs
        for turn in job.turns
        for pods, count in zip(job.work.pod_sets, turn.counts, strict=True)
        if turn.end is not None
    )
    assert math.isclose(sum(use.hours for use in result.uses), held), "every hour is counted once"


def simulated(queues: list[Object], work: Work, budgets: list[Budget]) -> History:
    decides = policy(queues)
    return simulate(decides, [Job(work_in(decides, item), seconds) for item, seconds in work], AT_ONCE, budgets=budgets)
