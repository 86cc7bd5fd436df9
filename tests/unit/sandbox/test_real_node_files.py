"""What a real node is started with: its hardware, its programs' files, and the image that each pull gets."""

import base64
import hashlib
import io
import json
import socket
import subprocess
import sys
import tarfile
import urllib.error
import urllib.request
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from cryptography import x509

from podwright.config.catalog.instance_types import catalog
from podwright.planning.node.allocatable import kubelet_allocatable
from podwright.sandbox.control_plane.pytorch import PINS, PyTorch
from podwright.sandbox.kubernetes.certificates import Authority
from podwright.sandbox.nodes import machine
from podwright.sandbox.nodes.hardware import write_hardware
from podwright.sandbox.nodes.images import Image, Registry
from podwright.sandbox.nodes.machine import MESSAGES
from podwright.sandbox.nodes.real_nodes import NODE_FAULTS, RealNodes, _Machine
from podwright.sandbox.nodes.settings import NodeSettings, Programs, search_path, shared_paths, write_files

NAME = "hyperpod-i-0123456789abcdef0"
TYPE = "ml.p5en.48xlarge"


class Api:
    """A control plane with keys."""

    api_port = 6443

    def __init__(self, folder: Path) -> None:
        self.users, self.kubelets = Authority.open(folder / "users"), Authority.open(folder / "kubelets")


@pytest.fixture
def node(tmp_path: Path) -> NodeSettings:
    """A node of a GPU type, as the sandbox starts it."""
    stated = {
        "metadata": {"name": NAME, "labels": {"node.kubernetes.io/instance-type": TYPE}},
        "status": {
            "capacity": {"hugepages-2Mi": "5128Mi"},
            "addresses": [{"type": "InternalIP", "address": "10.16.0.10"}, {"type": "Hostname", "address": NAME}],
        },
    }
    return RealNodes(
        tmp_path / "nodes", Api(tmp_path), Programs("/parts/kubelet", "/parts/kube-proxy", "/parts/coredns"), 1
    ).settings(NAME, stated)


def test_a_kubelet_keeps_what_hyperpods_image_keeps(node: NodeSettings, tmp_path: Path) -> None:
    row = catalog().get(TYPE)
    expected = kubelet_allocatable(row)
    assert (node.cpus, node.memory_kib) == (row.vcpu, row.memory_gib * 1024**2)
    assert node.cpus * 1000 - node.reserved_cpu_millis == expected.cpu_millis
    # The kubelet subtracts huge pages, too.
    assert node.memory_kib // 1024 - node.reserved_memory_mib - 2 * node.huge_pages == expected.memory_mib
    write_files(node, tmp_path)
    kubelet = json.loads((tmp_path / "etc/kubernetes/kubelet.json").read_text())
    assert kubelet["maxPods"] == expected.pods
    assert kubelet["kubeReserved"]["cpu"] == f"{node.reserved_cpu_millis}m"


