"""Steps from one Kubernetes version to another: what stops them, and how they are written into the file."""

import zipfile
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from podwright.config.catalog.charts import HYPERPOD_DEPENDENCIES, chart
from podwright.config.errors import CommandError
from podwright.config.loading.artifacts import Artifacts, LockedChart, archive_file, write_artifacts
from podwright.config.loading.load import LoadedEnvironment, load_environment
from podwright.operations.aws.account import Account
from podwright.operations.kubernetes.kubectl import Kubectl
from podwright.operations.upgrade import readiness, version_file
from podwright.operations.upgrade.observed import jobs_on_nodes
from podwright.operations.upgrade.readiness import Addon, Readiness, allows, read_readiness
from podwright.planning.delivery.kubernetes_upgrades import minor, removed, removed_apis, skew_problem, step_problem

FILE = """\
account: "111122223333"
region: us-west-2
network: {zones: [usw2-az2, usw2-az3]}
%s
instance_groups:
  system: {instance_type: ml.m5.4xlarge, count: 2}
"""


def loaded(folder: Path, cluster: str = "") -> LoadedEnvironment:
    (folder / "environments").mkdir(exist_ok=True)
    file = folder / "environments/prod.yaml"
    file.write_text(FILE % cluster)
    return load_environment(file)


@pytest.mark.parametrize(
    ("deployed", "expected", "says"),
    [
        ("1.34", "1.34", None),
        ("1.34", "1.35", None),
        ("1.29", "1.31", "1.31 is 2 away"),
        ("1.34", "1.33", "and 1.33 is older"),
    ],
)
def test_eks_goes_one_version_at_a_time(deployed: str, expected: str, says: str | None) -> None:
    problem = step_problem(deployed, expected)
    assert (problem is None) == (says is None)
    assert problem is None or str(says) in problem[0]


@pytest.mark.parametrize(
    ("part", "version", "server", "fits"),
    [
        ("kubelet", "1.31", "1.34", True),
        ("kubelet", "1.30", "1.34", False),
        ("kubelet", "1.35", "1.34", False),
        ("kubectl", "1.35", "1.34", True),
        ("kubectl", "1.35", "1.37", False),
        ("kube-proxy", "v1.34.6-eksbuild.13", "1.34", True),
    ],
)
def test_the_skew_policy(part: str, version: str, server: str, fits: bool) -> None:
    assert (skew_problem(part, version, server) is None) == fits


def test_removed_apis_stay_removed() -> None:
    assert removed("policy/v1beta1", "PodDisruptionBudget", "1.24") is None
    deleted = removed("flowcontrol.apiserver.k8s.io/v1beta3", "FlowSchema", "1.35")
    assert deleted
    assert (deleted.version, deleted.use) == ("1.32", "flowcontrol.apiserver.k8s.io/v1")
    assert removed("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", "1.35") is None
    assert removed("batch/v1", "CronJob", "1.35") is None
    versions = [minor(row.version) for row in removed_apis()]
    assert versions == sorted(versions)


@pytest.mark.parametrize(
    ("constraint", "version", "fits"),
    [
        (">= 1.25.0-0", "1.34", True),
        (">=1.36.0", "1.35", False),
        (">=1.25.0-0 <1.35.0-0", "1.35", False),
        ("<1.30 || >=1.34", "1.34", True),
        ("> 1.33, <= 1.34", "1.34", True),
        ("= 1.33", "1.34", False),
        ("~1.20", "1.34", True),
    ],
)
def test_what_charts_say_of_kubernetes(constraint: str, version: str, fits: bool) -> None:
    assert allows(constraint, version) is fits


