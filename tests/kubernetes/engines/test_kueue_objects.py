"""What Kueue itself takes and refuses: by the schemas and rules of its kinds, by its webhooks, and of later changes."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import pytest
from kubernetes.client.exceptions import ApiException
from kubernetes.utils.quantity import parse_quantity

from api_server import ApiServer, Object, started
from kueue_settings import MANAGER, SETTINGS, queue_objects
from podwright.config.settings.governance.kueue import MultiKueue
from podwright.sandbox.control_plane.control_plane import ControlPlane

LEVELS = [{"nodeLabel": "example.com/rack"}, {"nodeLabel": "kubernetes.io/hostname"}]
FLAVOR = {"nodeLabels": {"group": "a"}, "topologyName": "t"}
CPU = {"name": "cpu", "nominalQuota": "1"}
MEMORY = {"name": "memory", "nominalQuota": "1Gi"}


@pytest.fixture(scope="module")
def kueue_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with Kueue and its webhooks."""
    with started(tmp_path_factory.mktemp("kueue"), "kueue") as control_plane:
        control_plane.install("kueue")
        yield control_plane


@pytest.fixture(scope="module")
def kueue(kueue_plane: ControlPlane) -> ApiServer:
    return ApiServer.of(kueue_plane.kubeconfig)


def item(kind: str, spec: Object) -> Object:
    metadata = {"name": f"x-{uuid.uuid4().hex[:8]}"} | ({"namespace": "default"} if kind == "LocalQueue" else {})
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata, "spec": spec}


def groups(*flavors: tuple[str, list[dict[str, Any]]], covered: tuple[str, ...] = ("cpu",)) -> Object:
    listed = [{"name": name, "resources": resources} for name, resources in flavors]
    return {"cohortName": "c", "resourceGroups": [{"coveredResources": list(covered), "flavors": listed}]}


@pytest.mark.parametrize(
    ("kind", "spec", "reason"),
    [
        ("ClusterQueue", {"resourceGroups": groups(("a", [CPU | {"borrowingLimit": "1"}]))["resourceGroups"]},
         "borrowingLimit must be nil when cohort is empty"),
        ("ClusterQueue", groups(("a", [CPU]), ("a", [CPU])), "duplicate entries for key"),
        ("ClusterQueue", groups(("a", [MEMORY, CPU]), covered=("cpu", "memory")), "must match the name"),
        ("ClusterQueue", groups(("a", [CPU]), covered=("cpu", "memory")), "same number of resources"),
        ("ClusterQueue", {"flavorFungibility": {"preference": "BorrowingOverPreemption"}}, "preference"),
        ("ClusterQueue", {"preemption": {"borrowWithinCohort": {"policy": "LowerPriority"}}}, "reclaimWithinCohort"),
        ("Cohort", {"resourceGroups": groups(("a", [MEMORY]))["resourceGroups"]}, "must match the name"),
        ("ResourceFlavor", {"topologyName": "t"}, "at least one nodeLabel is required"),
        ("ResourceFlavor", {"nodeTaints": [{"key": "a", "effect": "Never"}]}, "supported taint effect"),
        ("ResourceFlavor", {"tolerations": [{"operator": "Like", "key": "a"}]}, "supported toleration"),
        ("ResourceFlavor", {"tolerations": [{"operator": "Exists", "key": "a", "value": "b"}]}, "must be empty"),
        ("ResourceFlavor", {"tolerations": [{"key": "a", "tolerationSeconds": 1}]}, "'NoExecute'"),
        ("Topology", {"levels": LEVELS[::-1]}, "only be used at the lowest level"),
        ("Topology", {"levels": [LEVELS[0], LEVELS[0]]}, "must be unique"),
        ("MultiKueueCluster", {"clusterSource": {}}, "xactly one of"),
        ("MultiKueueConfig", {"clusters": ["a", "a"]}, "must be unique"),
    ],
)  # fmt: skip
def test_what_no_object_may_say(kueue: ApiServer, kind: str, spec: Object, reason: str) -> None:
    with pytest.raises(ApiException, match=reason):
        kueue.apply(item(kind, spec))


