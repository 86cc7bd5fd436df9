"""What gates see in the answers of services: of a cluster, of its nodes' verdicts, of NCCL and of quotas."""

import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from gate_account import FILE, Clock, context, loaded
from podwright.config.catalog.names import benchmark_prefix
from podwright.config.errors import CommandError
from podwright.lifecycle_scripts.podwright_benchmarks import judge
from podwright.lifecycle_scripts.podwright_benchmarks.measured import Measured
from podwright.operations.gates import cluster, nccl, quotas, verdicts
from podwright.operations.gates.gate import Context, Observation, Result
from podwright.planning.node.collective_thresholds import all_reduce_threshold, thresholds_version
from podwright.planning.quota.compute_quotas import compute_quotas, scheduler_config
from podwright.planning.quota.policy import environment_policy
from refusals import refusal

AWS = SimpleNamespace(endpoint=None, id="111122223333", region="us-west-2")
GOVERNED = {"engine": "hyperpod", "teams": {"research": {"quota": {"h200": 2}}}}


def timed(name: Any = "cluster", minutes: float = 30, environment: Any = None, account: Any = AWS) -> Context:
    clock = Clock()
    return context(name, account, environment, minutes, clock=clock, sleep=clock.sleep)


NODES = [
    {
        "InstanceId": f"i-{at}",
        "InstanceGroupName": "h200",
        "InstanceType": "ml.p5en.48xlarge",
        "LaunchTime": datetime(2026, 11, 22, 9, tzinfo=UTC),
        "InstanceStatus": {"Status": "Running"},
    }
    for at in range(2)
]


class Sagemaker:
    """SageMaker's client, as far as the gate asks."""

    def __init__(
        self, group: dict[str, Any], *, status: str = "InService", plan: Any = None, nodes: Any = None
    ) -> None:
        self.group, self.status, self.plan, self.nodes = group, status, plan, NODES if nodes is None else nodes

    def describe_cluster(self, ClusterName: str) -> Any:
        if self.status == "gone":
            raise refusal("ResourceNotFound")
        group = {"InstanceGroupName": "h200", "Status": "Degraded", **self.group}
        return {
            "ClusterArn": "arn",
            "ClusterStatus": self.status,
            "InstanceGroups": [group],
            "FailureMessage": "no role",
        }

    def describe_training_plan(self, TrainingPlanName: str) -> Any:
        return {"TrainingPlanName": TrainingPlanName, **self.plan}

    def get_paginator(self, _: str) -> Any:
        return SimpleNamespace(paginate=lambda **_: [{"ClusterNodeSummaries": self.nodes}])


def at(sagemaker: Sagemaker, *, kubernetes: Any = (), text: str = FILE, minutes: float = 30) -> Result:
    run = timed("cluster", minutes, loaded(text), SimpleNamespace(endpoint=None, client=lambda _: sagemaker))
    run.__dict__["kubectl"] = SimpleNamespace(items=lambda *_: list(kubernetes))
    return cluster.run(run)


def node(id: str, ready: str = "True", **spec: Any) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": ready, "message": "kubelet stopped"}]
    return {"metadata": {"name": f"hyperpod-{id}"}, "spec": spec, "status": {"conditions": conditions}}


def test_a_group_below_its_target_is_counted() -> None:
    result = at(Sagemaker({"CurrentCount": 1, "TargetCount": 2}), minutes=1)
    assert result.reason == "not reached in 1 min: group h200 1 of 2"
    assert (
        "group h200 2 of 3, the file says 2" in at(Sagemaker({"CurrentCount": 2, "TargetCount": 3}), minutes=1).reason
    )


def test_karpenter_moves_targets() -> None:
    scaling = "autoscaling: {karpenter: {groups: [h200], limits: {vcpu: 8}}}"
    text = FILE.replace("cluster: {name: gated}", f"cluster: {{name: gated, {scaling}}}")
    both = [node("i-0"), node("i-1")]
    assert at(Sagemaker({"CurrentCount": 3, "TargetCount": 3}), kubernetes=both, text=text).passed
    assert not at(Sagemaker({"CurrentCount": 2, "TargetCount": 3}), kubernetes=both, text=text, minutes=1).passed


