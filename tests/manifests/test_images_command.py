"""`podwright images`: the stand-in chart, the real Helm, and registries on loopback."""

import base64
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from loopback import serving
from podwright.config.catalog.charts import HYPERPOD_DEPENDENCIES, chart
from podwright.config.errors import CommandError
from podwright.config.loading.artifacts import read_artifacts
from podwright.config.loading.project import Project
from podwright.config.settings.environment import Environment
from podwright.config.settings.governance.teams import Governance
from podwright.config.settings.groups import Lifecycle
from podwright.operations.artifacts import images
from podwright.operations.artifacts.stand_ins import stand_ins
from podwright.planning.helm.own_images import BENCHMARK_LABELS_IMAGE
from registry_double import Double, client

CHART = chart(HYPERPOD_DEPENDENCIES)
OWN_SCRIPTS = Lifecycle(source="s3://sagemaker-own/scripts", on_create="run.sh")
# Without teams, whose folders an image of their own makes.
LABELLED = (
    Project.at(Path(__file__).parents[2]).load("prod").environment.model_copy(update={"governance": Governance()})
)
ENVIRONMENT = LABELLED.model_copy(
    update={
        "instance_groups": {
            name: group.model_copy(update={"lifecycle": OWN_SCRIPTS})
            for name, group in LABELLED.instance_groups.items()
        }
    }
)
REGISTRY = "111122223333.dkr.ecr.us-west-2.amazonaws.com"
MPI, NVIDIA = "docker.io/mpioperator/mpi-operator:stand-in", "nvcr.io/nvidia/k8s-device-plugin:stand-in"


def listed(environment: Environment, root: Path) -> dict[str, str]:
    run_images = images.images(environment, stand_ins(environment), read_artifacts(root))
    return {str(image.original): image.served for image in run_images}


def test_images_are_listed_with_where_they_come_from(tmp_path: Path) -> None:
    assert listed(ENVIRONMENT, tmp_path) == {
        "602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/aws-efa-k8s-device-plugin:stand-in": "AWS's ECR in us-west-2",
        MPI: "docker.io, over the internet",
        NVIDIA: "nvcr.io, over the internet",
    }


def test_the_neuron_plugin_is_listed_where_it_runs(tmp_path: Path) -> None:
    group = ENVIRONMENT.instance_groups["system"].model_copy(update={"instance_type": "ml.trn2.48xlarge"})
    environment = ENVIRONMENT.model_copy(update={"instance_groups": {"trn": group}})
    assert [name for name in listed(environment, tmp_path) if "neuron" in name]
    assert not [name for name in listed(ENVIRONMENT, tmp_path) if "neuron" in name]


def test_the_image_of_labels_is_listed_where_nodes_run_our_scripts(tmp_path: Path) -> None:
    assert listed(LABELLED, tmp_path).keys() - listed(ENVIRONMENT, tmp_path).keys() == {BENCHMARK_LABELS_IMAGE}


class Ecr:
    """The account's ECR: its API stubbed, its registry on loopback."""

    endpoint = None

    def __init__(self, double: Double) -> None:
        self.double = double
        self.made: list[str] = []
        self.ecr = boto3.Session("key", "secret", region_name="us-west-2").client("ecr")
        self.stub = Stubber(self.ecr)
        self.stub.activate()
        token = base64.b64encode(b"AWS:password").decode()
        self.stub.add_response("get_authorization_token", {"authorizationData": [{"authorizationToken": token}]})

    def expect(self, *repositories: str, existing: bool = False) -> None:
        for repository in repositories:
            if existing:
                self.stub.add_client_error("create_repository", "RepositoryAlreadyExistsException")
            else:
                self.stub.add_response(
                    "create_repository",
                    {"repository": {"repositoryName": repository}},
                    {
                        "repositoryName": f"podwright/{repository}",
                        "imageTagMutability": "IMMUTABLE",
                        "imageScanningConfiguration": {"scanOnPush": True},
                    },
                )

    def client(self, service: str) -> Any:
        assert service == "ecr"
        return self.ecr


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """The account, and the two registries from which images come."""
    own, nvcr, hub = Double(), Double(), Double()
    with serving(own.answer) as first, serving(nvcr.answer) as second, serving(hub.answer) as third:
        own.url, nvcr.url, hub.url = first.url, second.url, third.url
        hosts = {REGISTRY: own, "nvcr.io": nvcr, "docker.io": hub}

        def registry(host: str, authorization: str = "") -> Any:
            assert bool(authorization) == (host == REGISTRY), "the password is for our registry and no other"
            made = client(hosts[host], authorization)
            made.scheme, made.host = "http", host
            monkeypatch.setattr(made, "_address", lambda path: path if "://" in path else hosts[host].url + path)
            return made

        monkeypatch.setattr(images, "Registry", registry)
        yield SimpleNamespace(account=Ecr(own), own=own, nvcr=nvcr, hub=hub)


