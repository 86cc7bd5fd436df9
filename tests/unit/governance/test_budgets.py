"""Budgets of accelerator-hours: periods, what is used, what keeps them, and what simulations and commands say."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from needs import require
from podwright.config.catalog.instance_types import environment_types
from podwright.config.errors import CommandError
from podwright.config.loading.project import Project
from podwright.config.settings.environment import Environment
from podwright.config.settings.governance.teams import Governance, TeamBudget
from podwright.operations.aws.account import Account
from podwright.operations.cli import main
from podwright.operations.output.console import write_line
from podwright.operations.programs.prometheus import Prometheus, history, installed
from podwright.operations.simulation.decisions import decide
from podwright.operations.simulation.document import document
from podwright.operations.simulation.page import html
from podwright.operations.simulation.policies import policy_of
from podwright.operations.simulation.run import simulation
from podwright.operations.simulation.summary import print_summary
from podwright.operations.spend import budgets_command
from podwright.operations.spend.kept_budgets import patched
from podwright.operations.spend.team_budgets import budget_blocks, budget_report, standings
from podwright.planning.quota.budgets import BEFORE_BUDGET, BUDGET_ANNOTATION, Standing, noted, period_at
from podwright.planning.simulation.assumptions import Assumptions
from podwright.planning.simulation.snapshot import Snapshot
from podwright.planning.simulation.team_budgets import before_budgets, following_budget_sentences, following_budgets
from podwright.planning.simulation.traces.forms import read_trace

ROOT = Path(__file__).resolve().parents[3]
AT = datetime(2027, 1, 6, 12, tzinfo=UTC)
DAY = 86400
ACCOUNT = Account("111122223333", "us-west-2", None, {})


def budget(**settings: Any) -> TeamBudget:
    return TeamBudget.model_validate({"accelerator_hours": 100} | settings)


def environment(engine: str = "kueue", **settings: Any) -> Environment:
    """prod, whose research has a budget."""
    prod = Project.at(ROOT).load("prod").environment
    data = prod.governance.model_dump(exclude_unset=True) | {"engine": engine}
    data["priorities"] = {"training": 50, "idle": 0}
    data["teams"]["research"]["budget"] = {"accelerator_hours": 100} | settings
    return prod.model_copy(update={"governance": Governance.model_validate(data)})


@pytest.mark.parametrize(
    ("period", "at", "start", "end"),
    [
        ("month", "2027-12-31T23:59", "2027-12-01", "2028-01-01"),
        ("month", "2028-02-29T00:00", "2028-02-01", "2028-03-01"),
        ("quarter", "2027-03-31T12:00", "2027-01-01", "2027-04-01"),
        ("quarter", "2027-10-01T00:00", "2027-10-01", "2028-01-01"),
        ("week", "2027-01-03T23:59", "2026-12-28", "2027-01-04"),
        ("week", "2027-01-04T00:00", "2027-01-04", "2027-01-11"),
    ],
)
def test_periods_are_those_of_the_calendar(period: str, at: str, start: str, end: str) -> None:
    result = period_at(budget(period=period), datetime.fromisoformat(f"{at}+00:00"))
    assert tuple(f"{date:%Y-%m-%d}" for date in result) == (start, end)


@pytest.mark.parametrize(("used", "state"), [(79.9, "within"), (80, "near"), (99.9, "near"), (100, "reached")])
def test_the_state_of_a_budget(used: float, state: str) -> None:
    weekly = budget(period="week")
    result = Standing("research", weekly, period_at(weekly, AT), AT, used)
    assert result.state == state
    # Two and a half of seven days have passed.
    assert result.forecast == pytest.approx(used * 7 / 2.5)


@pytest.fixture(scope="module")
def server() -> Iterator[Prometheus]:
    """Two minutes of each hour's use of four days: research holds eight accelerators, product four."""
    require(installed(), "prometheus and promtool: Debian's package prometheus")
    text = ["# TYPE team:used:sum gauge"]
    # In December already, which is another period of every kind.
    start = int(datetime(2026, 12, 31, 12, tzinfo=UTC).timestamp())
    for team, amount in (("research", 8), ("product", 4)):
        labels = f'{{cluster_name="training-prod",team="{team}",flavor="h200",resource="nvidia.com/gpu"}}'
        text += [f"team:used:sum{labels} {amount} {time}" for time in range(start + 60, int(AT.timestamp()) + 1, 60)]
    with history("\n".join([*text, "# EOF", ""])) as prometheus:
        yield prometheus


