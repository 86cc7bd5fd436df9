"""Decisions about environments of ours: the story that a real Kueue plays, and a forecast from a cluster's state."""

import json
from pathlib import Path
from typing import Any

import pytest

from kueue_objects import GPU, cluster_queue, flavor, local_queue, node, workload
from podwright.config.catalog.instance_types import environment_types
from podwright.config.errors import CommandError
from podwright.config.loading.project import Project
from podwright.config.settings.governance.teams import Governance
from podwright.operations.simulation.decisions import continued, decide, forecast_from, remaining
from podwright.operations.simulation.document import document
from podwright.operations.simulation.policies import following_sentences, policy_of
from podwright.operations.simulation.run import Submission, simulation
from podwright.operations.simulation.summary import print_summary
from podwright.planning.jobs.plan import Planner
from podwright.planning.simulation.assumptions import Assumptions
from podwright.planning.simulation.planned_workload import planned_workload
from podwright.planning.simulation.snapshot import Snapshot, read_snapshot
from podwright.planning.simulation.summary.forecast import forecast
from podwright.planning.simulation.traces.forms import read_trace

ROOT = Path(__file__).resolve().parents[3]
BEGIN = 1_800_000_000.0
TWO_TEAMS = Project.at(ROOT).load("two-teams").environment


def test_two_teams_play_as_on_a_real_kueue() -> None:
    """docs/scenarios/two-teams.md, whose tables tests/stories reads from a real API server."""
    environment = TWO_TEAMS
    types = environment_types(environment.instance_types)
    planner = Planner(environment, types)
    work = []
    for number, name in enumerate(("train-a", "train-b", "experiment-b")):
        plan = planner.plan(name)
        priority = environment.governance.priorities[plan.job.priority or ""]
        item = planned_workload(plan, priority, BEGIN + 600 * number)
        item["metadata"]["uid"] = name
        work.append(Submission(item, plan.job.team or "", 3600.0))
    outcome = decide(policy_of(environment, types), work, Assumptions(grace_seconds=30.0))
    stops = [(stop.time - BEGIN, stop.victim, stop.preemptor, stop.reason) for stop in outcome.stops]
    assert stops[:2] == [
        (600.0, "train-a", "train-b", "InCohortReclamation"),
        (1200.0, "train-b", "experiment-b", "InClusterQueue"),
    ]
    jobs = {job.name: job for job in outcome.jobs}
    assert jobs["train-a"].runs[0].accelerators == 8, "it borrows the node of team B"
    assert [(run.start - BEGIN, run.accelerators) for run in jobs["experiment-b"].runs] == [(1230.0, 8)]
    assert jobs["train-a"].runs[1].start >= (jobs["experiment-b"].finished or 0.0), "it waits, and nobody stops again"


@pytest.mark.parametrize("name", Project.at(ROOT).names)
def test_every_job_of_a_file_starts_on_a_cluster_where_nothing_runs(name: str) -> None:
    """Quota, flavors and nodes of the file have all that its jobs request, whatever Kueue does not count."""
    environment = Project.at(ROOT).load(name).environment
    types = environment_types(environment.instance_types)
    jobs = [key for key, job in environment.jobs.items() if getattr(job, "team", None)]
    if (
        environment.governance.engine not in ("hyperpod", "kueue")
        or environment.cluster.orchestrator != "eks"
        or not jobs
    ):
        return
    objects = policy_of(environment, types).objects
    state = Snapshot(BEGIN, objects, (), {}, ())
    for key in jobs:
        plan = Planner(environment, types).plan(key)
        result = forecast(
            continued(state, environment, planned_workload(plan, 0, BEGIN), 60.0, Assumptions()), plan.name
        )
        assert result.starts_in == 0.0, f"{key}: {result.waits_for}"
        assert result.team == plan.job.team


def snapshot(*items: dict[str, Any]) -> str:
    objects = [flavor("default"), cluster_queue("a"), local_queue("a"), node("n1")]
    running = workload("running", "a", 6)
    running["status"] = {
        "conditions": [
            {"type": kind, "status": "True", "lastTransitionTime": "2026-11-25T00:00:00Z"}
            for kind in ("QuotaReserved", "Admitted")
        ],
        "admission": {
            "clusterQueue": "a",
            "podSetAssignments": [
                {"name": "main", "flavors": {GPU: "default"}, "resourceUsage": {GPU: "6"}, "count": 1}
            ],
        },
    }
    every = [*objects, *({"kind": "Workload", **item} for item in (running, *items))]
    return json.dumps({"items": every})


