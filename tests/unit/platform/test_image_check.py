"""`podwright image check`: a registry on loopback, an OCI layout and a folder, with layers as builders make them."""

import gzip
import hashlib
import io
import json
import socket
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from loopback import Server, serving
from podwright.config.catalog.images import Image
from podwright.config.errors import CommandError
from podwright.config.findings import Level
from podwright.operations import cli
from podwright.operations.artifacts import image_check
from podwright.operations.artifacts.image_check import ImageComponent, judged
from podwright.operations.artifacts.image_files import files_of_image
from registry_double import INDEX, MANIFEST, Double, client

NCCL = b"\x7fELF" + b"\0NCCL version 2.27.7+cuda12.9\0"
PLUGIN = b"\0NET/OFI Initializing aws-ofi-nccl 1.16.3\0"
LIBFABRIC = b"\x7fELF\0001.1\0002.1.0amzn5.0\0"
BASE = {"usr/lib/libnccl.so.2.27.7": NCCL, "usr/local/cuda-12.9/version.json": b'{"cuda": {"version" : "12.9.1"}}'}
EFA = {
    "opt/amazon/ofi-nccl/lib/libnccl-net-ofi.so": PLUGIN,
    "opt/amazon/efa/lib/libfabric.so.1.28.0": LIBFABRIC,
    "opt/amazon/efa_installed_packages": b"# EFA installer version: 1.43.2\n",
    "usr/lib/libgdrapi.so.2.5": b"x",
    "etc/passwd": b"root:x:0:0",
}


def layer(files: dict[str, bytes], links: dict[str, str] | None = None) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as packed:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            packed.addfile(entry, io.BytesIO(content))
        for name, target in (links or {}).items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            packed.addfile(entry)
    return buffer.getvalue()


def stored(double: Double, *layers: bytes, tag: str = "1", architecture: str = "amd64") -> str:
    config = double.add(json.dumps({"config": {"Env": ["PATH=/usr/bin", "CUDA_VERSION=12.9.1"]}}).encode())
    manifest = {"mediaType": MANIFEST, "config": config, "layers": [double.add(content) for content in layers]}
    child = double.add(json.dumps(manifest).encode(), MANIFEST)
    child["platform"] = {"architecture": architecture, "os": "linux"}
    return double.add(json.dumps({"mediaType": INDEX, "manifests": [child]}).encode(), INDEX, tag)["digest"]


@pytest.fixture
def double() -> Double:
    return Double()


@pytest.fixture
def server(double: Double) -> Iterator[Server]:
    with serving(double.answer) as actual:
        double.url = actual.url
        yield actual


def versions(double: Double, architecture: str = "x86_64") -> dict[str, str]:
    registry = client(double)
    image = Image(registry.host, "a", "1", "")
    with files_of_image(image, registry, image_check._wanted, architecture) as files:
        return {f"{item.component} {item.path}": item.version for item in image_check.components(files)}


def test_reads_versions_out_of_the_layers(double: Double, server: Server) -> None:
    stored(double, layer(BASE), layer(EFA, {"usr/lib/libnccl.so.2": "libnccl.so.2.27.7"}))
    assert versions(double) == {
        "aws_ofi_nccl /opt/amazon/ofi-nccl/lib/libnccl-net-ofi.so": "1.16.3",
        "cuda /usr/local/cuda-12.9/version.json": "12.9.1",
        "cuda CUDA_VERSION": "12.9.1",
        "efa_installer /opt/amazon/efa_installed_packages": "1.43.2",
        "gdrcopy /usr/lib/libgdrapi.so.2.5": "2.5",
        "libfabric /opt/amazon/efa/lib/libfabric.so.1.28.0": "2.1.0amzn5.0",
        "nccl /usr/lib/libnccl.so.2.27.7": "2.27.7",
    }


def test_a_later_layer_replaces_and_takes_away(double: Double, server: Server) -> None:
    newer = NCCL.replace(b"2.27.7", b"2.28.3")
    stored(
        double,
        layer(BASE),
        layer(EFA),
        layer({"usr/lib/libnccl.so.2.27.7": newer, "usr/lib/.wh.libgdrapi.so.2.5": b""}),
        layer({"opt/amazon/.wh..wh..opq": b"", "usr/local/.wh.cuda-12.9": b""}),
    )
    assert versions(double) == {"cuda CUDA_VERSION": "12.9.1", "nccl /usr/lib/libnccl.so.2.27.7": "2.28.3"}


def test_of_several_images_the_one_for_the_architecture_counts(double: Double, server: Server) -> None:
    stored(double, layer(BASE), architecture="arm64")
    assert versions(double, "arm64")
    with pytest.raises(CommandError, match="has no image for x86_64, only for arm64"):
        versions(double)


