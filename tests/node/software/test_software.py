"""Software on a node: what is installed, checked and refused, with the real programs that build and unpack."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fake_node import SCRIPTS, FakeNode, publish
from kill_runs import kill_runs
from needs import needs_programs, python_39
from software_services import nccl_library, remembered, run, software_node

ALL = {
    "efa_installer": "1.50.0",
    "nccl": "2.31.2",
    "aws_ofi_nccl": "1.20.0",
    "gdrcopy": "2.5.2",
    "nccl_tests": "2.18.3",
}
pytestmark = needs_programs("make", "gcc", "g++", package="make, gcc and g++")


def outcomes(node: FakeNode) -> dict[str, str]:
    return {name: step["outcome"] for name, step in node.summary["steps"].items()}


def came_up(node: FakeNode) -> dict[str, str]:
    """The outcomes of the steps; all have to go well."""
    result = node.shell(run(node))
    assert result.returncode == 0, result.stdout + result.stderr
    return outcomes(node)


def failed(node: FakeNode, step: str) -> str:
    """The error of the step that has to fail."""
    result = node.shell(run(node))
    assert result.returncode == 1, result.stdout
    (error,) = [event["error"] for event in node.events if event["event"] == "error" and event["step"] == step]
    return error


def commands(node: FakeNode, name: str) -> list[str]:
    lines = (node.root / "run/fake/calls").read_text().splitlines()
    return [line for line in lines if line.startswith(f"{name} ")]


@pytest.mark.parametrize("system", ["amzn2023", "ubuntu22.04", "ubuntu24.04"])
def test_installs_everything_on_a_slurm_node(folder: Path, system: str) -> None:
    node = software_node(folder, {"install": "pin", "versions": ALL}, system=system)
    assert set(came_up(node).values()) == {"changed", "not-needed"}
    actual = remembered(node)["found"]
    messages = {"efa_driver": "3.3.0g", "libfabric": "2.6.0amzn1.0", "cuda": "13.0", "nvidia_driver": "580.95.05"}
    assert actual == ALL | messages
    assert commands(node, "efa_installer.sh") == ["efa_installer.sh 1.50.0 --yes"]
    assert bool(commands(node, "dpkg")) is system.startswith("ubuntu")
    own = node.root / "opt/podwright"
    assert (own / "nccl_tests/bin/all_reduce_perf").read_text() == f"{own}/nccl\n"
    assert (own / "nccl/lib/libnccl.so").resolve() == (own / "software/nccl-2.31.2/lib/libnccl.so.2").resolve()
    assert (node.root / "etc/ld.so.conf.d/000-podwright-nccl.conf").read_text() == "/opt/podwright/nccl/lib\n"
    # Nothing that only the installation needed is left.
    assert list((node.root / "var/lib/podwright/software").iterdir()) == []
    assert (node.root / "etc/apt/sources.list").read_text().startswith("deb ")


def test_a_second_run_changes_nothing(folder: Path) -> None:
    node = software_node(folder, {"install": "pin", "versions": ALL})
    came_up(node)
    assert set(came_up(node).values()) == {"unchanged", "not-needed"}


def test_on_eks_only_the_kernel_gets_something(folder: Path) -> None:
    node = software_node(folder, {"install": "ensure", "versions": ALL}, orchestrator="eks", system="amzn2023")
    done = came_up(node)
    assert {name for name, outcome in done.items() if outcome == "changed"} == {
        *("efa-software", "gdrcopy-software", "software-versions")
    }
    assert commands(node, "efa_installer.sh") == ["efa_installer.sh 1.50.0 --yes --minimal"]
    assert not (node.root / "opt/podwright/gdrcopy/lib").exists()


def test_the_module_of_the_image_gives_way_to_the_one_that_was_built(folder: Path) -> None:
    node = software_node(folder, {"install": "ensure", "versions": {"gdrcopy": "2.5.2"}})
    came_up(node)
    (module,) = (node.root / "lib/modules").rglob("gdrdrv.ko*")
    assert module.parent.name == "updates"
    assert module.read_text() == "the module of 2.5.2\n"
    assert (node.root / "opt/podwright/gdrcopy/lib/libgdrapi.so").exists()


LUSTRE = {
    "client": {"address": "https://example.com/client.deb", "systems": ["ubuntu22.04", "ubuntu24.04"]},
    "modules": {
        "address": "https://example.com/modules.deb",
        "systems": ["ubuntu22.04"],
        "kernel": Path("/proc/sys/kernel/osrelease").read_text().strip(),
    },
    "other": {"address": "https://example.com/other.deb", "systems": ["ubuntu22.04"], "kernel": "5.15.0-1-aws"},
    "arm": {"address": "https://example.com/arm.deb", "systems": ["ubuntu22.04"], "architecture": "arm64"},
    "amazon": {"address": "https://example.com/client.rpm", "systems": ["amzn2023"]},
}


def test_packages_for_this_system_and_kernel_are_installed_together(folder: Path) -> None:
    node = software_node(folder, {"install": "ensure", "packages": LUSTRE})
    assert came_up(node)["packages-software"] == "changed"
    files = f"{node.root}/var/lib/podwright/software/package-"
    assert commands(node, "dpkg") == [
        "dpkg --configure -a",
        f"dpkg --install {files}client.archive {files}modules.archive",
    ]
    assert came_up(node)["packages-software"] == "unchanged"
    assert not commands(node, "rpm")


def test_packages_of_amazon_linux_take_the_place_of_others(folder: Path) -> None:
    node = software_node(folder, {"install": "pin", "packages": LUSTRE}, system="amzn2023", orchestrator="eks")
    came_up(node)
    file = f"{node.root}/var/lib/podwright/software/package-amazon.archive"
    assert commands(node, "rpm") == [f"rpm --upgrade --oldpackage --replacepkgs {file}"]
    assert not commands(node, "dpkg")


def installed_by_the_image(node: FakeNode, version: str) -> None:
    node.put("opt/amazon/efa_installed_packages", f"# EFA installer version: {version}\n# Packages installed:\n")


def test_ensure_leaves_what_is_newer(folder: Path) -> None:
    node = software_node(folder, {"install": "ensure", "versions": {"efa_installer": "1.50.0"}})
    installed_by_the_image(node, "1.51.0")
    assert came_up(node)["efa-software"] == "unchanged"


def test_ensure_replaces_what_is_older(folder: Path) -> None:
    node = software_node(folder, {"install": "ensure", "versions": {"efa_installer": "1.50.0"}})
    installed_by_the_image(node, "1.48.0")
    assert came_up(node)["efa-software"] == "changed"
    assert commands(node, "efa_installer.sh") == ["efa_installer.sh 1.50.0 --yes"]


def test_pin_goes_back_to_an_older_version_only_after_the_newer_is_gone(folder: Path) -> None:
    node = software_node(folder, {"install": "pin", "versions": {"efa_installer": "1.50.0"}})
    installed_by_the_image(node, "1.51.0")
    came_up(node)
    assert commands(node, "efa_installer.sh") == [
        "efa_installer.sh 1.50.0 --uninstall --yes",
        "efa_installer.sh 1.50.0 --yes",
    ]
    assert remembered(node)["found"]["efa_installer"] == "1.50.0"


def test_verify_installs_nothing_and_writes_down_what_is_there(folder: Path) -> None:
    node = software_node(folder, {})
    (node.root / "usr/lib/libnccl.so.2").write_bytes(nccl_library("2.28.3", "12.9"))
    done = came_up(node)
    assert {name for name, outcome in done.items() if outcome == "changed"} == {"software-versions", "job-variables"}
    assert remembered(node)["found"]["nccl"] == "2.28.3"
    assert remembered(node)["found"]["cuda"] == "12.9"


@pytest.mark.parametrize("mismatch", ["fail", "warn"])
def test_a_stack_that_cannot_work_is_told_before_it_costs_a_job(folder: Path, mismatch: str) -> None:
    node = software_node(folder, {"mismatch": mismatch})
    (node.root / "usr/lib/libnccl.so.2").write_bytes(nccl_library("2.16.5", "13.0"))
    plugin = b"aws-ofi-nccl 1.21.1\0"
    node.put("opt/amazon/ofi-nccl/lib/libnccl-net.so", plugin.decode())
    node.put("sys/module/nvidia/version", "570.1\n")
    messages = "aws-ofi-nccl 1.21.1 needs NCCL 2.17.1 or newer, found 2.16.5"
    if mismatch == "warn":
        came_up(node)
        assert any(messages in text for _, text in remembered(node)["problems"])
    else:
        error = failed(node, "software-versions")
        assert messages in error
        assert "CUDA 13.0 needs NVIDIA driver 580 or newer, found 570.1" in error


def test_verify_takes_versions_as_the_oldest_that_may_be(folder: Path) -> None:
    node = software_node(folder, {"versions": {"efa_installer": "1.49.0", "nccl": "2.20.0"}})
    installed_by_the_image(node, "1.47.0")
    error = failed(node, "software-versions")
    assert "the environment asks for EFA installer 1.49.0, found 1.47.0" in error
    assert "the environment asks for NCCL 2.20.0, found none" in error


def test_an_archive_that_is_not_what_was_published_is_not_installed(folder: Path) -> None:
    node = software_node(folder, {"install": "ensure", "versions": {"nccl": "2.31.2"}})
    (published,) = (node.root / "run/fake/s3").rglob("nccl-*")
    published.write_bytes(b"something else")
    error = failed(node, "nccl-software")
    assert "the deployment published" in error
    assert not (node.root / "opt/podwright").exists()
    assert list((node.root / "var/lib/podwright/software").iterdir()) == []


def test_a_missing_archive_names_its_place(folder: Path) -> None:
    node = software_node(folder, {"install": "ensure", "versions": {"nccl": "2.31.2"}})
    shutil.rmtree(node.root / "run/fake/s3")
    assert "s3://sagemaker-test/test/archives/" in failed(node, "nccl-software")


def test_an_installer_that_wants_more_than_the_image_has_says_so(folder: Path) -> None:
    node = software_node(folder, {"install": "ensure", "versions": {"efa_installer": "1.50.0"}})
    (node.root / "opt/amazon").write_text("not a folder")
    assert "the EFA installer saw no package repository" in failed(node, "efa-software")


def test_no_kernel_headers_no_module(folder: Path) -> None:
    node = software_node(folder, {"install": "ensure", "versions": {"gdrcopy": "2.5.2"}})
    for build in (node.root / "lib/modules").glob("*/build"):
        shutil.rmtree(build)
    assert "the image has no headers of its kernel" in failed(node, "gdrcopy-software")


def test_a_full_disk_leaves_nothing_half_installed(folder: Path) -> None:
    node = software_node(folder, {"install": "ensure", "versions": {"nccl": "2.31.2"}})
    location = node.root / "opt/podwright"
    location.mkdir(parents=True)
    result = node.shell(
        f"mount -t tmpfs -o size=4k none {location}; {run(node)} && exit 3; umount {location}; {run(node)}"
    )
    assert result.returncode == 0, result.stdout
    assert "No space left on device" in result.stdout
    assert remembered(node)["found"]["nccl"] == "2.31.2"


def test_jobs_find_the_variables_and_may_set_their_own(folder: Path) -> None:
    node = software_node(folder, {"variables": {"NOTE": "it's a test", "NCCL_DEBUG": ""}})
    came_up(node)
    file = node.root / "etc/profile.d/podwright-jobs.sh"
    shown = node.shell(f"export FI_EFA_USE_HUGE_PAGE=1; . {file}; env")
    lines = shown.stdout.splitlines()
    assert {"FI_EFA_USE_HUGE_PAGE=1", "NCCL_SOCKET_IFNAME=^docker,lo,veth", "NOTE=it's a test"} <= set(lines)
    assert not [line for line in lines if line.startswith("NCCL_DEBUG=")]


def test_killed_before_any_change_it_ends_the_same(folder: Path, request: pytest.FixtureRequest) -> None:
    """With everything that podwright installs, and an older EFA installer in place of a newer one."""
    stride = 1 if request.config.getoption("--every-point") else 12
    import_order = "import podwright_node.__main__ as m; print(*(step.name for step in m.STEPS))"
    every = subprocess.run(
        [sys.executable, "-B", "-c", import_order], cwd=SCRIPTS, capture_output=True, text=True, check=True
    ).stdout.split()
    ours = [name for name in every if "software" in name or name == "job-variables"]
    assert len(ours) == 8
    task = {
        "node": {"software": {"install": "pin", "versions": ALL, "packages": LUSTRE}},
        "steps": ours,
        # Those that ours need stay, and do what they do on every node.
        "without": sorted(set(every) - {*ours, "name-resolution", "network", "gpus"}),
        "running": [],
        "file_systems": False,
        "spoilt": False,
        "stride": stride,
    }
    answer = kill_runs("software/killing_software.py", folder, task)
    for case in answer["cases"]:
        assert case["killed"], f"did not come to {case['point']}"
        assert case["code"] == 0, f"killed before {case['point']}\n{case['log']}"
        assert case["differs"] == {}, f"killed before {case['point']}"
    assert len(answer["cases"]) > 80 // stride
    assert {case["point"].partition(":")[0] for case in answer["cases"]} == set(ours)


def test_login_nodes_set_what_all_groups_agree_on(folder: Path) -> None:
    node = software_node(folder, {})
    facts = json.loads((node.bundle / "node.json").read_text())
    facts["slurm"]["login_groups"] = ["workers"]
    facts["groups"]["gb200"] = json.loads(json.dumps(facts["groups"]["workers"]))
    facts["groups"]["gb200"]["software"]["variables"] = {"NCCL_DEBUG": "INFO", "FI_EFA_USE_HUGE_PAGE": "0", "MORE": "1"}
    facts["groups"]["plain"] = json.loads(json.dumps(facts["groups"]["workers"]))
    facts["groups"]["plain"]["software"]["variables"] = {}
    publish(node.bundle, facts)
    came_up(node)
    lines = (node.root / "etc/profile.d/podwright-jobs.sh").read_text().splitlines()
    assert lines[1:] == ["export FI_EFA_USE_HUGE_PAGE=${FI_EFA_USE_HUGE_PAGE-0}"]


def test_runs_on_the_python_of_amazon_linux(folder: Path) -> None:
    node = software_node(folder, {"install": "pin", "versions": ALL}, system="amzn2023")
    node.python = python_39()
    came_up(node)
