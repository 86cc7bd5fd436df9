"""What follows from the benchmarks of a node: who is replaced, how, and who stays because too many were."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from benchmark_services import INSTANCE, BenchmarkServices, measurement, record
from podwright.lifecycle_scripts.podwright_node.benchmarking import metrics
from podwright.lifecycle_scripts.podwright_node.benchmarking import step as benchmarks
from podwright.lifecycle_scripts.podwright_node.benchmarking.step import RECORD, measure, settled
from podwright.lifecycle_scripts.podwright_node.runner import deadline
from podwright.lifecycle_scripts.podwright_node.runner.failure import Failure
from podwright.lifecycle_scripts.podwright_node.runner.node import Node
from podwright.planning.node.benchmark_results import benchmark_schema
from waiting import VirtualClock

COUNT = "replacements/h200/2026-11.json"


@pytest.fixture
def services(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BenchmarkServices]:
    """Services, and a clock that waits for nothing."""
    monkeypatch.setattr(deadline, "time", VirtualClock())
    with closing(BenchmarkServices(tmp_path)) as made:
        made.drive(monkeypatch)
        yield made


def ran(node: Node) -> dict[str, Any]:
    """The node's record after its step, which has to end well."""
    assert benchmarks.STEP.applies_to(node)
    assert not settled(node)
    measure(node)
    assert settled(node)
    return kept(node)


def kept(node: Node) -> dict[str, Any]:
    actual = json.loads(node.read(RECORD) or "{}")
    jsonschema.Draft202012Validator(benchmark_schema()).validate(actual)
    return actual


def refused(node: Node) -> dict[str, Any]:
    """The same of a node whose step has to fail."""
    with pytest.raises(Failure, match="the benchmarks failed: gemm_bf16"):
        measure(node)
    assert not settled(node)
    return kept(node)


def action(actual: dict[str, Any]) -> str:
    return actual["decision"]["action"]


@pytest.mark.parametrize("verdict", ["pass", "warn", "skip"])
def test_a_node_that_did_not_fail_stays(services: BenchmarkServices, verdict: str) -> None:
    services.verdict = verdict
    actual = ran(services.node())
    assert actual["decision"] == {"policy": "gate", "action": "keep", "reason": f"the verdict is {verdict}"}
    assert services.stored(f"results/h200/{INSTANCE}.json") == actual
    assert f"prod/benchmarks/{COUNT}" not in services.objects


def test_reporting_replaces_nobody(services: BenchmarkServices) -> None:
    actual = ran(services.node(policy="report"))
    assert action(actual) == "keep"
    assert "only reports gemm_bf16[0] (700.0 is fail)" in actual["decision"]["reason"]
    assert f"prod/benchmarks/{COUNT}" not in services.objects


def test_a_gate_ends_the_scripts_of_a_new_node_and_says_so_in_s3(services: BenchmarkServices) -> None:
    actual = refused(services.node())
    assert actual["decision"]["action"] == "exit"
    assert actual["decision"]["reason"] == "replacement 1 of at most 2 within 7 days"
    assert [item["instance_id"] for item in services.stored(COUNT)["claims"]] == [INSTANCE]
    assert services.stored(f"results/h200/{INSTANCE}.json") == actual


@pytest.mark.parametrize("status", ["SystemUpdating", "Running", "DeepHealthCheckInProgress"])
def test_a_node_that_is_not_new_is_marked(services: BenchmarkServices, status: str) -> None:
    services.status = status
    actual = ran(services.node())
    assert action(actual) == "replace"
    assert f"SageMaker says that it is {status}" in actual["decision"]["reason"]


def test_a_node_that_was_measured_before_is_marked_whatever_sagemaker_says(services: BenchmarkServices) -> None:
    services.verdict = "pass"
    first = services.node()
    ran(first)
    first.remove(RECORD)  # what a software update does: the root volume is new
    services.verdict = "fail"
    actual = ran(first)
    assert action(actual) == "replace"
    assert "measured before, on 2026-11-21T10:01" in actual["decision"]["reason"]


def test_without_continuous_provisioning_a_node_is_marked(services: BenchmarkServices) -> None:
    assert action(ran(services.node(continuous=False))) == "replace"


