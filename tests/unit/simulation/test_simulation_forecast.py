"""A forecast continues from a cluster's state: its snapshot, the job as Kueue would see it, and what is said of it."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from podwright.config.catalog.instance_types import environment_types
from podwright.config.errors import InvalidValue
from podwright.config.loading.project import Project
from podwright.operations.simulation.forecast_lines import assumption_lines, forecast_lines
from podwright.planning.jobs.plan import Planner
from podwright.planning.simulation.planned_workload import planned_workload
from podwright.planning.simulation.snapshot import COMMAND, read_snapshot
from podwright.planning.simulation.summary.forecast import forecast
from podwright.planning.simulation.summary.outcome import JobOutcome, Outcome, Run, Stop
from screens import text_of

ROOT = Path(__file__).resolve().parents[3]
H = 3600.0


def item(kind: str, name: str, conditions: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    status = [{"type": key, "status": "True", "lastTransitionTime": time} for key, time in (conditions or {}).items()]
    metadata = {"name": name, "namespace": "team-a", "creationTimestamp": "2027-01-04T00:00:00Z"}
    return {"kind": kind, "metadata": metadata, "spec": {"queueName": "a"} | spec, "status": {"conditions": status}}


def at(hour: int) -> str:
    return f"2027-01-04T{hour:02}:00:00Z"


def test_a_snapshot_is_the_state_of_a_cluster() -> None:
    items = [
        item("ClusterQueue", "a"),
        item("Node", "n"),
        item("Pod", "p"),
        item("Service", "s"),
        item("Workload", "ended", {"Admitted": at(1), "Finished": at(4)}),
        item("Workload", "longer", {"Admitted": at(0), "Finished": at(9)}),
        item("Workload", "longest", {"Admitted": at(0), "Finished": at(10)}),
        item("Workload", "long", {"Admitted": at(2)}),
        item("Workload", "forever", {"Admitted": at(0)}, queueName="b"),
        item("Workload", "short", {"Admitted": at(9)}, maximumExecutionTimeSeconds=7200),
        item("Workload", "waits"),
        item("Workload", "other", queueName="b"),
        item("Node", "newest", {"Ready": at(10)}),
    ]
    result = read_snapshot(json.dumps({"items": items}), 4 * H)
    assert [each["kind"] for each in result.objects] == ["ClusterQueue", "Node", "Pod", "Node"]
    # One that has run for eight hours is none of those that ended after three.
    assert result.seconds["team-a/long"] == 9.5 * H
    # Longer than four hours, the duration of work without history.
    assert (result.seconds["team-a/forever"], result.open_ended) == (math.inf, ("team-a/forever",))
    assert (result.seconds["team-a/short"], result.seconds["team-a/waits"]) == (2 * H, 9 * H)
    assert result.seconds["team-a/other"] == 4 * H
    assert result.taken == 1799056800.0
    assert result.first_end == 1 * H
    assert result.assumptions[0].startswith("3 jobs run as long as the median of jobs that ended in")
    assert result.assumptions[1] == "1 jobs run for 4 h, as fewer than 3 have ended in their queue"
    assert result.assumptions[2].startswith("1 jobs have run longer than everything that ended in their queue")
    assert result.assuming_end_in(2 * H).seconds["team-a/forever"] == 12 * H
    assert "clusterqueues" in COMMAND


def test_a_job_that_crashed_is_no_history() -> None:
    """It says nothing about the jobs that run: they are not about to end."""
    items = [
        item("ClusterQueue", "a"),
        item("Workload", "crashed", {"Admitted": at(1), "Finished": "2027-01-04T01:00:20Z"}),
        item("Workload", "runs", {"Admitted": at(3)}),
        item("Node", "newest", {"Ready": at(4)}),
    ]
    result = read_snapshot(json.dumps({"items": items}), 4 * H)
    assert (result.seconds, result.first_end) == ({"team-a/runs": 4 * H}, 3 * H)
    assert result.assumptions == ("1 jobs run for 4 h, as fewer than 3 have ended in their queue",)


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"items": [1]}', '{"items": []}', '{"items": [{"kind": "ClusterQueue", "metadata": {}}]}']
)
def test_what_is_no_snapshot_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        read_snapshot(text, 60)


def test_a_job_of_the_file_is_the_workload_that_it_would_be() -> None:
    environment = Project.at(ROOT).load("prod").environment
    plan = Planner(environment, environment_types(environment.instance_types)).plan("fine-tune")
    made = planned_workload(plan, 60, 1.8e9)
    assert made["metadata"]["namespace"] == plan.placement.namespace
    assert (made["spec"]["queueName"], made["spec"]["priority"]) == ("hyperpod-ns-product-localqueue", 60)
    assert made["spec"]["priorityClassRef"]["name"] == "fine-tuning-priority"
    (pods,) = made["spec"]["podSets"]
    assert pods["count"] == 2
    assert pods["template"]["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] == "8"
    assert pods["topologyRequest"] == {"preferred": "topology.k8s.aws/network-node-layer-3"}


OTHERS = [JobOutcome("victim", "b", 0, 8)]
STOPS = (Stop(2 * H, "victim", "b", "job", "a", "InCohortReclamation"),)


def lines(job: JobOutcome) -> str:
    whole = Outcome("prod", 0, 100 * H, [*OTHERS, job], STOPS, {}, {"h200": 16}, {})
    return text_of([*forecast_lines(forecast(whole, "job")), *assumption_lines(["no node fails"])])


def test_a_forecast_says_when_where_and_whom() -> None:
    run = Run(2 * H, 5 * H, "h200", 16, (("n1", 1), ("n2", 2)), "finished")
    shown = lines(JobOutcome("job", "a", 0, 16, 0, [run], 5 * H, "couldn't fit"))
    assert "job of a starts in 2.0 h on h200, and ends in 5.0 h" in shown
    assert "Until then: couldn't fit" in shown
    assert "n2  2 pods" in shown
    assert "It stops victim of b (InCohortReclamation)" in shown
    assert "no node fails" in shown


def test_a_job_that_waits_for_an_unknown_end_has_no_time() -> None:
    job = JobOutcome("job", "a", 0, 16, 0, [], None, "too few nodes")
    waits = forecast(Outcome("prod", 0, 9, [job], (), {}, {}, {}), "job")
    few = waits._replace(unknown_ends=("team-b/0",))
    text = " ".join(text_of(forecast_lines(few)).split())
    assert text.startswith("job of a starts at an unknown time: nothing says when team-b/0 ends, since it has run")
    assert text.endswith("Until then: too few nodes")
    assert few.document()["unknown_ends"] == ("team-b/0",)
    many = waits._replace(unknown_ends=tuple(f"team-b/{number}" for number in range(8)))
    assert "team-b/4 or 3 more ends, since" in " ".join(text_of(forecast_lines(many)).split())


def test_a_job_that_never_starts_is_told_why() -> None:
    assert lines(JobOutcome("job", "a", 0, 16, 0, [], None, "more than the quota")).startswith(
        "job of a does not start: more than the quota"
    )
    with pytest.raises(LookupError):
        forecast(Outcome("prod", 0, 1, OTHERS, (), {}, {}, {}), "job")
