"""Node software: which versions go together, what is installed where, and which variables jobs find."""

import random
from typing import Any

import pytest

from podwright.config.catalog.facts import table
from podwright.config.catalog.instance_types import catalog
from podwright.config.catalog.software_matrix import efa_installers, mismatches, number, older, with_contents
from podwright.config.settings.groups import InstanceGroup
from podwright.config.settings.software import COMPONENTS, NodeSoftware, SoftwareVersions, job_variables
from podwright.lifecycle_scripts.podwright_node.software import matrix as on_node
from podwright.planning.node.archives import archives_of, components_of
from podwright.planning.node.software_facts import cluster_software

EVERYTHING = SoftwareVersions(
    efa_installer="1.50.0", nccl="2.31.2", aws_ofi_nccl="1.21.1", gdrcopy="2.5.2", nccl_tests="2.18.3"
)
TYPES = catalog()


def group(instance_type: str, **more: Any) -> InstanceGroup:
    return InstanceGroup(instance_type=instance_type, count=2, **more)


def texts(**versions: str) -> list[str]:
    return [f"{item.level}: {item.text}" for item in mismatches(versions)]


@pytest.mark.parametrize(
    ("version", "other", "expected"),
    [
        ("2.4.0amzn5.0", "2.6.0", True),
        ("2.6.0amzn1.0", "2.6.0", False),
        ("2.30.4+cuda13.2", "2.17.1", False),
        ("2.9.9", "2.17.1", True),
        ("2.5", "2.5.0", False),
        ("2.5", "2.5.2", True),
    ],
)
def test_versions_are_compared_as_numbers(version: str, other: str, expected: bool) -> None:
    assert older(version, other) is expected


def test_a_text_without_a_number_at_its_beginning_has_none() -> None:
    assert number("v2.3") == ()
    assert number("") == ()


def test_a_plug_in_on_an_older_nccl_is_an_error() -> None:
    (actual,) = texts(aws_ofi_nccl="1.16.3", nccl="2.16.5")
    assert actual == (
        "error: aws-ofi-nccl 1.16.3 needs NCCL 2.17.1 or newer, found 2.16.5: "
        "the plug-in has no interface for an older NCCL"
    )


def test_what_the_newer_plug_in_asks_for_does_not_hide_what_it_cannot_do_without() -> None:
    assert [text[:5] for text in texts(aws_ofi_nccl="1.21.1", libfabric="1.18.0")] == ["error", "warni"]


def test_a_newer_nccl_than_was_tested_is_a_warning() -> None:
    assert texts(aws_ofi_nccl="1.20.0", nccl="2.30.4") == []
    (actual,) = texts(aws_ofi_nccl="1.20.0", nccl="2.31.2")
    assert actual == ("warning: NCCL 2.31.2 is newer than 2.30.4, the newest that aws-ofi-nccl 1.20.0 was tested with")


def test_nothing_is_said_about_what_is_not_there() -> None:
    assert texts(aws_ofi_nccl="1.21.1") == []
    assert texts(nccl="2.16.5") == []


def test_an_instance_family_asks_for_a_plug_in_that_knows_it() -> None:
    (resolved_mismatches,) = mismatches({"p6-b300": "", "aws_ofi_nccl": "1.17.0"})
    assert resolved_mismatches.text.startswith("p6-b300 needs aws-ofi-nccl 1.18.0 or newer, found 1.17.0")


def test_the_efa_installer_brings_libfabric_and_the_plug_in() -> None:
    assert with_contents({"efa_installer": "1.50.0"}) == {
        "efa_installer": "1.50.0",
        "libfabric": "2.6.0amzn1.0",
        "aws_ofi_nccl": "1.21.1",
    }
    assert with_contents({"efa_installer": "1.50.0", "aws_ofi_nccl": "1.20.0"})["aws_ofi_nccl"] == "1.20.0"
    assert with_contents({"efa_installer": "9.9.9"}) == {"efa_installer": "9.9.9"}


def test_every_published_combination_of_an_installer_fits_itself() -> None:
    for version in efa_installers():
        assert [item for item in mismatches(with_contents({"efa_installer": version})) if item.level == "error"] == []


def test_tables_name_known_components_and_versions_that_are_numbers() -> None:
    for row in table("software_needs"):
        assert number(row["from"])
        assert number(row["at_least"])
        assert row["level"] in ("error", "warning")
    dates = [row.date for row in efa_installers().values()]
    assert dates == sorted(dates)


def test_the_node_judges_as_the_workstation_does() -> None:
    facts = cluster_software(NodeSoftware()).model_dump(mode="json")
    choose = random.Random(7)
    versions = ["1.12.0", "1.13.0", "1.21.1", "1.22.0amzn4.0", "2.4", "2.5.2", "2.6.0amzn1.0", "2.17.0", "12.4", "13.0"]
    drivers = ["520.1", "535.216", "580.95.05"]
    output = 0
    for _ in range(500):
        actual = {name: choose.choice(versions) for name in ("nccl", "aws_ofi_nccl", "libfabric", "gdrcopy", "cuda")}
        actual["nvidia_driver"] = choose.choice(drivers)
        actual = {name: version for name, version in actual.items() if choose.random() < 0.8}
        actual |= {choose.choice(["p5en", "p5", "p6-b300"]): ""}
        ours = [(item.level.value, item.text) for item in mismatches(actual) if "the newest that" not in item.text]
        assert on_node.mismatches(facts, actual) == ours
        output += len(ours)
    assert output > 200