def test_when_nothing_tells_whether_a_node_is_new_it_is_marked(services: BenchmarkServices) -> None:
    services.broken = lambda command: "AccessDenied" if "describe-cluster-node" in command else ""
    actual = ran(services.node())
    assert action(actual) == "replace"
    assert "nothing tells whether this node is new" in actual["decision"]["reason"]


def test_slurm_is_told_in_the_words_that_hyperpod_knows(services: BenchmarkServices) -> None:
    services.status = "SystemUpdating"
    assert action(ran(services.node(orchestrator="slurm"))) == "replace"
    assert services.slurm == {"State": "FAIL", "Reason": "Action:Replace"}
    assert services.commands[-2][1:] == ("update", "NodeName=ip-10-16-5-9", "State=FAIL", "Reason=Action:Replace")


def test_slurm_gives_no_jobs_to_a_node_while_it_is_measured(
    services: BenchmarkServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    observed = []

    def run(*_: Any) -> dict[str, Any]:
        observed.append(dict(services.slurm))
        return record("pass")

    services.drive(monkeypatch, run)
    ran(services.node(orchestrator="slurm"))
    assert observed == [{"State": "DRAIN", "Reason": "podwright measures this node"}]
    assert services.slurm == {"State": "IDLE", "Reason": ""}


def test_a_node_that_was_closed_for_another_reason_stays_closed(services: BenchmarkServices) -> None:
    services.verdict, services.slurm = "pass", {"State": "DRAIN", "Reason": "broken fan"}
    ran(services.node(orchestrator="slurm"))
    assert services.slurm == {"State": "DRAIN", "Reason": "broken fan"}


def test_a_new_slurm_node_that_fails_stays_closed_until_hyperpod_takes_it(services: BenchmarkServices) -> None:
    refused(services.node(orchestrator="slurm"))
    assert services.slurm["State"] == "DRAIN"


def test_a_node_that_slurm_does_not_know_is_measured_and_cannot_be_marked(services: BenchmarkServices) -> None:
    services.status = "SystemUpdating"
    node = services.node(orchestrator="slurm")
    object.__setattr__(node, "address", "10.9.9.9")
    actual = ran(node)
    assert action(actual) == "keep"
    assert "Slurm knows no node with the address 10.9.9.9" in actual["decision"]["reason"]


def test_eks_is_told_by_the_record_alone(services: BenchmarkServices) -> None:
    services.status = "SystemUpdating"
    assert action(ran(services.node())) == "replace"
    assert {command[0] for command in services.commands} == {"aws"}


def test_a_slurm_node_that_cannot_be_marked_stays_and_says_so(services: BenchmarkServices) -> None:
    services.status = "SystemUpdating"
    services.broken = lambda command: "Unable to contact slurm controller" if "scontrol" in command else ""
    actual = ran(services.node(orchestrator="slurm"))
    assert action(actual) == "keep"
    assert "it could not be marked" in actual["decision"]["reason"]
    assert len([command for command in services.commands if "scontrol" in command]) > 3


def test_at_most_so_many_nodes_are_replaced(services: BenchmarkServices) -> None:
    instances = [f"i-{number:017x}" for number in range(6)]
    actions = []
    for instance in instances:
        node = services.node(instance=instance)
        with suppress(Failure):
            measure(node)
        actions.append(action(kept(node)))
    assert actions == ["exit", "exit", "keep", "keep", "keep", "keep"]
    assert (
        "2 of at most 2 nodes were replaced within 7 days"
        in kept(services.node(instance=instances[2]))["decision"]["reason"]
    )
    assert [item["instance_id"] for item in services.stored(COUNT)["claims"]] == instances[:2]


def test_none_is_replaced_when_none_may_be(services: BenchmarkServices) -> None:
    assert action(ran(services.node(max_replacements=0))) == "keep"


def claims(services: BenchmarkServices, *times: str) -> None:
    """A count that other nodes have written."""
    actual = {"version": 1, "claims": [{"instance_id": f"i-{number}", "time": at} for number, at in enumerate(times)]}
    services.objects[f"prod/benchmarks/{COUNT}"] = json.dumps(actual), '"given"'


def test_old_replacements_no_longer_count(services: BenchmarkServices) -> None:
    claims(services, "2026-01-01T00:00:00+00:00", "2026-01-02T00:00:00+00:00")
    refused(services.node())
    assert [item["instance_id"] for item in services.stored(COUNT)["claims"]] == [INSTANCE]


def test_new_thresholds_are_counted_anew(services: BenchmarkServices, monkeypatch: pytest.MonkeyPatch) -> None:
    claims(services, "2099-01-01T00:00:00+00:00", "2099-01-01T00:00:00+00:00")
    assert action(ran(services.node())) == "keep"
    services.drive(monkeypatch, lambda *_: record("fail", thresholds_version="2026-12/b"))
    refused(services.node(instance="i-0fedcba9876543210"))
    assert "prod/benchmarks/replacements/h200/2026-12-b.json" in services.objects


def test_a_node_that_loses_the_race_reads_again(services: BenchmarkServices) -> None:
    """Another node writes between reading and writing: the condition fails, and the count is read anew."""
    raced = []

    def race(command: Sequence[str]) -> None:
        if "put-object" in command and COUNT in " ".join(command) and not raced:
            raced.append(command)
            claims(services, "2099-01-01T00:00:00+00:00")

    services.before = race
    actual = refused(services.node())
    assert raced
    assert actual["decision"]["reason"] == "replacement 2 of at most 2 within 7 days"
    assert len(services.stored(COUNT)["claims"]) == 2


def test_a_node_that_loses_the_last_place_stays(services: BenchmarkServices) -> None:
    def race(command: Sequence[str]) -> None:
        if "put-object" in command and COUNT in " ".join(command):
            claims(services, "2099-01-01T00:00:00+00:00", "2099-01-01T00:00:00+00:00")

    services.before = race
    assert action(ran(services.node())) == "keep"
    assert len(services.stored(COUNT)["claims"]) == 2


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"claims": [{"time": 3}]}', '{"claims": [{"instance_id": "i", "time": "x"}]}']
)
def test_a_damaged_count_replaces_nobody_and_stays_as_it_is(services: BenchmarkServices, text: str) -> None:
    services.objects[f"prod/benchmarks/{COUNT}"] = text, '"given"'
    actual = ran(services.node())
    assert action(actual) == "keep"
    assert "replacements cannot be counted" in actual["decision"]["reason"]
    assert services.objects[f"prod/benchmarks/{COUNT}"][0] == text