@pytest.mark.parametrize(
    ("kubernetes", "words"),
    [
        ([node("i-0")], "i-1 of h200 is not in Kubernetes"),
        ([node("i-0"), node("i-1", "Unknown")], "i-1 of h200 Ready is Unknown: kubelet stopped"),
        ([node("i-0"), node("i-1", unschedulable=True)], "i-1 of h200 is cordoned"),
    ],
)
def test_kubernetes_has_to_take_every_node(kubernetes: Any, words: str) -> None:
    result = at(Sagemaker({"CurrentCount": 2, "TargetCount": 2}), kubernetes=kubernetes, minutes=1)
    assert result.reason == f"not reached in 1 min: {words}"


def test_a_training_plan_that_begins_later_says_when() -> None:
    starts = datetime.now(UTC) + timedelta(days=3)
    plan = {"Status": "Scheduled", "ReservedCapacitySummaries": [{"Status": "Scheduled", "StartTime": starts}]}
    group = {"CurrentCount": 0, "TargetCount": 2, "TrainingPlanArn": "arn:plan/q1", "TrainingPlanStatus": "Scheduled"}
    result = at(Sagemaker(group, plan=plan))
    assert f"training plan q1 begins at {starts:%Y-%m-%d %H:%M} UTC" in result.reason
    assert result.next_step == "run this gate again after that"
    over = {"Status": "Expired", "ReservedCapacitySummaries": []}
    assert "training plan q1 is Expired and has no window to come" in at(Sagemaker(group, plan=over)).reason


def test_a_cluster_that_failed_or_is_not_there_ends_it() -> None:
    assert (
        "the cluster has failed: no role"
        in at(Sagemaker({"CurrentCount": 0, "TargetCount": 2}, status="Failed")).reason
    )
    assert "there is no cluster gated" in at(Sagemaker({}, status="gone")).reason


class Store:
    """S3 with the records of nodes."""

    def __init__(self, **records: str) -> None:
        self.records = records

    def get_object(self, Bucket: str, Key: str) -> Any:
        assert Key.startswith(f"{benchmark_prefix('gated')}/results/h200/i-")
        text = self.records.get(Key.rpartition("/")[2].removesuffix(".json").replace("-", "_"))
        if text is None:
            raise refusal("NoSuchKey")
        return {"Body": SimpleNamespace(read=text.encode)}


def record(verdict: str = "pass", hour: int = 10, action: str = "keep") -> str:
    result = {
        "name": "gemm_bf16",
        "devices": [0],
        "value": 500.0,
        "unit": "TFLOPS",
        "higher_is_better": True,
        "fail_below": 635.0,
        "warn_below": 699.0,
        "bound": 989.0,
        "source": "a test",
        "outcome": verdict,
        "reason": "" if verdict == "pass" else "500 is below 635",
    }
    started = datetime(2026, 11, 22, hour, tzinfo=UTC).isoformat()
    made = {
        "version": 1,
        "cluster": "gated",
        "group": "h200",
        "instance_id": "i-0",
        "instance_type": "ml.p5en.48xlarge",
    }
    made |= {"started": started, "seconds": 40, "mode": "quick", "thresholds_version": "t", "results": [result]}
    return json.dumps(made | {"verdict": verdict, "decision": {"policy": "gate", "action": action, "reason": "x"}})


def judged(**records: str) -> Result:
    clients = {"sagemaker": Sagemaker({}), "s3": Store(**records)}
    account = SimpleNamespace(endpoint=None, id="123456789012", client=clients.__getitem__)
    return verdicts.run(timed("verdicts", 1, account=account))


def test_verdicts_have_to_be_there_fresh_and_good() -> None:
    good = record()
    assert judged(i_0=good, i_1=record("warn")).passed
    assert "i-1 of h200 no verdict, Running" in judged(i_0=good).reason
    stale = judged(i_0=good, i_1=record(hour=8)).reason
    assert "i-1 of h200 pass of 2026-11-22 08:00, before it was set up last" in stale
    failed = judged(i_0=good, i_1=record("fail")).reason
    assert "i-1 of h200 fail: gemm_bf16 500 is below 635; 1 node will not pass by waiting: i-1" in failed
    # A node that its own gate has replaced is waited for.
    assert judged(i_0=good, i_1=record("fail", action="replace")).reason.startswith("not reached in 1 min")
    with pytest.raises(CommandError, match="is not a node's results"):
        judged(i_0=good, i_1="{}")


