"""One control plane for all tests that share it; each leaves no policy and no object of the cluster behind."""

from collections.abc import Iterator

import pytest

from api_server import ApiServer
from needs import require
from podwright.sandbox.control_plane.cache import Cache, State
from podwright.sandbox.control_plane.control_plane import ControlPlane
from podwright.sandbox.control_plane.pins import pins


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Everything, started once."""
    cache = Cache.of_user()
    installed = all(cache.state(part) is State.INSTALLED for part in pins().parts)
    require(installed, "the control plane: `podwright sandbox kubernetes install`")
    control_plane = ControlPlane(tmp_path_factory.mktemp("shared-plane"), pins(), cache)
    control_plane.start()
    try:
        yield control_plane
    finally:
        control_plane.stop()


@pytest.fixture(scope="session")
def server(plane: ControlPlane) -> ApiServer:
    """Its API server, as its administrator."""
    return ApiServer.of(plane.kubeconfig)
