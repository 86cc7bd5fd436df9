"""`podwright diff` where quotas change and there is a trace: what is read and said, and what a report shows of it."""

import argparse
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from podwright.config.catalog.instance_types import environment_types
from podwright.config.errors import CommandError
from podwright.config.loading.project import Project
from podwright.config.settings.environment import Environment
from podwright.operations.effects import command
from podwright.operations.effects.changes import ResourceChange
from podwright.operations.effects.quota_effect import effect_lines, trace_file
from podwright.operations.promotion.content import content_of
from podwright.operations.report.page import document, page
from podwright.planning.quota.compute_quotas import compute_quotas
from podwright.planning.quota.policy import environment_policy
from report_account import Tree, scene
from screens import text_of

ROOT = Path(__file__).resolve().parents[3]
TRACE = "team,submitted,duration,job,pods,accelerators\n" + "".join(
    f"{team},{day * 86400 + at},6h,{team}-{day},{pods},8\n"
    for day in range(40)
    for team, at, pods in (("research", 0, 12), ("product", 600, 6))
)


@pytest.fixture
def prod() -> Environment:
    return Project.at(ROOT).load("prod").environment


def arguments(project: Path, **more: Any) -> argparse.Namespace:
    return argparse.Namespace(**{"project": project, "trace": None, "days": 30.0} | more)


def changed(prod: Environment, first: bool = False) -> Any:
    """A change set in which research had 4 nodes, and has 10 now."""
    quotas = compute_quotas(prod.governance, environment_policy(prod, environment_types(prod.instance_types)))
    new = quotas["research"]
    config = new["ComputeQuotaConfig"]
    fewer = [each | {"Count": 4} if each["Count"] == 10 else each for each in config["ComputeQuotaResources"]]
    assert fewer != config["ComputeQuotaResources"]
    old = new | {"ComputeQuotaConfig": config | {"ComputeQuotaResources": fewer}}
    change = ResourceChange("prod", "prod-governance", "Quota", "AWS::SageMaker::ComputeQuota", "", "update")
    change.old, change.new = old, new
    return SimpleNamespace(first=first, changes=[change])


def effect(args: argparse.Namespace, prod: Environment, changes: Any) -> dict[str, Any] | None:
    return command._quota_effect(args, prod, changes)


def test_a_trace_in_the_project_says_what_quotas_would_have_done(prod: Environment, tmp_path: Path) -> None:
    assert trace_file(tmp_path, prod) is None
    assert effect(arguments(tmp_path), prod, changed(prod)) is None
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces/prod.csv").write_text(TRACE)
    result = effect(arguments(tmp_path), prod, changed(prod))
    assert result is not None
    # The last thirty days of forty.
    assert result["jobs"] == 2 * 30
    old, new = result["policies"]
    assert [policy["environment"] for policy in (old, new)] == ["deployed", "prod"]
    started = [{team["team"]: team["waits"]["started"] for team in policy["teams"]} for policy in (old, new)]
    # With a guarantee of 4 nodes, and as many that it may borrow, jobs of 12 never start.
    assert started == [{"research": 0, "product": 30}, {"research": 30, "product": 30}]
    lines = text_of(effect_lines(result)).splitlines()
    assert "60 jobs (CSV)" in lines[1]
    assert any("research" in line and "→" in line for line in lines)
    longer = effect(arguments(tmp_path, days=7.0), prod, changed(prod))
    assert longer is not None
    assert longer["jobs"] == 2 * 7


def test_nothing_is_simulated_where_no_quota_changes_or_nothing_is_deployed(prod: Environment, tmp_path: Path) -> None:
    file = tmp_path / "work.csv"
    file.write_text(TRACE)
    args = arguments(tmp_path, trace=str(file))
    assert effect(args, prod, changed(prod)) is not None
    assert effect(args, prod, SimpleNamespace(first=False, changes=[])) is None
    assert effect(args, prod, changed(prod, first=True)) is None


def test_a_file_that_is_no_trace_is_refused_with_its_line(prod: Environment, tmp_path: Path) -> None:
    file = tmp_path / "work.csv"
    file.write_text("team,submitted\nresearch,0\n")
    with pytest.raises(CommandError, match=r"work\.csv:1: "):
        effect(arguments(tmp_path, trace=str(file)), prod, changed(prod))


def test_a_report_shows_what_quotas_would_have_done(prod: Environment, tmp_path: Path) -> None:
    file = tmp_path / "work.csv"
    file.write_text(TRACE)
    result = effect(arguments(tmp_path, trace=str(file)), prod, changed(prod))
    changes = json.loads((ROOT / "tests/unit/report/report_changes.json").read_text())
    caption = "under the deployed quotas and under those of the file"
    assert caption in Tree(page(document(scene("prod", changes=changes | {"quota_effect": result})))).text
    assert caption not in Tree(page(document(scene("prod", changes=changes | {"quota_effect": None})))).text


def test_a_trace_is_no_content_of_a_promotion(tmp_path: Path) -> None:
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments/prod.yaml").write_text((ROOT / "environments/prod.yaml").read_text())
    before = content_of(Project.at(tmp_path))
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces/prod.csv").write_text(TRACE)
    assert content_of(Project.at(tmp_path)) == before
