"""The simulator and a real Kueue decide the same, step by step, about policies and streams of jobs of fixed seeds."""

from collections.abc import Iterator

import pytest

from api_server import started
from kueue_steps import CONFIGURATIONS, Cluster, compare
from podwright.sandbox.control_plane.control_plane import ControlPlane

# Of the last one a head that is told that nobody can be preempted for it keeps another from its quota for one cycle.
SEEDS = (*range(12), 15, 46, 82, 209)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with started(tmp_path_factory.mktemp("real-kueue"), "kueue") as control_plane:
        control_plane.install("kueue", CONFIGURATIONS[False])
        yield control_plane


@pytest.fixture(scope="module")
def cluster(plane: ControlPlane) -> Iterator[Cluster]:
    made = Cluster(plane)
    yield made
    made.close()


@pytest.mark.parametrize("is_fair", [False, True], ids=["classical", "by shares"])
def test_the_simulator_decides_as_kueue_does(plane: ControlPlane, cluster: Cluster, is_fair: bool) -> None:
    plane.restart("kueue", CONFIGURATIONS[is_fair])
    outcome = compare(cluster, SEEDS, is_fair=is_fair, comes=6, turns=2)
    assert not outcome.differences, "\n".join(map(str, outcome.differences))
    assert outcome.preemptions > 0, "nobody was preempted, so this says little"
    assert outcome.growths > 0, "no job grew"
