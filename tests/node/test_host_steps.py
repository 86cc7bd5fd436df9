"""What the steps make of hosts of several kinds: files, units, mounts, and which steps a host needs."""

from pathlib import Path
from typing import Any

import pytest

from fake_node import FILE_SYSTEMS, FakeNode, make_node

HOST_STEPS = (
    "clock",
    "efa",
    "fabric-manager",
    "gdrcopy",
    "gpus",
    "home",
    "homes",
    "imex",
    "limits",
    "lnet",
    "local-nvme",
    "log-rotation",
    "lustre",
    "name-resolution",
    "network",
    "neuron",
    "persistence",
    "ssh",
    "storage",
)
EKS: dict[str, Any] = {"instance_type": "ml.p5en.48xlarge"}
SLURM: dict[str, Any] = {"orchestrator": "slurm", "system": "ubuntu22.04", "file_systems": FILE_SYSTEMS}


def set_up(node: FakeNode, *steps: str, script: str = "") -> str:
    """Run these steps of the host, and what they need; what `script` prints afterwards. They have to succeed."""
    result = node.shell(f"{node.only(*steps)}\n{script}")
    assert result.returncode == 0, result.stderr + (node.root / "only.log").read_text()
    return result.stdout


def needed(node: FakeNode) -> set[str]:
    return {name for name, step in node.summary["steps"].items() if step["outcome"] != "not-needed"}


@pytest.mark.parametrize(
    ("kind", "not_needed"),
    [
        pytest.param(
            EKS, {"home", "homes", "imex", "lnet", "lustre", "neuron"}, id="EKS, H200, Amazon Linux 2023, no Lustre"
        ),
        pytest.param({**EKS, "file_systems": FILE_SYSTEMS}, {"home", "homes", "imex", "lustre", "neuron"}, id="with"),
        pytest.param({**SLURM, "instance_type": "ml.p5.48xlarge"}, {"imex", "neuron"}, id="Slurm, H100, Ubuntu"),
        pytest.param(
            {**SLURM, "instance_type": "ml.p6e-gb200.36xlarge", "system": "ubuntu24.04"},
            {"fabric-manager", "neuron"},
            id="Slurm, GB200, Arm",
        ),
        pytest.param(
            {**SLURM, "instance_type": "ml.trn2.48xlarge"},
            {"fabric-manager", "gdrcopy", "gpus", "imex", "lnet", "persistence"},
            id="Slurm, Trainium 2: FSx takes no EFA client",
        ),
        pytest.param(
            {**SLURM, "instance_type": "ml.m5.4xlarge", "role": "controller"},
            {"efa", "fabric-manager", "gdrcopy", "gpus", "imex", "lnet", "local-nvme", "neuron", "persistence"},
            id="Slurm's controller",
        ),
        pytest.param(
            {**SLURM, "instance_type": "ml.p5.48xlarge", "mount_lustre": True, "mount_home": True},
            {"home", "homes", "imex", "lustre", "neuron"},
            id="HyperPod mounts",
        ),
    ],
)
def test_a_node_takes_the_steps_that_its_kind_needs(folder: Path, kind: dict[str, Any], not_needed: set[str]) -> None:
    node = make_node(folder, **kind)
    set_up(node, *HOST_STEPS)
    assert set(HOST_STEPS) - needed(node) == not_needed


@pytest.mark.parametrize("kind", [EKS, {**SLURM, "instance_type": "ml.p5.48xlarge"}], ids=["Amazon Linux", "Ubuntu"])
def test_a_second_run_finds_nothing_to_do(folder: Path, kind: dict[str, Any]) -> None:
    node = make_node(folder, **kind)
    run = node.only(*HOST_STEPS)
    set_up(node, *HOST_STEPS, script=run)
    assert {step["outcome"] for step in node.summary["steps"].values()} == {"unchanged", "not-needed"}


def test_lustre_goes_over_efa_where_zone_and_type_agree(folder: Path) -> None:
    node = make_node(folder, "ml.p5.48xlarge", **SLURM)
    shown = set_up(node, "lustre", script="findmnt --list --noheadings --output TARGET")
    assert f"{node.root}/fsx\n" in shown
    assert f"{node.root}/scratch-1\n" in shown
    # One of four: 8 interfaces of 32, each on a PCI bus of its own.
    assert (node.root / "run/fake/lnet").read_text().split() == [f"rdmap{index:03}s0" for index in range(0, 32, 4)]
    unit = (node.root / "etc/systemd/system/podwright-lnet.service").read_text()
    assert "kefalnd ipif_name=ens5\n" in unit
    assert "ptlrpcd_per_cpt_max=32" in (node.root / "etc/modprobe.d/podwright-lustre.conf").read_text()
    fsx = (node.root / "etc/systemd/system/fsx.mount").read_text()
    assert "What=fs-1.fsx@tcp:/abcdefgh\nWhere=/fsx\nType=lustre\nOptions=noatime,flock,_netdev\n" in fsx
    assert "Requires=podwright-lnet.service\n" in fsx
    assert "podwright-lnet" not in (node.root / "etc/systemd/system/scratch\\x2d1.mount").read_text()
    assert (node.root / "etc/systemd/system/remote-fs.target.wants/fsx.mount").is_symlink()


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"zone": "usw2-az1"}, id="another zone"),
        pytest.param({"instance_type": "ml.p4d.24xlarge"}, id="EFA of the first generation"),
    ],
)
def test_lustre_goes_over_tcp_elsewhere(folder: Path, change: dict[str, Any]) -> None:
    node = make_node(folder, **{"instance_type": "ml.p5.48xlarge", **SLURM, **change})
    set_up(node, "lustre")
    assert not (node.root / "run/fake/lnet").exists()
    assert "podwright-lnet" not in (node.root / "etc/systemd/system/fsx.mount").read_text()


