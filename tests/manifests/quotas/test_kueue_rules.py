"""What Kueue's API refuses beyond its schema: each rule speaks, and the double refuses changes that Kueue refuses."""

from typing import Any

import pytest

from podwright.sandbox.kubernetes.kueue_rules import kueue_refusals
from podwright.sandbox.kubernetes.store import ApiError, KubernetesStore

LEVELS = [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]
FLAVOR = {"nodeLabels": {"group": "a"}, "topologyName": "t"}
CPU = {"name": "cpu", "nominalQuota": 1}
MEMORY = {"name": "memory", "nominalQuota": "1Gi"}


def kueue(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": "x"}, "spec": spec}


def groups(*flavors: tuple[str, list[dict[str, Any]]], covered: tuple[str, ...] = ("cpu",)) -> dict[str, Any]:
    listed = [{"name": name, "resources": resources} for name, resources in flavors]
    return {"cohortName": "c", "resourceGroups": [{"coveredResources": list(covered), "flavors": listed}]}


@pytest.mark.parametrize(
    ("kind", "spec", "reason"),
    [
        ("ClusterQueue", {"resourceGroups": groups(("a", [CPU | {"borrowingLimit": 1}]))["resourceGroups"]},
         "in no cohort"),
        ("ClusterQueue", groups(("a", [CPU]), ("a", [CPU])), "a is there twice"),
        ("ClusterQueue", groups(("a", [MEMORY, CPU]), covered=("cpu", "memory")), "covered resources in order"),
        ("ClusterQueue", groups(("a", [CPU, CPU]), covered=("cpu", "cpu")), "a resource is there twice"),
        ("ClusterQueue", {"flavorFungibility": {"preference": "BorrowingOverPreemption"}}, "both conditions"),
        ("ClusterQueue", {"preemption": {"borrowWithinCohort": {"policy": "LowerPriority"}}}, "reclaimWithinCohort"),
        ("Cohort", groups(("a", [MEMORY])), "covered resources in order"),
        ("ResourceFlavor", {"topologyName": "t"}, "at least one is required"),
        ("ResourceFlavor", {"nodeTaints": [{"key": "a", "effect": "Never"}]}, "effect is one of"),
        ("ResourceFlavor", {"tolerations": [{"operator": "Like", "key": "a"}]}, "not supported"),
        ("ResourceFlavor", {"tolerations": [{"operator": "Exists", "key": "a", "value": "b"}]}, "without a value"),
        ("ResourceFlavor", {"tolerations": [{"key": "a", "tolerationSeconds": 1}]}, "goes with NoExecute"),
        ("Topology", {"levels": LEVELS[::-1]}, "can only be the lowest"),
        ("Topology", {"levels": [LEVELS[0], LEVELS[0]]}, "must be unique"),
        ("MultiKueueCluster", {"clusterSource": {}}, "exactly one of"),
        ("MultiKueueConfig", {"clusters": ["a", "a"]}, "a cluster is there twice"),
    ],
)  # fmt: skip
def test_what_no_object_may_say(kind: str, spec: dict[str, Any], reason: str) -> None:
    assert any(reason in refusal for refusal in kueue_refusals(kueue(kind, spec)))


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
def test_what_an_object_may_become(kind: str, before: dict[str, Any], after: dict[str, Any], refused: bool) -> None:
    store = KubernetesStore("1.34")
    store.install("kueue")
    store.create(kueue(kind, before))
    if refused:
        with pytest.raises(ApiError, match="immutable"):
            store.apply(kueue(kind, after))
    else:
        assert store.apply(kueue(kind, after))["spec"] == after
