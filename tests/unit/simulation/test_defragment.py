"""Which jobs to move to free a whole domain: the fewest pods, places that exist, and nothing that changes by asking."""

import argparse
import json
import random
from pathlib import Path
from typing import Any

import pytest

from kueue_objects import Object, cluster_queue, flavor, local_queue, node, workload
from podwright.config.catalog.instance_types import environment_types
from podwright.config.errors import CommandError
from podwright.config.loading.project import Project
from podwright.operations.simulation import command
from podwright.operations.simulation.policies import policy_of
from podwright.planning.simulation.answers.defragment import Freed, Stuck, defragment
from podwright.planning.simulation.kueue.admitted import work_in
from podwright.planning.simulation.kueue.policy import Policy, policy

ROOT = Path(__file__).resolve().parents[3]
SWITCH, HOST = "net/switch", "kubernetes.io/hostname"
TOPOLOGY = {
    "kind": "Topology",
    "metadata": {"name": "net"},
    "spec": {"levels": [{"nodeLabel": SWITCH}, {"nodeLabel": HOST}]},
}


def running(name: str, pods_by_node: dict[str, int], gpus: int = 8, **request: Any) -> Object:
    """A Workload with pods on nodes; its assignment names nodes alone, as Kueue writes it."""
    item = workload(
        name, "a", gpus, count=sum(pods_by_node.values()), **({"topologyRequest": request} if request else {})
    )
    domains = {
        "levels": [HOST],
        "slices": [
            {
                "domainCount": len(pods_by_node),
                "valuesPerLevel": [{"individual": {"roots": list(pods_by_node)}}],
                "podCounts": {"individual": list(pods_by_node.values())},
            }
        ],
    }
    usage = {"nvidia.com/gpu": str(gpus * sum(pods_by_node.values()))}
    assigned = {"name": "main", "count": sum(pods_by_node.values()), "flavors": {"nvidia.com/gpu": "default"}}
    assigned |= {"resourceUsage": usage, "topologyAssignment": domains}
    reserved = {"type": "QuotaReserved", "status": "True", "lastTransitionTime": "2026-11-25T00:00:00Z"}
    admission = {"clusterQueue": "a", "podSetAssignments": [assigned]}
    return item | {"status": {"conditions": [reserved], "admission": admission}}


def cluster(work: list[Object], nodes: int = 6, per_switch: int = 2) -> Policy:
    """Nodes n0, n1 … with eight GPUs each, two behind a switch."""
    hosts = [node(f"n{number}", **{SWITCH: f"s{number // per_switch}"}) for number in range(nodes)]
    placed = flavor("default", nodeLabels={"pool": "gpu"}, topologyName="net")
    result = policy([cluster_queue("a", quotas={"default": 8 * nodes}), local_queue("a"), placed, TOPOLOGY, *hosts])
    for item in work:
        work_in(result, item)
    return result


def test_the_fewest_pods_are_moved() -> None:
    work = [running("one", {"n0": 1}), running("two", {"n2": 1, "n3": 1}), running("three", {"n4": 1}, gpus=4)]
    first, second, third = defragment(cluster(work), SWITCH)
    assert isinstance(first, Freed) and isinstance(second, Freed) and isinstance(third, Freed)  # noqa: PT018
    assert [each.domain for each in (first, second, third)] == [("s0",), ("s2",), ("s1",)]
    assert [each.pods for each in (first, second, third)] == [1, 1, 2]
    (move,) = first.moves
    assert (move.work.name, [placement.domain for placement in move.after]) == ("one", [("s2", "n5")])


def test_a_free_domain_comes_first_and_one_without_room_elsewhere_last() -> None:
    work = [running("large", {"n0": 1, "n1": 1}, required=SWITCH), running("small", {"n2": 1}, gpus=2)]
    results = list(defragment(cluster(work), SWITCH))
    assert [(each.domain, len(getattr(each, "moves", "?"))) for each in results] == [
        (("s2",), 0),
        (("s1",), 1),
        (("s0",), 1),
    ]
    full = [*work, running("more", {"n4": 1, "n5": 1})]
    stuck = [each for each in defragment(cluster(full), SWITCH) if isinstance(each, Stuck)]
    # Outside of their own switch n3 and part of n2 are all that is left.
    assert {each.domain: each.work.name for each in stuck} == {("s0",): "large", ("s1",): "small", ("s2",): "more"}
    assert all("fit" in each.reason for each in stuck)


