"""Node labels that tell what the set-up and the benchmarks said."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cdk8s
from constructs import Construct

from ...config.catalog.images import Image
from ...config.settings.groups import InstanceGroup
from ...planning.helm.own_images import BENCHMARK_LABELS_IMAGE
from ..node_changes import API, BINDING, POLICY, denies, only_becomes, only_changes, policy, stays
from .handler.benchmark_labeller import (
    CARRIED_OVER,
    DEGRADED,
    HEALTH,
    PENDING_REPLACEMENT,
    REASON,
    SEEN,
    SET_UP,
    VERDICT,
)

_NAME = "podwright-benchmark-labels"
_NAMESPACE = "kube-system"
_USER = f"system:serviceaccount:{_NAMESPACE}:{_NAME}"
_SCRIPT = Path(__file__).parent / "handler/benchmark_labeller.py"
_RECORDS = "/var/lib/podwright"
_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_GROUP_LABEL = "sagemaker.amazonaws.com/instance-group-name"
_NODE = "authentication.kubernetes.io/node-name"
_NOBODY = 65534
_VERDICTS = ("pass", "warn", "fail", "skip")


class BenchmarkLabels(cdk8s.Chart):
    """A pod on each node with podwright's own lifecycle scripts, which makes labels of what these have written.

    A node whose set-up failed in part gets `podwright/degraded` with the steps, joined by dots, and loses it with a
    set-up that went well. A node that is measured gets `podwright/benchmarks` with the verdict: pass, warn, fail or
    skip; one that is to be replaced gets HyperPod's own health label as well. RBAC cannot bind a pod to its own node,
    so an admission policy does: the service account may change only the node that its pod runs on, there only these
    labels and annotations, and those of benchmarks only to a verdict and to "replace". The pod runs as nobody, reads
    one folder of the node and tolerates every taint. Empty when no group runs podwright's scripts.

    The policy needs Kubernetes 1.30. Sources: Kubernetes documentation, "Validating Admission Policy" and "Managing
    Service Accounts" (node name in bound tokens), 2026-11.

    Example:
        from podwright.config.settings.groups import InstanceGroup
        h200 = InstanceGroup(instance_type="ml.p5en.48xlarge", count=4, benchmarks="gate")
        BenchmarkLabels(cdk8s.App(), "labels", groups={"h200": h200})
    """

    def __init__(
        self,
        scope: Construct,
        chart_id: str,
        *,
        groups: Mapping[str, InstanceGroup],
        mirror: Mapping[str, Image] | None = None,
    ) -> None:
        """Defines the pods.

        Args:
            scope: Parent construct.
            chart_id: Id within the parent.
            groups: All instance groups by name.
            mirror: Where mirrored images lie, by the original's name.
        """
        super().__init__(scope, chart_id, disable_resource_name_hashes=True)
        labelled = tuple(sorted(name for name, group in groups.items() if group.lifecycle is None))
        original = Image.parse(BENCHMARK_LABELS_IMAGE)
        image = (mirror or {}).get(original.name, original)

        if labelled:
            self._permissions()
            self._limits()
            script = _SCRIPT.read_text(encoding="utf-8")
            self._object("script", "v1", "ConfigMap", {"/data": {_SCRIPT.name: script}})
            self._daemon_set(image, labelled, hashlib.sha256(script.encode()).hexdigest())

        self.groups = labelled
        """Names of the groups whose nodes get labels."""

    def _object(self, construct_id: str, api_version: str, kind: str, fields: Mapping[str, Any]) -> None:
        """An object of our name; `fields` are its parts by JSON pointer."""
        spread = kind in ("ClusterRole", "ClusterRoleBinding") or kind.startswith("Validating")
        made = cdk8s.ApiObject(
            self,
            construct_id,
            api_version=api_version,
            kind=kind,
            metadata=cdk8s.ApiObjectMetadata(name=_NAME, namespace=None if spread else _NAMESPACE),
        )
        if fields:
            made.add_json_patch(*(cdk8s.JsonPatch.add(pointer, value) for pointer, value in fields.items()))

    def _permissions(self) -> None:
        rbac = "rbac.authorization.k8s.io"
        nodes = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]}
        subject = {"kind": "ServiceAccount", "name": _NAME, "namespace": _NAMESPACE}
        role = {"apiGroup": rbac, "kind": "ClusterRole", "name": _NAME}
        self._object("account", "v1", "ServiceAccount", {})
        self._object("role", f"{rbac}/v1", "ClusterRole", {"/rules": [nodes]})
        self._object("binding", f"{rbac}/v1", "ClusterRoleBinding", {"/roleRef": role, "/subjects": [subject]})

    def _limits(self) -> None:
        """The admission policy that binds each pod to its node and to our labels."""
        extra = f"'{_NODE}' in request.userInfo.extra && request.userInfo.extra['{_NODE}'][0] == object.metadata.name"
        validations = [
            {"expression": extra, "message": "a pod labels the node that it runs on, and no other"},
            only_changes("labels", (VERDICT, HEALTH), goes=DEGRADED),
            only_changes("annotations", (CARRIED_OVER, REASON, SET_UP), goes=SEEN),
            only_becomes(VERDICT, _VERDICTS),
            only_becomes(HEALTH, (PENDING_REPLACEMENT,)),
            *(stays(field) for field in ("finalizers", "ownerReferences")),
            {"expression": "object.spec == oldObject.spec", "message": "labels are all that may change"},
        ]
        ours = f"request.userInfo.username == '{_USER}'"
        self._object("policy", API, POLICY, {"/spec": policy(ours, validations)})
        self._object("policy-binding", API, BINDING, {"/spec": denies(_NAME)})

    def _daemon_set(self, image: Image, groups: tuple[str, ...], script_digest: str) -> None:
        """A pod on each node of the groups, also on nodes that failed."""
        labels = {"name": _NAME}
        of_groups = {"key": _GROUP_LABEL, "operator": "In", "values": list(groups)}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [of_groups]}]}
        pod = {
            "serviceAccountName": _NAME,
            "priorityClassName": "system-node-critical",
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
            # Nodes that fail are tainted, and those are the ones that need their label.
            "tolerations": [{"operator": "Exists"}],
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": _NOBODY,
                "runAsGroup": _NOBODY,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [_container(image)],
            "volumes": [
                {"name": "records", "hostPath": {"path": _RECORDS, "type": "DirectoryOrCreate"}},
                {"name": "script", "configMap": {"name": _NAME}},
            ],
        }
        # With the digest in the template a new script brings new pods.
        annotated = {"labels": labels, "annotations": {"podwright/script": script_digest}}
        spec = {
            "selector": {"matchLabels": labels},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
            "template": {"metadata": annotated, "spec": pod},
        }
        self._object("daemon-set", "apps/v1", "DaemonSet", {"/spec": spec})


def _container(image: Image) -> dict[str, Any]:
    """The container that reads a node's record and labels the node."""
    values = {"RECORDS": _RECORDS, "SERVICE_ACCOUNT": _ACCOUNT, "SECONDS_BETWEEN": "30"}
    own_node = {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    return {
        "name": _NAME,
        "image": str(image),
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-B", f"/script/{_SCRIPT.name}"],
        "env": [own_node, *({"name": name, "value": value} for name, value in values.items())],
        "resources": {"requests": {"cpu": "5m", "memory": "32Mi"}, "limits": {"memory": "64Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            # The folder, not the file: a file that is replaced would stay the old one in here.
            {"name": "records", "mountPath": _RECORDS, "readOnly": True},
            {"name": "script", "mountPath": "/script", "readOnly": True},
        ],
    }
