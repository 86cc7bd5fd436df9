"""Access policies, by which EKS authorizes principals in addition to the cluster's RBAC.

As in EKS, an API server sends a review if its RBAC does not allow a request. So a policy needs no objects in the
cluster, `kubectl auth can-i --list` does not show its rules, and it does not apply to impersonated users.

Sources: Amazon EKS User Guide, "Review access policy permissions" and "Associate access policies with access entries",
2026-11, with tables of the rules. Policies without a table, those for EKS Auto Mode and HyperPod, can be associated and
allow nothing (our assumption).
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from ..protocol.json_objects import JsonObject
from .access_entries import canonical
from .service import EksCluster

ARN: Final = "arn:aws:eks::aws:cluster-access-policy/"
_ANY: Final = ("*",)
_READ: Final = ("get", "list", "watch")
_WRITE: Final = ("create", "delete", "deletecollection", "patch", "update")


@dataclass(frozen=True, slots=True)
class Rule:
    """Allowed verbs on resources of an API group, or on other URLs."""

    group: str
    resources: Collection[str]
    verbs: Collection[str]
    urls: Collection[str] = ()

    def covers(self, review: JsonObject) -> bool:
        """True if it allows the request in a SubjectAccessReview's spec."""
        resource, other = review.get("resourceAttributes"), review.get("nonResourceAttributes")
        if resource is None:
            return other is not None and _has(self.verbs, other["verb"]) and _has(self.urls, other["path"])
        name = "/".join(filter(None, (resource["resource"], resource.get("subresource"))))
        group = self.group in ("*", resource.get("group", ""))
        return group and _has(self.verbs, resource["verb"]) and _has(self.resources, name)


def _has(items: Collection[str], item: str) -> bool:
    return "*" in items or item in items


def _rule(group: str, resources: str, verbs: Collection[str]) -> Rule:
    return Rule(group, resources.split(), verbs)


_WORKLOADS = (
    "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status replicasets"
    " replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status"
)
_OLD_WORKLOADS = (
    "daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses ingresses/status"
    " networkpolicies replicasets replicasets/scale replicasets/status replicationcontrollers/scale"
)
_VIEW = (
    _rule("apps", _WORKLOADS, _READ),
    _rule("autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status", _READ),
    _rule("batch", "cronjobs cronjobs/status jobs jobs/status", _READ),
    _rule("discovery.k8s.io", "endpointslices", _READ),
    _rule("extensions", _OLD_WORKLOADS, _READ),
    _rule("networking.k8s.io", "ingresses ingresses/status networkpolicies", _READ),
    _rule("policy", "poddisruptionbudgets poddisruptionbudgets/status", _READ),
    _rule("", "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods", _READ),
    _rule("", "replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status", _READ),
    _rule("", "bindings events limitranges namespaces namespaces/status pods/log pods/status", _READ),
    _rule("", "replicationcontrollers/status resourcequotas resourcequotas/status", _READ),
)
_EDIT = (
    *_VIEW,
    _rule("apps", "daemonsets deployments deployments/rollback deployments/scale replicasets", _WRITE),
    _rule("apps", "replicasets/scale statefulsets statefulsets/scale", _WRITE),
    _rule("autoscaling", "horizontalpodautoscalers", _WRITE),
    _rule("batch", "cronjobs jobs", _WRITE),
    _rule("extensions", "daemonsets deployments deployments/rollback deployments/scale ingresses", _WRITE),
    _rule("extensions", "networkpolicies replicasets replicasets/scale replicationcontrollers/scale", _WRITE),
    _rule("networking.k8s.io", "ingresses networkpolicies", _WRITE),
    _rule("policy", "poddisruptionbudgets", _WRITE),
    _rule("", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy", (*_READ, *_WRITE)),
    _rule("", "pods configmaps events persistentvolumeclaims replicationcontrollers", _WRITE),
    _rule("", "replicationcontrollers/scale serviceaccounts services", _WRITE),
    _rule("", "serviceaccounts", ("impersonate",)),
)
_ADMIN = (
    *_EDIT,
    _rule("authorization.k8s.io", "localsubjectaccessreviews", ("create",)),
    _rule("rbac.authorization.k8s.io", "rolebindings roles", (*_READ, *_WRITE)),
)
RULES: Final = {
    "AmazonEKSAdminPolicy": _ADMIN,
    "AmazonEKSAdminViewPolicy": (_rule("*", "*", _READ),),
    "AmazonEKSClusterAdminPolicy": (Rule("*", _ANY, _ANY, urls=_ANY),),
    "AmazonEKSEditPolicy": _EDIT,
    "AmazonEKSSecretReaderPolicy": (_rule("", "secrets", _READ),),
    "AmazonEKSViewPolicy": _VIEW,
}
"""The rules of each policy by its name."""


def decision(cluster: EksCluster, review: JsonObject) -> JsonObject:
    """Return the status of a SubjectAccessReview: allowed if a policy of the caller allows it, otherwise no opinion.

    Extras that authentication has added identify the user. A user cannot impersonate them, since the API server writes
    the names of impersonated extras in lower case.
    """
    (principal, *_) = review.get("extra", {}).get("canonicalArn", [""])
    unknown = list[str]()
    for arn, association in _associations(cluster, principal):
        name = association["policyArn"].rpartition("/")[2]
        if name not in RULES:
            unknown.append(name)
        elif _in_scope(association["accessScope"], review) and any(rule.covers(review) for rule in RULES[name]):
            return {"allowed": True, "reason": f"EKS Access Policy: allowed by {name} of {arn}"}
    return {"allowed": False, "reason": _without_rules(unknown)}


def _associations(cluster: EksCluster, principal: str) -> Iterable[tuple[str, JsonObject]]:
    for arn, associations in cluster.policies.items():
        if canonical(arn) == principal:
            for association in list(associations.values()):
                yield arn, association


def _in_scope(scope: JsonObject, review: JsonObject) -> bool:
    if scope["type"] == "cluster":
        return True
    namespace = review.get("resourceAttributes", {}).get("namespace", "")
    return bool(namespace) and any(fnmatchcase(namespace, pattern) for pattern in scope["namespaces"])


def _without_rules(names: list[str]) -> str:
    return f"the sandbox does not know what {', '.join(names)} allows" if names else ""
