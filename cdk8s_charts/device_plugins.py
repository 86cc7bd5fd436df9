"""Kubernetes device plugins that HyperPod's own chart cannot be told to run on the right nodes."""

from collections.abc import Iterable, Mapping

import cdk8s
from constructs import Construct

from ..config.catalog.charts import NEURON_DEVICE_PLUGIN_IMAGE
from ..config.catalog.images import Image
from ..config.catalog.instance_types import Catalog
from ..config.settings.groups import AnyGroup
from ..planning.helm.chart_values import node_affinity, nodes_with

_NAME = "neuron-device-plugin"
_NAMESPACE = "kube-system"


class NeuronDevicePlugin(cdk8s.Chart):
    """AWS Neuron's device plugin on the nodes of the groups that have Neuron devices.

    HyperPodHelmChart 0.1.0 carries one whose instance types and image are written into its template, so that neither a
    newer type nor a mirrored image reaches it; podwright turns that one off. Permissions, mounts and priority are as
    there. Empty when no group has Neuron devices.

    Example:
        from podwright.config.catalog.instance_types import catalog
        from podwright.config.settings.groups import InstanceGroup
        group = InstanceGroup(instance_type="ml.trn2.48xlarge", count=4)
        NeuronDevicePlugin(cdk8s.App(), "neuron", groups=[group], types=catalog())
    """

    def __init__(
        self,
        scope: Construct,
        chart_id: str,
        *,
        groups: Iterable[AnyGroup],
        types: Catalog,
        mirror: Mapping[str, Image] | None = None,
    ) -> None:
        """Defines the plugin.

        Args:
            scope: Parent construct.
            chart_id: Id within the parent.
            groups: All instance groups.
            types: Instance catalog of the environment.
            mirror: Where mirrored images lie, by the original's name.
        """
        super().__init__(scope, chart_id, disable_resource_name_hashes=True)
        nodes = nodes_with(groups, types, lambda row: row.accelerator_vendor == "neuron", "aws.amazon.com/neuron")
        original = Image.parse(NEURON_DEVICE_PLUGIN_IMAGE)
        image = (mirror or {}).get(original.name, original)

        if nodes.types:
            self._permissions()
            self._daemon_set(image, nodes.types, nodes.tolerations)

        self.image = image
        self.instance_types = nodes.types

    def _permissions(self) -> None:
        """A service account that may read nodes and events, and nothing else."""
        cdk8s.ApiObject(
            self,
            "account",
            api_version="v1",
            kind="ServiceAccount",
            metadata=cdk8s.ApiObjectMetadata(name=_NAME, namespace=_NAMESPACE),
        )
        role = cdk8s.ApiObject(
            self,
            "role",
            api_version="rbac.authorization.k8s.io/v1",
            kind="ClusterRole",
            metadata=cdk8s.ApiObjectMetadata(name=_NAME),
        )
        role.add_json_patch(
            cdk8s.JsonPatch.add(
                "/rules",
                [
                    _rule("nodes", "get", "list", "watch"),
                    _rule("nodes/status", "patch", "update"),
                    _rule("pods", "get", "list", "watch", "patch", "update"),
                    _rule("events", "create", "patch"),
                ],
            )
        )
        binding = cdk8s.ApiObject(
            self,
            "binding",
            api_version="rbac.authorization.k8s.io/v1",
            kind="ClusterRoleBinding",
            metadata=cdk8s.ApiObjectMetadata(name=_NAME),
        )
        binding.add_json_patch(
            cdk8s.JsonPatch.add(
                "/roleRef", {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": _NAME}
            ),
            cdk8s.JsonPatch.add("/subjects", [{"kind": "ServiceAccount", "name": _NAME, "namespace": _NAMESPACE}]),
        )

    def _daemon_set(self, image: Image, types: tuple[str, ...], tolerations: tuple[dict[str, str], ...]) -> None:
        """NVIDIA's device plugin on each node of some types."""
        labels = {"name": _NAME}
        daemon_set = cdk8s.ApiObject(
            self,
            "daemon-set",
            api_version="apps/v1",
            kind="DaemonSet",
            metadata=cdk8s.ApiObjectMetadata(name=_NAME, namespace=_NAMESPACE),
        )
        daemon_set.add_json_patch(
            cdk8s.JsonPatch.add(
                "/spec",
                {
                    "selector": {"matchLabels": labels},
                    "updateStrategy": {"type": "RollingUpdate"},
                    "template": {
                        "metadata": {"labels": labels},
                        "spec": {
                            "serviceAccountName": _NAME,
                            "priorityClassName": "system-node-critical",
                            "affinity": node_affinity(types),
                            "tolerations": [{"key": "CriticalAddonsOnly", "operator": "Exists"}, *tolerations],
                            "containers": [
                                {
                                    "name": _NAME,
                                    "image": str(image),
                                    "imagePullPolicy": "IfNotPresent",
                                    "env": [
                                        {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
                                    ],
                                    "securityContext": {
                                        "allowPrivilegeEscalation": False,
                                        "capabilities": {"drop": ["ALL"]},
                                    },
                                    "volumeMounts": [
                                        {"name": "device-plugins", "mountPath": "/var/lib/kubelet/device-plugins"},
                                        {"name": "run", "mountPath": "/run"},
                                    ],
                                }
                            ],
                            "volumes": [
                                {"name": "device-plugins", "hostPath": {"path": "/var/lib/kubelet/device-plugins"}},
                                {"name": "run", "hostPath": {"path": "/run"}},
                            ],
                        },
                    },
                },
            )
        )


def _rule(resource: str, *verbs: str) -> dict[str, list[str]]:
    return {"apiGroups": [""], "resources": [resource], "verbs": list(verbs)}
