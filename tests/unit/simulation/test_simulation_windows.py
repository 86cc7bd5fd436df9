"""Windows of training plans in simulated time: which nodes are there when, what that does to work, and what is said."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from podwright.config.catalog.instance_types import environment_types
from podwright.config.settings.environment import Environment
from podwright.operations.simulation.decisions import continued, decide
from podwright.operations.simulation.drawing import pictures
from podwright.operations.simulation.page import html
from podwright.operations.simulation.policies import following_sentences, following_states, policy_of
from podwright.operations.simulation.run import simulation
from podwright.planning.jobs.plan import Planner
from podwright.planning.simulation.assumptions import Assumptions
from podwright.planning.simulation.kueue.events import NODES_GONE
from podwright.planning.simulation.plan_windows import dated_plans, plan_windows, present_nodes
from podwright.planning.simulation.planned_nodes import planned_nodes
from podwright.planning.simulation.planned_workload import planned_workload
from podwright.planning.simulation.snapshot import read_snapshot
from podwright.planning.simulation.traces.forms import read_trace
from podwright.planning.simulation.traces.trace import Trace, moved
from test_simulation_policies import environment

DAY = 86400.0
START = datetime(2027, 1, 4, tzinfo=UTC).timestamp()
GAP = START + 7 * DAY
AGAIN = START + 9 * DAY
END = START + 16 * DAY


def in_parts(**more: Any) -> Environment:
    """prod, with a plan of 16 instances, and of 8 after a gap of two days."""
    prod = environment("prod")
    windows = [
        {"start": "2027-01-04", "end": "2027-01-11", "count": 16, "zone": "usw2-az2"},
        {"start": "2027-01-13", "end": "2027-01-20", "count": 8, "zone": "usw2-az2"},
    ]
    settings = prod.training_plans["h200-q1"]
    plan = settings.model_validate(settings.model_dump(exclude_none=True) | {"windows": windows} | more)
    return prod.model_copy(update={"training_plans": {"h200-q1": plan}})


def jobs(*rows: str) -> Trace:
    return read_trace("\n".join(["team,submitted,duration,job,pods,accelerators,group", *rows]), {})


def outcome(made: Environment, trace: Trace) -> Any:
    policy = policy_of(made, environment_types(made.instance_types))
    return simulation([policy], trace, decide, Assumptions(grace_seconds=0, repeated_seconds=1800))


def test_nodes_are_there_within_windows_up_to_half_an_hour_before_they_end() -> None:
    made = in_parts()
    plans = dated_plans(made, START, END)
    counts = [present_nodes(made, plans, time) for time in (START - 1, START, GAP - 1801, GAP - 1800, AGAIN, END)]
    assert [each["h200"] for each in counts] == [0, 16, 16, 0, 8, 0]
    names = [item["metadata"]["name"] for item in planned_nodes(made, environment_types({}), counts[4])]
    assert sum(name.startswith("h200-") for name in names) == 8
    assert sum(name.startswith("burst-") for name in names) == 4, "a group without a plan has all of its nodes"


def test_groups_share_the_instances_of_a_plan_in_their_order() -> None:
    made = in_parts()
    second = made.instance_groups["h200"].model_copy(update={"count": 4})
    groups = made.instance_groups | {
        "h200": made.instance_groups["h200"].model_copy(update={"count": 12}),
        "more": second,
    }
    shared = list(plan_windows(made.model_copy(update={"instance_groups": groups})))
    assert [(each["group"], each["instances"]) for each in shared] == [("h200", 12), ("h200", 8), ("more", 4)]


def test_work_waits_for_a_window_and_is_stopped_at_its_end() -> None:
    first, long = f"research,{START - 3600:.0f},1h,first,1,8,h200", f"research,{GAP - DAY:.0f},2d,long,2,8,h200"
    result = outcome(in_parts(), jobs(first, long))
    (figures,) = result.figures
    runs = {job.name: [(run.start, run.end, run.ended) for run in job.runs] for job in figures.outcome.jobs}
    assert runs["first"] == [(START + 1, START + 3601, "finished")]
    worked = DAY - 1800
    assert runs["long"] == [
        (GAP - DAY, GAP - 1800, NODES_GONE),
        (AGAIN + 1, AGAIN + 1 + 2 * DAY - worked + 1800, "finished"),
    ]
    assert any("nodes of h200 exist in the windows" in sentence for sentence in result.assumptions)


def test_what_there_is_follows_the_windows() -> None:
    trace = jobs(f"research,{START - DAY:.0f},1h,first,1,8,h200", f"research,{AGAIN + DAY:.0f},1h,last,1,8,h200")
    (figures,) = outcome(in_parts(), trace).figures
    burst = 4 * 8
    assert [amount for _, amount in figures.outcome.accelerators()] == [burst, burst + 128, burst, burst + 64]
    days = (1, burst), (7 - 1 / 48, burst + 128), (2 + 1 / 48, burst), (1 + 1 / 24, burst + 64)
    assert sum(figures.timeline.whole) == pytest.approx(sum(length * 24 * amount for length, amount in days), rel=1e-4)
    drawn = {picture.title: picture.figure for picture in pictures(figures, list(plan_windows(in_parts())))}
    existing = drawn["Accelerators in use, by team"]["data"][-1]
    assert existing["y"] == [32, 160, 32, 96, 96]
    labels = [shape["label"]["text"] for shape in drawn["Accelerators in use, by team"]["layout"]["shapes"]]
    assert labels == ["plan h200-q1", "plan h200-q1"]


def test_the_gantt_shows_the_windows_that_it_touches() -> None:
    trace = jobs(f"research,{GAP - DAY / 2:.0f},2d,long,2,8,h200")
    (figures,) = outcome(in_parts(), trace).figures
    gantt = {each.title: each.figure for each in pictures(figures, list(plan_windows(in_parts())))}[
        "Jobs on their domains"
    ]
    assert [(shape["label"]["text"], shape["x1"]) for shape in gantt["layout"]["shapes"]] == [
        ("plan h200-q1", "2027-01-11 00:00:00")
    ]


@pytest.mark.parametrize("start", [0.0, END + DAY])
def test_a_plan_of_another_time_than_the_work_has_its_nodes_always(start: float) -> None:
    result = outcome(in_parts(), jobs(f"research,{start:.0f},1h,one,1,8,h200"))
    assert [run.ended for job in result.figures[0].outcome.jobs for run in job.runs] == ["finished"]
    assert any(
        "training plan h200-q1 has no window at the time of the jobs" in sentence for sentence in result.assumptions
    )


def test_moved_work_meets_the_windows() -> None:
    result = outcome(in_parts(), moved(jobs("research,0,1h,one,1,8,h200", "research,60,1h,two,1,8,h200"), GAP))
    assert [job.runs[0].start for job in result.figures[0].outcome.jobs] == [AGAIN + 1, AGAIN + 1]
    assert "the work is moved by 20829.0 days, to begin at 2027-01-11 00:00" in result.assumptions


def test_two_policies_show_the_windows_of_each() -> None:
    made = in_parts()
    policies = [policy_of(each, environment_types(each.instance_types)) for each in (environment("prod"), made)]
    result = simulation(policies, jobs(f"research,{START:.0f},1h,one,1,8,h200"), decide, Assumptions())
    assert [len(windows) for windows in result.windows] == [0, 2]
    assert "2027-01-13 00:00" in html(result)


def test_a_forecast_waits_for_the_next_window() -> None:
    made = in_parts()
    types = environment_types(made.instance_types)
    policy = policy_of(made, types)
    nodes = [item for item in policy.objects if item["kind"] != "Node" or item["metadata"]["name"].startswith("burst")]
    stamped = [{**item, "metadata": item["metadata"] | {"creationTimestamp": "2027-01-12T00:00:00Z"}} for item in nodes]
    snapshot = read_snapshot(json.dumps({"items": stamped}), 3600)
    planned = planned_workload(Planner(made, types).plan("fine-tune"), 60, snapshot.taken)
    result = continued(snapshot, made, planned, 3600, Assumptions())
    (run,) = result.jobs[-1].runs
    assert run.start == AGAIN + 1
    assert next(following_sentences(snapshot, made, 0.0)).startswith("nodes of h200 exist in the windows")
    assert list(following_sentences(snapshot, environment("prod"), 0.0)) == []
    states = following_states(snapshot, made, types)
    assert [sum(item["kind"] == "Node" for item in state.objects) for state in states] == [4, 12, 4]


def test_nodes_that_a_cluster_shows_stay_what_they_are_until_their_window_ends() -> None:
    made = in_parts()
    types = environment_types(made.instance_types)
    nodes = list(planned_nodes(made, types))
    for number, item in enumerate(nodes):
        item["metadata"] |= {"name": f"hyperpod-i-{number:04}", "creationTimestamp": "2027-01-05T00:00:00Z"}
    queues = [
        {**item, "metadata": item["metadata"]} for item in policy_of(made, types).objects if item["kind"] != "Node"
    ]
    snapshot = read_snapshot(json.dumps({"items": [*queues, *nodes]}), 3600)
    first, between, again, *_ = following_states(snapshot, made, types)
    assert first.objects == tuple(snapshot.objects)
    assert {item["metadata"]["name"][:5] for item in between.objects if item["kind"] == "Node"} == {"hyper"}
    assert [len([each for each in state.objects if each["kind"] == "Node"]) for state in (first, between, again)] == [
        20,
        4,
        12,
    ]
