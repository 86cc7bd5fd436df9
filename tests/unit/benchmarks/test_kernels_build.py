"""Building the benchmark programs: which are wanted, what is locked, and what a node makes of the archive."""

import json
import os
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from podwright.config.catalog.instance_types import catalog
from podwright.config.errors import CommandError
from podwright.config.loading.artifacts import read_artifacts
from podwright.config.settings.benchmarks import Benchmarks
from podwright.config.settings.groups import InstanceGroup
from podwright.lifecycle_scripts.podwright_benchmarks.programs import obtain
from podwright.operations.artifacts import kernels
from podwright.planning.node.archives import Archive, digest_of, locked_files
from podwright.planning.node.kernels import SOURCES, program_findings, programs, programs_of, recipe, wheels
from podwright.planning.node.software_facts import archive_facts


def group(kind: str, **provided: Any) -> InstanceGroup:
    return InstanceGroup.model_validate({"instance_type": kind, "count": 2, **provided})


H200, GB200, CPU, TRAINIUM = (
    group(kind) for kind in ("ml.p5en.48xlarge", "ml.p6e-gb200.36xlarge", "ml.m5.4xlarge", "ml.trn2.48xlarge")
)


def wanted(*groups: InstanceGroup, **settings: Any) -> list[str | None]:
    return [item.architecture for item in programs_of(Benchmarks(**settings), groups, catalog())]


def test_programs_are_wanted_for_nvidia_gpus_that_are_measured():
    assert wanted(H200, GB200, CPU, TRAINIUM) == ["arm64", "x86_64"]
    assert wanted(H200, H200) == ["x86_64"]
    assert wanted(CPU, TRAINIUM) == []
    assert wanted(group("ml.p5en.48xlarge", benchmarks="skip")) == []
    assert wanted(H200, programs="compile") == []


def test_a_gate_needs_programs_and_a_report_does_not(tmp_path):
    gate = group("ml.p5en.48xlarge", benchmarks="gate")
    (findings,) = program_findings(tmp_path, Benchmarks(), [gate, H200], catalog())
    assert (findings.id, findings.path) == ("ART004", "instance_groups")
    assert "x86_64" in findings.message
    assert "podwright kernels build" in findings.hint
    assert program_findings(tmp_path, Benchmarks(), [H200], catalog()) == []
    assert program_findings(tmp_path, Benchmarks(programs="compile"), [gate], catalog()) == []


@pytest.fixture
def index(tmp_path, monkeypatch) -> list[Archive]:
    """Small wheels in place of the real ones, and a compiler that writes what asks for glibc 2.34."""
    asked: list[Archive] = []

    def fetch(root: Path, item: Archive, *, update: bool) -> Path:
        asked.append(item)
        path = tmp_path / f"{item.name}.whl"
        name = item.address.partition("==")[0]
        with zipfile.ZipFile(path, "w") as wheel:
            for shipped in recipe()["shipped"]:
                if ("cublas" in name and "cublas" in shipped) or ("nccl" in name and "nccl" in shipped):
                    wheel.writestr(shipped, f"{item.address} for {item.architecture}")
        return path

    def compile_programs(target: Path, **_: Any) -> None:
        (target / "bin").mkdir(parents=True)
        (target / "bin/gemm").write_bytes(b"\x7fELF\0GLIBC_2.2.5\0GLIBC_2.34\0")

    (tmp_path / ".podwright/artifacts").mkdir(parents=True)
    monkeypatch.setattr(kernels, "fetch", fetch)
    monkeypatch.setattr(kernels, "compile_programs", compile_programs)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(kernels, "_contents", lambda folder, item, compiler: json.dumps({"host_compiler": compiler}))
    return asked


def test_what_is_built_reaches_a_node_whole(tmp_path, monkeypatch, index):
    built = kernels.build(tmp_path, "x86_64")
    item = programs("x86_64")
    locked = read_artifacts(tmp_path).archives[item.name]
    assert (locked.sha256, locked.bytes, locked.address) == (digest_of(built), built.stat().st_size, item.address)
    gate = group("ml.p5en.48xlarge", benchmarks="gate")
    assert program_findings(tmp_path, Benchmarks(), [gate], catalog()) == []

    (facts,) = archive_facts(locked_files(tmp_path, [item]))
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "aws").write_text(f'#!/bin/sh\ncp {built} "$6"\n[ "$5" = s3://bucket/archives/{facts.file} ]\n')
    (tools / "aws").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    published = {"archives": [facts.model_dump()], "archives_uri": "s3://bucket/archives"}
    folder = obtain(published, tmp_path, tmp_path / "root", set(), lambda *_, **__: None)
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()) == [
        "bin/gemm",
        "contents.json",
        "lib/libcublasLt.so.13",
        "lib/libnccl.so.2",
    ]
    assert os.access(folder / "bin/gemm", os.X_OK)
    assert not os.access(folder / "lib/libnccl.so.2", os.X_OK)


def test_the_other_architecture_takes_tools_of_this_one(tmp_path, index):
    kernels.build(tmp_path, "arm64")
    assert {item.architecture for item in index if item in wheels("tools", "x86_64")} == {"x86_64"}
    assert set(wheels("libraries", "arm64")) <= set(index)
    assert [item for item in index if item in wheels("tools", "arm64")] == []
    (name,) = read_artifacts(tmp_path).archives
    assert name == programs("arm64").name


def test_a_missing_cross_compiler_is_named(tmp_path, monkeypatch, index):
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(CommandError) as stop:
        kernels.build(tmp_path, "arm64")
    assert "aarch64-linux-gnu-g++ is not installed" in str(stop.value)
    assert index == []


def test_programs_that_a_node_could_not_start_are_refused(tmp_path, monkeypatch, index):
    def newer(target: Path, **_: Any) -> None:
        (target / "bin").mkdir(parents=True)
        (target / "bin/gemm").write_bytes(b"\0GLIBC_2.9\0GLIBC_2.38\0")

    monkeypatch.setattr(kernels, "compile_programs", newer)
    with pytest.raises(CommandError, match=r"need glibc 2\.38"):
        kernels.build(tmp_path, "x86_64")
    assert read_artifacts(tmp_path).archives == {}
    assert list((tmp_path / ".podwright/artifacts").iterdir()) == []


def test_line_ends_of_a_checkout_change_no_version(tmp_path, monkeypatch):
    before = programs("x86_64")
    copy = tmp_path / "sources"
    shutil.copytree(SOURCES, copy)
    for file in copy.iterdir():
        file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    monkeypatch.setattr("podwright.planning.node.kernels.SOURCES", copy)
    assert programs("x86_64") == before
