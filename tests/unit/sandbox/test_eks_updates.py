"""While EKS updates a cluster's version it takes no other update."""

from datetime import timedelta
from types import SimpleNamespace
from typing import cast

import pytest

from podwright.sandbox.eks.service import Eks, EksCluster
from podwright.sandbox.eks.upgrades import new_update, update_version
from podwright.sandbox.protocol.clock import now
from podwright.sandbox.protocol.service import Refusal

VALUES = {"name": "c", "version": "1.35"}


def service(cluster: EksCluster) -> Eks:
    """The parts of the service that an update asks."""
    kubernetes = SimpleNamespace(set_version=lambda *_: None)
    parts = {"cluster": lambda *_: cluster, "nodes": lambda *_: [], "update_seconds": 0, "kubernetes": kubernetes}
    return cast(Eks, SimpleNamespace(**parts))


def test_one_update_at_a_time() -> None:
    cluster = EksCluster({"name": "c", "arn": "arn:c", "version": "1.34", "status": "ACTIVE"})
    first = new_update("VersionUpdate", [], now() + timedelta(hours=1))
    cluster.updates[first["id"]] = first
    with pytest.raises(Refusal, match="Cluster c is being updated") as refusal:
        update_version(service(cluster), "us-west-2", VALUES)
    assert refusal.value.code == "ResourceInUseException"
    first["until"] = now()
    assert update_version(service(cluster), "us-west-2", VALUES)["type"] == "VersionUpdate"
