"""What the sandbox's EKS refuses of a version: nodes too far behind, and a way back that is none."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from podwright.sandbox.eks import upgrades as eks_upgrades
from podwright.sandbox.eks.upgrades import insights, update_version
from podwright.sandbox.kubernetes.clusters import Kubernetes
from podwright.sandbox.protocol.clock import now
from podwright.sandbox.protocol.service import Refusal


def eks_account(version: str, kubelet: str) -> tuple[Any, Any]:
    """The service, and its one cluster."""
    description = {"version": version, "status": "ACTIVE", "arn": "arn", "name": "c"}
    cluster = SimpleNamespace(description=description, addons={}, updates={})
    node = {"status": {"nodeInfo": {"kubeletVersion": f"v{kubelet}.2-eks-1"}}}
    kubernetes = Kubernetes()
    kubernetes.open("us-west-2", "c", version)
    service = SimpleNamespace(
        cluster=lambda *_: cluster, nodes=lambda *_: [node], kubernetes=kubernetes, update_seconds=0
    )
    return service, cluster


def go(service: Any, version: str, **more: Any) -> str:
    return update_version(service, "us-west-2", {"name": "c", "version": version, **more})["type"]


@pytest.mark.parametrize(("kubelet", "status"), [("1.31", "PASSING"), ("1.30", "ERROR")])
def test_kubelets_may_be_three_minor_versions_behind(kubelet: str, status: str) -> None:
    service, cluster = eks_account("1.33", kubelet)
    actual = {item["name"]: item["insightStatus"]["status"] for item in insights(service, "us-west-2", cluster)}
    assert actual["Kubelet version skew"] == status


def test_an_insight_in_error_refuses_a_version_unless_it_is_forced() -> None:
    service, cluster = eks_account("1.33", "1.30")
    with pytest.raises(Refusal, match="Upgrade insights are in ERROR: Kubelet version skew"):
        go(service, "1.34")
    assert cluster.description["version"] == "1.33"
    assert go(service, "1.34", force=True) == "VersionUpdate"


def test_the_way_back_leads_to_where_it_came_from_for_seven_days(monkeypatch: pytest.MonkeyPatch) -> None:
    service, cluster = eks_account("1.34", "1.34")
    with pytest.raises(Refusal, match=r"from 1\.34 to 1\.33"):
        go(service, "1.33")
    go(service, "1.35")
    later = now() + timedelta(days=7, minutes=1)
    with monkeypatch.context() as patch:
        patch.setattr(eks_upgrades, "now", lambda: later)
        with pytest.raises(Refusal, match=r"from 1\.35 to 1\.34"):
            go(service, "1.34")
    assert go(service, "1.34") == "VersionRollback"
    assert cluster.description["version"] == "1.34"