@pytest.mark.parametrize("operation", ["list-objects-v2", "put-object"])
def test_a_count_out_of_reach_replaces_nobody(services: BenchmarkServices, operation: str) -> None:
    services.broken = lambda command: "Could not connect to the endpoint URL" if operation in command else ""
    actual = ran(services.node())
    assert action(actual) == "keep"
    assert "replacements cannot be counted" in actual["decision"]["reason"]


def test_an_old_cli_that_knows_no_conditions_replaces_nobody(services: BenchmarkServices) -> None:
    services.broken = lambda command: "Unknown options: --if-none-match" if "--if-none-match" in command else ""
    assert action(ran(services.node())) == "keep"


def test_a_node_that_does_not_know_its_id_replaces_nothing_and_publishes_nothing(services: BenchmarkServices) -> None:
    actual = ran(services.node(instance=None))
    assert action(actual) == "keep"
    assert services.commands == []


def test_results_that_s3_does_not_take_stay_on_the_node(services: BenchmarkServices) -> None:
    services.verdict = "pass"
    services.broken = lambda command: "AccessDenied" if "put-object" in command else ""
    node = services.node()
    assert action(ran(node)) == "keep"
    assert "the results stay on the node only" in (node.root / "log").read_text()


@pytest.mark.parametrize("fault", [ImportError("no driver"), OSError("no such library"), KeyError("verdict")])
def test_a_fault_of_the_kernels_costs_no_node(
    services: BenchmarkServices, fault: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> dict[str, Any]:
        raise fault

    services.drive(monkeypatch, broken)
    actual = ran(services.node())
    assert actual["verdict"] == "skip"
    assert type(fault).__name__ in actual["results"][0]["reason"]


def test_a_bundle_without_kernels_costs_no_node(services: BenchmarkServices, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(__import__("sys").modules, "podwright_benchmarks")
    assert ran(services.node())["verdict"] == "skip"


class Killed(BaseException):
    """The end of a process, which no code of ours catches."""


@pytest.mark.parametrize("status", ["Pending", "SystemUpdating"])
@pytest.mark.parametrize("orchestrator", ["eks", "slurm"])
def test_killed_anywhere_and_run_again_the_same_follows(
    services: BenchmarkServices, monkeypatch: pytest.MonkeyPatch, orchestrator: str, status: str
) -> None:
    """Before and after each command and each write: the node is counted once, and node, S3 and decision agree."""
    services.status = status
    ends = []
    for number in range(100):
        services.objects.clear()
        services.slurm = {"State": "IDLE", "Reason": ""}
        node = services.node(orchestrator=orchestrator, instance=f"i-{number:017x}")
        with monkeypatch.context() as patch:
            moments = dying(patch, services, number)
            with suppress(Killed, Failure):
                measure(node)
        survived = moments() <= number
        for _ in range(2):
            with suppress(Failure):
                measure(node)
        actual = kept(node)
        assert actual == services.stored(f"results/h200/{node.instance_id}.json")
        assert [item["instance_id"] for item in services.stored(COUNT)["claims"]] == [node.instance_id]
        ends.append((action(actual), services.slurm["State"]))
        if survived:
            break
    assert len(ends) > 12
    new, slurm = status == "Pending", orchestrator == "slurm"
    assert set(ends) == {("exit" if new else "replace", "IDLE" if not slurm else "DRAIN" if new else "FAIL")}


def dying(patch: pytest.MonkeyPatch, services: BenchmarkServices, number: int) -> Callable[[], int]:
    """Kill at the moment of that number; gives how many moments there were."""
    moments = [0]

    def moment() -> None:
        moments[0] += 1
        if moments[0] == number + 1:
            raise Killed

    answer, write = services.answer, Node.write

    def answered(command: Sequence[str]) -> str:
        moment()
        output = answer(command)
        moment()
        return output

    def written(node: Node, *args: Any) -> None:
        moment()
        write(node, *args)
        moment()

    patch.setattr(services, "answer", answered)
    patch.setattr(Node, "write", written)
    return lambda: moments[0]


def test_is_not_for_groups_that_skip_or_files_without_benchmarks(services: BenchmarkServices) -> None:
    assert not benchmarks.STEP.applies_to(services.node(policy="skip"))
    node = services.node()
    node.facts["benchmarks"] = None
    assert not benchmarks.STEP.applies_to(node)


def test_metrics_hold_every_value_within_cloudwatchs_limits() -> None:
    many = [measurement(name="p2p", unit="GB/s", value=float(number), devices=[0, number]) for number in range(240)]
    more = [measurement(name=f"kernel{number}", value=None, outcome="skip") for number in range(3)]
    failed = [measurement("fail", 1.0)]
    documents = metrics.documents(record("fail", [*many, *more, *failed]))
    assert len(documents) == 3
    assert sorted(value for one in documents for value in one["p2p"]) == [float(number) for number in range(240)]
    for one in documents:
        (directive,) = one["_aws"]["CloudWatchMetrics"]
        assert one["_aws"]["Timestamp"] == 1795255200000
        assert directive["Namespace"] == "podwright/benchmarks"
        assert directive["Dimensions"] == [
            ["ClusterName", "InstanceGroup"],
            ["ClusterName", "InstanceGroup", "InstanceId"],
        ]
        assert len(directive["Metrics"]) <= 100
        assert {"Name": "p2p", "Unit": "Gigabytes/Second"} in directive["Metrics"]
        assert all(len(one[metric["Name"]]) <= 100 for metric in directive["Metrics"])
        assert "kernel0" not in one
    assert (documents[0]["failed"], documents[0]["warned"], documents[0]["seconds"]) == ([1], [0], [41.5])


def test_metrics_stand_alone_on_their_line(services: BenchmarkServices, capsys: pytest.CaptureFixture[str]) -> None:
    services.verdict = "pass"
    ran(services.node())
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    assert json.loads(line)["gemm_bf16"] == [700.0]
    assert json.loads(line)["InstanceId"] == INSTANCE
