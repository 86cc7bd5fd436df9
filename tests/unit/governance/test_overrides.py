"""Quotas that are others for a time: what is in force when, and what a simulation makes of it."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from podwright.config.catalog.instance_types import environment_types
from podwright.config.loading.project import Project
from podwright.config.settings.environment import Environment
from podwright.config.settings.governance.teams import Governance
from podwright.operations.cdk.app import environment_context
from podwright.operations.pipeline.synth import context
from podwright.operations.simulation.decisions import decide
from podwright.operations.simulation.policies import policy_of
from podwright.operations.simulation.run import simulation
from podwright.planning.delivery.deployed_environment import deployed_environment
from podwright.planning.delivery.pipeline_steps import override_schedules
from podwright.planning.quota.overrides import in_force, override_moments, with_overrides
from podwright.planning.quota.policy import environment_policy
from podwright.planning.simulation.assumptions import Assumptions
from podwright.planning.simulation.traces.forms import read_trace

ROOT = Path(__file__).resolve().parents[3]
BEGIN, END = datetime(2027, 1, 4, 8, tzinfo=UTC), datetime(2027, 1, 5, 8, tzinfo=UTC)
PAPER: dict[str, Any] = {
    "begin": "2027-01-04T08:00Z",
    "end": "2027-01-05T08:00Z",
    "teams": {
        "research": {"quota": {"h200": 4}, "share": "dont_lend"},
        "product": {"quota": {"h200": 12}, "borrow_limit_percent": 10, "weight": 3},
    },
}


def overridden(**overrides: dict[str, Any]) -> Environment:
    prod = Project.at(ROOT).load("prod").environment
    data = prod.governance.model_dump(exclude_unset=True) | {"overrides": overrides or {"paper": PAPER}}
    return prod.model_copy(update={"governance": Governance.model_validate(data)})


def test_an_override_is_in_force_from_its_begin_until_before_its_end() -> None:
    overrides = overridden().governance.overrides
    second = timedelta(seconds=1)
    moments = (BEGIN - second, BEGIN, END - second, END)
    assert [in_force(overrides, date) for date in moments] == [[], ["paper"], ["paper"], []]
    assert override_moments(overridden()) == [BEGIN, END]


def test_it_changes_what_it_names_and_nothing_else() -> None:
    made = overridden()
    assert with_overrides(made, BEGIN - timedelta(1)) is made
    assert with_overrides(made, None) is made
    before, during = made.governance.teams, with_overrides(made, BEGIN).governance.teams
    assert {key: amount.instances for key, amount in during["research"].quota.items()} == {"h200": 4, "burst": 0}
    assert (during["research"].share, during["research"].weight) == ("dont_lend", 60)
    assert (during["product"].borrow_limit_percent, during["product"].weight) == (10, 3)
    assert during["product"].share == before["product"].share
    assert during["research"].access == before["research"].access
    assert before["research"].quota["h200"].instances == 10, "the file stays as it is"


def test_overrides_of_other_things_add_up() -> None:
    more = {"begin": "2027-01-04", "end": "2027-02-01", "teams": {"research": {"weight": 5}}}
    during = with_overrides(overridden(paper=PAPER, more=more), BEGIN).governance.teams["research"]
    assert (during.quota["h200"].instances, during.weight) == (4, 5)


def test_the_context_of_a_synthesis_has_the_last_date_on_which_quotas_changed() -> None:
    dated = overridden(paper=PAPER)

    def context_at(at: datetime) -> str | None:
        return environment_context(ROOT, "prod", dated, at).get("at")

    assert context_at(BEGIN - timedelta(seconds=1)) is None
    assert {context_at(BEGIN), context_at(END - timedelta(seconds=1))} == {BEGIN.isoformat()}
    assert {context_at(END), context_at(END + timedelta(days=900))} == {END.isoformat()}
    for at in (BEGIN - timedelta(hours=1), BEGIN, BEGIN + timedelta(hours=5), END, END + timedelta(days=3)):
        rounded = deployed_environment(dated, None, context_at(at))
        assert rounded == with_overrides(dated, at), "the rounded date has the quotas of the moment"


def test_a_synthesis_of_the_whole_project_is_told_the_time() -> None:
    actual = datetime.fromisoformat(context(Project.at(ROOT))["at"])
    # The text has minutes, and a busy machine may stop this test for as long as it likes.
    assert actual <= datetime.now(UTC)


def test_a_promotion_begins_a_minute_after_seconds_that_are_left() -> None:
    made = overridden(paper=PAPER | {"end": "2027-01-05T08:00:30Z"})
    assert override_schedules([made, made]) == ["cron(0 8 4 1 ? *)", "cron(1 8 5 1 ? *)"]
    assert override_schedules([Project.at(ROOT).load("prod").environment]) == []


@pytest.mark.parametrize("engine", ["hyperpod", "kueue"])
def test_work_gets_what_is_in_force_when_it_comes(engine: str) -> None:
    """research has 10 of 16 nodes, and 4 for a day; it may borrow, and product always takes back its own."""
    prod = overridden()
    settings = prod.governance.model_copy(update={"engine": engine})
    made = prod.model_copy(update={"governance": settings})
    start = BEGIN.timestamp()
    rows = [f"{team},{start + at:.0f},20h,{team}-{at},{pods},8,h200" for team, at, pods in (
        ("research", -7200, 10), ("product", 600, 12), ("research", 90000, 10), ("product", 90060, 12))]  # fmt: skip
    text = "\n".join(["team,submitted,duration,job,pods,accelerators,group", *rows])
    policy = policy_of(made, environment_types(made.instance_types))
    result = simulation([policy], read_trace(text, {}), decide, Assumptions(grace_seconds=0))
    outcome = result.figures[0].outcome
    runs = {job.name: [run.ended for run in job.runs] for job in outcome.jobs}
    # Above its quota since the override began, research gives back; a day later it is guaranteed its own again.
    assert runs["research--7200"][0] == "InCohortReclamation"
    assert runs["product-600"] == ["finished"]
    assert [(stop.victim, stop.time) for stop in outcome.stops][:1] == [("research--7200", start + 600)]
    assert "override paper is deployed from 2027-01-04 08:00 to 2027-01-05 08:00" in result.assumptions
    quotas = environment_policy(with_overrides(made, BEGIN), environment_types(made.instance_types))
    assert sum(outcome.later[0].quotas["product"].values()) == 12 * 8
    assert {name: team.weight for name, team in quotas.teams.items()} == {"product": 3, "research": 60}


def test_work_of_another_time_meets_no_override() -> None:
    made = overridden()
    policy = policy_of(made, environment_types(made.instance_types))
    result = simulation([policy], read_trace("team,submitted,duration\nresearch,0,60\n", {}), decide, Assumptions())
    assert any("override paper does not apply at the time" in sentence for sentence in result.assumptions)
