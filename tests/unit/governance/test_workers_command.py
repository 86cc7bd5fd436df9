"""What `podwright workers` refuses before it changes anything."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from podwright.operations import cli
from podwright.operations.kubernetes.kubectl import Kubectl
from podwright.operations.workers import command

ROOT = Path(__file__).parents[3]
MANAGER = "shared-platform-wanted"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The shared platform's files, of which the manager's is to be changed."""
    shutil.copytree(ROOT / "environments", tmp_path / "environments")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["two-teams"], "two-teams is not a manager of MultiKueue", "`podwright project` lists them"),
        (["shared-platform-worker"], "shared-platform-worker is not a manager of MultiKueue", "role: manager"),
        ([MANAGER, "--worker", "utah"], f"{MANAGER} has no worker utah", "it has oregon, ohio"),
    ],
)
def test_who_is_no_manager_and_what_is_no_worker(
    project: Path, arguments: list[str], message: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["workers", *arguments, "--sandbox", "--project", str(project)]) == 2
    printed = capsys.readouterr().err
    assert (message in printed, hint in printed) == (True, True)


def test_a_worker_of_nobody_knows_where(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = project / f"environments/{MANAGER}.yaml"
    text = file.read_text()
    line = "          environment: shared-platform-ohio\n"
    assert text.count(line) == 1
    file.write_text(text.replace(line, ""))
    assert cli.main(["workers", MANAGER, "--sandbox", "--project", str(project)]) == 2
    assert "which environment of this project ohio is" in capsys.readouterr().err
    # Nothing was made of the other worker either.
    assert not (project / ".podwright/sandbox").exists()


def test_a_job_goes_to_the_manager_of_its_worker_alone(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["submit", "shared-platform-worker", "align", "--sandbox", "--project", str(project), "--manager"]
    assert cli.main([*arguments, "shared-platform-ohio"]) == 2
    assert "shared-platform-ohio hands no work to shared-platform-worker" in capsys.readouterr().err


def test_a_store_hands_out_no_work(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "_side", lambda *_: SimpleNamespace(account=None))
    monkeypatch.setattr(command, "required_way", lambda *_: Kubectl(project / "kubeconfig", is_real=False))
    assert cli.main(["workers", MANAGER, "--sandbox", "--project", str(project)]) == 1
    printed = capsys.readouterr().err
    assert "no Kueue would hand out work: this sandbox's Kubernetes is a store, without a scheduler" in printed
    assert "`podwright sandbox kubernetes install` builds a real one" in printed
