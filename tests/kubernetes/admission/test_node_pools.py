"""What podwright tells Karpenter, on a real API server with Karpenter's own definitions of its kinds."""

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from kubernetes.client.exceptions import ApiException

from api_server import ApiServer, Object, started
from needs import require
from podwright.operations import cli
from podwright.planning.rules import findings
from podwright.sandbox.control_plane.kubectl import read_objects
from podwright.sandbox.kubernetes import custom_kinds
from rendered_environments import rendered_objects
from synthesis import environment_of
from waiting import until

DEFINITIONS = Path(__file__).parents[3] / ".podwright/definitions/karpenter-1.8.2"
FILE = """\
account: "111122223333"
region: us-west-2
network: {zones: [usw2-az2, usw2-az3]}
cluster: {autoscaling: {karpenter: {%s}}}
instance_groups:
  system: {instance_type: ml.m5.4xlarge, count: 2, zone: usw2-az2}
  burst: {%s, count: 0, zone: usw2-az2}
  cheap: {instance_types: [ml.g6.12xlarge, ml.g5.12xlarge], count: 0, zone: usw2-az2, capacity: spot}
  neuron: {instance_type: ml.trn1.32xlarge, count: 0, zone: usw2-az2}
"""
G6 = "instance_type: ml.g6.12xlarge"
LIMITED = "groups: [burst], limits: {vcpu: 768}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server of its own: the others have our shorter definition of Karpenter's kinds."""
    require(DEFINITIONS.is_dir(), "Karpenter's definitions, where .ci/run puts them")
    with started(tmp_path_factory.mktemp("karpenter")) as control_plane:
        made = ApiServer.of(control_plane.kubeconfig)
        definitions = [item for file in sorted(DEFINITIONS.glob("*.yaml")) for item in read_objects(file)]
        definitions.append(custom_kinds.definition("karpenter.sagemaker.amazonaws.com", "HyperpodNodeClass"))
        for item in definitions:
            made.apply(item)
        for item in definitions:
            until(lambda item=item: is_served(made.read(item)))
        yield made


def is_served(definition: Object) -> bool:
    conditions = definition.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def karpenter_objects(karpenter: str, burst: str) -> list[Object]:
    """Both objects of a file in which no rule finds an error."""
    settings = environment_of(FILE % (karpenter, burst))
    assert [finding for finding in findings(settings) if finding.level == "error"] == []
    return [item for item in rendered_objects(settings) if item["kind"] in ("HyperpodNodeClass", "NodePool")]


TAINTS = "taints: [{key: example.com/burst, value: only, effect: NoSchedule}, {key: x, effect: PreferNoSchedule}]"
FILES = {
    "one group": (LIMITED, G6),
    "every limit and several groups": (
        "groups: [burst, cheap, neuron], limits: {accelerators: 64, vcpu: 2000, memory_gib: 9000}",
        G6,
    ),
    "nodes that go at once": (f"{LIMITED}, consolidation: when_underutilized, consolidate_after_seconds: 0", G6),
    "taints": (LIMITED, f"{G6}, {TAINTS}"),
    "labels": (LIMITED, f"{G6}, labels: {{team: research, example.com/tier: burst}}"),
    "several types": (LIMITED, "instance_types: [ml.g6.12xlarge, ml.g5.12xlarge, ml.c5.18xlarge]"),
}