def test_a_kubelet_has_its_keys_for_itself_alone(node: NodeSettings, tmp_path: Path) -> None:
    write_files(node, tmp_path)
    # Containers of any user run a program of these.
    assert {file.stat().st_mode & 0o777 for file in (tmp_path / "etc/podwright").iterdir()} == {0o755}
    folder = tmp_path / "etc/kubernetes"
    assert {file.stat().st_mode & 0o077 for file in folder.iterdir()} == {0}
    kubeconfig = json.loads((folder / "kubeconfig.json").read_text())
    user = kubeconfig["users"][0]["user"]
    client = x509.load_pem_x509_certificate(base64.b64decode(user["client-certificate-data"]))
    assert client.subject.rfc4514_string() == f"CN=system:node:{NAME},O=system:nodes"
    authority = base64.b64decode(kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"])
    assert authority == (tmp_path / "users/authority.crt").read_bytes()
    # The API server, and nobody else, may ask a kubelet.
    assert (folder / "clients.crt").read_bytes() == (tmp_path / "kubelets/authority.crt").read_bytes()


def test_a_nodes_new_messages_are_read_line_by_line(tmp_path: Path) -> None:
    nodes = RealNodes(tmp_path / "nodes", Api(tmp_path), Programs("", "", ""), 1)
    messages = tmp_path / "nodes" / NAME / MESSAGES
    messages.parent.mkdir(parents=True)
    messages.write_text("of an earlier start\n")
    node = _Machine(cast(Any, None), cast(Any, None), 0.0, messages.stat().st_size)
    nodes._machines[NAME] = node
    with messages.open("a") as log:
        log.write("first\nsecönd\nbegin")
    assert list(nodes.new_messages()) == [(NAME, "first"), (NAME, "secönd")]
    with messages.open("a") as log:
        log.write("s and ends\n")
    assert list(nodes.new_messages()) == [(NAME, "begins and ends")]
    assert list(nodes.new_messages()) == []
    # One byte that is no text, then a log that was truncated, and one that was deleted.
    with messages.open("ab") as log:
        log.write(b"\xff broken\n")
    assert list(nodes.new_messages()) == [(NAME, "\ufffd broken")]
    with messages.open("a") as log:
        log.write("whole\n")
    assert list(nodes.new_messages()) == [(NAME, "whole")]
    messages.write_text("new\n")
    assert list(nodes.new_messages()) == []
    with messages.open("a") as log:
        log.write("next\n")
    assert list(nodes.new_messages()) == [(NAME, "next")]
    messages.unlink()
    assert list(nodes.new_messages()) == []
    messages.write_text("again\n")
    assert list(nodes.new_messages()) == [(NAME, "again")]


def test_settings_are_read_as_they_were_written(node: NodeSettings, tmp_path: Path) -> None:
    node.write(tmp_path / "settings.json")
    assert NodeSettings.read(tmp_path / "settings.json") == node


def test_hardware_is_that_of_the_instance_type(tmp_path: Path) -> None:
    write_hardware(tmp_path, 192, 2, 2 * 1024**3, 2564, "boot-2")
    assert (tmp_path / "boot_id").read_text() == "boot-2\n"
    assert (tmp_path / "meminfo").read_text().startswith(f"MemTotal: {2 * 1024**3} kB\n")
    processors = (tmp_path / "cpuinfo").read_text().split("\n\n")
    numbers = [line.split(":")[1].strip() for text in processors for line in text.splitlines() if "processor" in line]
    assert numbers == [str(number) for number in range(192)]
    cores = {(tmp_path / f"cpu/cpu{number}/topology/core_id").read_text() for number in range(192)}
    assert (len(cores), len([*tmp_path.glob("cpu/cpu[0-9]*")])) == (96, 192)
    assert (tmp_path / "cpu/online").read_text() == "0-191\n"
    assert (tmp_path / "hugepages/hugepages-2048kB/nr_hugepages").read_text() == "2564\n"


@pytest.fixture
def missing() -> list[str]:
    """Images by digest that the registry refused."""
    return []


@pytest.fixture
def registry(missing: list[str]) -> str:
    """The address of a registry on loopback."""
    listener = socket.create_server(("127.0.0.1", 0))
    Registry(listener, Image.of_machine(["/opt/python/bin", "/usr/bin"], ["/opt/python"]), missing.append)
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


def fetch(url: str) -> bytes:
    """The body of an answer."""
    with urllib.request.urlopen(url) as answer:
        body = answer.read()
    assert answer.headers["Docker-Content-Digest"] == f"sha256:{hashlib.sha256(body).hexdigest()}"
    return body


@pytest.mark.parametrize("name", ["hello/manifests/1.0", "a/b/c/manifests/latest"])
def test_every_tag_is_the_same_image(registry: str, name: str) -> None:
    manifest = json.loads(fetch(f"{registry}/v2/{name}"))
    repository = name.partition("/manifests")[0]
    blobs = {
        item["digest"]: fetch(f"{registry}/v2/{repository}/blobs/{item['digest']}")
        for item in (manifest["config"], *manifest["layers"])
    }
    settings = json.loads(blobs[manifest["config"]["digest"]])
    path, *variables = settings["config"]["Env"]
    assert path == "PATH=/opt/python/bin:/usr/bin"
    # A node's 192 CPUs would become 192 processes of Ray.
    assert "RAY_prestart_worker_first_driver=0" in variables
    [layer] = manifest["layers"]
    assert settings["rootfs"]["diff_ids"] == [layer["digest"]]
    with tarfile.open(fileobj=io.BytesIO(blobs[layer["digest"]])) as files:
        names = set(files.getnames())
        assert files.getmember("podwright/bin/vi").linkname == "/podwright/busybox"
        # The training operator's init containers look up names by it.
        assert files.getmember("podwright/bin/nslookup").isfile()
    # What a container mounts has to have a place in its image.
    assert {path.lstrip("/") for path in shared_paths() if path.startswith(("/usr", "/etc"))} <= names


@pytest.mark.parametrize(
    ("program", "code", "words"),
    [
        ("devices/nvidia-smi", 9, "nvidia-smi: this node of podwright's sandbox advertises GPUs"),
        ("devices/neuron-ls", 9, "neuron-ls: this node of podwright's sandbox advertises Neuron devices"),
        ("devices/fi_info", 9, "fi_info: this node of podwright's sandbox advertises EFA interfaces"),
        ("bin/torchrun", 127, "`podwright sandbox kubernetes install --pytorch`"),
        ("bin/hyperpodrun", 127, "`podwright sandbox kubernetes install --pytorch`"),
    ],
)
def test_what_containers_lack_says_so(program: str, code: int, words: str) -> None:
    image = Image.of_machine(["/usr/bin"], [])
    [layer] = json.loads(image.manifest)["layers"]
    content = image.blobs[layer["digest"]]
    with tarfile.open(fileobj=io.BytesIO(content)) as files:
        entry = files.getmember(f"podwright/{program}")
        file = files.extractfile(entry)
        assert file is not None
        interpreter, *script = file.read().decode().splitlines()
    assert (entry.mode & 0o111, interpreter) == (0o111, "#!/podwright/busybox sh")
    ended = subprocess.run(["sh", "-c", "\n".join(script)], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (code, "")
    assert words in ended.stderr


def test_containers_have_pytorch_first_where_it_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    pytorch = PyTorch.of_user()
    assert str(pytorch.folder) not in shared_paths()
    assert search_path()[1] == f"{sys.prefix}/bin"
    python = tmp_path / "python/bin/python3.11"
    python.parent.mkdir(parents=True)
    python.touch()
    pytorch.programs.mkdir(parents=True)
    (pytorch.programs / "python").symlink_to(python)
    # One that is not whole is not mounted.
    assert str(pytorch.folder) not in shared_paths()
    (pytorch.folder / "requirements.txt").write_text(PINS.read_text())
    assert {str(pytorch.folder), str(tmp_path / "python")} <= set(shared_paths())
    assert search_path()[:3] == ["/podwright/devices", str(pytorch.programs), f"{sys.prefix}/bin"]


def test_an_image_by_another_digest_is_named_and_refused(registry: str, missing: list[str]) -> None:
    digest = f"sha256:{'0' * 64}"
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{registry}/v2/team/hello/manifests/{digest}?ns=example.com")
    assert missing == [f"example.com/team/hello@{digest}"]


def test_a_disk_is_made_once_and_takes_no_space(tmp_path: Path) -> None:
    file = tmp_path / "disk.img"
    machine._make_disk(file)
    assert (file.stat().st_size, file.stat().st_blocks * 512 < 50 * 2**20) == (machine.DISK_BYTES, True)
    # A node that starts again keeps it.
    before = file.stat().st_ino
    machine._make_disk(file)
    assert ([item.name for item in tmp_path.iterdir()], file.stat().st_ino) == (["disk.img"], before)


@pytest.mark.parametrize("program", ["", "exit 1"], ids=["absent", "failing"])
def test_a_node_without_mke2fs_has_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    if program:
        (tmp_path / "bin/mke2fs").write_text(f"#!/bin/sh\n{program}\n")
        (tmp_path / "bin/mke2fs").chmod(0o755)
    machine._make_disk(tmp_path / "disk.img")
    assert [item.name for item in tmp_path.iterdir()] == ["bin"]


def test_a_node_without_a_disk_is_not_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = RealNodes(tmp_path / "nodes", Api(tmp_path), Programs("", "", ""), 1)
    (tmp_path / "var/lib").mkdir(parents=True)
    nodes._machines[NAME] = cast(Any, SimpleNamespace(root=tmp_path))
    with pytest.raises(ValueError, match=f"{NAME} uses this machine's disk, which full-disk would fill"):
        nodes.break_node(NAME, "full-disk")


def test_a_node_that_does_not_run_has_no_disk(tmp_path: Path) -> None:
    nodes = RealNodes(tmp_path / "nodes", Api(tmp_path), Programs("", "", ""), 1)
    for fault in NODE_FAULTS:
        with pytest.raises(ValueError, match=f"^{NAME} does not run$"):
            nodes.break_node(NAME, fault)
    with subprocess.Popen(["true"], stdin=subprocess.PIPE) as process:
        process.wait()
    settings: Any = SimpleNamespace(name=NAME)
    nodes._machines[NAME] = _Machine(settings, process, 0.0, 0)
    with pytest.raises(ValueError, match=f"^{NAME} does not run$"):
        nodes.disk(NAME)
