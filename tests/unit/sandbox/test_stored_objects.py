"""A cluster's objects in the sandbox's store, the registry of clusters, and what Helm leaves out of charts."""

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from cluster_cases import CASES, CHART_CASES, Case
from podwright.sandbox.kubernetes.api_objects import ApiObjects
from podwright.sandbox.kubernetes.chart_renderer import rendered
from podwright.sandbox.kubernetes.cluster_objects import ApiError, ClusterObjects
from podwright.sandbox.kubernetes.clusters import Kubernetes
from podwright.sandbox.kubernetes.store import KubernetesStore


@pytest.mark.parametrize("case", CASES)
def test_objects(case: Case) -> None:
    case(KubernetesStore("1.34"))


@pytest.mark.parametrize("case", CHART_CASES)
def test_charts(case: Callable[[ClusterObjects, Path], None], tmp_path: Path) -> None:
    case(KubernetesStore("1.34"), tmp_path)


def test_a_cluster_is_connected_to_an_api_server(tmp_path: Path) -> None:
    kubernetes = Kubernetes()
    kubernetes.open("us-west-2", "one", "1.34")
    assert kubernetes.objects("us-west-2", "one") is kubernetes.store("us-west-2", "one")
    kubernetes.set_version("us-west-2", "one", "1.35")
    assert kubernetes.store("us-west-2", "one").version == "1.35"
    kubernetes.connect("us-west-2", "one", ApiObjects(tmp_path / "kubeconfig", define=lambda _: None))
    with pytest.raises(ApiError, match="an API server of its own"):
        kubernetes.store("us-west-2", "one")
    kubernetes.set_version("us-west-2", "one", "1.36")
    restored = Kubernetes()
    restored.clusters = pickle.loads(pickle.dumps(kubernetes.clusters))
    assert restored.objects("us-west-2", "one") == kubernetes.objects("us-west-2", "one")
    kubernetes.close("us-west-2", "one")
    with pytest.raises(ApiError, match="the cluster one does not exist"):
        kubernetes.objects("us-west-2", "one")


CHART = """\
apiVersion: v1
kind: Service
metadata: {name: hooks}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: by-service}
webhooks:
- clientConfig: {service: {namespace: apps, name: hooks}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: by-address}
webhooks:
- clientConfig: {url: "https://127.0.0.1:9443"}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.metrics.example.com}
spec: {service: {namespace: apps, name: metrics}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
"""


@pytest.mark.parametrize(
    ("leading_here", "retained", "reported"),
    [
        (
            [],
            ["hooks", "by-address", "settings"],
            ["MutatingWebhookConfiguration by-service", "APIService v1.metrics.example.com"],
        ),
        (["apps/hooks"], ["hooks", "by-address", "settings"], ["APIService v1.metrics.example.com"]),
        (["apps/hooks", "apps/metrics"], ["hooks", "by-address", "settings"], []),
    ],
)
def test_what_of_a_chart_would_lead_nowhere(leading_here: list[str], retained: list[str], reported: list[str]) -> None:
    text, left_out = rendered(CHART, "apps", leading_here)
    objects = {item["metadata"]["name"]: item for item in yaml.safe_load_all(text)}
    assert list(objects) == retained
    assert ("spec" in objects["hooks"]) == bool(leading_here)
    assert left_out == reported