@pytest.mark.parametrize(("period", "hours"), [("month", 132), ("week", 60), ("quarter", 132)])
def test_hours_are_counted_since_the_period_began(server: Prometheus, period: str, hours: int) -> None:
    made = environment(period=period)
    made = made.model_copy(update={"cluster": made.cluster.model_copy(update={"name": "training-prod"})})
    (result,) = standings(made, server, AT)
    assert result.used == pytest.approx(8 * hours, rel=0.01)
    (row,) = budget_report(made, ACCOUNT, server, AT, {}) or []
    assert row["state"] == "reached"
    assert budget_report(environment().model_copy(update={"governance": Governance()}), ACCOUNT, server, AT, {}) is None


def test_the_table_says_what_is_used_and_what_happens(capsys: pytest.CaptureFixture[str]) -> None:
    monthly = budget(when_reached="demote", demote_to="idle", accelerator_hours=1000)
    row = Standing("research", monthly, period_at(monthly, AT), AT, 220).document()
    for block in budget_blocks([row]):
        write_line(block)
    table = capsys.readouterr().out
    assert re.search(r"research +1,000 h +220 h +22% +1,240 h +2027-02-01 +within +all work as idle", table)


def item(kind: str, name: str, annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    metadata = {"namespace": "team-research", "name": name, "annotations": annotations or {}}
    return {"kind": kind, "metadata": metadata, "spec": spec}


def patches(items: list[dict[str, Any]], known: Standing | None) -> dict[str, tuple[dict[str, Any], str]]:
    teams, priorities = {"team-research": "research"}, {"training": 50, "idle": 0}
    result = patched(items, teams, {"research": known} if known else {}, priorities)
    return {patch.name: (patch.body.get("spec", {}), patch.words) for patch in result}


def reached(when_reached: str, used: float = 100.0) -> Standing:
    demoted = {"demote_to": "idle"} if when_reached == "demote" else {}
    made = budget(when_reached=when_reached, **demoted)
    return Standing("research", made, period_at(made, AT), AT, used)


def test_a_queue_is_held_and_only_what_was_held_so_is_released() -> None:
    free, stopped = item("LocalQueue", "free"), item("LocalQueue", "stopped", stopPolicy="Hold")
    result = patches([free, stopped], reached("hold"))
    assert result["free"][0] == {"stopPolicy": "Hold"}
    assert result["stopped"] == ({}, ""), "somebody else has stopped it"
    note = {BUDGET_ANNOTATION: json.dumps(reached("hold").document() | {"held": True})}
    ours = item("LocalQueue", "ours", note, stopPolicy="Hold")
    drained = item("LocalQueue", "drained", note, stopPolicy="HoldAndDrain")
    assert patches([ours], reached("hold"))["ours"][0] == {}
    for known in (reached("hold", 10), reached("warn"), None):
        again = patches([ours, drained, stopped], known)
        assert again["ours"][0] == {"stopPolicy": "None"}
        assert again["drained"][0] == {}
        assert again.get("stopped", ({}, ""))[0] == {}


def test_work_is_demoted_once_and_gets_its_own_priority_back() -> None:
    ended = item("Workload", "ended", priority=50) | {"status": {"conditions": [{"type": "Finished"}]}}
    work = [item("Workload", "high", priority=50), item("Workload", "low", priority=-3), ended]
    other = item("Workload", "other", priority=50)
    other["metadata"]["namespace"] = "kube-system"
    assert {name: spec for name, (spec, _) in patches([*work, other], reached("demote")).items()} == {
        "high": {"priority": 0}
    }
    demoted = item("Workload", "high", {BEFORE_BUDGET: "50"}, priority=0)
    assert patches([demoted], reached("demote")) == {}
    for known in (reached("demote", 10), reached("hold"), None):
        assert patches([demoted], known)["high"][0] == {"priority": 50}


TRACE = "team,submitted,duration,accelerators,priority\n" + "\n".join(
    f"{team},2027-01-{4 + day:02}T{hour:02}:00:00Z,3h,8,training"
    for day in range(6)
    for team in ("research", "product")
    for hour in (0, 6, 12, 18)
)


@pytest.mark.parametrize("when_reached", ["warn", "hold"])
def test_a_simulation_says_when_a_budget_was_reached_and_what_it_did(
    when_reached: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made = environment(accelerator_hours=200, period="week", when_reached=when_reached)
    chosen = policy_of(made, environment_types(made.instance_types))
    result = simulation([chosen], read_trace(TRACE, 1), decide, Assumptions())
    shown = document(result)
    use = next(use for use in shown["policies"][0]["budgets"] if use["reached"] is not None)
    # Eight accelerators for three of six hours: 200 hours are used in the middle of the ninth job.
    assert datetime.fromtimestamp(use["reached"], UTC) == datetime(2027, 1, 6, 1, tzinfo=UTC)
    held = [job for job in result.figures[0].outcome.jobs if job.runs[0].start > job.submitted + 60]
    assert {job.team for job in held} == ({"research"} if when_reached == "hold" else set())
    monday = datetime(2027, 1, 11, tzinfo=UTC).timestamp()
    assert all(job.runs[0].start >= monday for job in held)
    assert any("budget of 200 accelerator-hours a week" in text for text in shown["assumptions"])
    print_summary(shown)
    printed = " ".join(capsys.readouterr().out.split())
    assert "Budgets of accelerator-hours under prod" in printed
    assert re.search(r"research.*2027-01-11.*2027-01-06 01:00", printed)
    page = html(result)
    assert '<section id="budgets">' in page
    assert {"warn": "warned", "hold": "nothing more started"}[when_reached] in page


def test_a_forecast_continues_from_what_queues_say_of_budgets() -> None:
    made = environment(when_reached="hold")
    note = reached("hold", 130).document() | {"held": True}
    queue = item(
        "LocalQueue", "research", {BUDGET_ANNOTATION: json.dumps(note)}, stopPolicy="Hold", clusterQueue="research"
    )
    other = item("LocalQueue", "other", stopPolicy="Hold")
    demoted = item("Workload", "high", {BEFORE_BUDGET: "50"}, priority=0)
    snapshot = Snapshot(AT.timestamp(), (queue, other), (demoted,), {}, ())
    free = before_budgets(snapshot, made)
    assert [each["spec"].get("stopPolicy") for each in free.objects] == [None, "Hold"]
    assert free.workloads[0]["spec"]["priority"] == 50
    (limit,) = following_budgets(snapshot, made)
    assert (limit.queue, limit.used, limit.when_reached) == ("research", 130.0, "hold")
    assert datetime.fromtimestamp(limit.ends(AT.timestamp()), UTC) == datetime(2027, 2, 1, tzinfo=UTC)
    assert any("130 accelerator-hours are used" in text for text in following_budget_sentences(snapshot, made))
    later = snapshot._replace(taken=AT.timestamp() + 40 * DAY)
    assert following_budgets(later, made)[0].used == 0.0, "what was noted is of another month"
    assert before_budgets(snapshot, made.model_copy(update={"governance": Governance()})).objects[0]["spec"][
        "stopPolicy"
    ], "nobody would release it"


class _Kubectl:
    """Answers with a queue, and keeps what it is told to change."""

    is_real = True

    def __init__(self) -> None:
        self.calls: list[tuple[str, ...]] = []

    def items(self, *_: str) -> list[dict[str, Any]]:
        return [item("LocalQueue", "research")]

    def run(self, *arguments: str) -> str:
        self.calls.append(arguments)
        return ""


def test_the_command_prints_budgets_and_keeps_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made, kubectl = environment(accelerator_hours=10, when_reached="hold"), _Kubectl()
    monkeypatch.setattr(budgets_command, "load", lambda _: SimpleNamespace(environment=made, findings=()))
    monkeypatch.setattr(budgets_command, "stop_on_errors", lambda _: None)
    monkeypatch.setattr(budgets_command, "standings", lambda *_: [reached("hold", 130)])
    monkeypatch.setattr(budgets_command, "kubectl_for", lambda *_: kubectl)
    called = ["budgets", "prod", "--prometheus", "http://127.0.0.1:9"]
    assert main(called) == 0
    assert kubectl.calls == [], "it changes nothing unless it is told to"
    assert re.search(r"research +100 h +130 h +130%", capsys.readouterr().out)
    assert main([*called, "--apply", "--json"]) == 0
    (held,) = json.loads(capsys.readouterr().out)["changed"]
    assert held == "held queue team-research/research until 2027-02-01: the budget of research is reached"
    (patch,) = kubectl.calls
    assert patch[:4] == ("patch", "localqueues.kueue.x-k8s.io", "research", "--namespace=team-research")


def test_the_command_refuses_what_it_cannot_keep(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = environment("hyperpod")
    monkeypatch.setattr(budgets_command, "load", lambda _: SimpleNamespace(environment=made, findings=()))
    monkeypatch.setattr(budgets_command, "stop_on_errors", lambda _: None)
    assert main(["budgets", "prod", "--apply"]) == 2
    assert "with engine hyperpod budgets warn" in capsys.readouterr().err
    # Nothing listens there: nobody knows what is used, so nothing is changed.
    assert main(["budgets", "prod", "--prometheus", "http://127.0.0.1:9"]) == 1
    assert "hours of teams cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["later", "[]", "{}", '{"team": "a", "used": "much", "begin": "2026-11-01"}'])
def test_a_note_of_somebody_else_is_named(text: str) -> None:
    queue = {"metadata": {"name": "q", "namespace": "team-a", "annotations": {BUDGET_ANNOTATION: text}}}
    with pytest.raises(CommandError, match=r"LocalQueue team-a/q is .*which `podwright budgets` did not write"):
        noted(queue)
