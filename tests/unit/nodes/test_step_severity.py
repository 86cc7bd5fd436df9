"""What a failed step costs: the node, or a mark on it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from podwright.config.catalog.instance_types import catalog
from podwright.config.settings.groups import InstanceGroup
from podwright.lifecycle_scripts.podwright_node import __main__ as node_main
from podwright.lifecycle_scripts.podwright_node.host import limits
from podwright.lifecycle_scripts.podwright_node.runner.failure import Failure
from podwright.lifecycle_scripts.podwright_node.runner.log import Log
from podwright.lifecycle_scripts.podwright_node.runner.node import Node
from podwright.lifecycle_scripts.podwright_node.runner.steps import Step, run
from podwright.lifecycle_scripts.podwright_node.runner.verdict import RECORD
from podwright.planning.node.facts import ClusterFacts, FileSystems, node_facts
from podwright.planning.node.setup_record import METRIC, NAMESPACE, SetupRecord

# Every step stands here, so that a new one is judged by a person.
SEVERITIES = {
    "network": "warning",
    "name-resolution": "warning",
    "clock": "warning",
    "limits": "warning",
    "ssh": "warning",
    "log-rotation": "warning",
    "local-nvme": "warning",
    "storage": "warning",
    "efa": "fatal",
    "efa-use": "warning",
    "lnet": "warning",
    "lustre": "fatal",
    "home": "fatal",
    "homes": "warning",
    "gpus": "fatal",
    "persistence": "warning",
    "fabric-manager": "warning",
    "imex": "warning",
    "gdrcopy": "warning",
    "neuron": "fatal",
    "neuron-tools": "warning",
    "slurm-users": "warning",
    "slurm-conf": "warning",
    "slurm-topology": "warning",
    "slurm-accounting": "warning",
    "slurm-failover": "warning",
    "slurm-configuration": "warning",
    "slurm-health": "warning",
    "slurm-imex": "warning",
    "slurm-containers": "warning",
    "slurm-daemons": "warning",
    "slurm-login": "warning",
    "slurm-associations": "warning",
    "slurm-refresh": "warning",
    "efa-software": "warning",
    "packages-software": "warning",
    "nccl-software": "warning",
    "gdrcopy-software": "warning",
    "plugin-software": "warning",
    "nccl-tests-software": "warning",
    "software-versions": "warning",
    "job-variables": "warning",
    # Fails only where `benchmarks: gate` asks for a new node.
    "benchmarks": "fatal",
}
H200, GB200 = "ml.p5en.48xlarge", "ml.p6e-gb200.36xlarge"
FAILURE = Failure("it is broken", "see the runbook")


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Log(tmp_path / "log.jsonl") as made:
        yield made


def node_of(log: Log, root: Path, instance_type: str = H200, lifecycle: str = "tolerant") -> Node:
    cluster = {
        "name": "test",
        "orchestrator": "eks",
        "region": "us-west-2",
        "dns_suffix": "amazonaws.com",
        "setup_uri": "",
    }
    facts = node_facts(
        cluster=ClusterFacts.model_validate({**cluster, "lifecycle": lifecycle}),
        groups={"workers": InstanceGroup.model_validate({"instance_type": instance_type, "count": 1})},
        types=catalog(),
        file_systems=FileSystems(lustre={}, home=None),
    )
    return Node(root, facts.model_dump(mode="json"), "workers", instance_type, log, "i-1")


def failing(step: Step) -> Step:
    """The step alone, on any node, and failing."""

    def fail(node: Node) -> None:
        raise FAILURE

    return replace(step, applies_to=_always, check=lambda node: False, apply=fail, needs=(), attempts=1)


def _always(node: Node) -> bool:
    return True


def recorded(root: Path) -> Mapping[str, Any]:
    return json.loads((root / RECORD.lstrip("/")).read_text())


def test_every_step_has_the_severity_that_somebody_chose() -> None:
    assert {step.name: step.severity for step in node_main.STEPS} == SEVERITIES


@pytest.mark.parametrize("step", node_main.STEPS, ids=lambda step: step.name)
def test_a_failed_step_costs_the_node_or_marks_it(step: Step, log: Log, tmp_path: Path) -> None:
    node = node_of(log, tmp_path)
    fatal = SEVERITIES[step.name] == "fatal"
    assert run([failing(step)], node) is not fatal
    record = recorded(tmp_path)
    saw = {step.name: "it is broken; see the runbook"}
    assert (record["verdict"], record["failed"], record["degraded"]) == (
        ("failed", saw, {}) if fatal else ("degraded", {}, saw)
    )


@pytest.mark.parametrize("step", node_main.STEPS, ids=lambda step: step.name)
def test_every_failed_step_costs_a_strict_node(step: Step, log: Log, tmp_path: Path) -> None:
    assert not run([failing(step)], node_of(log, tmp_path, lifecycle="strict"))
    assert recorded(tmp_path)["verdict"] == "failed"


def test_a_disputed_fact_costs_no_node(log: Log, tmp_path: Path) -> None:
    efa = next(step for step in node_main.STEPS if step.name == "efa")
    node = node_of(log, tmp_path, GB200)
    assert "efa_interfaces" in node.type_facts["disputed"]
    assert run([failing(efa)], node)
    assert recorded(tmp_path)["degraded"] == {"efa": "it is broken; see the runbook"}


def test_who_overrides_a_disputed_fact_has_settled_it() -> None:
    group = InstanceGroup.model_validate({"instance_type": GB200, "count": 1})
    types = catalog({GB200: {"efa_interfaces": 8}})
    facts = node_facts(
        cluster=ClusterFacts(
            name="test",
            orchestrator="eks",
            region="us-west-2",
            dns_suffix="amazonaws.com",
            lifecycle="tolerant",
            setup_uri="",
        ),
        groups={"workers": group},
        types=types,
        file_systems=FileSystems(lustre={}, home=None),
    )
    assert "efa_interfaces" not in facts.instance_types[GB200].disputed


def test_what_needs_a_degraded_step_is_tried_all_the_same(log: Log, tmp_path: Path) -> None:
    done: list[str] = []
    first = failing(Step("first", _always, _always, _nothing))
    second = Step("second", _always, lambda node: "second" in done, lambda node: done.append("second"), ("first",))
    assert run([first, second], node_of(log, tmp_path))
    assert done == ["second"]


def _nothing(node: Node) -> None:
    pass


def test_the_log_counts_degraded_steps_for_cloudwatch(
    log: Log, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = [failing(step) for step in node_main.STEPS if step.name in ("ssh", "clock")]
    assert run(steps, node_of(log, tmp_path))
    metrics = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    assert len(metrics) == 1
    (metric,) = metrics
    (directive,) = metric["_aws"]["CloudWatchMetrics"]
    # As the alarm asks for it, and by group.
    assert (directive["Namespace"], directive["Metrics"][0]["Name"]) == (NAMESPACE, METRIC)
    assert directive["Dimensions"] == [["ClusterName", "InstanceGroup"], ["ClusterName"]]
    assert (metric["InstanceGroup"], metric["InstanceId"], metric["degraded_steps"]) == ("workers", "i-1", 2)


def test_the_verdict_lies_beside_the_scripts(log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node, written = node_of(log, tmp_path), dict[str, Any]()
    node.facts["cluster"]["setup_uri"] = "s3://sagemaker-own/test/setup"

    def keep(_: Node, *command: str, **more: Any) -> str:
        del more
        arguments = dict(zip(command[3::2], command[4::2], strict=True))
        content = json.loads(Path(arguments["--body"]).read_text())
        written[f"{arguments['--bucket']}/{arguments['--key']}"] = SetupRecord.model_validate(content)
        return ""

    monkeypatch.setattr(Node, "run", keep)
    assert run([failing(step) for step in node_main.STEPS if step.name == "ssh"], node)
    assert {name: (record.verdict, record.degraded) for name, record in written.items()} == {
        "sagemaker-own/test/setup/workers/i-1.json": ("degraded", {"ssh": "it is broken; see the runbook"})
    }


@pytest.mark.parametrize("orchestrator", ["eks", "slurm"])
def test_containers_inherit_no_unlimited_stack(log: Log, tmp_path: Path, orchestrator: str) -> None:
    node = node_of(log, tmp_path)
    node.facts["cluster"]["orchestrator"] = orchestrator
    units = limits.services(node)
    runtimes = {name: text for name, text in units.items() if not name.startswith("slurmd")}
    assert sorted(name.partition(".")[0] for name in runtimes) == [
        "containerd",
        *["docker"] * (orchestrator == "slurm"),
    ]
    assert [line for text in runtimes.values() for line in text.splitlines() if "STACK" in line] == [
        "LimitSTACK=8388608:infinity"
    ] * len(runtimes)
