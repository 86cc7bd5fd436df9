"""EFA interfaces that Lustre uses, and who mounts."""

import pytest

from fake_node import FILE_SYSTEMS, facts_of
from podwright.config.catalog.facts import cited, table
from podwright.config.catalog.instance_types import catalog
from podwright.planning.node.lustre_clients import lustre_efa_interfaces


@pytest.mark.parametrize(
    ("name", "interfaces"),
    [
        ("ml.p5.48xlarge", 8),
        ("ml.p6-b300.48xlarge", 16),
        ("ml.g6e.48xlarge", 2),
        ("ml.g6.48xlarge", 1),
        ("ml.p4d.24xlarge", 0),
        ("ml.trn2.48xlarge", 0),
        ("ml.m5.4xlarge", 0),
    ],
)
def test_as_many_as_the_user_guide_says(name: str, interfaces: int) -> None:
    assert lustre_efa_interfaces(catalog().get(name)) == interfaces


def test_every_row_is_a_type_with_a_source() -> None:
    for row in table("lustre_clients"):
        assert row["type"] in catalog()
        assert cited(row["source"])


@pytest.mark.parametrize(
    ("orchestrator", "group", "mounts"),
    [
        ("slurm", {}, (True, True)),
        ("slurm", {"mount_lustre": True}, (False, True)),
        ("slurm", {"mount_home": True}, (True, False)),
        ("eks", {}, (False, False)),
        ("eks", {"mount_lustre": True, "mount_home": True}, (False, False)),
    ],
)
def test_scripts_mount_on_slurm_unless_hyperpod_does(
    orchestrator: str, group: dict[str, bool], mounts: tuple[bool, bool]
) -> None:
    facts = facts_of({"instance_type": "ml.p5.48xlarge", **group}, orchestrator, FILE_SYSTEMS)["groups"]["workers"]
    assert (facts["mounts_lustre"], facts["mounts_home"]) == mounts


def test_scripts_mount_nothing_where_there_is_nothing() -> None:
    facts = facts_of({"instance_type": "ml.p5.48xlarge"}, "slurm")["groups"]["workers"]
    assert (facts["mounts_lustre"], facts["mounts_home"]) == (False, False)
