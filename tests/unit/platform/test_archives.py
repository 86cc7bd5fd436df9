"""`podwright assets fetch`: a server and a package index on this machine, the lock, and what it refuses."""

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopback import Call, Reply, Server, serving
from podwright.config.errors import CommandError
from podwright.config.loading.artifacts import read_artifacts
from podwright.operations.artifacts.assets import fetch
from podwright.planning.delivery.missing_artifacts import missing_artifacts
from podwright.planning.node.archives import (
    Archive,
    archive_findings,
    cached_file,
    digest_of,
    environment_archives,
    locked_files,
)
from rule_pages import loaded


class Upstream:
    """What the server holds."""

    body = b"the first release"
    faults = 0

    def answer(self, call: Call) -> Reply:
        assert call.path == "/efa.tar.gz"
        if self.faults:
            self.faults -= 1
            return Reply(503)
        return Reply(body=self.body)


@pytest.fixture
def upstream(monkeypatch: pytest.MonkeyPatch) -> Upstream:
    monkeypatch.setattr("time.sleep", lambda _: None)
    return Upstream()


@pytest.fixture
def server(upstream: Upstream) -> Iterator[Server]:
    with serving(upstream.answer) as actual:
        yield actual


def wanted(server: Server) -> Archive:
    return Archive("efa_installer", "1.50.0", None, f"{server.url}/efa.tar.gz")


def ids(root: Path, item: Archive) -> list[str]:
    return [finding.id for finding in archive_findings(root, [item])]


def test_fetches_locks_and_leaves_alone_what_is_there(tmp_path: Path, server: Server) -> None:
    item = wanted(server)
    assert ids(tmp_path, item) == ["ART001"]
    file = fetch(tmp_path, item)
    assert file.read_bytes() == Upstream.body
    locked = read_artifacts(tmp_path).archives["efa_installer-1.50.0"]
    assert (locked.sha256, locked.bytes, locked.address) == (digest_of(file), len(Upstream.body), item.address)
    assert ids(tmp_path, item) == []
    (files,) = locked_files(tmp_path, [item])
    assert files.path == file
    assert fetch(tmp_path, item) == file
    assert len(server.calls) == 1


def test_another_file_under_the_same_address_is_refused_until_accepted(
    tmp_path: Path, server: Server, upstream: Upstream
) -> None:
    item = wanted(server)
    first = fetch(tmp_path, item)
    first.unlink()
    assert ids(tmp_path, item) == ["ART002"]
    upstream.body = b"somebody else's"
    with pytest.raises(CommandError, match="has the digest"):
        fetch(tmp_path, item)
    assert ids(tmp_path, item) == ["ART002"]
    assert list((tmp_path / ".podwright/artifacts").iterdir()) == []
    assert fetch(tmp_path, item, update=True).read_bytes() == b"somebody else's"
    assert ids(tmp_path, item) == []


def test_a_file_that_was_changed_here_is_found_and_fetched_again(tmp_path: Path, server: Server) -> None:
    item = wanted(server)
    file = fetch(tmp_path, item)
    file.write_bytes(b"the first Release")
    assert ids(tmp_path, item) == ["ART003"]
    assert fetch(tmp_path, item).read_bytes() == Upstream.body


def test_an_archive_of_another_address_is_not_the_one_that_was_locked(tmp_path: Path, server: Server) -> None:
    fetch(tmp_path, wanted(server))
    moved = Archive("efa_installer", "1.50.0", None, "https://example.com/efa.tar.gz")
    assert ids(tmp_path, moved) == ["ART001"]


def test_a_download_that_fails_is_tried_again(tmp_path: Path, server: Server, upstream: Upstream) -> None:
    upstream.faults = 2
    assert fetch(tmp_path, wanted(server)).read_bytes() == Upstream.body
    assert len(server.calls) == 3


def test_a_download_that_never_succeeds_leaves_nothing(tmp_path: Path, server: Server, upstream: Upstream) -> None:
    upstream.faults = 9
    with pytest.raises(CommandError, match="503"):
        fetch(tmp_path, wanted(server))
    assert not (tmp_path / "artifacts.lock").exists()
    assert list((tmp_path / ".podwright/artifacts").iterdir()) == []


def test_half_a_download_does_not_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    half = Reply(body=b"half", headers={"Content-Length": "8", "Connection": "close"})
    with serving(lambda _: half) as server, pytest.raises(CommandError, match=r"ended early: .*4 bytes read, 4 more"):
        fetch(tmp_path, wanted(server))


def test_a_download_that_breaks_off_begins_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    headers = {"Content-Length": str(len(Upstream.body)), "Connection": "close"}
    replies = iter([Reply(body=Upstream.body[:4], headers=headers), Reply(body=Upstream.body, headers=headers)])
    with serving(lambda _: next(replies)) as server:
        assert fetch(tmp_path, wanted(server)).read_bytes() == Upstream.body


def wheel(folder: Path, platform: str) -> None:
    """A wheel as pip wants it."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as packed:
        packed.writestr("nvidia/nccl/lib/libnccl.so.2", platform)
        packed.writestr("nvidia_nccl_cu13-2.31.2.dist-info/METADATA", "Name: nvidia-nccl-cu13\nVersion: 2.31.2\n")
        packed.writestr("nvidia_nccl_cu13-2.31.2.dist-info/WHEEL", "Wheel-Version: 1.0\n")
        packed.writestr("nvidia_nccl_cu13-2.31.2.dist-info/RECORD", "")
    folder.mkdir(exist_ok=True)
    (folder / f"nvidia_nccl_cu13-2.31.2-py3-none-{platform}.whl").write_bytes(content.getvalue())


def test_a_wheel_comes_from_the_users_package_index_for_the_nodes_architecture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = tmp_path / "index"
    for machine in ("x86_64", "aarch64"):
        wheel(index, f"manylinux_2_18_{machine}")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    item = Archive("nccl", "2.31.2", "arm64", "nvidia-nccl-cu13==2.31.2", "manylinux_2_18_aarch64")
    file = fetch(tmp_path, item)
    with zipfile.ZipFile(file) as packed:
        assert packed.read("nvidia/nccl/lib/libnccl.so.2") == b"manylinux_2_18_aarch64"
    assert file == cached_file(tmp_path, "nccl-2.31.2-cu13-arm64", digest_of(file))
    assert json.loads((tmp_path / "artifacts.lock").read_text())["archives"]["nccl-2.31.2-cu13-arm64"]["bytes"] > 100
    absent = Archive("nccl", "9.9.9", "arm64", "nvidia-nccl-cu13==9.9.9", "manylinux_2_18_aarch64")
    with pytest.raises(CommandError, match=r"pip has no wheel nvidia-nccl-cu13==9\.9\.9 for manylinux_2_18_aarch64"):
        fetch(tmp_path, absent)


def test_a_deployment_asks_for_the_archives_of_its_nodes(tmp_path: Path) -> None:
    piece = """
        cluster: {node_software: {install: ensure, versions: {efa_installer: 1.50.0, nccl: 2.31.2}}}
    """
    environment = loaded(piece).environment
    (item,) = environment_archives(environment)
    assert item.name == "efa_installer-1.50.0"
    findings = [finding for finding in missing_artifacts(tmp_path, environment) if finding.id.startswith("ART")]
    assert [finding.id for finding in findings] == ["ART001"]
    assert "aws-efa-installer-1.50.0.tar.gz" in findings[0].message