class Eks:
    """EKS with one cluster of 1.34."""

    def __init__(self, **addons: tuple[str, list[str]]) -> None:
        self.addons = {name.replace("_", "-"): value for name, value in addons.items()}
        self.insights = list[dict[str, Any]]()

    def describe_cluster(self, name: str) -> dict[str, Any]:
        return {"cluster": {"version": "1.34"}}

    def describe_addon(self, clusterName: str, addonName: str) -> dict[str, Any]:
        return {"addon": {"addonVersion": self.addons[addonName][0]}}

    def describe_insight(self, clusterName: str, id: str) -> dict[str, Any]:
        return {"insight": next(item for item in self.insights if item["id"] == id)}

    def get_paginator(self, operation: str) -> Any:
        return SimpleNamespace(paginate=lambda **asked: [getattr(self, f"_{operation}")(**asked)])

    def _describe_cluster_versions(self, includeAll: bool) -> dict[str, Any]:
        ends = datetime(2027, 3, 27, tzinfo=UTC)
        rows = [{"clusterVersion": version, "endOfStandardSupportDate": ends} for version in ("1.33", "1.34", "1.35")]
        return {"clusterVersions": rows}

    def _list_addons(self, clusterName: str) -> dict[str, Any]:
        return {"addons": list(self.addons)}

    def _describe_addon_versions(self, addonName: str, kubernetesVersion: str) -> dict[str, Any]:
        versions = [{"addonVersion": version} for version in self.addons[addonName][1]]
        return {"addons": [{"addonVersions": versions}]}

    def _list_insights(self, clusterName: str, filter: dict[str, list[str]]) -> dict[str, Any]:
        assert filter == {"categories": ["UPGRADE_READINESS"], "kubernetesVersions": ["1.35"]}
        return {"insights": self.insights}


def ready(folder: Path, api: Eks, cluster: str = "", kubelets: tuple[str, ...] = ()) -> Readiness:
    account = cast(Account, SimpleNamespace(client=lambda _: api))
    nodes = [
        {"metadata": {"name": f"hyperpod-i-{n}"}, "status": {"nodeInfo": {"kubeletVersion": f"v{version}.1-eks-1"}}}
        for n, version in enumerate(kubelets)
    ]
    kubectl = cast(Kubectl, SimpleNamespace(items=lambda *_: nodes)) if kubelets else None
    return read_readiness(loaded(folder, cluster).environment, account, "prod", None, kubectl, folder)


def errors(actual: Readiness) -> list[str]:
    return [item.what for item in actual.obstacles if item.level == "error"]


def test_what_fits_is_ready(tmp_path: Path) -> None:
    api = Eks(vpc_cni=("v1.21.1-eksbuild.7", ["v1.21.1-eksbuild.7"]), aws_fsx_csi_driver=("v1.9.0", ["v1.9.0"]))
    resolved_readiness = ready(tmp_path, api, kubelets=("1.34", "1.33"))
    assert errors(resolved_readiness) == []
    assert (resolved_readiness.wanted, resolved_readiness.kubelets) == ("1.35", {"1.34": 1, "1.33": 1})
    assert [item.what for item in resolved_readiness.obstacles] == [
        "HyperPod does not document Kubernetes 1.35; AWS's own samples use it"
    ]


def test_what_does_not_fit_stops_it(tmp_path: Path) -> None:
    # Nobody pins the driver, so a deployment leaves it where it is.
    api = Eks(aws_fsx_csi_driver=("v1.0.0", ["v1.9.0", "v1.8.0"]), coredns=("v1.13.2-eksbuild.7", []))
    api.insights = [
        {
            "id": "1",
            "name": "Deprecated APIs removed in Kubernetes v1.35",
            "insightStatus": {"status": "ERROR", "reason": "in use"},
            "recommendation": "migrate",
            "categorySpecificSummary": {
                "deprecationDetails": [{"usage": "/apis/x/v1beta1/y", "clientStats": [{"userAgent": "argo"}]}]
            },
        }
    ]
    assert errors(ready(tmp_path, api, kubelets=("1.31",))) == [
        "aws-fsx-csi-driver stays at v1.0.0, which EKS does not have for Kubernetes 1.35",
        "EKS has no coredns for Kubernetes 1.35",
        "kubelet 1.31 is 4 versions older than 1.35; allowed: 3 (1 nodes)",
        "EKS: Deprecated APIs removed in Kubernetes v1.35: in use; /apis/x/v1beta1/y (by argo)",
    ]


