"""One control plane for all tests that share it; each leaves no policy and no object of the cluster behind."""

from collections.abc import Iterator

import pytest

from api_server import ApiServer, started
from control_plane_parts import GO_SETTINGS
from podwright.sandbox.control_plane.control_plane import ControlPlane


@pytest.fixture(scope="session", autouse=True)
def go_settings() -> Iterator[None]:
    """Let control planes trade memory for CPU time."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in GO_SETTINGS.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Everything, started once."""
    with started(tmp_path_factory.mktemp("shared-plane")) as control_plane:
        yield control_plane


@pytest.fixture(scope="session")
def server(plane: ControlPlane) -> ApiServer:
    """Its API server, as its administrator."""
    return ApiServer.of(plane.kubeconfig)
