"""What Kueue's API refuses beyond its schema: rules over several fields, and fields that never change again.

Source: validation rules (CEL) of the custom resource definitions of Kueue 0.19.2, in words of our own.
"""

from collections.abc import Callable, Iterator
from typing import Final

from ..protocol.json_objects import JsonObject

GROUP: Final = "kueue.x-k8s.io"
_HOSTNAME: Final = "kubernetes.io/hostname"
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")

Rule = Callable[[JsonObject, JsonObject | None], Iterator[str]]
"""Takes a spec, and the one that is stored if there is one; yields what is wrong."""


def kueue_refusals(manifest: JsonObject, former: JsonObject | None = None) -> list[str]:
    """Why Kueue's API refuses an object that its schema allows, each as `path: reason`."""
    rule = _RULES.get(manifest["kind"])
    if rule is None or not manifest["apiVersion"].startswith(f"{GROUP}/"):
        return []
    return list(rule(manifest.get("spec") or {}, former.get("spec") or {} if former else None))


def _cluster_queue(spec: JsonObject, former: JsonObject | None) -> Iterator[str]:
    """What Kueue's webhook refuses of a ClusterQueue."""
    yield from _resource_groups(spec)
    if "cohortName" not in spec:
        for group in spec.get("resourceGroups", []):
            for flavor in group["flavors"]:
                if any("borrowingLimit" in resource for resource in flavor["resources"]):
                    yield f"spec.resourceGroups: {flavor['name']} has a borrowingLimit, and the queue is in no cohort"
    fungibility = spec.get("flavorFungibility", {})
    tries = [fungibility.get("whenCanBorrow"), fungibility.get("whenCanPreempt", "TryNextFlavor")]
    if "preference" in fungibility and tries != ["TryNextFlavor", "TryNextFlavor"]:
        yield "spec.flavorFungibility.preference: only where both conditions are TryNextFlavor"
    preemption = spec.get("preemption", {})
    borrows = preemption.get("borrowWithinCohort", {}).get("policy", "Never")
    if preemption.get("reclaimWithinCohort", "Never") == "Never" and borrows != "Never":
        yield "spec.preemption: reclaimWithinCohort is Never, and borrowWithinCohort is not"


def _resource_groups(spec: JsonObject, _: JsonObject | None = None) -> Iterator[str]:
    flavors, resources = set[str](), set[str]()
    for group in spec.get("resourceGroups", []):
        covered = group["coveredResources"]
        if len(set(covered)) < len(covered) or resources & set(covered):
            yield "spec.resourceGroups.coveredResources: a resource is there twice"
        resources |= set(covered)
        for flavor in group["flavors"]:
            if flavor["name"] in flavors:
                yield f"spec.resourceGroups.flavors: {flavor['name']} is there twice"
            flavors.add(flavor["name"])
            if [resource["name"] for resource in flavor["resources"]] != covered:
                yield f"spec.resourceGroups.flavors: {flavor['name']} does not have the covered resources in order"


def _resource_flavor(spec: JsonObject, former: JsonObject | None) -> Iterator[str]:
    """What Kueue's webhook refuses of a ResourceFlavor."""
    if "topologyName" in spec and not spec.get("nodeLabels"):
        yield "spec.nodeLabels: at least one is required when topology is set"
    if any(taint["effect"] not in _EFFECTS for taint in spec.get("nodeTaints", [])):
        yield f"spec.nodeTaints: effect is one of {', '.join(_EFFECTS)}"
    for toleration in spec.get("tolerations", []):
        operator = toleration.get("operator", "Equal")
        if operator not in ("Equal", "Exists") or toleration.get("effect", _EFFECTS[0]) not in _EFFECTS:
            yield "spec.tolerations: operator or effect is not supported"
        if ("key" not in toleration and operator != "Exists") or ("value" in toleration and operator == "Exists"):
            yield "spec.tolerations: Exists goes without a value, Equal with a key"
        if "tolerationSeconds" in toleration and toleration.get("effect") != "NoExecute":
            yield "spec.tolerations: tolerationSeconds goes with NoExecute"
    if former and "topologyName" in former:
        for field in ("nodeLabels", "tolerations", "topologyName"):
            if spec.get(field) != former.get(field):
                yield f"spec.{field}: Invalid value: is immutable when topologyName is set"


def _topology(spec: JsonObject, former: JsonObject | None) -> Iterator[str]:
    labels = [level["nodeLabel"] for level in spec["levels"]]
    if len(set(labels)) < len(labels):
        yield "spec.levels: must be unique"
    if _HOSTNAME in labels[:-1]:
        yield f"spec.levels: {_HOSTNAME} can only be the lowest level"
    if former and spec["levels"] != former["levels"]:
        yield "spec.levels: Invalid value: field is immutable"


def _unchanged(field: str) -> Rule:
    def rule(spec: JsonObject, former: JsonObject | None) -> Iterator[str]:
        if former and spec.get(field) != former.get(field):
            yield f"spec.{field}: Invalid value: field is immutable"

    return rule


def _multikueue_cluster(spec: JsonObject, former: JsonObject | None) -> Iterator[str]:
    if len(spec["clusterSource"].keys() & {"kubeConfig", "clusterProfileRef"}) != 1:
        yield "spec.clusterSource: exactly one of kubeConfig and clusterProfileRef is required"


def _multikueue_config(spec: JsonObject, former: JsonObject | None) -> Iterator[str]:
    if len(set(spec["clusters"])) < len(spec["clusters"]):
        yield "spec.clusters: a cluster is there twice"


_RULES: Final[dict[str, Rule]] = {
    "AdmissionCheck": _unchanged("controllerName"),
    "ClusterQueue": _cluster_queue,
    "Cohort": _resource_groups,
    "LocalQueue": _unchanged("clusterQueue"),
    "MultiKueueCluster": _multikueue_cluster,
    "MultiKueueConfig": _multikueue_config,
    "ResourceFlavor": _resource_flavor,
    "Topology": _topology,
}
