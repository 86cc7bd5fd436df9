"""What measures a cluster: each source against stubbed answers, and what it writes against a real Prometheus."""

import io
import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.response import StreamingBody
from botocore.stub import Stubber

from loopback import Call, Reply, serving
from needs import needs
from podwright.config.catalog.metrics import metrics
from podwright.constructs.observability.fleet_metrics.handler import benchmarks, fleet, index
from podwright.constructs.observability.fleet_metrics.handler.remote_write import Sample, snappy, write
from podwright.operations.programs import prometheus

SESSION = boto3.Session("key", "secret", region_name="us-west-2")
CLIENTS = {name: SESSION.client(name) for name in ("sagemaker", "s3")}
PLAN = "arn:aws:sagemaker:us-west-2:111122223333:training-plan/h200-q1"
FACTS = {
    "cluster": "prod",
    "continuous": True,
    "prices": {"ml.p5en.48xlarge": 60.0},
    "plans": {"h200": PLAN},
    "budget": 400000,
    "eks_cluster": "prod-eks",
    "results": ["sagemaker-prod", "prod-benchmarks"],
    "endpoint": "http://localhost/",
}
GROUP = {"InstanceGroupName": "h200", "InstanceType": "ml.p5en.48xlarge", "CurrentCount": 3, "TargetCount": 4}
MIXED = {
    "InstanceGroupName": "burst",
    "CurrentCount": 3,
    "TargetCount": 3,
    "InstanceTypeDetails": [
        {"InstanceType": "ml.p5.48xlarge", "CurrentCount": 2},
        {"InstanceType": "ml.p5e.48xlarge", "CurrentCount": 1},
    ],
}
LAUNCHED = datetime(2026, 11, 20, 10, tzinfo=UTC)
NODES = [
    {
        "InstanceGroupName": "h200",
        "InstanceId": f"i-{number:017x}",
        "NodeLogicalId": f"n{number}",
        "InstanceType": "ml.p5en.48xlarge",
        "LaunchTime": LAUNCHED,
        "InstanceStatus": {"Status": status},
    }
    for number, status in enumerate(("Running", "Running", "Failure"))
]
RESULTS = {
    "group": "h200",
    "instance_type": "ml.p5en.48xlarge",
    "instance_id": NODES[0]["InstanceId"],
    "started": "2026-11-20T10:05:00.000+00:00",
    "verdict": "warn",
    "results": [
        {"name": "gemm_bf16", "value": value, "unit": "TFLOPS", "higher_is_better": True, "fail_below": 600.0}
        for value in (700.0, 650.0, None)
    ]
    + [{"name": "pingpong", "value": 9.0, "unit": "us", "higher_is_better": False, "fail_below": None}],
}


class Session:
    """A session whose clients are stubbed."""

    region_name = "us-west-2"

    def client(self, name: str, **_: Any) -> Any:
        return CLIENTS[name]

    def get_credentials(self) -> Any:
        return SESSION.get_credentials()


@pytest.fixture
def stubs() -> Iterator[dict[str, Stubber]]:
    stubs = {name: Stubber(client) for name, client in CLIENTS.items()}
    for stub in stubs.values():
        stub.activate()
    benchmarks._READ.clear()
    yield stubs
    for stub in stubs.values():
        stub.assert_no_pending_responses()
        stub.deactivate()


def described(stub: Stubber) -> None:
    answer = {"ClusterArn": "a" * 20, "ClusterStatus": "InService", "InstanceGroups": [GROUP, MIXED]}
    stub.add_response("describe_cluster", answer, {"ClusterName": "prod"})


def listed(stub: Stubber, **parameters: Any) -> None:
    stub.add_response("list_cluster_nodes", {"ClusterNodeSummaries": NODES}, {"ClusterName": "prod", **parameters})


def values(samples: Iterator[Sample]) -> dict[str, float]:
    """Values by name and the labels' values, in order of the labels' names."""
    return {f"{item.name}({' '.join(text for _, text in sorted(item.labels.items()))})": item.value for item in samples}


def test_instances_and_prices_by_group_and_type(stubs: dict[str, Stubber]) -> None:
    described(stubs["sagemaker"])
    assert values(fleet.instances(Session(), FACTS)) == {  # type: ignore[arg-type]
        "podwright_instances(h200 ml.p5en.48xlarge current)": 3,
        "podwright_instance_price_usd_per_hour(h200 ml.p5en.48xlarge)": 60.0,
        "podwright_instances(h200 ml.p5en.48xlarge target)": 4,
        "podwright_instances(burst ml.p5.48xlarge current)": 2,
        "podwright_instances(burst ml.p5e.48xlarge current)": 1,
        "podwright_instances(burst  target)": 3,
    }


