"""The installed control plane: upstream programs that start, do their work, and stop."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

from needs import needs
from podwright.config.errors import CommandError
from podwright.sandbox.control_plane.cache import Cache, State
from podwright.sandbox.control_plane.control_plane import ControlPlane
from podwright.sandbox.control_plane.pins import pins
from podwright.sandbox.control_plane.processes import answers, is_alive

CACHE = Cache.of_user()
INSTALLED = all(CACHE.state(part) is State.INSTALLED for part in pins().parts)
pytestmark = needs(INSTALLED, "the control plane: `podwright sandbox kubernetes install`")

COMPONENTS = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"]


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Everything, started once for this file."""
    control_plane = ControlPlane(tmp_path_factory.mktemp("plane"), pins(), CACHE)
    control_plane.start()
    try:
        yield control_plane
    finally:
        control_plane.stop()


@pytest.fixture(scope="module")
def api(plane: ControlPlane) -> client.ApiClient:
    return config.new_client_from_config(str(plane.kubeconfig))


@pytest.fixture(scope="module")
def core(api: client.ApiClient) -> Any:
    return client.CoreV1Api(api)


@pytest.fixture(scope="module")
def batch(api: client.ApiClient) -> Any:
    return client.BatchV1Api(api)


def eventually(condition: Callable[[], Any], seconds: float = 60) -> Any:
    """What a condition gives once it gives something."""
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.2)
    return result


def test_all_components_run(plane: ControlPlane) -> None:
    assert [item.name for item in plane.running] == COMPONENTS


def test_the_api_server_is_ready_and_of_the_pinned_version(api: client.ApiClient) -> None:
    connection: Any = api.configuration
    assert answers(f"{connection.host}/readyz", Path(connection.ssl_ca_cert))
    version: Any = client.VersionApi(api).get_code()
    assert version.git_version == f"v{pins().part('kubernetes').version}"


def test_a_namespace_and_what_lies_in_it(core: Any) -> None:
    core.create_namespace({"metadata": {"name": "first"}})
    core.create_namespaced_config_map("first", {"metadata": {"name": "settings"}, "data": {"a": "b"}})
    assert core.read_namespaced_config_map("settings", "first").data == {"a": "b"}


def test_the_controller_manager_makes_pods_and_the_scheduler_judges_them(core: Any, batch: Any) -> None:
    """There is no node, so that is what the scheduler says of the pod."""
    container = {"name": "main", "image": "example.com/train"}
    spec = {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    batch.create_namespaced_job("default", {"metadata": {"name": "job"}, "spec": spec})

    def conditions() -> list[Any]:
        pods = core.list_namespaced_pod("default", label_selector="job-name=job").items
        return [condition.message for pod in pods for condition in pod.status.conditions or ()]

    assert "no nodes available to schedule pods" in eventually(conditions)[0]


def test_objects_are_checked_by_the_server(core: Any) -> None:
    with pytest.raises(ApiException, match="Invalid value"):
        core.create_namespace({"metadata": {"name": "Not_A_Name"}})


def test_a_second_start_is_refused(plane: ControlPlane) -> None:
    with pytest.raises(CommandError, match="runs already"):
        plane.start()


def test_all_stop_and_start_again_with_what_was_there(plane: ControlPlane, core: Any) -> None:
    core.create_namespace({"metadata": {"name": "stays"}})
    processes = plane.running
    plane.stop()
    assert [item.name for item in processes if is_alive(item)] == []
    assert plane.running == []
    plane.start()
    restarted: Any = client.CoreV1Api(config.new_client_from_config(str(plane.kubeconfig)))
    assert restarted.read_namespace("stays").status.phase == "Active"


def test_logs_lie_beside_the_data(plane: ControlPlane) -> None:
    assert [Path(item.log).name for item in plane.running] == [f"{name}.log" for name in COMPONENTS]
