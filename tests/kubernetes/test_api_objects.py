"""A cluster's objects on a real API server, by what the sandbox's services do with them."""

import json
import logging
import pickle
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cluster_cases import CASES, CHART_CASES, DEFINITION, Case, config_map, data_of, definition, namespace_of, upgrade
from control_plane_parts import needs_parts
from podwright.config.errors import CommandError
from podwright.sandbox.control_plane.cache import Cache
from podwright.sandbox.control_plane.control_plane import ControlPlane
from podwright.sandbox.control_plane.definitions import KIND
from podwright.sandbox.control_plane.kubectl import read_objects
from podwright.sandbox.control_plane.pins import pins
from podwright.sandbox.kubernetes.api_objects import ApiObjects
from podwright.sandbox.kubernetes.cluster_objects import ApiError, ClusterObjects
from podwright.sandbox.kubernetes.custom_kinds import content, names, upstream_kinds

CACHE = Cache.of_user()
pytestmark = needs_parts("kueue")


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Everything, started once for this file, with the kinds of Kueue, which no operator brings here."""
    control_plane = ControlPlane(tmp_path_factory.mktemp("plane"), pins(), CACHE)
    control_plane.start()
    release = read_objects(CACHE.folder(pins().part("kueue")) / "release.yaml")
    definitions = [item for item in release if item["kind"] == KIND]
    for item in definitions:
        # Nothing converts their versions here.
        item["spec"].pop("conversion", None)
    control_plane.definitions.apply(definitions)
    try:
        yield control_plane
    finally:
        control_plane.stop()


@pytest.fixture
def objects(plane: ControlPlane) -> ApiObjects:
    return ApiObjects(plane.kubeconfig)


@pytest.mark.parametrize("case", CASES)
def test_objects(case: Case, objects: ApiObjects) -> None:
    case(objects)


@pytest.mark.parametrize("case", CHART_CASES)
def test_charts(case: Callable[[ClusterObjects, Path], None], objects: ApiObjects, tmp_path: Path) -> None:
    case(objects, tmp_path)


def test_the_version_is_the_servers(objects: ApiObjects) -> None:
    assert pins().part("kubernetes").version.startswith(f"{objects.version}.")


def test_kinds_that_operators_bring_are_not_ours(objects: ApiObjects) -> None:
    """Those of all kinds of jobs but HyperPod's own come with the operators."""
    for kind in upstream_kinds():
        for owner in kind["installed_by"]:
            objects.install(owner)
    served = {item["metadata"]["name"] for item in objects.all(*DEFINITION)}
    jobs = {"pytorchjobs.kubeflow.org", "mpijobs.kubeflow.org", "rayjobs.ray.io", "trainjobs.trainer.kubeflow.org"}
    assert jobs & served == set()


def test_every_kind_of_ours_is_served(objects: ApiObjects) -> None:
    for owner in sorted({owner for name in names() for owner in content(name)["installed_by"]}):
        objects.install(owner)
    kinds = {item["spec"]["names"]["kind"] for item in objects.all(*DEFINITION)}
    assert {content(name)["kind"] for name in names()} - kinds == set()


def test_a_kind_goes_with_its_objects(objects: ApiObjects) -> None:
    kind, namespace = definition("gone.example.com"), namespace_of(objects)
    widget = {"apiVersion": "gone.example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": namespace}}
    for _ in range(3):
        objects.create(kind)
        objects.create(widget)
        objects.remove(kind)
        assert objects.find("gone.example.com/v1", "Widget", "w", namespace) is None


def test_what_others_have_set_stays(objects: ApiObjects) -> None:
    namespace = namespace_of(objects)
    current = objects.create(config_map("one", namespace, a="1"))
    other = {"metadata": {"annotations": {"theirs": "1"}}, "data": {"b": "2"}}
    ApiObjects(objects.kubeconfig).patch(current, other, "strategic")
    changed = objects.apply(config_map("one", namespace, a="3"))
    assert changed["data"] == {"a": "3", "b": "2"}
    assert changed["metadata"]["annotations"] == {"theirs": "1"}


def test_webhooks_without_a_process_are_left_out(
    objects: ApiObjects, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    name = f"case-{uuid.uuid4().hex[:8]}"
    webhooks = f"""
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {{name: {name}}}
webhooks:
- name: hook.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  rules: [{{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}}]
  clientConfig: {{service: {{name: hooks, namespace: {name}}}}}
---
apiVersion: v1
kind: Service
metadata: {{name: hooks}}
spec: {{ports: [{{port: 443}}]}}
"""

    def service_type() -> str:
        service = objects.find("v1", "Service", "hooks", name)
        return service["spec"]["type"] if service else "none"

    with caplog.at_level(logging.WARNING):
        upgrade(objects, tmp_path, name, {"webhooks": webhooks})
    assert f"ValidatingWebhookConfiguration {name} of the release mine is left out" in caplog.text
    assert service_type() == "ClusterIP"
    objects.create(config_map("one", name, a="the operator's"))

    # An operator that runs here has its objects beforehand. Its Service leads to it whatever the chart says.
    objects.remove({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hooks", "namespace": name}})
    spec = {"type": "ExternalName", "externalName": "localhost"}
    metadata = {"name": "hooks", "namespace": name}
    objects.create({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
    caplog.clear()
    operators = json.dumps(config_map("one", name, a="the chart's"))
    upgrade(objects, tmp_path, name, {"webhooks": webhooks, "operators": operators})
    assert data_of(objects, name) == {"one": {"a": "the chart's"}}
    assert service_type() == "ExternalName"
    objects.uninstall("mine", name)
    assert data_of(objects, name) == {}
    assert service_type() == "ExternalName"
    assert caplog.text == ""


def test_a_chart_that_fails_says_why_and_can_be_fixed(objects: ApiObjects, tmp_path: Path) -> None:
    namespace = namespace_of(objects)
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: Not_A_Name}\n"
    with pytest.raises(CommandError, match="Not_A_Name"):
        upgrade(objects, tmp_path, namespace, {"secret": secret})
    upgrade(objects, tmp_path, namespace, {"secret": secret.replace("Not_A_Name", "right")})
    assert objects.find("v1", "Secret", "right", namespace)


def test_a_server_that_is_gone_or_comes_back_elsewhere(plane: ControlPlane, objects: ApiObjects) -> None:
    namespace = namespace_of(objects)
    objects.create(config_map("one", namespace, a="1"))
    plane.stop()
    with pytest.raises(ApiError, match="does not answer") as refused:
        objects.find("v1", "ConfigMap", "one", namespace)
    assert refused.value.code == 503
    plane.start()
    assert data_of(pickle.loads(pickle.dumps(objects)), namespace) == {"one": {"a": "1"}}