def test_a_chart_says_of_itself_where_it_runs(tmp_path: Path) -> None:
    expected, digest = chart(HYPERPOD_DEPENDENCIES), "0" * 64
    entry = LockedChart(version=expected.version, repository="r", revision=expected.revision, sha256=digest)
    write_artifacts(tmp_path, Artifacts(charts={expected.name: entry}))
    file = archive_file(tmp_path, expected, digest)
    file.parent.mkdir(parents=True)
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("Chart.yaml", 'name: x\nkubeVersion: "<1.35.0-0"\n')
    environment = loaded(tmp_path).environment
    (obstacle,) = readiness.chart_obstacles(environment, "1.35", tmp_path)
    assert obstacle.what == f"chart {expected.name} {expected.version} asks for Kubernetes <1.35.0-0"
    assert list(readiness.chart_obstacles(environment, "1.34", tmp_path)) == []


def test_our_own_objects_are_served_by_newer_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = loaded(tmp_path).environment
    assert list(readiness.removed_objects(environment, "1.37", tmp_path)) == []
    old = {"apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget", "metadata": {"name": "x"}}
    monkeypatch.setattr("podwright.operations.upgrade.readiness.filled", lambda *_: ([old], []))
    (obstacle,) = readiness.removed_objects(environment, "1.35", tmp_path)
    assert obstacle.what == "PodDisruptionBudget x is of policy/v1beta1, which Kubernetes 1.25 removed"


@pytest.mark.parametrize(
    ("cluster", "after"),
    [
        (
            "cluster: {name: prod}   # ours",
            'cluster: {eks: {version: "1.35", addons: {coredns: v2.0.0-eksbuild.1}}, name: prod}   # ours',
        ),
        (
            'cluster: {eks: {version: "1.34"}}',
            'cluster: {eks: {addons: {coredns: v2.0.0-eksbuild.1}, version: "1.35"}}',
        ),
        (
            'cluster:\n  eks:\n    version: "1.34"   # why\n    addons: {coredns: v1.0.0-eksbuild.1}',
            'cluster:\n  eks:\n    version: "1.35"   # why\n    addons: {coredns: v2.0.0-eksbuild.1}',
        ),
    ],
)
def test_only_what_changes_is_written(tmp_path: Path, cluster: str, after: str) -> None:
    before = loaded(tmp_path, cluster)
    resolved_readiness = Readiness(
        "prod",
        "1.34",
        "1.35",
        addons=[
            Addon("coredns", "v1.0.0-eksbuild.1", "v1.0.0-eksbuild.1", ("v2.0.0-eksbuild.1",)),
            Addon("a", "v1", "v1", ("v1",)),
        ],
    )
    file = tmp_path / "environments/prod.yaml"
    version_file.write_version(file, before.source, resolved_readiness)
    text = file.read_text()
    assert " ".join(text.split()) == " ".join((FILE % after).split())
    assert load_environment(file).environment.cluster.eks.version == "1.35"


def test_a_file_without_a_cluster_is_written_by_hand(tmp_path: Path) -> None:
    before = loaded(tmp_path)
    file = tmp_path / "environments/prod.yaml"
    text = file.read_text()
    with pytest.raises(CommandError, match="the file has no cluster") as stopped:
        version_file.write_version(file, before.source, Readiness("prod", "1.34", "1.35"))
    assert 'version: "1.35"' in stopped.value.hint
    assert file.read_text() == text


def test_what_comes_with_every_node_is_no_job() -> None:
    def pod(kind: str, name: str, phase: str = "Running", node: str = "hyperpod-i-1") -> dict[str, Any]:
        owner = [{"kind": kind, "name": name, "controller": True}]
        metadata = {"namespace": "a", "ownerReferences": owner}
        return {"metadata": metadata, "spec": {"nodeName": node}, "status": {"phase": phase}}

    pods = [
        pod("DaemonSet", "efa"),
        pod("ReplicaSet", "kueue"),
        pod("Job", "done", "Succeeded"),
        pod("PyTorchJob", "llama"),
        pod("PyTorchJob", "llama", node="hyperpod-i-2"),
    ]
    kubectl = cast(Kubectl, SimpleNamespace(items=lambda *_: pods))
    assert jobs_on_nodes(kubectl) == {"i-1": ["a/pytorchjob/llama"], "i-2": ["a/pytorchjob/llama"]}