def test_a_software_update_makes_older_verdicts_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    updated = {**NODES[1], "LastSoftwareUpdateTime": datetime(2026, 11, 22, 18, tzinfo=UTC)}
    monkeypatch.setitem(globals(), "NODES", [NODES[0], updated])
    assert "i-1 of h200 pass of 2026-11-22 10:00" in judged(i_0=record(), i_1=record()).reason
    assert judged(i_0=record(), i_1=record(hour=13)).passed


def test_lines_are_those_that_nodes_are_judged_with() -> None:
    types = [*judge.THRESHOLDS["networks"], "ml.p6e-gb200.36xlarge", "ml.m5.4xlarge"]
    for kind in types:
        for nodes in (2, 3, 4, 8, 64):
            [observed] = judge.judge([Measured("all_reduce", (), 1.0, "GB/s")], kind, nodes=nodes)
            line = all_reduce_threshold(kind, nodes)
            expected = (observed["fail_below"], observed["warn_below"], observed["bound"], observed["source"])
            assert (line.fails_below, line.expected, line.bound, line.source) == expected, (kind, nodes)
    assert thresholds_version() == judge.VERSION


TABLE = """# nThread 1 nGpus 1 minBytes 8388608 maxBytes 17179869184
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw
     8388608       2097152     float     sum      -1    250.1   33.54   {small}      0    249.0   33.69   63.17   0
 17179869184    4294967296     float     sum      -1  66512.0  258.30   {busbw}  {wrong}  66500.0  258.34  484.40   0
# Out of bounds values : 0 OK
"""


def bandwidth(
    monkeypatch: pytest.MonkeyPatch, busbw: str, wrong: str = "0", *, text: str = FILE, **nccl_settings: Any
) -> Result:
    rows = nccl.parsed(TABLE.format(busbw=busbw, wrong=wrong, small="62.88"))
    assert len(rows) == 2
    monkeypatch.setattr(nccl, "_measured", lambda *_: (rows, Result(True, "")))
    settings = {"image": "registry/nccl-tests:2", **nccl_settings}
    return nccl.run(timed("nccl", environment=loaded(text, gates={"nccl": settings})))


def test_bandwidth_passes_above_a_published_line_and_fails_below(monkeypatch: pytest.MonkeyPatch) -> None:
    good = bandwidth(monkeypatch, "484.31")
    assert good.passed
    assert "484.31 GB/s at 16 GiB, wanted at least 350 GB/s (expected 430)" in good.reason
    slow = bandwidth(monkeypatch, "349.99")
    assert not slow.passed
    assert "find the slow node" in slow.next_step
    wrong = bandwidth(monkeypatch, "484.31", "5")
    assert (wrong.passed, "5 wrong" in wrong.reason) == (False, True)


def test_bandwidth_that_nobody_published_is_reported_unless_the_file_says_more(monkeypatch: pytest.MonkeyPatch) -> None:
    many = FILE.replace("count: 2", "count: 8")
    output = bandwidth(monkeypatch, "100.0", text=many, nodes=[8])
    assert output.passed
    assert "nothing published backs a line; 258 GB/s expected, and reported only" in output.reason
    assert not bandwidth(monkeypatch, "100.0", text=many, nodes=[8], minimum_percent=90).passed
    assert not bandwidth(monkeypatch, "400.0", minimum_gb_per_second={"h200": 401}).passed
    other = FILE.replace("ml.p5en.48xlarge", "ml.g6.48xlarge")
    assert "nothing is published for this type" in bandwidth(monkeypatch, "5.0", text=other, groups=["h200"]).reason


def test_tcp_is_called_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nccl, "_measured", lambda *_: ([nccl.Row(2**34, 3.2, 0)], Result(True, "")))
    assert nccl.run(timed("nccl")).next_step.startswith("that is TCP, not EFA")


