"""docs/scenarios/shared-platform.md, played: work handed to a manager runs on a worker, between real API servers."""

import pytest

from audit_log import KUEUE, check_deciders, writers
from control_plane_parts import parts_of_scenario
from story import Terminal, story

SCENARIO, TIME_SCALE = "shared-platform", 0.1
_, CONNECT, *JOBS, _ = story(SCENARIO)
STEPS = [CONNECT, *JOBS]
PARTS = parts_of_scenario("shared-platform-wanted")
# The cluster of the page's first step takes no part in the story of the other three.
LEFT_OUT = ("podwright deploy shared-platform --sandbox",)
MULTIKUEUE = "system:serviceaccount:kueue-system:podwright-multikueue"
"""The manager, as its worker knows it."""
OREGON, MANAGER = "shared-platform-worker", "shared-platform-wanted"


@pytest.mark.usefixtures("played")
def test_the_page_tells_what_happens() -> None:
    # It was compared while it was played; a page that lost its tables would pass, too.
    assert [len(step.tables) for step in STEPS] == [0, 2, 2, 2]


@pytest.mark.usefixtures("played")
def test_each_clusters_own_kueue_decides(terminal: Terminal) -> None:
    """The manager's hands Workloads to the worker, where it decides nothing, and binds nothing in its own cluster."""
    for environment in (MANAGER, OREGON):
        check_deciders(terminal.plane_of(environment) / "audit.log", {KUEUE})
    assert MULTIKUEUE in writers(terminal.plane_of(OREGON) / "audit.log")["workloads"]
