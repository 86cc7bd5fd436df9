"""on_create.sh as HyperPod runs it, on a node in a folder."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fake_node import SCRIPTS, SERVICE, FakeNode, make_node, publish, resource_config
from needs import python_39

STATE = """
    state() {
      for service in containerd kubelet; do
        folder=$PODWRIGHT_ROOT/var/lib/$service
        for disk in opt/dlami/nvme opt/sagemaker; do
          if [[ $folder -ef $PODWRIGHT_ROOT/$disk/podwright/$service ]]; then echo "$service on $disk"; fi
        done
      done
      cat "$PODWRIGHT_ROOT"/var/lib/containerd/*/blob "$PODWRIGHT_ROOT"/var/lib/kubelet/config.json
      echo
      (cd "$PODWRIGHT_ROOT/run/fake-systemd" && ls containerd kubelet 2>/dev/null) || true
    }
"""


def booted(node: FakeNode, script: str) -> str:
    """What `script` prints about the node; the node has to come up."""
    result = node.shell(STATE + script)
    assert result.returncode == 0, result.stderr + node.log
    return result.stdout


def test_moves_both_folders_to_the_local_disk(folder: Path) -> None:
    node = make_node(folder)
    shown = booted(node, "nvme; on_create; state")
    assert shown == ("containerd on opt/dlami/nvme\nkubelet on opt/dlami/nvme\nan image that came with the node{}\n")
    assert node.summary["result"] == "succeeded"
    assert node.summary["group"] == "workers"
    assert node.summary["steps"]["storage"]["outcome"] == "changed"


def test_starts_again_what_ran_containerd_first(folder: Path) -> None:
    node = make_node(folder)
    node.running("containerd", "kubelet")
    assert booted(node, "nvme; on_create; state").endswith("containerd\nkubelet\n")
    assert node.calls("containerd", "kubelet") == [
        "stop kubelet containerd",
        "start var-lib-containerd.mount",
        "start var-lib-kubelet.mount",
        "start containerd",
        "start kubelet",
    ]


def test_starts_nothing_that_did_not_run(folder: Path) -> None:
    node = make_node(folder)
    booted(node, "nvme; on_create")
    assert node.calls("containerd", "kubelet") == ["start var-lib-containerd.mount", "start var-lib-kubelet.mount"]


def test_takes_the_further_volume_where_there_is_no_local_disk(folder: Path) -> None:
    node = make_node(folder, "ml.m5.4xlarge", volumes=[{"size_gib": 500}])
    assert booted(node, "ebs; on_create; state").startswith("containerd on opt/sagemaker\nkubelet on opt/sagemaker\n")


def test_prefers_the_local_disk_to_the_volume(folder: Path) -> None:
    node = make_node(folder, volumes=[{"size_gib": 500}])
    assert booted(node, "nvme; ebs; on_create; state").startswith("containerd on opt/dlami/nvme\n")


def test_leaves_a_node_without_a_large_disk_alone(folder: Path) -> None:
    node = make_node(folder, "ml.m5.4xlarge")
    node.running("containerd")
    assert booted(node, "on_create; state") == "an image that came with the node{}\ncontainerd\n"
    assert node.calls("containerd", "kubelet") == []
    assert not (node.root / "etc/systemd/system/podwright-disk.service").exists()


def test_waits_for_a_disk_that_comes_late(folder: Path) -> None:
    node = make_node(folder)
    node.behave("systemctl start dlami-nvme.service|1.5")
    shown = booted(node, "on_create; state")
    assert shown.startswith("containerd on opt/dlami/nvme\n")


def test_a_second_run_changes_nothing(folder: Path) -> None:
    node = make_node(folder)
    node.running("containerd", "kubelet")
    shown = booted(node, "nvme; on_create; : >$PODWRIGHT_ROOT/run/fake-systemd.log; on_create; state")
    assert shown.startswith("containerd on opt/dlami/nvme\n")
    assert node.calls() == []
    assert node.summary["steps"]["storage"]["outcome"] == "unchanged"


def test_after_a_reboot_the_data_on_the_disk_is_what_counts(folder: Path) -> None:
    node = make_node(folder)
    (node.root / "disk").mkdir()
    disk = "mount --bind $PODWRIGHT_ROOT/disk $PODWRIGHT_ROOT/opt/dlami/nvme"
    booted(node, f"{disk}; on_create; echo new >$PODWRIGHT_ROOT/var/lib/containerd/io.containerd.content/blob")
    assert "an image" in (node.root / "var/lib/containerd/io.containerd.content/blob").read_text()
    shown = booted(node, f"{disk}; on_create; state")
    assert shown == "containerd on opt/dlami/nvme\nkubelet on opt/dlami/nvme\nnew\n{}\n"


def test_new_software_brings_a_new_root_and_what_is_left_on_the_disk_goes(folder: Path) -> None:
    node = make_node(folder)
    script = """
        nvme; on_create
        echo old >$PODWRIGHT_ROOT/var/lib/containerd/of-an-earlier-life
        umount $PODWRIGHT_ROOT/var/lib/containerd $PODWRIGHT_ROOT/var/lib/kubelet
        rm -r $PODWRIGHT_ROOT/var/lib/podwright $PODWRIGHT_ROOT/etc/systemd
        on_create; state; ls $PODWRIGHT_ROOT/var/lib/containerd
    """
    shown = booted(node, script)
    assert shown.startswith("containerd on opt/dlami/nvme\n")
    assert "an image that came with the node" in shown
    assert "of-an-earlier-life" not in shown


def test_logs_for_people_and_for_programs(folder: Path) -> None:
    node = make_node(folder)
    booted(node, "nvme; on_create; on_create")
    assert node.log.count("on_create: starts in") == 2
    assert node.log.count("on_create: done") == 2
    assert "podwright: changed step=storage seconds=" in node.log
    assert "podwright: summary result=succeeded group=workers seconds=" in node.log
    storage = node.summary["steps"]["storage"]
    assert storage["outcome"] == "unchanged"
    assert storage["seconds"] >= 0
    assert all(event["time"].endswith("Z") for event in node.events)


def failed(node: FakeNode, script: str) -> str:
    """The log of a node that does not come up."""
    result = node.shell(f"{script}; on_create")
    assert result.returncode == 1, node.log
    assert "Traceback" not in node.log
    return node.log


def test_a_failing_service_says_which_step_what_it_saw_and_what_to_do(folder: Path) -> None:
    node = make_node(folder)
    node.environment["FAKE_SYSTEMCTL_FAILS"] = "start*containerd.mount"
    log = failed(node, "nvme")
    assert "error step=storage" in log
    assert "`systemctl start var-lib-containerd.mount` ended with 1: Job failed.; see the journal" in log
    assert node.summary["result"] == "failed"
    assert node.summary["steps"]["name-resolution"]["outcome"] == "unchanged"


def test_a_disk_that_is_too_small_says_by_how_much(folder: Path) -> None:
    node = make_node(folder)
    node.put("var/lib/containerd/large", "x" * 300_000)
    log = failed(node, "mount -t tmpfs -o size=64k nvme $PODWRIGHT_ROOT/opt/dlami/nvme")
    assert "and /opt/dlami/nvme has 65536 free; give the group a larger volume" in log


def test_a_failed_node_stays_until_its_log_is_shipped(folder: Path) -> None:
    node = make_node(folder)
    node.environment["PODWRIGHT_LOG_FLUSH_SECONDS"] = "2"
    (node.bundle / "manifest.json").unlink()
    result = node.shell("before=$SECONDS; on_create || true; echo $((SECONDS - before))")
    assert int(result.stdout) >= 2
    assert "failed with status 1; waiting 2 s for the log to reach CloudWatch" in node.log


def test_a_node_that_comes_up_does_not_wait(folder: Path) -> None:
    node = make_node(folder, "ml.m5.4xlarge")
    node.environment["PODWRIGHT_LOG_FLUSH_SECONDS"] = "1000"
    result = node.shell("on_create")
    assert result.returncode == 0


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        pytest.param("manifest.json", None, "the prefix was not fully published", id="half a publication"),
        pytest.param(
            "podwright_node/runner/steps.py", "#", "podwright_node/runner/steps.py in", id="a file that differs"
        ),
        pytest.param("node.json", "{}", "node.json in", id="facts that somebody edited"),
    ],
)
def test_refuses_a_bundle_that_is_not_whole(folder: Path, name: str, content: str | None, says: str) -> None:
    node = make_node(folder)
    # The changed module must still be Python that runs: its digest is what is wrong with it.
    text = (node.bundle / name).read_text() + content if content == "#" else content
    (node.bundle / name).unlink() if text is None else (node.bundle / name).write_text(text)
    assert says in failed(node, "nvme")


def test_refuses_facts_of_another_version(folder: Path) -> None:
    node = make_node(folder)
    facts = json.loads((node.bundle / "node.json").read_text())
    publish(node.bundle, {**facts, "version": 2})
    assert "node.json has version 2, these scripts read 1" in failed(node, "nvme")


def test_refuses_a_group_that_the_facts_do_not_know(folder: Path) -> None:
    node = make_node(folder)
    node.put("opt/ml/config/resource_config.json", json.dumps(resource_config("ml.p5en.48xlarge", group="others")))
    assert "says group others; node.json knows workers" in failed(node, "nvme")


def test_a_node_that_hyperpod_does_not_list_yet_comes_up_with_the_disk_it_has(folder: Path) -> None:
    node = make_node(folder)
    node.put("opt/ml/config/resource_config.json", json.dumps(resource_config("ml.p5en.48xlarge", "10.0.0.1")))
    assert booted(node, "nvme; on_create; state").startswith("containerd on opt/dlami/nvme\n")
    assert "warning note=" in node.log
    assert node.summary["group"] is None


def test_knows_itself_by_its_instance_id(folder: Path) -> None:
    node = make_node(folder)
    node.put("opt/ml/config/resource_config.json", json.dumps(resource_config("ml.p5en.48xlarge", "10.0.0.1")))
    node.put("sys/devices/virtual/dmi/id/board_asset_tag", "i-0123456789abcdef0\n")
    booted(node, "nvme; on_create")
    assert node.summary["group"] == "workers"


def test_waits_for_names_to_resolve(folder: Path) -> None:
    node = make_node(folder, "ml.m5.4xlarge")
    node.hosts = "127.0.0.1 localhost\n"
    asked = f"grep -qs 'waiting step=name-resolution' {node.root}/var/log/provision/provisioning.log"
    later = f"until {asked}; do sleep 0.1; done; echo '127.0.0.1 {SERVICE}' >>/etc/hosts"
    result = node.shell(f"({later}) & on_create; wait")
    assert result.returncode == 0, node.log
    assert f'waiting step=name-resolution what="{SERVICE} resolves" seconds=' in node.log
    assert node.summary["steps"]["name-resolution"]["outcome"] == "changed"
    assert node.summary["steps"]["name-resolution"]["seconds"] < 120


def test_runs_on_the_python_of_the_image(folder: Path) -> None:
    node = make_node(folder)
    node.python = python_39()
    node.running("kubelet")
    assert booted(node, "nvme; on_create; state").startswith("containerd on opt/dlami/nvme\n")


def test_keeps_to_the_python_of_the_image() -> None:
    tool = Path(sys.executable).parent / "vermin"
    command = [tool, "--target=3.9-", "--violations", SCRIPTS]
    result = subprocess.run(command, cwd=SCRIPTS.parent, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


def test_leaves_the_published_folder_as_it_is(folder: Path) -> None:
    node = make_node(folder)
    before = sorted(node.bundle.rglob("*"))
    booted(node, "nvme; on_create")
    assert sorted(node.bundle.rglob("*")) == before
