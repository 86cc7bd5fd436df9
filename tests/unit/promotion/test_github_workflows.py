"""The workflows that `podwright init . --ci github` writes: the list of steps in jobs, with a role for each thing."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from needs import require
from podwright.config.errors import InvalidFile
from podwright.config.loading.project import Project
from podwright.operations import cli
from podwright.operations.pipeline.github import DRIFT, PROMOTION, github_cron
from podwright.planning.delivery.pipeline_steps import drift_steps, steps
from promotion_project import GITHUB, OVERRIDE, write_project

ROOT = Path(__file__).resolve().parents[3]
GO_TOOLS = ROOT / ".podwright/go/bin"


@pytest.fixture
def written(tmp_path: Path) -> Path:
    write_project(tmp_path, GITHUB)
    assert cli.main(["init", str(tmp_path), "--ci", "github"]) == 0
    return tmp_path


def workflow(file: Path) -> dict[str, Any]:
    return YAML(typ="safe").load(file.read_text())


def runs(job: dict[str, Any]) -> list[str]:
    return [line for step in job["steps"] for line in step.get("run", "").splitlines()]


def test_the_jobs_run_the_commands_of_the_list(written: Path) -> None:
    project = Project.at(written)
    jobs = workflow(written / PROMOTION)["jobs"]
    messages = {command for job in jobs.values() for command in runs(job)}
    for step in steps(project.settings, project.names):
        assert set(step.commands) <= messages, step
    reads = {command for job in workflow(written / DRIFT)["jobs"].values() for command in runs(job)}
    assert {command for step in drift_steps(project.settings, project.names) for command in step.commands} <= reads


def test_the_promotion_runs_whenever_quotas_begin_and_end(tmp_path: Path, written: Path) -> None:
    assert "schedule" not in workflow(written / PROMOTION)["on"]
    write_project(tmp_path / "dated", GITHUB, OVERRIDE)
    assert cli.main(["init", str(tmp_path / "dated"), "--ci", "github"]) == 0
    crons = [item["cron"] for item in workflow(tmp_path / "dated" / PROMOTION)["on"]["schedule"]]
    assert crons == ["0 8 4 1 *", "0 0 1 2 *"]


def test_a_job_begins_when_the_stage_before_has_passed(written: Path) -> None:
    jobs = workflow(written / PROMOTION)["jobs"]
    assert {name: job.get("needs", []) for name, job in jobs.items()} == {
        "build": [],
        "look-dev": ["build"],
        "deploy-dev": ["look-dev"],
        "look-staging-west": ["deploy-dev"],
        "deploy-staging-west": ["look-staging-west", "look-staging-east"],
        "look-staging-east": ["deploy-dev"],
        "deploy-staging-east": ["look-staging-west", "look-staging-east"],
        "look-prod": ["deploy-staging-west", "deploy-staging-east"],
        "deploy-prod": ["look-prod"],
    }


def test_each_job_has_the_least_that_it_needs(written: Path) -> None:
    text = workflow(written / PROMOTION)
    assert text["permissions"] == {"contents": "read"}
    assert text["concurrency"]["cancel-in-progress"] is False
    for name, job in text["jobs"].items():
        roles = [step["with"]["role-to-assume"] for step in job["steps"] if "role-to-assume" in step.get("with", {})]
        environment = name.partition("-")[2]
        kinds = {"build": [], "look": ["read"], "deploy": ["deploy", "prove"]}[name.partition("-")[0]]
        assert [arn.rpartition("/")[2] for arn in roles] == [f"podwright-{environment}-{kind}" for kind in kinds]
        assert job.get("environment") == (environment if "deploy" in kinds else None)
        # A pull request gets no credentials.
        assert ("id-token" in job.get("permissions", {})) == bool(kinds)
        assert (job.get("if") == "github.event_name != 'pull_request'") == bool(kinds)


def test_a_role_is_taken_on_before_its_step(written: Path) -> None:
    job = workflow(written / PROMOTION)["jobs"]["deploy-prod"]
    order = [
        step["with"]["role-to-assume"].rpartition("-")[2]
        if "role-to-assume" in step.get("with", {})
        else step.get("name")
        for step in job["steps"]
    ]
    expected = ["deploy", "prod.deploy", "prove", "prod.gate"]
    assert [item for item in order if item in expected] == expected


def test_actions_are_pinned_to_commits(written: Path) -> None:
    used = re.findall(r"uses: (.*)", (written / PROMOTION).read_text() + (written / DRIFT).read_text())
    assert used
    assert [action for action in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)] == []


def test_a_digest_that_nobody_reviewed_stops_a_build(written: Path) -> None:
    """`fetch` writes a missing digest to artifacts.lock, which on a laptop is reviewed afterwards."""
    [guard] = {line for line in runs(workflow(written / PROMOTION)["jobs"]["build"]) if "artifacts.lock" in line}
    repository = written / "repository"
    repository.mkdir()

    def sh(command: str) -> int:
        variables = {"PATH": os.environ["PATH"], "HOME": str(written), "GIT_CONFIG_NOSYSTEM": "1"}
        return subprocess.run(["bash", "-ec", command], cwd=repository, env=variables, capture_output=True).returncode

    assert sh("git init && git config user.email a@example.com && git config user.name a") == 0
    assert sh(guard) == 0
    assert sh("echo x > artifacts.lock") == 0
    assert sh(guard) == 1
    assert sh("git add artifacts.lock && git commit -m x") == 0
    assert sh(guard) == 0
    assert sh("echo y > artifacts.lock") == 0
    assert sh(guard) == 1


def test_actionlint_finds_nothing(written: Path) -> None:
    actionlint = shutil.which("actionlint", path=f"{GO_TOOLS}{os.pathsep}{os.environ['PATH']}")
    require(actionlint, "actionlint, which .ci/run installs by Go")
    done = subprocess.run([actionlint, written / PROMOTION, written / DRIFT], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("cron(0 6 * * ? *)", "0 6 * * *"),
        ("cron(30 22 ? * MON-FRI *)", "30 22 * * MON-FRI"),
        ("cron(0 6 ? * 2-6 *)", "0 6 * * 1-5"),
        ("cron(0/15 * 1,15 * ? *)", "0/15 * 1,15 * *"),
    ],
)
def test_a_schedule_is_the_same_at_github(expression: str, expected: str) -> None:
    assert github_cron(expression) == expected


@pytest.mark.parametrize(
    "expression", ["cron(0 6 L * ? *)", "cron(0 6 ? * 2#1 *)", "cron(0 6 * * ? 2027)", "cron(0 6 *)"]
)
def test_a_schedule_that_github_does_not_know_is_refused(expression: str) -> None:
    with pytest.raises(InvalidFile, match="GitHub Actions cannot run"):
        github_cron(expression)


def test_no_schedule_no_workflow(tmp_path: Path) -> None:
    write_project(tmp_path, GITHUB.replace("pipeline:", "pipeline:\n  drift: {schedule: off}"))
    assert cli.main(["init", str(tmp_path), "--ci", "github"]) == 0
    assert not (tmp_path / DRIFT).exists()


def test_a_workflow_that_somebody_changed_is_kept(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["init", str(written), "--ci", "github"]) == 0
    (written / PROMOTION).write_text("name: ours\n")
    assert cli.main(["init", str(written), "--ci", "github"]) == 1
    assert "is not what podwright.yaml says" in capsys.readouterr().err
    assert (written / PROMOTION).read_text() == "name: ours\n"


def test_a_folder_without_environments_has_nothing_to_promote(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["init", str(tmp_path), "--ci", "github"]) == 2
    assert "has no environments to promote" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_it_writes_the_project_file_where_there_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_project(tmp_path)
    (tmp_path / "podwright.yaml").unlink()
    named = ["init", str(tmp_path), "--ci", "github", "--repository", "acme/clusters"]
    assert cli.main(["init", str(tmp_path), "--ci", "github"]) == 2
    assert "PIP004" in capsys.readouterr().err
    assert cli.main(named) == 2
    assert "in which order" in capsys.readouterr().err
    assert cli.main([*named, "--order", "dev,qa"]) == 2
    assert "ENV005" in capsys.readouterr().err
    assert not (tmp_path / "podwright.yaml").exists()
    assert cli.main([*named, "--order", "dev,staging-west,staging-east,prod"]) == 0
    assert Project.at(tmp_path).settings.environments[-1] == "prod"


def test_a_project_and_its_workflows_are_begun_by_one_command(tmp_path: Path) -> None:
    words = ["init", str(tmp_path), "--ci", "github", "--repository", "acme/clusters"]
    assert cli.main([*words, "--name", "dev", "--account", "111122223333"]) == 0
    assert (tmp_path / "environments/dev.yaml").is_file()
    assert "dev" in (tmp_path / ".github/workflows/podwright.yml").read_text()