@pytest.mark.parametrize(
    ("gpus", "starts_in", "waits_for"), [(2, 0.0, ""), (4, 3541.0, ""), (9, None, "9 asked for, 8 at most")]
)
def test_a_forecast_continues_from_what_runs_and_waits(gpus: int, starts_in: float | None, waits_for: str) -> None:
    before = workload("waits", "a", 7, 30)
    state = read_snapshot(snapshot(before, workload("newest", "a", 1, 60, priority=-1)), 3600.0)
    result = forecast(
        continued(state, TWO_TEAMS, workload("mine", "a", gpus, 60, priority=1), 600.0, Assumptions()), "mine"
    )
    assert result.starts_in == starts_in
    assert waits_for in result.waits_for


@pytest.mark.parametrize(("gpus", "ends"), [(2, ()), (4, ("a/running",)), (9, ())])
def test_work_that_has_run_for_too_long_ends_at_an_unknown_time(gpus: int, ends: tuple[str, ...]) -> None:
    """A job that waits for it has no start. One that needs less starts at once, and one that is too large never."""
    # Switched off, and newer than everything else: it says only when the snapshot was taken.
    state = read_snapshot(snapshot(workload("newest", "a", 1, 7200, active=False)), 3600.0)
    assert state.open_ended == ("a/running",)
    mine = workload("mine", "a", gpus, 60, priority=1)
    result = forecast_from(state, "mine", lambda now: continued(now, TWO_TEAMS, mine, 600.0, Assumptions()))
    assert (result.starts_in == 0.0) == (gpus == 2)
    assert result.unknown_ends == ends


@pytest.mark.parametrize(
    ("more", "starts_in"),
    [
        ({"spec": {"active": False}}, 0.0),
        ({"status": {"requeueState": {"count": 1, "requeueAt": "2026-11-25T00:10:00Z"}}}, 0.0),
        ({"status": {"requeueState": {"count": 1, "requeueAt": "2026-11-25T00:00:30Z"}}}, 3541.0),
    ],
)
def test_work_that_is_switched_off_or_sent_back_for_a_time_stands_before_nobody(
    more: dict[str, dict[str, Any]], starts_in: float
) -> None:
    """It would take what is free; sent back until after the snapshot, it comes too late for that."""
    before = workload("before", "a", 2, 30, priority=5)
    before = {**before, **more, "spec": before["spec"] | more.get("spec", {})}
    state = read_snapshot(snapshot(before, workload("newest", "a", 8, 60, priority=-1)), 3600.0)
    outcome = continued(state, TWO_TEAMS, workload("mine", "a", 2, 60, priority=1), 4000.0, Assumptions())
    assert forecast(outcome, "mine").starts_in == starts_in
    if "spec" not in more:
        own = remaining(state, TWO_TEAMS, "a/before", Assumptions())
        assert forecast(own, "before").starts_in == (0.0 if starts_in else 540.0)


def test_a_forecast_names_what_it_takes_for_true_of_admission_checks() -> None:
    state = read_snapshot(snapshot(), 60.0)
    checked = cluster_queue("a", admissionChecksStrategy={"admissionChecks": [{"name": "nodes"}]})
    assert not any("checks" in sentence for sentence in following_sentences(state, TWO_TEAMS, 90.0))
    (sentence,) = following_sentences(state._replace(objects=(checked,)), TWO_TEAMS, 90.0)
    assert sentence == "admission checks are ready 90 s after a job has quota, which no policy says"


def test_a_policy_that_kueue_refuses_is_refused_with_its_reason() -> None:
    state = read_snapshot(snapshot(), 60.0)
    queue = cluster_queue("a", quotas={"default": (8, 4)})
    others = tuple(item for item in state.objects if item["kind"] != "ClusterQueue")
    with pytest.raises(CommandError, match="borrowingLimit and no cohort, which Kueue refuses"):
        continued(state._replace(objects=(queue, *others)), TWO_TEAMS, workload("mine", "a", 1), 60.0, Assumptions())


def test_jobs_whose_pods_are_never_ready_in_time_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    """The file's own time limit and tries, through Kueue's configuration; the row's start-up."""
    prod = Project.at(ROOT).load("prod").environment
    data = prod.governance.model_dump(exclude_unset=True)
    data |= {"engine": "kueue", "wait_for_pods": {"timeout_seconds": 600, "backoff_base_seconds": 60, "tries": 2}}
    made = prod.model_copy(update={"governance": Governance.model_validate(data)})
    rows = ["team,submitted,duration,accelerators,startup", "research,0,1h,8,5m", "research,0,1h,8,11m"]
    trace = read_trace("\n".join([*rows, "research,0,1h,8,-1m", "research,0,1h,8,"]), 1)
    assert [(problem.line, problem.kind) for problem in trace.problems] == [(4, "unreadable")]
    chosen = policy_of(made, environment_types(made.instance_types))
    shown = document(simulation([chosen], trace, decide, Assumptions()))
    (late,) = shown["policies"][0]["never_finished"]
    assert late["job"].endswith("row-3")
    assert "not ready within 600 s 3 times" in late["why"]
    print_summary(shown)
    assert "Started and never finished under prod: 1 jobs" in capsys.readouterr().out