@pytest.mark.parametrize(
    ("kind", "before", "after", "refused"),
    [
        ("ResourceFlavor", FLAVOR, FLAVOR | {"tolerations": [{"operator": "Exists"}]}, True),
        ("ResourceFlavor", FLAVOR, FLAVOR | {"topologyName": "u"}, True),
        ("ResourceFlavor", FLAVOR, FLAVOR | {"nodeTaints": [{"key": "a", "effect": "NoSchedule"}]}, False),
        ("ResourceFlavor", {"nodeLabels": {"group": "a"}}, FLAVOR, False),
        ("Topology", {"levels": LEVELS}, {"levels": LEVELS[1:]}, True),
        ("LocalQueue", {"clusterQueue": "a"}, {"clusterQueue": "b"}, True),
        ("AdmissionCheck", {"controllerName": "a"}, {"controllerName": "b"}, True),
        ("Cohort", {"parentName": "a"}, {"parentName": "b"}, False),
    ],
)
def test_what_an_object_may_become(kueue: ApiServer, kind: str, before: Object, after: Object, refused: bool) -> None:
    made = item(kind, before)
    kueue.apply(made)
    if refused:
        with pytest.raises(ApiException, match="immutable"):
            kueue.apply(made | {"spec": after})
    else:
        assert after.items() <= kueue.apply(made | {"spec": after})["spec"].items()


@pytest.mark.parametrize(
    "settings",
    [*SETTINGS, {"groups": MultiKueue.model_validate(MANAGER).groups, "teams": {"a": {"quota": {"h200": 20}}},
                 "kueue": {"multikueue": MANAGER}}],
)  # fmt: skip
def test_kueue_takes_every_object(kueue: ApiServer, settings: Object) -> None:
    with deployed(kueue, queue_objects(**settings)):
        pass


BEFORE: Object = {
    "groups": {"h200": {"instance_type": "ml.p5en.48xlarge", "count": 8}},
    "teams": {"research": {"quota": {"h200": 4}}, "product": {"quota": {"h200": 2}, "department": "sales"}},
    "departments": {"sales": {}, "labs": {}},
}


def changed(**edit: Object) -> list[Object]:
    """The objects of the file after an edit."""
    return queue_objects(**BEFORE | {name: BEFORE.get(name, {}) | value for name, value in edit.items()})


@contextmanager
def deployed(kueue: ApiServer, objects: list[Object]) -> Iterator[None]:
    """After a deployment; its objects are gone afterwards."""
    namespaces = {"kueue-system", *(item["metadata"].get("namespace", "default") for item in objects)}
    for name in sorted(namespaces):
        kueue.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    try:
        for each in objects:
            kueue.apply(each)
        yield
    finally:
        for each in reversed(objects):
            kueue.delete(each)


def amounts(queue: Object) -> dict[tuple[str, str], Decimal]:
    """The quotas of a queue by flavor and resource; the server writes a quantity in its own way."""
    return {
        (flavor["name"], resource["name"]): parse_quantity(resource["nominalQuota"])
        for group in queue["spec"]["resourceGroups"]
        for flavor in group["flavors"]
        for resource in flavor["resources"]
    }


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param({"teams": {"research": {"quota": {"h200": {"accelerators": 9}}, "share": "lend"}}}, id="a quota"),
        pytest.param({"teams": {"product": {"quota": {"h200": 2}, "department": "labs"}}}, id="a department"),
        pytest.param({"teams": {"guests": {}}}, id="a new team"),
        pytest.param({"groups": {"h200": BEFORE["groups"]["h200"] | {"count": 16}}}, id="more instances"),
        pytest.param(
            {"groups": {"h200": BEFORE["groups"]["h200"] | {"taints": [{"key": "a", "effect": "NoSchedule"}]}}},
            id="a taint",
        ),
        pytest.param({"groups": {"cpu": {"instance_type": "ml.m5.4xlarge", "count": 2}}}, id="a new group"),
    ],
)
def test_edits_that_a_running_cluster_takes(kueue: ApiServer, edit: Object) -> None:
    after = changed(**edit)
    with deployed(kueue, changed()), deployed(kueue, after):
        queues = [each for each in after if each["kind"] == "ClusterQueue"]
        assert queues
        for queue in queues:
            assert amounts(kueue.read(queue)) == amounts(queue)


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        pytest.param(
            {"groups": {"h200": {"instance_type": "ml.p5.48xlarge", "count": 8}}}, "topologyName", id="another type"
        ),
        pytest.param(
            {"types": {"ml.p5en.48xlarge": {"topology_labels": "topology.k8s.aws/network-node-layer-3"}}},
            "spec.levels",
            id="other levels",
        ),
    ],
)
def test_edits_that_kueue_refuses(kueue: ApiServer, edit: Object, reason: str) -> None:
    with (
        deployed(kueue, changed()),
        pytest.raises(ApiException, match=rf"(?s){reason}.*immutable"),
        deployed(kueue, changed(**edit)),
    ):
        pass
