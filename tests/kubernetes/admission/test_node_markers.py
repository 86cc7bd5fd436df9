"""What the function that puts nodes in quarantine may do to them, on a real API server."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import cdk8s
import pytest
from kubernetes.client import V1NodeSpec
from kubernetes.client.exceptions import ApiException

from api_server import ApiServer, Object
from podwright.cdk8s_charts.node_readers import NodeMarkers
from podwright.config.catalog.kubernetes_groups import NODE_MARKERS
from podwright.constructs.observability.node_quarantine.handler import index
from podwright.planning.node.quarantine import BY, MARK, REASON, SINCE
from policies_in_force import in_force, refusal
from waiting import until

USER = "quarantine-function"
CONFLICT = 409
NODE: Object = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "hyperpod-i-1"}}
SICK = {"key": "example.com/sick", "value": "yes", "effect": "NoSchedule"}
OURS = {"key": MARK, "value": "true", "effect": "NoSchedule"}
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "00000000-0000-0000-0000-000000000000"}
OTHERS = {"labels": {"other": "label"}, "annotations": {"other": "annotation"}, "finalizers": ["example.com/drain"]}


@pytest.fixture(scope="module")
def markers(server: ApiServer) -> Iterator[ApiServer]:
    """The server as a member of the group reaches it, once the policy is in force."""
    objects = NodeMarkers(cdk8s.App(), "markers").to_json()
    member = server.acting_as(USER, NODE_MARKERS)
    server.apply(node())
    # A label that is there already would be no change.
    numbers = count()
    with in_force(server, objects, lambda: member.merge(NODE, {"metadata": {"labels": {"n": str(next(numbers))}}})):
        yield member
    server.delete(NODE)


def node() -> Object:
    return NODE | {"metadata": NODE["metadata"] | OTHERS, "spec": {"taints": [SICK]}}


@pytest.fixture
def marked(server: ApiServer, markers: ApiServer, monkeypatch: pytest.MonkeyPatch) -> Object:
    """The node as the function leaves it that marks it."""
    server.delete(NODE)
    server.apply(node())

    class Api:
        """What the function asks of Kubernetes, as a member of the group."""

        def __init__(self, *_: Any) -> None:
            pass

        def node(self, name: str) -> Object:
            return markers.read(NODE | {"metadata": {"name": name}})

        def patch_node(self, name: str, change: Object) -> None:
            markers.merge(NODE | {"metadata": {"name": name}}, change)

    monkeypatch.setattr(index, "KubernetesApi", Api)
    event = {"eks_cluster": "c", "instance": "i-1", "reason": "3 faults", "by": "rule", "since": "2026-11-26T10:00:00Z"}

    def is_marked() -> bool:
        """Whoever called tries again, since controllers write into a new node as well."""
        try:
            return index.handler(event, None)["marked"]
        except ApiException as error:
            if error.status != CONFLICT:
                raise
            return False

    # Twice: a node that is marked already is marked anew.
    assert until(is_marked)
    assert until(is_marked)
    return server.read(NODE)


def test_the_function_marks_a_node_and_leaves_the_rest(marked: Object) -> None:
    # Kubernetes has annotations and taints of its own on a node that is not ready.
    metadata = marked["metadata"]
    assert metadata["labels"].items() >= {"other": "label", MARK: "true"}.items()
    expected = {"other": "annotation", REASON: "3 faults", BY: "rule", SINCE: "2026-11-26T10:00:00Z"}
    assert metadata["annotations"].items() >= expected.items()
    assert [taint for taint in marked["spec"]["taints"] if taint["key"] in (SICK["key"], MARK)] == [SICK, OURS]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"metadata": {"labels": {"other": "changed"}}}, "of labels only"),
        ({"metadata": {"labels": {"other": None}}}, "of labels only"),
        ({"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}, "of labels only"),
        ({"metadata": {"labels": {MARK: None}}}, "of labels only"),
        ({"metadata": {"labels": {MARK: "false"}}}, "may become true only"),
        ({"metadata": {"annotations": {"other": None}}}, "of annotations only"),
        ({"metadata": {"annotations": {"csi.volume.kubernetes.io/nodeid": "{}"}}}, "of annotations only"),
        ({"metadata": {"annotations": {REASON: None}}}, "of annotations only"),
        ({"metadata": {"finalizers": None}}, "finalizers may not change"),
        ({"metadata": {"ownerReferences": [OWNER]}}, "ownerReferences may not change"),
        ({"spec": {"taints": None}}, "and stays"),
        ({"spec": {"taints": [SICK]}}, "and stays"),
        ({"spec": {"taints": [OURS]}}, "of taints only"),
        ({"spec": {"taints": [SICK | {"effect": "NoExecute"}, OURS]}}, "of taints only"),
        ({"spec": {"taints": [SICK, OURS | {"effect": "NoExecute"}]}}, "become true:NoSchedule only"),
        ({"spec": {"taints": [SICK, OURS | {"value": "false"}]}}, "become true:NoSchedule only"),
        ({"spec": {"taints": [SICK, {"key": MARK, "effect": "NoSchedule"}]}}, "become true:NoSchedule only"),
        ({"spec": {"unschedulable": True}}, "of the spec only taints"),
        ({"spec": {"providerID": "aws:///usw2-az2/i-other"}}, "of the spec only taints"),
        ({"spec": {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]}}, "of the spec only taints"),
    ],
    ids=str,
)
def test_it_changes_nothing_else(markers: ApiServer, marked: Object, change: Object, says: str) -> None:
    with pytest.raises(ApiException) as error:
        markers.merge(NODE, change)
    assert "ValidatingAdmissionPolicy 'podwright-node-markers'" in refusal(error.value)
    assert says in refusal(error.value)


@pytest.mark.parametrize("subresource", ["status", "proxy"])
def test_nor_what_belongs_to_a_node(markers: ApiServer, marked: Object, subresource: str) -> None:
    """The role lets it have none of that, so the policy need not look."""
    with pytest.raises(ApiException) as error:
        markers.merge(NODE, {"status": {"capacity": {}}}, subresource=subresource)
    assert error.value.status == 403
    assert "cannot patch" in refusal(error.value)


def test_it_makes_and_deletes_no_node(server: ApiServer, markers: ApiServer) -> None:
    for verb in ("create", "delete", "deletecollection", "update", "list"):
        assert not server.allows(USER, [NODE_MARKERS], verb=verb, resource="nodes", group="")


def test_people_change_nodes_as_they_like(server: ApiServer, marked: Object) -> None:
    changed = server.merge(NODE, {"metadata": {"labels": {MARK: None}}, "spec": {"taints": None}})
    assert MARK not in changed["metadata"]["labels"]
    assert "taints" not in changed["spec"]


def test_the_policy_names_every_field_of_the_spec() -> None:
    """One that a later Kubernetes brings would be free."""
    (policy, *_) = NodeMarkers(cdk8s.App(), "markers").to_json()
    text = " ".join(each["expression"] for each in policy["spec"]["validations"])
    for field in set(V1NodeSpec.attribute_map.values()) - {"taints"}:
        assert f"object.spec.?{field} == oldObject.spec.?{field}" in text
