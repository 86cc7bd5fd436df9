"""What commands show in terminals of 80, 100 and 120 columns, from what clusters and accounts were recorded to be.

Commands that need no account are run. Of the others the answer is drawn from `states.json`, which holds what they read,
or from what the tests of the command make.
"""

import json
import re
from argparse import Namespace
from collections.abc import Callable
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import answers_of_commands as answers
from answers_of_commands import written
from capacity_account import open_account
from doctor_corpus import bundle
from effect_cases import CASES, edited, reviewed
from podwright.config.catalog.preflight_checks import preflight_checks
from podwright.config.findings import Finding, Level
from podwright.config.loading.project import Project
from podwright.operations import cli
from podwright.operations.adoption.command import _lines as import_lines
from podwright.operations.adoption.differences import Comparison, Deviation
from podwright.operations.benchmarks.table import write_tables
from podwright.operations.canary import command as canary
from podwright.operations.capacity.show import write_plans
from podwright.operations.drills import record
from podwright.operations.effects import document, show
from podwright.operations.effects.approval import needs
from podwright.operations.effects.changes import changes
from podwright.operations.effects.cost import costs
from podwright.operations.effects.quota_effect import effect_lines
from podwright.operations.effects.templates import pairs
from podwright.operations.jobs.by_priority import write_by_priority
from podwright.operations.jobs.step_times import RankTime, print_times
from podwright.operations.jobs.table import write_jobs
from podwright.operations.live.cluster_table import write_report
from podwright.operations.live.draw import draw
from podwright.operations.output.console import write_line
from podwright.operations.output.tables import new_table
from podwright.operations.preflight import command as preflight
from podwright.operations.preflight.check import Outcome
from podwright.operations.spend import command as spend
from podwright.operations.spend import prices_command
from podwright.operations.spend.price_lists import Listed
from podwright.operations.spend.team_budgets import budget_blocks
from podwright.operations.teardown.plan import Blocker, Kept, StackPlan, Teardown
from podwright.operations.teardown.table import plan_lines
from podwright.operations.upgrade import scripts
from podwright.planning.node.benchmark_results import BenchmarkResults
from screens import COLOURS, WIDTHS, screen

ROOT = Path(__file__).parents[3]
STATES: dict[str, Any] = json.loads(Path(__file__).with_name("states.json").read_text())
NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
Show = Callable[[Path], object]


def called(*arguments: str, code: int = 0) -> Show:
    """A command of this repository's project, and what it ends with."""

    def show(_: Path) -> None:
        assert cli.main([*arguments, "--project", str(ROOT)]) == code

    return show


def recorded(*words: str) -> Show:
    return lambda folder: answers.on_the_recorded_cluster(folder, *words)


def diagnosed(folder: Path) -> None:
    for name, text in bundle("no-capacity-at-creation").items():
        file = folder / "bundle" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert cli.main(["doctor", str(folder / "bundle"), "--project", str(ROOT)]) == 1