def test_nodes_by_what_sagemaker_says_of_them(stubs: dict[str, Stubber]) -> None:
    listed(stubs["sagemaker"], IncludeNodeLogicalIds=True)
    actual = values(fleet.nodes(Session(), FACTS))  # type: ignore[arg-type]
    assert actual["podwright_nodes(h200 Running)"] == 2
    assert actual["podwright_nodes(h200 Failure)"] == 1
    assert actual["podwright_node_status(h200 i-00000000000000002 n2 Failure)"] == 1
    assert actual["podwright_node_launched_timestamp_seconds(h200 i-00000000000000000 n0)"] == LAUNCHED.timestamp()
    assert len(actual) == 8


def test_health_and_faults_as_kubernetes_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    actual = "sagemaker.amazonaws.com"
    nodes = [
        ("hyperpod-i-1", {f"{actual}/instance-group-name": "h200", f"{actual}/node-health-status": "Schedulable"}),
        (
            "hyperpod-i-2",
            {
                f"{actual}/instance-group-name": "h200",
                f"{actual}/node-health-status": "UnschedulablePendingReplacement",
                f"{actual}/deep-health-check-status": "Failed",
                f"{actual}/fault-types": "NvidiaXid",
            },
        ),
        ("somebody-elses", {}),
    ]
    api = type("Api", (), {"__init__": lambda *_: None, "node_labels": lambda _: iter(nodes)})
    monkeypatch.setattr(fleet, "KubernetesApi", api)
    assert list(values(fleet.health(Session(), FACTS))) == [  # type: ignore[arg-type]
        "podwright_node_health( Schedulable h200 hyperpod-i-1)",
        "podwright_node_health(Failed UnschedulablePendingReplacement h200 hyperpod-i-2)",
        "podwright_node_fault(NvidiaXid h200 hyperpod-i-2)",
    ]
    assert not list(fleet.health(Session(), {**FACTS, "eks_cluster": None}))  # type: ignore[arg-type]


def test_plans_with_their_windows_instances_and_price(stubs: dict[str, Stubber]) -> None:
    answer = {
        "TrainingPlanArn": PLAN,
        "TrainingPlanName": "h200-q1",
        "Status": "Active",
        "StartTime": LAUNCHED,
        "EndTime": datetime(2026, 12, 18, 11, 30, tzinfo=UTC),
        "UpfrontFee": "900000.5",
        "TotalInstanceCount": 16,
        "AvailableInstanceCount": 2,
    }
    stubs["sagemaker"].add_response("describe_training_plan", answer, {"TrainingPlanName": "h200-q1"})
    actual = values(fleet.plans(Session(), FACTS))  # type: ignore[arg-type]
    assert actual["podwright_plan_instances( h200 total)"] == 16
    assert actual["podwright_plan_instances( h200 available)"] == 2
    assert actual["podwright_plan_end_timestamp_seconds( h200)"] == 1797593400
    assert actual["podwright_plan_upfront_usd( h200)"] == 900000.5


def bucket(stub: Stubber, tag: str, record: dict[str, Any] | None) -> None:
    contents = [{"Key": "prod-benchmarks/results/h200/i-0.json", "ETag": tag}]
    stub.add_response(
        "list_objects_v2", {"Contents": contents}, {"Bucket": "sagemaker-prod", "Prefix": "prod-benchmarks/results/"}
    )
    if record:
        body = json.dumps(record).encode()
        stub.add_response("get_object", {"Body": StreamingBody(io.BytesIO(body), len(body))})


def test_benchmarks_of_nodes_that_are_there_read_once_for_each_version(stubs: dict[str, Stubber]) -> None:
    listed(stubs["sagemaker"])
    bucket(stubs["s3"], "one", RESULTS)
    actual = values(benchmarks.benchmarks(Session(), FACTS))  # type: ignore[arg-type]
    node = f"{NODES[0]['InstanceId']} ml.p5en.48xlarge"
    assert actual["podwright_benchmark_value(h200 " + node + " gemm_bf16 TFLOPS)"] == 650.0
    assert actual["podwright_benchmark_value(h200 " + node + " pingpong us)"] == 9.0
    assert actual["podwright_benchmark_limit(h200 ml.p5en.48xlarge gemm_bf16 TFLOPS)"] == 600.0
    assert actual["podwright_benchmark_verdict(h200 " + node + " warn)"] == 1
    assert actual["podwright_benchmark_verdict(h200 " + node + " fail)"] == 0
    listed(stubs["sagemaker"])
    bucket(stubs["s3"], "one", None)
    assert values(benchmarks.benchmarks(Session(), FACTS)) == actual  # type: ignore[arg-type]
    listed(stubs["sagemaker"])
    bucket(stubs["s3"], "two", {**RESULTS, "instance_id": "i-gone"})
    assert not values(benchmarks.benchmarks(Session(), FACTS))  # type: ignore[arg-type]


