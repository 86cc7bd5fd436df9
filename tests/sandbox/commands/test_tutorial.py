"""The tutorial, done: its commands in order, its file as it stands there, and what it says one sees."""

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from podwright.operations.aws import sandbox_server as server
from podwright.operations.cli import main

PAGE = Path(__file__).resolve().parents[3] / "docs/tutorial.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What the test stands in for, and what takes long and others try: test_deploy.py deploys a change and deletes all
# stacks, and the tests of diff see what a change of a count does. Here the changed file passes its checks.
ELSEWHERE = {"python3", "pip", "cd", ".", "podwright diff", "podwright deploy again", "podwright destroy"}


def steps() -> Iterator[tuple[str, str]]:
    """Each block of the page: its kind, and its text."""
    yield from BLOCK.findall(PAGE.read_text(encoding="utf-8"))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder in which somebody begins, with a sandbox of its own for the project that they make."""
    monkeypatch.setenv("CDK_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    server.stop(tmp_path / "my-cluster")


def test_the_tutorial_works(home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    file = home / "my-cluster/environments/sandbox.yaml"
    output: dict[str, str] = {}
    for kind, text in steps():
        if kind == "yaml":
            file.write_text(text)
        elif kind == "diff":
            (old, new) = (line[1:] for line in text.splitlines())
            assert file.read_text().count(old) == 1
            file.write_text(file.read_text().replace(old, new))
            assert main(["check"]) == 0
        for line in text.splitlines() if not kind else ():
            words = shlex.split(line)
            name = " ".join(words[:2]) + (" again" if output.keys() & {line} == {"podwright deploy"} else "")
            if words[0] in ELSEWHERE or name in ELSEWHERE:
                continue
            assert words[0] == "podwright", line
            code = main(words[1:])
            output[line] = "".join(capfd.readouterr())
            assert code == 0, f"{line}: {output[line]}"
            if words[1] == "init":
                monkeypatch.chdir(home / "my-cluster")
                server.start(Path.cwd(), port=0, time_scale=0.1)
    expected(output)
    assert len(list(Path("dashboards").glob("*.json"))) > 5
    assert os.path.commonpath([home, Path.cwd()]) == str(home)


def expected(output: dict[str, str]) -> None:
    """What the page tells its reader to see."""
    assert "endpoints: standard" in output["podwright show sandbox"]
    assert "ml.g5.12xlarge on demand" in output["podwright cost sandbox"]
    assert re.search(r"research +ml\.g5\.12xlarge +vCPU +48 +48 +48 +96", output["podwright quotas sandbox"])
    assert re.search(r"product +ml\.g5\.12xlarge +vCPU +48 +48 +0 +48", output["podwright quotas sandbox"])
    assert "sandbox-governance" in output["podwright deploy"]
    assert "Simulated:" in output["podwright deploy"]
    assert "InService" in output["podwright status sandbox"]
    assert "nothing is wrong" in output["podwright doctor sandbox"]
    assert "kind: PyTorchJob" in output["podwright render jobs sandbox hello"]
    assert "hello created" in output["podwright submit sandbox hello"]
    assert "GpuXid" in output["podwright alerts sandbox"]
