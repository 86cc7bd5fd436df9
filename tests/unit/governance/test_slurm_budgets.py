"""Budgets on Slurm: what of them Slurm can do, what its accounts are told, and what is read of them."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from podwright.config.catalog.instance_types import catalog
from podwright.config.errors import CommandError
from podwright.config.loading.load import LoadedEnvironment, environment_from
from podwright.config.loading.source import parse_source
from podwright.operations.cli import main
from podwright.operations.environments.quotas import report
from podwright.operations.jobs.slurm_jobs import rows_of
from podwright.operations.spend import budgets_command, team_budgets
from podwright.operations.spend.team_budgets import budget_report, standings_of_slurm
from podwright.planning.monitoring.alerts import watched
from podwright.planning.node.slurm_facts import SlurmFacts, slurm_facts
from podwright.planning.quota.policy import environment_policy
from podwright.planning.rules import findings

ROOT = Path(__file__).resolve().parents[3]
AT = datetime(2027, 1, 6, 12, tzinfo=UTC)
HOLD = "accelerator_hours: 4, when_reached: hold"
MONTH = "accelerator_hours: 1000, when_reached: hold"


def loaded(**teams: str) -> LoadedEnvironment:
    """slurm-classic, whose teams have these budgets."""
    text = (ROOT / "environments/slurm-classic.yaml").read_text()
    for team, budget in teams.items():
        assert text.count(f"    {team}: {{") == 1
        text = text.replace(f"    {team}: {{", f"    {team}: {{budget: {{{budget}}}, ")
    return environment_from(parse_source(text, "slurm-classic.yaml"), "slurm-classic")


def facts(one: LoadedEnvironment) -> SlurmFacts:
    environment = one.environment
    return slurm_facts(
        settings=environment.cluster.slurm,
        groups=environment.instance_groups,
        governance=environment.governance,
        users=environment.users,
        user_groups=environment.user_groups,
        accounting=None,
        types=catalog(),
    )


@pytest.mark.parametrize(
    ("teams", "fields"),
    [
        ({"research": HOLD}, []),
        ({"research": HOLD, "product": MONTH}, []),
        ({"research": "accelerator_hours: 4"}, ["research.budget.when_reached"]),
        (
            {"research": "accelerator_hours: 4, when_reached: demote, demote_to: training"},
            ["research.budget.when_reached"],
        ),
        ({"research": f"{HOLD}, period: week"}, ["research.budget.period"]),
        (
            {"research": f"{HOLD}, period: quarter", "product": MONTH},
            ["product.budget.period", "research.budget.period"],
        ),
    ],
)
def test_what_slurm_cannot_do_is_a_finding(teams: dict[str, str], fields: list[str]) -> None:
    one = loaded(**teams)
    matches = [finding for finding in findings(one.environment, one.source) if finding.id == "GOV097"]
    assert sorted(finding.path.removeprefix("governance.teams.") for finding in matches) == fields


def test_neuron_devices_are_counted_by_nobody() -> None:
    one = loaded(research=HOLD)
    groups = dict(one.environment.instance_groups)
    groups["cpu"] = groups["cpu"].model_copy(update={"instance_type": "ml.trn1.32xlarge"})
    environment = one.environment.model_copy(update={"instance_groups": groups})
    (finding,) = (each for each in findings(environment, one.source) if each.id == "GOV097")
    assert "Slurm counts no Neuron devices, and cpu of its groups has them" in finding.message


def test_the_nodes_are_told_of_minutes_and_of_the_period() -> None:
    made = facts(loaded(research="accelerator_hours: 2.5, when_reached: hold, period: quarter"))
    assert made.budget_period == "quarter"
    assert {team.name: team.budget_minutes for team in made.teams}["research"] == 150
    without = facts(loaded())
    assert without.budget_period is None
    assert {team.budget_minutes for team in without.teams} == {None}


def test_quotas_say_what_a_budget_does() -> None:
    environment = loaded(research=MONTH).environment
    notes = report(environment, environment_policy(environment, catalog()))["notes"]
    assert any("left of its 1,000 GPU-hours a month" in note for note in notes)


def test_no_metric_and_no_alert_knows_hours_of_slurm() -> None:
    assert watched(loaded(research=HOLD).environment, catalog()).budgets == {}


SSHARE = """\
root||cpu=0,gres/gpu=120
 research_budget||cpu=9000,mem=0,gres/gpu=120
  research||cpu=5000,gres/gpu=90
   research|ada|cpu=5000,gres/gpu=90
  research_borrow||cpu=4000,gres/gpu=30
"""


class FakeSlurm:
    """Says what sshare prints, or that nobody answers."""

    says: str | None = SSHARE

    def __init__(self, *_: Any) -> None:
        pass

    def run(self, command: str) -> str:
        assert command.startswith("sshare ")
        if self.says is None:
            raise CommandError("no controller of slurm-classic is running")
        return self.says


def test_what_slurm_counts_is_what_was_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team_budgets, "Slurm", FakeSlurm)
    environment = loaded(research=HOLD).environment
    (standing,) = standings_of_slurm(environment, None, AT)  # type: ignore[arg-type]
    assert (standing.team, standing.used, standing.period.end.isoformat()) == (
        "research",
        2.0,
        "2027-02-01T00:00:00+00:00",
    )
    unseen: dict[str, str] = {}
    (row,) = budget_report(environment, None, None, AT, unseen) or []  # type: ignore[arg-type]
    assert (row["used"], row["when_reached"], unseen) == (2.0, "hold", {})
    monkeypatch.setattr(FakeSlurm, "says", None)
    assert budget_report(environment, None, None, AT, unseen) is None  # type: ignore[arg-type]
    assert unseen == {"team_budgets": "no controller of slurm-classic is running"}


def test_the_command_prints_and_applies_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = loaded(research=HOLD)
    monkeypatch.setattr(team_budgets, "Slurm", FakeSlurm)
    monkeypatch.setattr(budgets_command, "load", lambda _: one)
    monkeypatch.setattr(budgets_command, "account_for", lambda *_: None)
    assert main(["budgets", "slurm-classic"]) == 0
    assert "nothing more starts" in capsys.readouterr().out
    assert main(["budgets", "slurm-classic", "--apply"]) == 2
    assert "Slurm keeps budgets itself" in capsys.readouterr().err


def test_why_a_job_waits_for_its_budget() -> None:
    cells = ("9", "first", "research", "ann", "PENDING", "training", "1", "gres/gpu:8", "2026-11-25T11:30:00", "200")
    (row,) = rows_of("|".join([*cells, "AssocGrpGRESMinutes", "N/A"]))
    assert row["reason"] == "its time limit does not fit into what is left of its team's budget of GPU-hours"