def test_verify_installs_nothing() -> None:
    settings = NodeSoftware(versions=EVERYTHING)
    assert components_of(settings, "slurm", group("ml.p5en.48xlarge"), TYPES) == []
    assert archives_of(settings, "slurm", [group("ml.p5en.48xlarge")], TYPES) == ()


def test_a_plug_in_that_the_installer_brings_is_not_built() -> None:
    bundled = NodeSoftware(install="pin", versions=EVERYTHING)
    assert components_of(bundled, "slurm", group("ml.p5en.48xlarge"), TYPES) == [
        name for name in COMPONENTS if name != "aws_ofi_nccl"
    ]
    other = NodeSoftware(install="pin", versions=EVERYTHING.model_copy(update={"aws_ofi_nccl": "1.20.0"}))
    assert "aws_ofi_nccl" in components_of(other, "slurm", group("ml.p5en.48xlarge"), TYPES)


def test_with_eks_only_kernel_parts_are_installed_on_the_host() -> None:
    settings = NodeSoftware(install="ensure", versions=EVERYTHING)
    assert components_of(settings, "eks", group("ml.p5en.48xlarge"), TYPES) == ["efa_installer", "gdrcopy"]


def test_types_without_efa_or_gpus_get_nothing_and_trainium_gets_efa() -> None:
    settings = NodeSoftware(install="ensure", versions=EVERYTHING)
    assert components_of(settings, "slurm", group("ml.m5.4xlarge"), TYPES) == []
    assert components_of(settings, "slurm", group("ml.trn1.32xlarge"), TYPES) == ["efa_installer"]
    assert components_of(settings, "slurm", group("ml.g5.xlarge"), TYPES) == ["nccl", "nccl_tests"]


def test_archives_are_for_the_architectures_of_the_groups() -> None:
    settings = NodeSoftware(install="ensure", versions=EVERYTHING, cuda="12")
    groups = [group("ml.p5en.48xlarge"), group("ml.p6e-gb200.36xlarge"), group("ml.p5.48xlarge")]
    actual = {item.name: item for item in archives_of(settings, "slurm", groups, TYPES)}
    assert sorted(actual) == [
        "efa_installer-1.50.0",
        "gdrcopy-2.5.2",
        "nccl-2.31.2-cu12-arm64",
        "nccl-2.31.2-cu12-x86_64",
        "nccl_tests-2.18.3",
    ]
    assert actual["nccl-2.31.2-cu12-arm64"].address == "nvidia-nccl-cu12==2.31.2"
    assert actual["nccl-2.31.2-cu12-arm64"].wheel_platform == "manylinux_2_18_aarch64"


def test_packages_are_fetched_for_the_architectures_of_the_groups() -> None:
    packages = {
        name: {"address": f"https://example.com/{name}.rpm", "systems": ["amzn2023"], "architecture": name}
        for name in ("x86_64", "arm64")
    }
    named = {"x86": packages["x86_64"], "arm": packages["arm64"]}
    settings = NodeSoftware.model_validate({"install": "ensure", "packages": named})
    (archives,) = archives_of(settings, "eks", [group("ml.m5.4xlarge")], TYPES)
    assert (archives.name, archives.address) == ("package-x86-x86_64", "https://example.com/x86_64.rpm")
    only_checked = settings.model_copy(update={"install": "verify"})
    assert archives_of(only_checked, "eks", [group("ml.m5.4xlarge")], TYPES) == ()


def test_groups_with_scripts_of_their_own_need_no_archives() -> None:
    settings = NodeSoftware(install="ensure", versions=EVERYTHING)
    own = group("ml.p5en.48xlarge", lifecycle={"source": "s3://sagemaker-a/b", "on_create": "c.sh"})
    assert archives_of(settings, "slurm", [own], TYPES) == ()


def test_few_variables_are_recommended_and_settings_have_the_last_word() -> None:
    h200 = (TYPES.get("ml.p5en.48xlarge"),)
    assert job_variables(NodeSoftware(), h200) == {
        "FI_EFA_USE_HUGE_PAGE": "0",
        "NCCL_DEBUG": "WARN",
        "NCCL_SOCKET_IFNAME": "^docker,lo,veth",
    }
    own = NodeSoftware(variables={"NCCL_DEBUG": "", "NCCL_SOCKET_IFNAME": "en", "OMP_NUM_THREADS": "8"})
    assert job_variables(own, h200) == {"FI_EFA_USE_HUGE_PAGE": "0", "NCCL_SOCKET_IFNAME": "en", "OMP_NUM_THREADS": "8"}


def test_variables_follow_what_the_type_has() -> None:
    assert set(job_variables(NodeSoftware(), (TYPES.get("ml.p6e-gb200.36xlarge"),))) > {"NCCL_MNNVL_ENABLE"}
    assert job_variables(NodeSoftware(), (TYPES.get("ml.trn1.32xlarge"),)) == {"FI_EFA_USE_HUGE_PAGE": "0"}
    assert job_variables(NodeSoftware(), (TYPES.get("ml.m5.4xlarge"),)) == {}
