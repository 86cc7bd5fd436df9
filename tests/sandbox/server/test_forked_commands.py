"""The forked `podwright` of tests behaves as the installed program: arguments, folder, streams, status and end."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from forked_commands import forked_commands
from podwright.operations.programs.process import command_line
from waiting import until

PROJECT = """
name: small
account: "111122223333"
region: us-west-2
network: {zones: [usw2-az2, usw2-az3]}
instance_groups:
  system: {instance_type: ml.m5.4xlarge, count: 2}
"""


@pytest.fixture(scope="module")
def programs() -> Iterator[Path]:
    with forked_commands() as folder:
        yield folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments/small.yaml").write_text(PROJECT)
    return tmp_path


def shell(programs: Path, folder: Path, line: str) -> subprocess.Popen[str]:
    variables = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"}
    pipe = subprocess.PIPE
    return subprocess.Popen(["bash", "-c", line], cwd=folder, env=variables, stdout=pipe, stderr=pipe, text=True)


@pytest.mark.parametrize(
    ("line", "status", "output", "errors"),
    [
        ("podwright show small --json | head -c 1", 0, "{", ""),
        ("podwright check absent; exit $?", 2, "ENV006", ""),
        ("podwright alerts small; exit $?", 2, "", "has no `observability:`"),
        ("podwright nonsense; exit $?", 2, "", "nonsense"),
        ("echo small: | podwright mcp --nonsense 2>&1; exit $?", 2, "nonsense", ""),
    ],
)
def test_a_command_has_its_folder_streams_and_status(
    programs: Path, project: Path, line: str, status: int, output: str, errors: str
) -> None:
    process = shell(programs, project, line)
    answer = process.communicate()
    assert (process.returncode, output in answer[0], errors in answer[1]) == (status, True, True), answer


def test_a_command_has_the_variables_of_its_shell(programs: Path, project: Path) -> None:
    process = shell(programs, project, "COLUMNS=40 podwright check --help | wc --max-line-length")
    assert int(process.communicate()[0]) <= 40


def test_a_command_ends_with_its_program(programs: Path, project: Path) -> None:
    """As when a test's time is over: the command would write on into a folder that is being deleted."""
    # It waits for a request that is never made.
    with shell(programs, project, "mkfifo silent; exec podwright mcp < silent") as process:
        until((project / "silent").exists)
        with (project / "silent").open("w"):
            child = until(lambda: commands_in(project))
            process.send_signal(signal.SIGKILL)
            until(lambda: not command_line(child))


def commands_in(folder: Path) -> int:
    """The id of a forked process whose working folder this is; 0 without one."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            matches = (entry / "cwd").readlink() == folder and b"forked_commands" in (entry / "cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        if matches:
            return int(entry.name)
    return 0