def test_a_source_that_cannot_be_asked_is_named_and_the_others_are_written(
    stubs: dict[str, Stubber], monkeypatch: pytest.MonkeyPatch
) -> None:
    described(stubs["sagemaker"])
    stubs["sagemaker"].add_client_error("list_cluster_nodes", "AccessDeniedException")
    stubs["sagemaker"].add_client_error("describe_training_plan", "ResourceNotFound")
    written = list[Sample]()

    def taken(_: Any, __: str, samples: Iterator[Sample], ___: float) -> int:
        written.extend(samples)
        return len(written)

    monkeypatch.setattr(index, "write", taken)
    monkeypatch.setattr(index.boto3, "Session", Session)
    monkeypatch.setattr(index.time, "time", lambda: 60.0)  # not one of the minutes in which benchmarks are read
    answer = index.handler({**FACTS, "eks_cluster": None}, None)
    assert answer == {"written": 12, "unseen": ["nodes", "plans"]}
    observed = {item.labels["source"]: item.value for item in written if item.name == "podwright_source_seen"}
    assert observed == {"instances": True, "nodes": False, "health": True, "plans": False}
    assert {item.labels["cluster_name"] for item in written} == {"prod"}


def test_everything_that_is_written_is_in_the_table(stubs: dict[str, Stubber]) -> None:
    source = "".join(file.read_text() for file in Path(fleet.__file__).parent.glob("*.py"))
    table = {item.name for item in metrics().values() if item.exporter == "podwright"}
    generated = {f"podwright_plan_{what}_timestamp_seconds" for what in ("start", "end")}
    assert {name for name in table if f'"{name}"' in source} == table - generated
    assert all(metrics()[name].exporter == "podwright" for name in generated)


@needs(prometheus.installed(), "Prometheus: Debian's package prometheus")
def test_prometheus_takes_what_is_written(tmp_path: Path) -> None:
    timestamp = float(int(time.time()))
    samples = [
        Sample("podwright_instances", {"state": "current", "empty": "", "n": str(n)}, n / 2) for n in range(2500)
    ]
    (tmp_path / "prometheus.yml").write_text("{}\n")
    refusals = list[str]()

    def forward(call: Call) -> Reply:
        """As the managed service: signed requests, on its own path."""
        assert call.path == "/workspaces/ws-1/api/v1/remote_write"
        assert "/us-west-2/aps/aws4_request" in call.headers["Authorization"]
        headers = {name: call.headers[name] for name in ("Content-Type", "Content-Encoding")}
        try:
            with urllib.request.urlopen(urllib.request.Request(f"{ready.url}/api/v1/write", call.body, headers)):
                return Reply()
        except urllib.error.HTTPError as error:
            refusals.append(error.read().decode())
            return Reply(400)

    with prometheus.serving(tmp_path, "--web.enable-remote-write-receiver") as ready:
        with serving(forward) as service:
            assert write(SESSION, f"{service.url}/workspaces/ws-1/", samples, timestamp) == 2500
            assert len(service.calls) == 2
        assert not refusals
        [count] = ready.instant("count(podwright_instances)", timestamp)
        assert count["value"][1] == "2500"
        [actual] = ready.instant('podwright_instances{n="2499"}', timestamp)
        assert actual["metric"] == {"__name__": "podwright_instances", "n": "2499", "state": "current"}
        assert actual["value"][1] == "1249.5"


def test_a_block_of_literals_holds_what_went_in() -> None:
    data = bytes(range(256)) * 600
    block = snappy(data)
    # The length, 153,600, in three bytes of seven bits; then chunks of at most 65,536 behind a tag and their length.
    assert block[:3] == bytes([0x80, 0xB0, 0x09])
    assert block[3:6] == bytes([0xF4, 0xFF, 0xFF])
    assert block[6 : 6 + 65536] == data[:65536]
    assert len(block) == 3 + len(data) + 3 * 3
