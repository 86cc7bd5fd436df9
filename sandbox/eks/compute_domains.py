"""What NVIDIA's DRA driver makes of ComputeDomains, on clusters whose nodes share NVLink domains.

Users install its chart by hand, and podwright does not (CAP038). Here its kind is served as soon as there is such a
node, and each domain gets the template of claims that its pods name. A claim is of nothing: no node has a channel.
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
    """Those of one EKS cluster."""

    def __init__(self, kubeconfig: Path) -> None:
        self._objects = ApiObjects(kubeconfig)
        self._is_served = False
        self._done = set[str]()
        """The domains that have their template, by uid."""

    def follow(self, instance_types: Set[str]) -> None:
        """Make the templates that are missing. `instance_types` are those of the cluster's nodes."""
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
    """The template of a domain, which goes with it."""
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
