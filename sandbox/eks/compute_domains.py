"""Stands in for NVIDIA's DRA driver on clusters whose nodes share NVLink domains.

Users install its chart themselves; podwright does not (CAP038). Here its kind is served once the cluster has such a
node, and each ComputeDomain gets the template of claims that its pods name. The claims are empty.
"""

from collections.abc import Set
from pathlib import Path
from typing import Final

from ...config.catalog.instance_types import catalog
from ..kubernetes.api_objects import ApiObjects
from ..protocol.json_objects import JsonObject

_CHART: Final = "nvidia-dra-driver-gpu"
_API_VERSION: Final = "resource.nvidia.com/v1beta1"
_KIND: Final = "ComputeDomain"


class ComputeDomains:
    """The ComputeDomains of one EKS cluster."""

    def __init__(self, kubeconfig: Path) -> None:
        self._objects = ApiObjects(kubeconfig)
        self._is_served = False
        self._done = set[str]()
        """Uids of the domains with a template."""

    def follow(self, instance_types: Set[str]) -> None:
        """Create missing templates. `instance_types` are those of the cluster's nodes."""
        if not self._is_served:
            if not any((row := catalog().find(name)) and row.imex for name in instance_types):
                return
            self._objects.install(_CHART)
            self._is_served = True
        for domain in self._objects.all(_API_VERSION, _KIND):
            if domain["metadata"]["uid"] not in self._done:
                self._objects.apply(_template(domain))
                self._done.add(domain["metadata"]["uid"])


def _template(domain: JsonObject) -> JsonObject:
    """Return the template of a domain, which Kubernetes deletes with the domain."""
    metadata = domain["metadata"]
    reference = {"apiVersion": _API_VERSION, "kind": _KIND, "name": metadata["name"], "uid": metadata["uid"]}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {
            "name": domain["spec"]["channel"]["resourceClaimTemplate"]["name"],
            "namespace": metadata["namespace"],
            "annotations": {"podwright/simulated": "nothing is claimed, where NVIDIA's driver gives a channel"},
            "ownerReferences": [reference],
        },
        "spec": {"spec": {}},
    }