def test_an_image_without_the_module_reaches_lustre_over_tcp_and_says_so(folder: Path) -> None:
    node = make_node(folder, "ml.p5.48xlarge", **SLURM)
    node.put("run/fake/modules", "lustre\n")
    set_up(node, "lustre", "gdrcopy")
    notes = [event["note"] for event in node.events if event["event"] == "warning"]
    assert "the image has no module kefalnd: Lustre goes over TCP, which is slower" in notes
    assert "the image has no module gdrdrv: NCCL's small messages are slower without" in notes
    assert node.summary["steps"]["gdrcopy"]["outcome"] == "not-needed"


def test_a_mount_that_takes_no_writes_is_made_anew_until_it_does(folder: Path) -> None:
    node = make_node(folder, "ml.p5.48xlarge", **SLURM)
    node.put("run/fake/read-only-mounts", "3")
    set_up(node, "lustre")
    waits = [event for event in node.events if event["event"] == "waiting" and "takes writes" in event["what"]]
    assert len(waits) == 3
    assert all("Read-only file system" in event["saw"] for event in waits)
    assert node.calls("stop ")[:1] == ["stop fsx.mount"]
    # Nothing of the probe stays in what everybody shares.
    assert [path.name for path in node.root.glob("servers/*/*")] == []


def test_users_of_the_image_find_a_home_on_the_shared_file_system(folder: Path) -> None:
    node = make_node(folder, "ml.p5.48xlarge", **SLURM)
    node.put("etc/skel/.bashrc", "# theirs")
    shown = set_up(
        node, "homes", script="stat -c '%a %u:%g %n' $PODWRIGHT_ROOT/home/ubuntu/.bashrc $PODWRIGHT_ROOT/home/*"
    )
    assert shown.replace(str(node.root), "") == "644 1000:1000 /home/ubuntu/.bashrc\n700 1000:1000 /home/ubuntu\n"
    assert "nconnect=16" in (node.root / "etc/systemd/system/home.mount").read_text()


def test_disks_without_a_service_of_the_image_become_an_array(folder: Path) -> None:
    node = make_node(folder, **EKS)
    (node.root / "usr/lib/systemd/system/dlami-nvme.service").unlink()
    shown = set_up(node, "local-nvme", script="findmnt --noheadings --output TARGET $PODWRIGHT_ROOT/opt/dlami/nvme")
    assert shown.strip() == f"{node.root}/opt/dlami/nvme"
    assert (node.root / "dev/md/podwright").read_text() == "--raid-devices=2 /dev/nvme1n1 /dev/nvme2n1\n"
    assert (node.root / "run/fake/label").read_text() == "podwright\n"
    unit = (node.root / "etc/systemd/system/opt-dlami-nvme.mount").read_text()
    assert "What=/dev/disk/by-label/podwright\nWhere=/opt/dlami/nvme\n" in unit


def test_a_format_that_was_cut_short_is_done_again(folder: Path) -> None:
    """The label is there, and what it names cannot be mounted."""
    node = make_node(folder, **EKS)
    (node.root / "usr/lib/systemd/system/dlami-nvme.service").unlink()
    node.put("run/fake/label", "podwright\n")
    node.put("dev/md/podwright", "")
    # Only formatting makes it a file system again.
    node.put("run/fake/behaviour", "systemctl start opt-dlami-nvme.mount|wrong fs type\n")
    node.program("mkfs.xfs", 'rm "${PODWRIGHT_ROOT}/run/fake/behaviour"')
    set_up(node, "local-nvme", script="mountpoint --quiet $PODWRIGHT_ROOT/opt/dlami/nvme")


def test_slurm_moves_docker_instead_of_kubelet(folder: Path) -> None:
    node = make_node(folder, "ml.p5.48xlarge", **SLURM)
    node.put("var/lib/docker/image", "an image")
    node.running("containerd", "docker", "docker.socket")
    shown = set_up(node, "storage", script="cat $PODWRIGHT_ROOT/opt/dlami/nvme/podwright/docker/image")
    assert shown == "an image"
    assert node.calls("containerd", "docker") == [
        "stop docker docker.socket containerd",
        "start var-lib-containerd.mount",
        "start var-lib-docker.mount",
        "start containerd",
        "start docker.socket",
        "start docker",
    ]


def test_only_nvswitch_machines_run_the_fabric_manager(folder: Path) -> None:
    node = make_node(folder, "ml.g5.48xlarge")
    set_up(node, "fabric-manager")
    assert node.calls("fabricmanager") == []
    assert node.summary["steps"]["fabric-manager"]["outcome"] == "not-needed"


