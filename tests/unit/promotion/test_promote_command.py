"""`podwright promote` on its command line, and what counts as the content of a promotion."""

import json
import subprocess
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from podwright.config.loading.project import Project
from podwright.operations import cli
from podwright.operations.output.console import REPORTS
from podwright.operations.promotion import content as content_module
from podwright.operations.promotion.content import Content, content_of
from promotion_project import OVERRIDE

FILE = """
account: "{account}"
region: us-west-2
network: {{zones: [usw2-az1, usw2-az2]}}
instance_groups:
  system: {{instance_type: ml.m5.4xlarge, count: {count}}}
"""
ACCOUNTS = {"dev": "111122223333", "prod": "444455556666"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "environments").mkdir()
    for name, account in ACCOUNTS.items():
        (tmp_path / f"environments/{name}.yaml").write_text(FILE.format(account=account, count=2))
    (tmp_path / "podwright.yaml").write_text("environments: [dev, prod]\n")
    (tmp_path / "own.sh").write_text("echo first\n")
    return tmp_path


def git(root: Path, *arguments: str) -> None:
    name = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(["git", "-C", root, *name, *arguments], check=True, capture_output=True)


def committed(root: Path) -> None:
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")


def content(root: Path) -> Content:
    return content_of(Project.at(root))


def test_what_other_quotas_have_proved_is_proved_anew(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def of_day(day: int) -> Content:
        clock = SimpleNamespace(now=lambda tz: datetime(2027, 1, day, tzinfo=tz))
        monkeypatch.setattr(content_module, "datetime", clock)
        return content(root)

    file = root / "environments/prod.yaml"
    file.write_text(file.read_text() + OVERRIDE.replace("end: 2027-02-01", "end: 2027-01-20"))
    before, during, later, after = (of_day(day) for day in (2, 10, 11, 21))
    assert during == later
    assert before == after
    assert during.of("prod") != before.of("prod")
    assert during.of("dev") == before.of("dev")


@pytest.mark.parametrize("with_git", [True, False])
def test_content_is_what_templates_are_made_from(root: Path, with_git: bool) -> None:
    (root / ".gitignore").write_text("ignored/\n")
    if with_git:
        committed(root)
    first = content(root)
    assert (first.commit is not None) == with_git
    written = ("evidence/dev/effects.json", "cdk.out/manifest.json", ".podwright/logs/x.log")
    for file in (*written, f"{REPORTS}/podwright-report-dev.html"):
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text("{}")
    assert content(root) == first

    (root / "environments/prod.yaml").write_text(FILE.format(account=ACCOUNTS["prod"], count=3))
    edited = content(root)
    assert (edited.shared, edited.of("dev")) == (first.shared, first.of("dev"))
    assert edited.of("prod") != first.of("prod")
    assert edited.of(None) != first.of(None)
    assert edited.uncommitted == (("environments/prod.yaml",) if with_git else ())

    (root / "own.sh").write_text("echo second\n")
    other = content(root)
    assert other.of("dev") != edited.of("dev")


def test_a_comment_is_no_other_content(root: Path) -> None:
    first = content(root)
    file = root / "environments/prod.yaml"
    file.write_text(f"# how it was agreed\n{file.read_text()}")
    assert content(root) == first


def test_what_git_ignores_is_no_content(root: Path) -> None:
    (root / ".gitignore").write_text("ignored/\n")
    committed(root)
    first = content(root)
    (root / "ignored").mkdir()
    (root / "ignored/file").write_text("x")
    assert content(root) == first
    (root / "new").write_text("x")
    assert content(root).shared != first.shared


def promote(root: Path, *options: str) -> int:
    return cli.main(["promote", "--project", str(root), *options])


def test_the_plan_shows_every_step(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert promote(root, "--dry-run", "--to", "dev") == 0
    out = capsys.readouterr().out
    assert "dev.deploy      to do" in out
    assert "prod.gate       not chosen" in out
    assert promote(root, "--dry-run", "--json") == 0
    actual = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [item["step"] for item in actual if item["state"] == "to do"] == [item["step"] for item in actual]
    assert {"dev.gate", "prod.gate"} < {item["step"] for item in actual}


@pytest.mark.parametrize(
    ("options", "output"),
    [
        pytest.param(["--from", "qa"], "'qa' is not promoted", id="unknown environment"),
        pytest.param(["--from", "prod", "--to", "dev"], "dev comes before prod", id="backwards"),
        pytest.param(
            ["--profile", "dev"], "does not name an environment and a profile", id="profile without environment"
        ),
        pytest.param(["--profile", "qa=x"], "does not name an environment and a profile", id="profile of nobody"),
        pytest.param(["--record", "folder"], "not a place in S3", id="record"),
        pytest.param(["--record", "s3://"], "not a place in S3", id="record without a bucket"),
    ],
)
def test_a_command_line_that_means_nothing(
    root: Path, capsys: pytest.CaptureFixture[str], options: list[str], output: str
) -> None:
    assert promote(root, "--dry-run", *options) == 2
    assert output in capsys.readouterr().err


def test_an_order_has_to_be_given(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "podwright.yaml").unlink()
    assert promote(root, "--dry-run") == 2
    assert "in which order to promote dev, prod" in capsys.readouterr().err


def test_uncommitted_files_do_not_go_to_aws(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    committed(root)
    (root / "own.sh").write_text("echo second\n")
    assert promote(root) == 1
    output = capsys.readouterr().err
    assert "1 files differ from the commit: own.sh" in output
    assert not (root / ".podwright/promotion").exists()


def test_a_failure_is_words_for_people_and_an_event_for_machines(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "podwright.yaml").write_text('environments: [dev, prod]\npipeline: {tests: ["echo wrong; exit 7"]}\n')
    assert promote(root) == 1
    output = capsys.readouterr().err
    assert "    wrong" in output
    assert "tests                    failed" in output
    assert "→ not touched: dev, prod" in output
    assert "evidence: .podwright/logs/promote-tests-" in output

    assert promote(root, "--json") == 1
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event["event"] for event in events] == ["promotion", "skipped", "started", "failed"]
    assert (events[-1]["step"], events[-1]["code"], events[-1]["last"][-1]) == ("tests", 7, "wrong")
    assert events[-1]["advice"][0] == "not touched: dev, prod"

    assert promote(root, "--again") == 1
    assert "check                    passed in" in capsys.readouterr().err
