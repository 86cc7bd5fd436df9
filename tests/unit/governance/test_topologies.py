"""Topologies of instance groups: only labels that every node of a group has."""

import pytest

from podwright.config.catalog.instance_types import catalog
from podwright.config.catalog.topologies import HOSTNAME, topology

LAYERS = tuple(f"topology.k8s.aws/network-node-layer-{number}" for number in (1, 2, 3))


@pytest.mark.parametrize(
    ("types", "name", "levels"),
    [
        pytest.param(["ml.p5en.48xlarge"], "p5en", LAYERS, id="network layers"),
        pytest.param(["ml.p6e-gb200.36xlarge"], "p6e-gb200", ("topology.k8s.aws/ultraserver-id",), id="UltraServers"),
        pytest.param(["ml.g5.12xlarge"], "g5", (), id="a family without labels"),
        pytest.param(["ml.trn2.3xlarge"], "trn2-hosts", (), id="a type without the labels of its family"),
        pytest.param(["ml.p5.48xlarge", "ml.p5e.48xlarge"], "p5-p5e", LAYERS, id="two families with the same labels"),
        pytest.param(["ml.p5.48xlarge", "ml.g5.12xlarge"], "g5-p5-hosts", (), id="two families with nothing in common"),
        pytest.param(["ml.new.large"], "new", (), id="a type without facts"),
    ],
)
def test_levels_are_labels_that_all_types_have(types: list[str], name: str, levels: tuple[str, ...]) -> None:
    resolved_topology = topology(types, catalog())
    assert (resolved_topology.name, resolved_topology.levels) == (name, (*levels, HOSTNAME))


def test_an_environment_may_know_more() -> None:
    known = catalog({"ml.p5.4xlarge": {"topology_labels": f"{LAYERS[0]} {LAYERS[1]}"}})
    assert topology(["ml.p5.4xlarge"], known).levels == (*LAYERS[:2], HOSTNAME)
    assert topology(["ml.p5.4xlarge"], known).name == "p5-2"
    assert topology(["ml.p5.48xlarge"], known).name == "p5"


def test_one_name_never_stands_for_two_sets_of_levels() -> None:
    names = [row.name for row in catalog() if row.topology_labels or row.accelerator_count > 4]
    actual = [topology([one, two], catalog()) for one in names for two in names]
    levels = {item.name: item.levels for item in actual}
    assert all(levels[item.name] == item.levels for item in actual)