def offered(*arguments: str) -> Show:
    def search(folder: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            assert open_account(folder, patch).run(*arguments) in (0, 1)

    return search


@cache
def change_sets() -> list[document.ChangeSet]:
    """Every reviewed edit of an environment."""
    sets = []
    for case in CASES:
        both = pairs(reviewed(case.environment), edited(case))
        touched = changes(both, case.environment)
        priced = costs(both, "us-west-2", {}, 0, {})
        sets.append(
            document.ChangeSet(
                case.environment, "111122223333", "us-west-2", touched, [], priced, [], False, needs(touched, [])
            )
        )
    return sets


def changed(_: Path) -> None:
    for each in change_sets():
        written(show.lines(each))


def looked_at(_: Path) -> None:
    """An account with each kind of answer to a check."""
    finding = Finding(
        "PRE001", Level.ERROR, "account", "account 111122223333 is not prepared for the CDK", "prepare it"
    )
    reason = "ssm get-parameter: you may not; a policy with ssm:GetParameter for what is below /cdk-bootstrap does"
    kinds = [("ok", (), ("usw2-az2 is us-west-2a; usw2-az3 is us-west-2c",), ()), ("found", (finding,), (), ())]
    kinds += [("skipped", (), (), (reason,))]
    checks = list(preflight_checks().values())
    rows = [Outcome(check, *kinds[number % 3], 0.1) for number, check in enumerate(checks)]  # type: ignore[arg-type]
    write_line(preflight._table(rows))


def going(_: Path) -> None:
    """A teardown with something of everything."""
    plan = Teardown("prod", "111122223333", "us-west-2")
    plan.stacks = [
        StackPlan("prod-network", "CREATE_COMPLETE", "keep", "termination protection is on", monthly_usd=123.0),
        StackPlan("prod-eks", "DELETE_FAILED", "retry", "", 2, 14, 11.0, ("Cluster (AWS::EKS::Cluster, x): in use",)),
        StackPlan("prod-cluster", "CREATE_COMPLETE", "delete", "", 1, 7, 9.0),
    ]
    lake = "AWS::FSx::FileSystem"
    plan.kept = [Kept("fs-0123456789abcdef0", lake, "prod-storage", "is retained", "38,400 GiB", True)]
    why = "its interfaces stand in the subnets of the VPC, which cannot be deleted before them"
    plan.blockers = [Blocker("prod-network", "guardduty endpoint", "vpce-0123456789abcdef0", why, "podwright", why)]
    plan.nodes, plan.running = {"h200": 16}, ["Job align in team-a: 4 pods"]
    written(plan_lines(plan))


def canaries(_: Path) -> None:
    nodes = [
        {"group": group, "node": f"i-0123456789abcde{n:02}", "type": "ml.p5en.48xlarge", "status": "Running"}
        | {"setup": "tolerated", "benchmarks": "fail", "why": "EFA: 31 of 32 interfaces answer; clock.ssh failed"}
        for n, group in enumerate(("system", "h200"))
    ]
    name = canary._next("prod", True)
    written(canary._lines({"nodes": nodes, "verdict": "failed", "failed": ["h200: EFA"], "next": name}))


def older(_: Path) -> None:
    source = "s3://podwright-lifecycle-111122223333/prod/0123456789abcdef0123456789abcdef"
    rows = [scripts.Scripts(f"i-0123456789abcde{n:02}", "h200", source, source, "set up before", "") for n in range(3)]
    written(scripts._lines(SimpleNamespace(name="prod"), rows, rows))  # type: ignore[arg-type]


def listed(_: Path) -> None:
    """Prices that the list has, and those that it leaves open."""
    rows = [Listed("ml.p5en.48xlarge", "hour", 63.296, date(2026, 11, 1))]
    rows += [Listed("lustre_ssd_1000", "GB-month", problem="3 prices fit, from $0.1 to $0.6")]
    rows += [Listed("node_volume", "GB-month", problem="which product of the price list it is, no source says")]
    environment = Project.at(ROOT).load("prod").environment
    written(prices_command._lines(environment, rows, Path("environments/prod.yaml"), {rows[0].name: rows[0]}, False))


def imported(_: Path) -> None:
    """Groups that differ alike, a long list of subnets, and what stacks hold besides."""
    subnets = [f"subnet-0123456789abcdef{number}" for number in range(6)]
    why = "podwright names subnets and security groups for every group"
    rows = [("InstanceGroups[{}].OverrideVpcConfig.Subnets", None, subnets, why)]
    rows += [("Tags[podwright:environment].Value", "theirs", "mine", "podwright tags what it deploys")]
    deviations = [
        Deviation("AWS::SageMaker::Cluster training", path.format(name), now, file, why)
        for path, now, file, why in rows
        for name in ("system", "h200")
    ]
    written(import_lines(Comparison(4, tuple(deviations), {"mine-network": 1, "mine-cluster": 12}), "", "mine"))


def many_nodes(_: Path) -> None:
    state = STATES["status"]
    node = state["nodes"][0] | {"status": "Failure", "message": "was given back because no capacity is there"}
    named = [{"kind": f"Kind{n:03}", "namespace": f"team-{n:03}", "name": f"object-{n:05}"} for n in range(400)]
    write_report(state | {"nodes": [node | {"id": f"i-{n:017x}"} for n in range(3_000)], "objects": named})


SHOWN: dict[str, Show] = {
    "init": lambda folder: cli.main(["init", str(folder / "new")]),
    "import": imported,
    "check": called("check"),
    "check prod": called("check", "prod"),
    "check, refused": called("check", str(ROOT / "tests/unit/output/refused.yaml"), code=1),
    "project": called("project"),
    "preflight": looked_at,
    "size": called("size", "--parameters", "70B", "--type", "ml.p5en.48xlarge", "--layers", "80"),
    "cost": called("cost", "prod"),
    "prices": listed,
    "spend": lambda _: written(spend.lines(STATES["spend"])),
    "budgets": lambda _: written(budget_blocks(STATES["spend"]["team_budgets"])),
    "quotas": called("quotas", "prod"),
    "quotas of AWS Batch": called("quotas", "training-jobs-queue"),
    "simulate": called("simulate", "prod", "--generate", "12h", "--load", "1.2"),
    "forecast": answers.forecast,
    "show": called("show", "prod"),
    "render": called("render", "two-teams"),
    "submit": recorded("submit", "two-teams", "train-b"),
    "run": recorded("run", "two-teams", "--team", "team-a", "--group", "training", "--", "hostname"),
    "jobs": lambda _: write_jobs(STATES["jobs"], "Jobs of two-teams", NOW),
    "jobs --by-priority": lambda _: write_by_priority(STATES["priorities"], "Jobs by priority", NOW),
    "why": recorded("why", "two-teams", "train-a"),
    "logs": lambda _: print_times(Namespace(json=False), "experiment-b", [RankTime(*row) for row in STATES["steps"]]),
    "stop": recorded("stop", "two-teams", "train-a"),
    "alerts": called("alerts", "prod"),
    "dashboards": lambda folder: cli.main(
        ["dashboards", "export", "prod", "--out", str(folder / "out"), "--project", str(ROOT)]
    ),
    "explain": called("explain"),
    "explain a rule": called("explain", "NET003"),
    "completion": called("completion", "bash"),
    "schema": called("schema"),
    "diff": changed,
    "diff, quotas": lambda _: written(effect_lines(STATES["quota_effect"])),
    "drift": answers.drifted,
    "pipeline": called("pipeline", "show"),
    "deploy": lambda _: answers.deployed(STATES["status"]),
    "scale": answers.scaled,
    "canary": canaries,
    "promote": called("promote", "--dry-run"),
    "status": lambda _: write_report(STATES["status"]),
    "status with plans": lambda _: write_report(STATES["planned"]),
    "status of many nodes": many_nodes,
    "status --watch": lambda _: written(draw(STATES["watched"])),
    "gate": called("gate", "prod", "--list"),
    "doctor": diagnosed,
    "collect": answers.collected,
    "destroy": going,
    "sandbox": lambda folder: cli.main(["sandbox", "status", "--project", str(folder)]),
    "chart": answers.fetched,
    "assets": called("assets", "fetch"),
    "kernels": answers.built,
    "images": called("images", "list", "two-teams", "--sandbox"),
    "image": answers.image,
    "connect": answers.connected,
    "workers": answers.reached,
    # It speaks with programs; people see why it does not start.
    "mcp": called("mcp", "--max-upfront", "5", code=2),
    # All that it says is why it hands the terminal to nobody.
    "shell": called("shell", "nowhere", code=1),
    "upgrade": older,
    "node": answers.replaced,
    "drill": lambda _: written([*record.lines(STATES["drill"]), *record.table([STATES["drill"]])]),
    "drill kinds": called("drill", "kinds"),
    "capacity": offered("search", "prod", "h200-q1"),
    "capacity show": lambda _: [write_plans(plans, NOW) for plans in STATES["plans"]],
    "bench": lambda _: write_tables([BenchmarkResults.model_validate(each) for each in STATES["bench"]]),
    "report": answers.reported,
}
DOCUMENTS = ("completion", "schema", "render", "show", "connect")
"""What programs and shells read, and what goes into a file: printed as it is."""


def shown(name: str, folder: Path, width: int, **variables: str) -> list[str]:
    with screen(width, **variables) as terminal:
        SHOWN[name](folder)
    return terminal.seen()


def test_every_command_is_shown() -> None:
    assert {command.name for command in cli.COMMANDS} == {name.split()[0].strip(",") for name in SHOWN}


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_is_wider_than_the_terminal(width: int, tmp_path: Path) -> None:
    wide = []
    for name in (name for name in SHOWN if name not in DOCUMENTS):
        folder = tmp_path / name.replace(" ", "-")
        folder.mkdir()
        lines = shown(name, folder, width, NO_COLOR="1")
        assert lines, name
        # One word that is longer than a line stays whole: a user copies it. So does a command that others read too.
        wide += [f"{name}: {line}" for line in lines if len(line) > width and len(line.split()) > 1]
    assert not wide, "\n".join(wide)


def test_columns_that_go_are_named(tmp_path: Path) -> None:
    narrow = "\n".join(shown("capacity", tmp_path, 80, NO_COLOR="1"))
    assert "Not shown in a width of 80: there" in narrow
    assert {"upfront", "instance-hour", "zone"} <= set(narrow.split())


def test_an_address_without_words_is_shown_once(tmp_path: Path) -> None:
    text = "".join(line.strip() for line in shown("explain a rule", tmp_path, 100, NO_COLOR="1"))
    assert text.count("https://docs.aws.amazon.com/fsx/latest/LustreGuide/using-fsx-lustre.html") == 1


def test_a_large_cluster_is_folded(tmp_path: Path) -> None:
    lines = shown("status of many nodes", tmp_path, 100, NO_COLOR="1")
    assert sum("i-000" in line for line in lines) == 20
    assert any("and 380 more kinds" in line for line in lines)


@pytest.mark.parametrize("name", ["check, refused", "status", "diff", "preflight", "bench", "explain"])
def test_colours_are_there_where_somebody_sees_them(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with screen(100) as bright:
        SHOWN[name](tmp_path)
    assert COLOURS.search(bright.getvalue())
    with screen(100, NO_COLOR="1") as plain:
        SHOWN[name](tmp_path)
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", plain.getvalue())
    capsys.readouterr()
    SHOWN[name](tmp_path)
    assert "\x1b" not in capsys.readouterr().out


def test_what_refuses_stands_last_and_is_counted(tmp_path: Path) -> None:
    lines = shown("check, refused", tmp_path, 100, NO_COLOR="1")
    levels = [word for line in lines for word in line.split()[:4] if word in ("error", "warning", "info")]
    assert levels == sorted(levels, key=["info", "warning", "error"].index)
    assert levels[-1] == "error"
    assert "error" in lines[-1]


def test_a_log_has_whole_lines(capsys: pytest.CaptureFixture[str]) -> None:
    path = "environments/" + "very-long-name/" * 20
    write_line(new_table("", ("file", "what"), [(path, "a word " * 30)]))
    assert path in capsys.readouterr().out