def mirror(account: SimpleNamespace, root: Path) -> int:
    return images.mirror(ENVIRONMENT, root, stand_ins(ENVIRONMENT), account.account)


def test_foreign_images_are_copied_and_locked(account: SimpleNamespace, tmp_path: Path) -> None:
    digests = {MPI: account.hub.image("stand-in", b"mpi"), NVIDIA: account.nvcr.image("stand-in", b"nvidia")}
    account.account.expect("docker.io/mpioperator/mpi-operator", "nvcr.io/nvidia/k8s-device-plugin")
    assert mirror(account, tmp_path) == 0
    assert read_artifacts(tmp_path).mirrors == {REGISTRY: digests}
    assert account.own.blobs == account.hub.blobs | account.nvcr.blobs
    served = listed(ENVIRONMENT, tmp_path)
    assert served[NVIDIA] == f"mirrored: {REGISTRY}/podwright/{NVIDIA}@{digests[NVIDIA]}"


def test_a_second_run_finds_everything_there(account: SimpleNamespace, tmp_path: Path) -> None:
    digest = account.hub.image("stand-in", b"mpi")
    account.own.image("stand-in", b"mpi")
    account.nvcr.image("stand-in", b"mpi")
    names = ("docker.io/mpioperator/mpi-operator", "nvcr.io/nvidia/k8s-device-plugin")
    account.account.expect(*names, existing=True)
    assert mirror(account, tmp_path) == 0
    assert read_artifacts(tmp_path).mirrors[REGISTRY][MPI] == digest


def test_a_tag_that_moved_is_not_passed_off(account: SimpleNamespace, tmp_path: Path) -> None:
    account.own.image("stand-in", b"old")
    account.hub.image("stand-in", b"new")
    account.account.expect("docker.io/mpioperator/mpi-operator", existing=True)
    with pytest.raises(CommandError, match="upstream has moved that tag"):
        mirror(account, tmp_path)


def test_an_interrupted_run_keeps_what_it_copied(account: SimpleNamespace, tmp_path: Path) -> None:
    account.hub.image("stand-in", b"mpi")
    account.account.expect("docker.io/mpioperator/mpi-operator", "nvcr.io/nvidia/k8s-device-plugin")
    with pytest.raises(CommandError, match=r"k8s-device-plugin:stand-in cannot be copied: HTTP status 404"):
        mirror(account, tmp_path)
    assert list(read_artifacts(tmp_path).mirrors[REGISTRY]) == [MPI]


def test_an_image_that_no_value_names_is_told(
    account: SimpleNamespace, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    account.hub.image("stand-in", b"mpi")
    account.nvcr.image("stand-in", b"nvidia")
    account.account.expect("docker.io/mpioperator/mpi-operator", "nvcr.io/nvidia/k8s-device-plugin")
    bare = {name: path for name, path in CHART.image_values.items() if "nvcr.io" not in name}
    changed = dataclasses.replace(CHART, image_values=bare)
    monkeypatch.setattr(images, "chart", lambda name: changed)
    assert images.mirror(ENVIRONMENT, tmp_path, stand_ins(ENVIRONMENT), account.account) == 1
    assert "has a value for nvcr.io/nvidia/k8s-device-plugin" in capsys.readouterr().out


def test_the_sandbox_has_no_registry(tmp_path: Path) -> None:
    account: Any = SimpleNamespace(endpoint="http://localhost:1")
    with pytest.raises(CommandError, match="no container registry"):
        images.mirror(ENVIRONMENT, tmp_path, stand_ins(ENVIRONMENT), account)


def test_the_sandbox_lists_its_stand_in_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = Path(__file__).parents[2]
    args: Any = SimpleNamespace(action="list", environment="sandbox", project=root, sandbox=False, json=False)
    assert images.run(args) == 0
    printed = capsys.readouterr().out
    assert f"{NVIDIA}\n    nvcr.io, over the internet" in printed
    assert "stand-ins for hyperpod-dependencies, not the real charts" in printed
    assert "EKS add-ons: chosen by EKS, from 602401143452.dkr.ecr.us-west-2.amazonaws.com" in printed


def test_the_command_prints_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "chart_archives", lambda root, environment: stand_ins(environment))
    root = Path(__file__).parents[2]
    args: Any = SimpleNamespace(action="list", environment="prod", project=root, sandbox=False, json=True)
    assert images.run(args) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["environment"] == "prod"
    assert {"image": MPI, "mirror": None, "ecr_region": None} in printed["images"]
