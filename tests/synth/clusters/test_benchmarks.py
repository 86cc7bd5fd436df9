"""Benchmarks in the templates of whole environments: node.json, the role of nodes, and the labels."""

import json
from typing import Any

from synthesis import Synthesis, environment_of, synthesize

NODES = "account: '111122223333'\nregion: us-west-2\nprotection: destroy\nnetwork: {zones: [usw2-az1, usw2-az2]}\n"


def synthesis(system: str = "", **more: str) -> Synthesis:
    h200 = f"  h200: {{instance_type: ml.p5en.48xlarge, count: 4, zone: usw2-az1, {more.get('h200', '')}}}\n"
    groups = f"instance_groups:\n  system: {{instance_type: ml.m5.4xlarge, count: 2, {system}}}\n{h200}"
    return synthesize(environment_of(NODES + more.get("cluster", "") + groups))


def joined(value: Any) -> str:
    """Text of a template with a mark for each reference."""
    if isinstance(value, dict) and "Fn::Join" in value:
        return "".join(map(joined, value["Fn::Join"][1]))
    return value if isinstance(value, str) else "REFERENCE"


def node_json(made: Synthesis) -> dict[str, Any]:
    (publication,) = made.resources("Custom::PodwrightLifecycle").values()
    return json.loads(joined(publication["Properties"]["NodeFacts"]))


def actions(made: Synthesis) -> set[str]:
    (name,) = [name for name in made.resources("AWS::IAM::Policy") if name.startswith("cluster/ExecutionRole")]
    statements = made.resources("AWS::IAM::Policy")[name]["Properties"]["PolicyDocument"]["Statement"]
    actual = [statement["Action"] for statement in statements]
    return {action for some in actual for action in (some if isinstance(some, list) else [some])}


def labels(made: Synthesis) -> list[dict[str, Any]]:
    """The manifests of the labels."""
    for name, resource in made.resources("Custom::AWSCDK-EKS-KubernetesResource").items():
        if "BenchmarkLabels" in name:
            return json.loads(joined(resource["Properties"]["Manifest"]))
    return []


def test_nodes_with_accelerators_report_by_default() -> None:
    made = synthesis()
    facts = node_json(made)
    assert {name: group["benchmarks"] for name, group in facts["groups"].items()} == {
        "system": "skip",
        "h200": "report",
    }
    expected = {"mode": "quick", "max_replacements": 2, "window_days": 7, "continuous": True}
    assert expected.items() <= facts["benchmarks"].items()
    assert facts["benchmarks"]["results_uri"].startswith("s3://")
    assert facts["benchmarks"]["results_uri"].endswith("/test/benchmarks")
    assert {"s3:PutObject", "sagemaker:DescribeClusterNode", "kms:GenerateDataKey"} <= actions(made)
    (daemon_set,) = [item for item in labels(made) if item["kind"] == "DaemonSet"]
    assert '"h200"' in json.dumps(daemon_set["spec"]["template"]["spec"]["affinity"])


def test_settings_reach_the_nodes() -> None:
    cluster = (
        "cluster: {provisioning: all_or_nothing, benchmarks: {mode: thorough, max_replacements: 1, window_days: 30}}\n"
    )
    acknowledged = "acknowledge: [{rule: BEN001, reason: nodes are marked instead}]\n"
    facts = node_json(synthesis(h200="benchmarks: gate", cluster=cluster + acknowledged))
    expected = {"mode": "thorough", "max_replacements": 1, "window_days": 30, "continuous": False}
    assert expected.items() <= facts["benchmarks"].items()
    assert facts["groups"]["h200"]["benchmarks"] == "gate"


def test_where_nothing_is_measured_nothing_of_it_is_there() -> None:
    made = synthesis(h200="benchmarks: skip")
    assert node_json(made)["benchmarks"] is None
    assert [item["kind"] for item in labels(made)].count("DaemonSet") == 1, "set-ups have labels too"
    assert "sagemaker:DescribeClusterNode" not in actions(made)