def test_one_node_is_a_domain_too() -> None:
    results = list(defragment(cluster([running("one", {"n0": 1}, gpus=2), running("two", {"n1": 1}, gpus=2)]), HOST))
    assert len(results) == 6
    assert [each.domain[-1] for each in results][-2:] == ["n0", "n1"]


@pytest.mark.parametrize("seed", range(8))
def test_whatever_moves_finds_its_place_and_asking_changes_nothing(seed: int) -> None:
    source = random.Random(seed)
    work = []
    for number in range(6):
        names = [f"n{each}" for each in source.sample(range(number * 2, number * 2 + 2), source.choice((1, 2)))]
        work.append(running(f"w{number}", dict.fromkeys(names, 1), gpus=source.choice((2, 4, 8))))
    made = cluster(work, nodes=12)
    before = made.domains.free("default")
    results = list(defragment(made, SWITCH))
    assert made.domains.free("default") == before
    assert len(results) == 6
    for each in results:
        if not isinstance(each, Freed):
            continue
        for move in each.moves:
            made.domains.hold(move.before, -1)
        for move in each.moves:
            assert all(placement.domain[: len(each.domain)] != each.domain for placement in move.after)
            assert made.domains.holds(move.after)
            made.domains.hold(move.after)
        left = made.domains.free("default")
        assert all(left[values]["nvidia.com/gpu"] == 8 for values in left if values[: len(each.domain)] == each.domain)
        for move in each.moves:
            made.domains.hold(move.after, -1)
            made.domains.hold(move.before)


def state(tmp_path: Path) -> Path:
    """A snapshot of prod with one small job on a node of its own."""
    prod = Project.at(ROOT).load("prod").environment
    objects = [dict(item) for item in policy_of(prod, environment_types({})).objects]
    stamp = {"creationTimestamp": "2027-01-04T00:00:00Z"}
    job = running("tune", {"h200-0003": 1})
    job["metadata"]["namespace"] = "hyperpod-ns-product"
    job["spec"]["queueName"] = "hyperpod-ns-product-localqueue"
    admission = job["status"]["admission"]
    admission["clusterQueue"] = "hyperpod-ns-product-clusterqueue"
    admission["podSetAssignments"][0]["flavors"] = {"nvidia.com/gpu": "ml.p5en.48xlarge"}
    items = [item | {"metadata": item["metadata"] | stamp} for item in [*objects, job | {"kind": "Workload"}]]
    file = tmp_path / "state.json"
    file.write_text(json.dumps({"items": items}))
    return file


def asked(*words: str) -> int:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    args = parser.parse_args(["prod", *words])
    args.project = ROOT
    return command.run(args)


def test_the_command_says_whom_to_move_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = state(tmp_path)
    assert asked("--defragment", "--snapshot", str(file)) == 0
    printed = capsys.readouterr().out
    assert "Free already: 2 of 3 domains of topology.k8s.aws/network-node-layer-3" in printed
    assert "To free h200-switch-0 of ml.p5en.48xlarge (8 nodes) move 1 job with 1 pod:" in printed
    assert "hyperpod-ns-product/tune  from h200-0003  to h200-00" in printed
    assert asked("--defragment", "--snapshot", str(file), "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert [each["pods"] for each in document["domains"]] == [0, 0, 1]
    assert document["stuck"] == []


def test_a_level_that_no_node_has_is_refused_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="no nodes have domains of rack") as refused:
        asked("--defragment", "rack", "--snapshot", str(state(tmp_path)))
    assert "kubernetes.io/hostname" in str(refused.value.hint)


def test_work_has_to_be_named() -> None:
    with pytest.raises(CommandError, match="--trace or --generate is missing"):
        asked()
