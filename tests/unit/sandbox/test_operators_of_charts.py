"""Which operators run for a chart or an add-on, on clusters with a control plane."""

from pathlib import Path
from typing import Any, cast

import pytest

from podwright.planning.helm.wanted_charts import wanted_charts
from podwright.sandbox.control_plane.control_plane import ControlPlane
from podwright.sandbox.eks import control_planes
from podwright.sandbox.eks.control_planes import ControlPlanes, Webhooks
from synthesis import environment_of

AT = ("us-west-2", "one")
ENVIRONMENT = """
account: "111122223333"
region: us-west-2
network: {zones: [usw2-az2, usw2-az3]}
instance_groups: {system: {instance_type: ml.m5.4xlarge, count: 2}}
"""


class Plane:
    """A control plane that notes what runs on it."""

    def __init__(self) -> None:
        self.operators: list[str] = []

    def apply_release(self, name: str, settings: dict[str, Any] | None, expected: list[str]) -> None:
        """Run an operator; one that is there stays."""
        self.operators = [*[other for other in self.operators if other != name], name]

    def uninstall(self, name: str) -> None:
        """Stop it if it is there."""
        self.operators = [other for other in self.operators if other != name]


@pytest.fixture(autouse=True)
def no_parts_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is installed on this machine."""
    monkeypatch.setattr(control_planes, "missing_parts", lambda *_: [])


@pytest.fixture
def plane() -> Plane:
    return Plane()


@pytest.fixture
def planes(plane: Plane) -> ControlPlanes:
    webhooks = Webhooks("https://127.0.0.1:1", Path("ca.pem"), "bearer")
    return ControlPlanes(
        Path("planes"), "111122223333", webhooks, new_clusters="real", planes={AT: cast(ControlPlane, plane)}
    )


@pytest.mark.parametrize(
    ("platform", "expected"),
    [
        ("{}", ["training-operator", "mpi-operator"]),
        ("{mpi_jobs: false}", ["training-operator"]),
        ("{pytorch_jobs: false, kuberay: {}}", ["mpi-operator", "kuberay"]),
        ("{kubeflow_trainer: {}}", ["training-operator", "mpi-operator", "jobset", "trainer"]),
        ("{mpi_jobs: false, leader_worker_set: {}}", ["training-operator", "lws"]),
    ],
)
def test_those_run_that_an_environments_charts_bring(
    plane: Plane, planes: ControlPlanes, platform: str, expected: list[str]
) -> None:
    for desired in wanted_charts(environment_of(f"{ENVIRONMENT}\nplatform: {platform}")):
        planes.apply_releases(*AT, desired.chart.name, desired.values)
    assert plane.operators == expected


def test_what_is_turned_off_or_deleted_stops(plane: Plane, planes: ControlPlanes) -> None:
    planes.apply_releases(*AT, "hyperpod-dependencies", {})
    planes.apply_releases(*AT, "hyperpod-dependencies", {"trainingOperators": {"enabled": False}})
    assert plane.operators == ["mpi-operator"]
    planes.uninstall(*AT, "hyperpod-dependencies")
    assert plane.operators == []


def test_nothing_runs_for_others_and_for_clusters_in_a_store(plane: Plane, planes: ControlPlanes) -> None:
    planes.apply_releases(*AT, "metrics-server")
    planes.apply_releases("us-west-2", "two", "kueue")
    assert plane.operators == []