@pytest.mark.parametrize(
    ("expected", "actual", "messages"),
    [
        ({"a": "2048Gi"}, {"a": "2Ti", "b": 1}, None),
        ({"a": "1500m"}, {"a": "1.5"}, None),
        ({"a": 3}, {"a": 3.0}, None),
        ({"a": {"b": "8"}}, {"a": {"b": "9"}}, "a.b is '9', and '8' is wanted"),
        ({"a": [{"name": "x"}, {"name": "y"}]}, {"a": [{"name": "y"}, {"name": "x"}]}, None),
        ({"a": [1, 2]}, {"a": [1]}, "a has 1 entries, and 2 are wanted"),
        ({"a": 1}, {}, "a is None, and 1 is wanted"),
    ],
)
def test_quotas_are_compared_as_amounts(expected: Any, actual: Any, messages: str | None) -> None:
    assert quotas._difference(expected, actual) == messages


def test_the_result_that_decided_is_named() -> None:
    made = json.loads(record("fail"))
    warned = {**made["results"][0], "name": "hbm", "outcome": "warn", "reason": "3000 is below 3100"}
    made["results"].insert(0, warned)
    assert "i-1 of h200 fail: gemm_bf16 500 is below 635" in judged(i_0=record(), i_1=json.dumps(made)).reason


def test_a_group_without_nodes_has_not_passed() -> None:
    clients = {"sagemaker": Sagemaker({}, nodes=[]), "s3": Store()}
    account = SimpleNamespace(endpoint=None, id="123456789012", client=clients.__getitem__)
    result = verdicts.run(timed("verdicts", 1, account=account))
    assert (result.passed, "group h200 has no nodes" in result.reason) == (False, True)


@pytest.mark.parametrize(
    ("quota", "config", "described", "missing"),
    [
        ({}, {}, {}, []),
        (None, {}, {}, ["quota of research is not there"]),
        ({"ActivationState": "Disabled"}, {}, {}, ["quota of research is switched off (ActivationState)"]),
        ({"Status": "Updating"}, {}, {}, ["quota of research Updating"]),
        (
            {"ComputeQuotaTarget": {"TeamName": "others"}},
            {},
            {},
            ["quota of research is not there", "quota of others Created"],
        ),
        ({}, None, {}, ["scheduler configuration is not there"]),
        (
            {},
            {},
            {"FairShare": "Disabled"},
            ["scheduler configuration FairShare is 'Disabled', and 'Enabled' is wanted"],
        ),
    ],
)
def test_task_governance_is_in_force_as_in_the_file(
    monkeypatch: pytest.MonkeyPatch, quota: Any, config: Any, described: Any, missing: list[str]
) -> None:
    assert _differences(monkeypatch, GOVERNED, quota, config, described) == missing


@pytest.mark.parametrize(("state", "missing"), [("Disabled", []), ("Enabled", ["switched on (ActivationState)"])])
def test_a_quota_that_the_file_turns_off_is_off(
    monkeypatch: pytest.MonkeyPatch, state: str, missing: list[str]
) -> None:
    off = {name: {**team, "compute_quota": {"state": "disabled"}} for name, team in GOVERNED["teams"].items()}
    governed = {**GOVERNED, "teams": off}
    actual = _differences(monkeypatch, governed, {"ActivationState": state}, {}, {})
    assert actual == [f"quota of research is {words}" for words in missing]


def _differences(monkeypatch: pytest.MonkeyPatch, governed: Any, quota: Any, config: Any, described: Any) -> list[str]:
    """What the gate misses where SageMaker answers so."""
    run = timed("quotas", environment=loaded(FILE, governance=governed))
    governance = run.environment.governance
    policy = environment_policy(run.environment, run.types)
    (desired,) = compute_quotas(governance, policy).values()
    whole = {**desired, "ComputeQuotaId": "q", "Status": "Created"}
    whole["ComputeQuotaTarget"] = {"TeamName": "research"}
    made = {"ClusterSchedulerConfigId": "c", "Status": "Created"}
    answers = {
        "list_compute_quotas": [] if quota is None else [whole | quota],
        "list_cluster_scheduler_configs": [] if config is None else [made],
    }
    scheduler = {"SchedulerConfig": scheduler_config(governance, policy) | described}
    monkeypatch.setattr(quotas, "existing_cluster", lambda *_: SimpleNamespace(arn="arn"))
    monkeypatch.setattr(quotas, "pages", lambda _, __, operation, *___, **____: answers[operation])
    monkeypatch.setattr(quotas, "get", lambda *_, **__: scheduler)
    observation = Observation()
    quotas._service(run, observation)
    return [f"{check.about} {check.seen}" for check in observation.missing]
