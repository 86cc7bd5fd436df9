"""What stories share. The module of one has SCENARIO, TIME_SCALE, ENGINE and STEPS.

ENGINE is a process of the control plane. CHANGES, where the module has it, are those of the scenario's file.
"""

from collections.abc import Iterator

import pytest

from needs import require
from story import INSTALLED, Terminal, deployed, standing_still


@pytest.fixture(scope="module")
def terminal(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """A folder with the scenario's file, and a sandbox of its own in which it is deployed."""
    require(INSTALLED, "the control plane: `podwright sandbox kubernetes install`")
    name, changes = request.module.SCENARIO, getattr(request.module, "CHANGES", None)
    with deployed(name, tmp_path_factory.mktemp(name), request.module.TIME_SCALE, changes) as user:
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
