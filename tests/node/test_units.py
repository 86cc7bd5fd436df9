"""The units that keep the storage moved after a reboot, as systemd itself reads them."""

import os
import re
import shutil
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from needs import require
from podwright.lifecycle_scripts.podwright_node.runner.units import FOLDER, install, installed, mount_unit
from podwright.lifecycle_scripts.podwright_node.storage import container_storage as storage
from podwright.lifecycle_scripts.podwright_node.storage import lnet, local_nvme, shared_files

SERVICE = "[Service]\nExecStart=/usr/bin/true\n[Install]\nWantedBy=multi-user.target\n"


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """The units of a node whose disk is the NVMe, beside bare ones of both services."""
    require(shutil.which("systemd-analyze"), "systemd-analyze of Debian's systemd")
    for name, text in storage.units("/opt/dlami/nvme", storage.FOLDERS["eks"]).items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    for service in storage.FOLDERS["eks"]:
        (tmp_path / f"{service}.service").write_text(SERVICE)
    return tmp_path


def verify(folder: Path, *units: str) -> str:
    """What systemd has to say about units of a folder."""
    command = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=one", *(folder / unit for unit in units)]
    # The folder comes before the machine's own units, as /etc comes before /usr/lib.
    environment = os.environ | {"SYSTEMD_UNIT_PATH": f"{folder}:"}
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    return result.stderr


def test_systemd_accepts_them(units: Path) -> None:
    names = ["containerd.service", "kubelet.service", "var-lib-containerd.mount", "var-lib-kubelet.mount"]
    assert verify(units, *names, storage.DISK_UNIT) == ""


def test_systemd_would_see_a_boot_that_waits_for_itself(units: Path) -> None:
    """With default dependencies local-fs.target waits for the mount, and the mount for a disk that comes after it."""
    for unit in (storage.DISK_UNIT, "var-lib-containerd.mount"):
        text = (units / unit).read_text()
        (units / unit).write_text(text.replace("DefaultDependencies=no\n", ""))
    assert "Found ordering cycle" in verify(units, "containerd.service")


def test_no_service_starts_before_its_folder_is_mounted(units: Path) -> None:
    for service, folder in storage.FOLDERS["eks"].items():
        drop_in = (units / f"{service}.service.d/50-podwright-storage.conf").read_text()
        assert drop_in == f"[Unit]\nRequiresMountsFor={folder}\n"
        mount = (units / mount_unit(folder)).read_text()
        assert f"Requires={storage.DISK_UNIT}\nAfter={storage.DISK_UNIT}\n" in mount
        assert f"What=/opt/dlami/nvme/podwright/{service}\nWhere={folder}\n" in mount


def test_systemd_accepts_those_of_shared_files(tmp_path: Path) -> None:
    require(shutil.which("systemd-analyze"), "systemd-analyze of Debian's systemd")
    lustre = shared_files.Remote("fs-1.fsx@tcp:/abcdefgh", "/fsx/scratch-1", "lustre", "flock,_netdev", lnet.UNIT)
    units = {
        **lustre.units,
        lnet.UNIT: lnet.unit("ens5", ["rdmap0s0", "rdmap1s0"]),
        mount_unit(local_nvme.NVME): local_nvme.unit(),
    }
    for name, text in units.items():
        # systemd looks whether the programs exist; whether they do on the image cannot be known here.
        (tmp_path / name).write_text(re.sub(r"/usr/sbin/(lnetctl|modprobe)", "/usr/bin/true", text))
    assert verify(tmp_path, *units) == ""


class HalfWritten:
    """A node on which systemd takes a while to read its units, and knows meanwhile that they are stale."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.stale = False
        self.written = threading.Event()

    def read(self, path: str) -> str | None:
        return self.files.get(path)

    def write(self, path: str, text: str) -> None:
        self.files[path] = text
        self.stale = True
        self.written.set()

    def run(self, *command: str) -> str:
        if "daemon-reload" in command:
            time.sleep(0.2)
            self.stale = False
        return "yes" if self.stale else "no"


def test_what_another_step_is_about_to_reload_is_not_stale() -> None:
    node: Any = HalfWritten()
    other = threading.Thread(target=install, args=(node, {"docker.service.d/limits.conf": "[Service]\n"}))
    node.files[f"{FOLDER}/docker.service.d/storage.conf"] = "[Unit]\n"
    other.start()
    node.written.wait()
    assert installed(node, {"docker.service.d/storage.conf": "[Unit]\n"})
    other.join()