def test_imex_is_the_pods_on_eks_and_the_jobs_on_slurm(folder: Path) -> None:
    for orchestrator in ("eks", "slurm"):
        node = make_node(folder / orchestrator, "ml.p6e-gb200.36xlarge", orchestrator=orchestrator)
        set_up(node, "imex")
        unit = node.root / "etc/systemd/system/nvidia-imex.service"
        enabled = node.root / "etc/systemd/system/multi-user.target.wants/nvidia-imex.service"
        assert (unit.is_symlink(), enabled.is_symlink()) == (orchestrator == "eks", orchestrator == "slurm")
        assert (node.root / "dev/nvidia-caps-imex-channels/channel0").exists() == (orchestrator == "slurm")


def test_gpus_keep_their_driver(folder: Path) -> None:
    for name, service in (("ours", None), ("nvidia", "nvidia-persistenced.service")):
        node = make_node(folder / name, **EKS)
        if service:
            node.put(f"usr/lib/systemd/system/{service}", "")
        set_up(node, "persistence")
        assert set((node.root / "run/fake/gpus").read_text().split()) == {"Enabled"}
        unit = service or "podwright-persistence.service"
        assert (node.root / f"etc/systemd/system/multi-user.target.wants/{unit}").is_symlink()


def test_limits_reach_users_services_and_what_runs_already(folder: Path) -> None:
    node = make_node(folder, **EKS)
    node.running("containerd")
    set_up(node, "limits")
    assert "* hard memlock unlimited\n" in (node.root / "etc/security/limits.d/90-podwright.conf").read_text()
    settings = (node.root / "etc/sysctl.d/90-podwright.conf").read_text()
    assert "vm.nr_hugepages = 2560\n" in settings
    assert "ptrace_scope" not in settings
    assert "prlimit --pid 4242 --memlock=unlimited --nofile=1048576 --stack=8388608:unlimited" in node.programs()


def test_more_huge_pages_of_somebody_else_stay(folder: Path) -> None:
    node = make_node(folder, "ml.p5.48xlarge", **SLURM)
    node.put("etc/sysctl.d/50-efa.conf", "# EFA\nvm.nr_hugepages=5128\n")
    set_up(node, "limits")
    settings = (node.root / "etc/sysctl.d/90-podwright.conf").read_text()
    assert "vm.nr_hugepages = 5128\n" in settings
    assert "kernel.yama.ptrace_scope = 0\n" in settings


def test_the_clock_follows_amazon_time_sync(folder: Path) -> None:
    node = make_node(folder, "ml.m5.4xlarge", **SLURM)
    set_up(node, "clock")
    assert "add server 169.254.169.123 prefer iburst" in "\n".join(node.programs())
    assert "169.254.169.123" in (node.root / "etc/systemd/system/chrony.service.d/50-podwright.conf").read_text()


def test_settings_that_sshd_refuses_are_taken_away(folder: Path) -> None:
    node = make_node(folder, **EKS)
    node.behave("sshd -t|line 3: Bad configuration option")
    result = node.shell(node.only("ssh"))
    assert result.returncode == 1
    assert "Bad configuration option" in node.log
    assert list((node.root / "etc/ssh/sshd_config.d").iterdir()) == []


def test_disks_that_something_else_joins_are_left_to_it(folder: Path) -> None:
    node = make_node(folder, **EKS)
    (node.root / "usr/lib/systemd/system/dlami-nvme.service").unlink()
    (node.root / "sys/block/nvme2n1/holders/dm-0").mkdir(parents=True)
    result = node.shell(f"(sleep 1; nvme) & {node.only('local-nvme')}; wait")
    assert result.returncode == 0, node.log
    assert not (node.root / "dev/md").exists()
    assert node.calls("enable") == []


def test_an_image_without_chrony_keeps_its_own_time(folder: Path) -> None:
    node = make_node(folder, **EKS)
    node.behave("chronyc --version|command not found")
    set_up(node, "clock")
    assert node.summary["steps"]["clock"]["outcome"] == "not-needed"
    assert "the image has no chrony; whatever keeps its time is left as it is" in node.log


def test_a_service_that_the_image_lacks_limits_nothing(folder: Path) -> None:
    node = make_node(folder, "ml.p5.48xlarge", **SLURM)
    (node.root / "usr/lib/systemd/system/slurmd.service").unlink()
    set_up(node, "efa", "limits")
    assert {node.summary["steps"][name]["outcome"] for name in ("efa", "limits")} <= {"changed", "unchanged"}


def test_a_service_that_may_not_lock_memory_is_named(folder: Path) -> None:
    node = make_node(folder, **EKS)
    node.program(
        "systemctl", '[[ "$*" != *LimitMEMLOCK* ]] || { echo 65536; exit; }\nexec "${0%/own/*}/fakes/systemctl" "$@"'
    )
    assert node.shell(node.only("efa-use")).returncode == 1
    assert "containerd may lock 65536 bytes of memory, less than 17179869184" in node.log