@pytest.mark.parametrize("name", FILES)
def test_karpenter_takes_the_node_pool_of_a_file(server: ApiServer, name: str) -> None:
    node_class, pool = karpenter_objects(*FILES[name])
    server.apply(node_class)
    made = server.apply(pool)
    try:
        assert server.apply(pool)["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
        assert all(made["spec"]["template"]["spec"][key] == value for key, value in node(pool).items())
        assert made["spec"]["limits"] == pool["spec"]["limits"]
        # Karpenter's own default, which podwright leaves.
        assert made["spec"]["disruption"] == {**pool["spec"]["disruption"], "budgets": [{"nodes": "10%"}]}
    finally:
        server.delete(pool)
        server.delete(node_class)


def node(pool: Object) -> Object:
    return pool["spec"]["template"]["spec"]


def test_a_node_pool_says_the_taints_of_its_groups(server: ApiServer) -> None:
    (_, pool) = karpenter_objects(*FILES["taints"])
    assert node(pool)["taints"] == [
        {"key": "example.com/burst", "value": "only", "effect": "NoSchedule"},
        {"key": "x", "effect": "PreferNoSchedule"},
    ]


KARPENTER = "cluster.autoscaling.karpenter"
BURST = "instance_groups.burst"
TAINT = ("template", "spec", "taints")
# What a file says, where `check` finds it, where a node pool would have it, what it would be there, and the field that
# Karpenter's definition names.
REFUSED: dict[str, tuple[str, str, str, tuple[str, ...], Any, str]] = {
    "a limit in words": (
        "groups: [burst], limits: {vcpu: many}",
        G6,
        f"{KARPENTER}.limits.vcpu",
        ("limits",),
        {"cpu": "many"},
        "spec.limits.cpu",
    ),
    "a limit with two units": (
        "groups: [burst], limits: {memory_gib: 4TB}",
        G6,
        f"{KARPENTER}.limits.memory_gib",
        ("limits",),
        {"memory": "4TBGi"},
        "spec.limits.memory",
    ),
    "a policy that is none": (
        f"{LIMITED}, consolidation: never",
        G6,
        f"{KARPENTER}.consolidation",
        ("disruption", "consolidationPolicy"),
        "Never",
        "spec.disruption.consolidationPolicy",
    ),
    "a time before now": (
        f"{LIMITED}, consolidate_after_seconds: -5",
        G6,
        f"{KARPENTER}.consolidate_after_seconds",
        ("disruption", "consolidateAfter"),
        "-5s",
        "spec.disruption.consolidateAfter",
    ),
    "a part of a second": (
        f"{LIMITED}, consolidate_after_seconds: 1.5",
        G6,
        f"{KARPENTER}.consolidate_after_seconds",
        ("disruption", "consolidateAfter"),
        "1.5s",
        "spec.disruption.consolidateAfter",
    ),
    "an effect that is none": (
        LIMITED,
        f"{G6}, taints: [{{key: x, effect: Never}}]",
        f"{BURST}.taints[0].effect",
        TAINT,
        [{"key": "x", "effect": "Never"}],
        "spec.template.spec.taints[0].effect",
    ),
    "a key that is none": (
        LIMITED,
        f"{G6}, taints: [{{key: a b, effect: NoSchedule}}]",
        f"{BURST}.taints[0].key",
        TAINT,
        [{"key": "a b", "effect": "NoSchedule"}],
        "spec.template.spec.taints[0].key",
    ),
    "a value that is none": (
        LIMITED,
        f"{G6}, taints: [{{key: x, value: -x, effect: NoSchedule}}]",
        f"{BURST}.taints[0].value",
        TAINT,
        [{"key": "x", "value": "-x", "effect": "NoSchedule"}],
        "spec.template.spec.taints[0].value",
    ),
    "no types": (
        LIMITED,
        "instance_types: []",
        f"{BURST}.instance_type",
        ("template", "spec", "requirements"),
        [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": []}],
        "spec.template.spec.requirements",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_karpenter_refuses_check_refuses_first(
    server: ApiServer, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    karpenter, burst, path, (*above, last), value, field = REFUSED[name]
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments/bad.yaml").write_text(FILE % (karpenter, burst))
    assert cli.main(["check", "bad", "--project", str(tmp_path), "--json"]) != 0
    (answer,) = json.loads(capsys.readouterr().out)["environments"]
    assert path in {each["path"] for each in answer["findings"] if each["level"] == "error"}

    (_, pool) = karpenter_objects(LIMITED, G6)
    changed = deepcopy(pool)
    part = changed["spec"]
    for key in above:
        part = part[key]
    part[last] = value
    with pytest.raises(ApiException) as error:
        server.apply(changed)
    assert error.value.status == 422
    assert field in json.loads(str(error.value.body))["message"]
