"""Fixtures of stories. The module of a story has SCENARIO, TIME_SCALE and STEPS.

These are optional: ENGINE, a process of the control plane that `engine_stopped` stops; PARTS of the control plane for a
story of other environments than the scenario's; LEFT_OUT, commands of the page's first step that are not typed;
CDK_CLI, True if `podwright deploy` starts the real CDK CLI, as it does in the story of two-teams.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from control_plane_parts import GO_SETTINGS, parts_of_scenario, require_parts
from forked_commands import forked_commands
from story import Terminal, deployed, standing_still


@pytest.fixture(scope="session", autouse=True)
def go_settings() -> Iterator[None]:
    """Let control planes trade memory for CPU time."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in GO_SETTINGS.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="module")
def commands(request: pytest.FixtureRequest) -> Path:
    """A folder with a `podwright` that starts fast."""
    real = getattr(request.module, "CDK_CLI", False)
    return request.getfixturevalue("commands_with_cdk" if real else "commands_without_cdk")


@pytest.fixture(scope="session")
def commands_with_cdk() -> Iterator[Path]:
    """One that deploys by the CDK CLI, as a user's does."""
    with forked_commands() as folder:
        yield folder


@pytest.fixture(scope="session")
def commands_without_cdk() -> Iterator[Path]:
    """One that deploys the same assembly by CloudFormation's API, in a quarter of the processor time."""
    with forked_commands(cdk_cli=False) as folder:
        yield folder


@pytest.fixture(scope="module")
def terminal(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, commands: Path
) -> Iterator[Terminal]:
    """A folder with the scenario's file, and a sandbox of its own in which it is deployed."""
    module = request.module
    name = module.SCENARIO
    require_parts(*getattr(module, "PARTS", parts_of_scenario(name)))
    left_out = getattr(module, "LEFT_OUT", ())
    folder = tmp_path_factory.mktemp(name)
    with deployed(name, folder, module.TIME_SCALE, left_out=left_out, programs=commands) as user:
        yield user


@pytest.fixture(scope="module")
def played(request: pytest.FixtureRequest, terminal: Terminal) -> None:
    """The story has been played, and every table was compared."""
    terminal.play(request.module.STEPS)


@pytest.fixture
def no_jobs(terminal: Terminal) -> None:
    """What was submitted before is deleted."""
    terminal.delete_jobs()


@pytest.fixture
def engine_stopped(request: pytest.FixtureRequest, terminal: Terminal, no_jobs: None) -> Iterator[None]:
    """The engine's process of this cluster stands still."""
    with standing_still(terminal.plane, request.module.ENGINE):
        yield