def test_a_layer_that_python_cannot_read_is_named(double: Double, server: Server) -> None:
    stored(double, layer(BASE))
    content, kind = double.manifests["1"]
    (child,) = json.loads(content)["manifests"]
    manifest = json.loads(double.manifests[child["digest"]][0])
    manifest["layers"][0]["mediaType"] = "application/vnd.oci.image.layer.v1.tar+zstd"
    child["digest"] = double.add(json.dumps(manifest).encode(), MANIFEST)["digest"]
    double.add(json.dumps({"mediaType": INDEX, "manifests": [child]}).encode(), kind, "1")
    with pytest.raises(CommandError, match="compressed with zstd"):
        versions(double)


def tree(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def test_a_folder_is_checked_and_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree(tmp_path, BASE | EFA)
    assert cli.main(["image", "check", str(tmp_path), "--type", "ml.p5en.48xlarge"]) == 0
    shown = capsys.readouterr().out
    assert "NCCL           2.27.7               /usr/lib/libnccl.so.2.27.7" in shown
    assert "nccl-tests     none" in shown
    assert "Its CUDA asks nodes for NVIDIA driver 525.60.13 or newer." in shown


def test_an_image_without_the_plug_in_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree(tmp_path, BASE)
    assert cli.main(["image", "check", str(tmp_path), "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["problems"][0]["level"] == "error"
    assert "aws-ofi-nccl) is missing" in answer["problems"][0]["text"]
    assert {"component": "nccl", "version": "2.27.7", "path": "/usr/lib/libnccl.so.2.27.7"} in answer["found"]


def test_an_oci_layout_is_an_image(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def blob(content: bytes) -> str:
        digest = hashlib.sha256(content).hexdigest()
        path = tmp_path / "blobs/sha256" / digest
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return f"sha256:{digest}"

    layers = [{"digest": blob(content)} for content in (layer(BASE), gzip.decompress(layer(EFA)))]
    manifest = json.dumps({"config": {"digest": blob(b"{}")}, "layers": layers}).encode()
    (tmp_path / "oci-layout").write_text("{}")
    (tmp_path / "index.json").write_text(json.dumps({"manifests": [{"digest": blob(manifest)}]}))
    assert cli.main(["image", "check", str(tmp_path)]) == 0
    assert "aws-ofi-nccl   1.16.3" in capsys.readouterr().out
    (tmp_path / "blobs" / layers[0]["digest"].replace(":", "/")).write_bytes(layer(EFA))
    assert cli.main(["image", "check", str(tmp_path)]) == 1
    assert "is not what its name says" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "output"),
    [
        (["./missing"], "./missing is not a folder"),
        ([".", "--type", "ml.p5en.48xlarg"], "did you mean ml.p5en.48xlarge"),
    ],
)
def test_a_wrong_command_line_says_what_is_wrong(
    words: list[str], output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["image", "check", *words]) == 2
    assert output in capsys.readouterr().err


def test_a_registry_out_of_reach_is_said_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    assert cli.main(["image", "check", "registry.example/train:1"]) == 1
    output = capsys.readouterr().err
    assert "registry.example/train:1 cannot be read: " in output
    assert "Failed to resolve 'registry.example' ([Errno -2] Name or service not known)" in output
    assert "→ see that the name is right" in output


def found(**components: str) -> list[ImageComponent]:
    return [ImageComponent(name, version, PurePosixPath("/x")) for name, version in components.items()]


def test_every_nccl_of_an_image_is_compared() -> None:
    two = [
        *found(nccl="2.27.7", aws_ofi_nccl="1.16.3", libfabric="2.1.0"),
        ImageComponent("nccl", "2.16.5", PurePosixPath("/y")),
    ]
    levels = [(level, text.split(":")[0]) for level, text in judged(two, "")]
    assert levels == [
        (Level.ERROR, "aws-ofi-nccl 1.16.3 needs NCCL 2.17.1 or newer, found 2.16.5"),
        (Level.WARNING, "NCCL is there in 2 versions, 2.16.5 and 2.27.7"),
    ]


def test_the_instance_type_may_ask_for_more() -> None:
    fine = found(nccl="2.27.7", aws_ofi_nccl="1.16.3", libfabric="2.1.0")
    assert judged(fine, "p5en") == []
    ((level, text),) = judged(fine, "p6-b300")
    assert level == Level.WARNING
    assert text.startswith("p6-b300 needs aws-ofi-nccl 1.18.0 or newer")


def test_a_libfabric_of_unknown_version_is_not_missing() -> None:
    assert judged(found(nccl="2.27.7", aws_ofi_nccl="1.16.3", libfabric=""), "") == []
    ((_, text),) = judged(found(nccl="2.27.7", aws_ofi_nccl="1.16.3"), "")
    assert text.startswith("libfabric is missing")
