"""Custom resource definitions: applied once, and written into etcd as the API server stored them afterwards."""

import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from podwright.config.errors import CommandError
from podwright.sandbox.control_plane.cluster_api import find_definition
from podwright.sandbox.control_plane.control_plane import ControlPlane
from podwright.sandbox.control_plane.definitions import Definitions, Etcd
from podwright.sandbox.kubernetes.api_objects import ApiObjects
from podwright.sandbox.kubernetes.certificates import Authority

GROUP, PLURAL = "tests.podwright.io", "samples"
NAME = f"{PLURAL}.{GROUP}"
SERVICE = {"namespace": "default", "name": "converter", "path": "/convert"}
Object = dict[str, Any]


def definition(*, limit: int = 9, converted: bool = False) -> Object:
    """A kind with one field, in two versions that a service converts if asked for."""
    field = {"type": "object", "properties": {"size": {"type": "integer", "maximum": limit}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": field}}}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": schema}]
    spec: Object = {"group": GROUP, "scope": "Cluster", "names": {"plural": PLURAL, "kind": "Sample"}}
    if converted:
        versions.append({"name": "v2", "served": True, "storage": False, "schema": schema})
        webhook = {"conversionReviewVersions": ["v1"], "clientConfig": {"service": SERVICE}}
        spec["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    metadata = {"name": NAME, "annotations": {"note": "applied"}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": spec | {"versions": versions},
    }


@pytest.fixture
def definitions(plane: ControlPlane, tmp_path: Path) -> Iterator[Definitions]:
    """Those of the shared control plane, with an empty folder, and without the kind before and after."""
    yield dataclasses.replace(plane.definitions, folder=tmp_path / "definitions")
    ApiObjects(plane.kubeconfig).remove(definition())


@pytest.fixture
def remove(plane: ControlPlane) -> Callable[[], None]:
    """Deletes the definition with all of its objects."""
    return lambda: ApiObjects(plane.kubeconfig).remove(definition())


def stored(plane: ControlPlane) -> Object:
    """The definition as the API server has it."""
    item = find_definition(plane.kubeconfig, NAME)
    assert item
    return item


def file(definitions: Definitions) -> Path:
    (only,) = definitions.folder.iterdir()
    return only


def test_a_restored_definition_is_what_was_applied(
    plane: ControlPlane, definitions: Definitions, remove: Callable[[], None]
) -> None:
    definitions.apply([definition()])
    applied = stored(plane)
    remove()
    # The mark shows where the second one comes from.
    text = file(definitions).read_text(encoding="utf-8")
    file(definitions).write_text(text.replace('"note":"applied"', '"note":"restored"'), encoding="utf-8")
    definitions.apply([definition()])
    restored = stored(plane)
    assert restored["metadata"]["annotations"] == {"note": "restored"}
    own = ("uid", "resourceVersion", "creationTimestamp", "annotations")
    assert restored["metadata"]["uid"] != applied["metadata"]["uid"]
    for item in (applied, restored):
        for name in own:
            del item["metadata"][name]
    assert restored == applied

    sample = {"apiVersion": f"{GROUP}/v1", "kind": "Sample", "metadata": {"name": "a"}, "spec": {"size": 3}}
    objects = ApiObjects(plane.kubeconfig)
    assert objects.apply(sample)["spec"] == {"size": 3}
    with pytest.raises(Exception, match="should be less than or equal to 9"):
        objects.apply(sample | {"spec": {"size": 10}})


def test_an_existing_definition_is_changed_and_not_replaced(plane: ControlPlane, definitions: Definitions) -> None:
    definitions.apply([definition()])
    before = stored(plane)
    definitions.apply([definition(limit=12)])
    changed = stored(plane)
    assert changed["metadata"]["uid"] == before["metadata"]["uid"]
    assert changed["metadata"]["generation"] == 2
    # The stored form of a changed definition has a history that new clusters do not have.
    assert json.loads(file(definitions).read_text(encoding="utf-8"))["metadata"]["generation"] == 1
    definitions.apply([definition()])
    assert stored(plane)["metadata"]["generation"] == 3


def test_the_ports_of_converters_are_those_of_each_control_plane(
    plane: ControlPlane, definitions: Definitions, remove: Callable[[], None]
) -> None:
    for port in (12_345, 23_456):
        definitions.apply([definition(converted=True)], {"converter": port})
        service = stored(plane)["spec"]["conversion"]["webhook"]["clientConfig"]["service"]
        assert service == SERVICE | {"port": port}
        remove()
    assert file(definitions), "one file for both"


@pytest.mark.parametrize("content", ["", '{"metadata":', "null", '{"kind": "Secret"}'])
def test_a_file_that_a_crash_cut_is_written_again(
    plane: ControlPlane, definitions: Definitions, remove: Callable[[], None], content: str
) -> None:
    definitions.apply([definition()])
    whole = json.loads(file(definitions).read_text(encoding="utf-8"))
    remove()
    file(definitions).write_text(content, encoding="utf-8")
    definitions.apply([definition()])
    assert stored(plane)["spec"] == whole["spec"]
    assert json.loads(file(definitions).read_text(encoding="utf-8"))["spec"] == whole["spec"]


def test_a_folder_that_cannot_be_written_costs_time_alone(
    plane: ControlPlane, definitions: Definitions, caplog: pytest.LogCaptureFixture
) -> None:
    definitions.folder.write_text("not a folder", encoding="utf-8")
    definitions.apply([definition()])
    assert stored(plane)["spec"]["group"] == GROUP
    assert f"the definition {NAME} is not kept" in caplog.text


def test_etcd_that_does_not_answer_is_an_error_for_people(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="etcd on port 1 does not answer"):
        Etcd(1, Authority.open(tmp_path / "keys")).create("/key", b"value")
