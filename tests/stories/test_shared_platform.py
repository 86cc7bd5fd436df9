"""docs/scenarios/shared-platform.md, played: work handed to a manager runs on a worker, between real API servers."""

import pytest

from audit_log import KUEUE, check_deciders, writers
from control_plane_parts import parts_of_scenario
from story import QUIET_SECONDS, Different, Terminal, standing_still, story

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


def at_oregon(terminal: Terminal) -> None:
    """Read the worker, without the jobs of the test before."""
    terminal.type(f"export KUBECONFIG=.podwright/kubeconfig/{MANAGER}")
    terminal.delete_jobs()
    terminal.type(f"export KUBECONFIG=.podwright/kubeconfig/{OREGON}")


@pytest.mark.usefixtures("played")
@pytest.mark.parametrize("environment", [MANAGER, OREGON])
def test_nothing_runs_without_kueue(terminal: Terminal, environment: str) -> None:
    """Neither without the manager's, which hands work on, nor without the worker's, which admits it."""
    at_oregon(terminal)
    with standing_still(terminal.plane_of(environment), "kueue"), pytest.raises(Different, match=r"align|kueue"):
        terminal.play(JOBS[:1], QUIET_SECONDS)


# The last one: the cluster keeps this quota.
@pytest.mark.usefixtures("played")
def test_one_node_less_of_quota_is_another_story(terminal: Terminal) -> None:
    at_oregon(terminal)
    terminal.change_quota("post-training", 64, 56)
    terminal.comes_to(JOBS[0], "Team: post-training | GPUs: 80 | GPUs borrowed: 24")
