"""A forecast continues from a cluster's state: its snapshot, the job as Kueue would see it, and what is said of it."""

import json
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
        item("Workload", "long", {"Admitted": at(2)}),
        item("Workload", "short", {"Admitted": at(9)}, maximumExecutionTimeSeconds=7200),
        item("Workload", "waits"),
        item("Workload", "other", queueName="b"),
        item("Node", "newest", {"Ready": at(10)}),
    ]
    result = read_snapshot(json.dumps({"items": items}), 4 * H)
    assert [each["kind"] for each in result.objects] == ["ClusterQueue", "Node", "Pod", "Node"]
    assert result.seconds == {"team-a/long": 8 * H, "team-a/short": 2 * H, "team-a/waits": 3 * H, "team-a/other": 4 * H}
    assert result.taken == 1799056800.0
    assert result.assumptions[1] == "1 jobs run for 4 h, as nothing has ended in their queue"
    assert "clusterqueues" in COMMAND


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


def test_a_job_that_never_starts_is_told_why() -> None:
    assert lines(JobOutcome("job", "a", 0, 16, 0, [], None, "more than the quota")).startswith(
        "job of a does not start: more than the quota"
    )
    with pytest.raises(LookupError):
        forecast(Outcome("prod", 0, 1, OTHERS, (), {}, {}, {}), "job")
