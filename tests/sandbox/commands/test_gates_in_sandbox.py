"""Gates against a cluster of the sandbox whose Kubernetes is a store: they pass, fail, or say what it cannot show."""

import json
import urllib.error
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gate_account import BUCKET, FILE, NAME, Caller, breaking, gated_cluster, loaded, on, patch
from governed_cluster import GovernedCluster
from podwright.config.errors import CommandError
from podwright.operations.aws.account import Account
from podwright.operations.aws.clusters import nodes
from podwright.operations.aws.sandbox_server import Running
from podwright.operations.gates import canary, cluster, nccl, quotas, verdicts
from podwright.operations.gates.evidence import Keeper, evidence_of
from podwright.operations.gates.jobs import made
from podwright.planning.delivery.gate_table import gate_actions

Aws = Callable[[str], Any]


@pytest.fixture(scope="module")
def live(aws: Aws) -> Iterator[GovernedCluster]:
    """A cluster that is as its file says."""
    yield gated_cluster(aws)
    aws("sagemaker").delete_cluster(ClusterName=NAME)


@pytest.fixture(scope="module")
def account(sandbox: Running, live: GovernedCluster) -> Caller:
    return Caller("123456789012", "us-west-2", sandbox.endpoint, sandbox.environment("us-west-2"))


@pytest.fixture
def gate(aws: Aws, account: Caller) -> Any:
    """Makes runs of gates."""
    account.called.clear()
    return on(account, aws("eks").describe_cluster(name=NAME)["cluster"])


@pytest.fixture
def faults(sandbox: Running) -> Iterator[Callable[..., None]]:
    with breaking(sandbox.endpoint) as put:
        yield put


def test_a_cluster_at_its_target_passes(gate: Any, account: Any) -> None:
    result = cluster.run(gate("cluster"))
    assert result.passed, result
    assert [check.seen for check in result.checks] == ["InService", "2 of 2", "2 ready"]
    # Its calls are among those that a role for it gets.
    allowed = set(gate_actions(loaded().environment, ["cluster"]))
    assert account.called
    assert allowed >= account.called


def test_a_node_that_takes_no_work_fails_the_cluster(gate: Any, aws: Aws) -> None:
    node = nodes(SimpleNamespace(client=aws), NAME)[0]
    label = "sagemaker.amazonaws.com/node-health-status"
    kubectl = gate("cluster").kubectl
    path = f"/api/v1/nodes/{node.kubernetes_name}"
    patch(kubectl, path, {"metadata": {"labels": {label: "Unschedulable"}}})
    try:
        result = cluster.run(gate("cluster", seconds=0.2))
    finally:
        patch(kubectl, path, {"metadata": {"labels": {label: "Schedulable"}}})
    assert not result.passed
    assert f"{node.id} of h200 node-health-status is Unschedulable" in result.reason


def test_verdicts_of_nodes_decide(gate: Any, faults: Any, account: Any) -> None:
    faults(verdicts={})
    assert (result := verdicts.run(gate("verdicts"))).passed, result
    assert set(gate_actions(loaded().environment, ["verdicts"])) >= account.called
    faults(verdicts={"h200": "fail"})
    result = verdicts.run(gate("verdicts"))
    assert not result.passed
    assert "fail: gemm_bf16 609.6 TFLOPS is below 635" in result.reason
    assert "will not pass by waiting" in result.reason
    assert len(result.answers["records"]) == 2
    faults(verdicts={"h200": "none"})
    result = verdicts.run(gate("verdicts", seconds=0.2))
    assert "no verdict, Running" in result.reason
    # Nothing measured proves nothing, unless the file says that it will do.
    faults(verdicts={"h200": "skip"})
    assert not verdicts.run(gate("verdicts")).passed
    assert verdicts.run(gate("verdicts", loaded(gates={"verdicts": {"accept": ["pass", "skip"]}}))).passed


def test_quotas_are_compared_and_what_their_queues_admit_is_not_proved(gate: Any, account: Caller) -> None:
    result = quotas.run(gate("quotas"))
    assert result.skipped, result
    assert "a store, without a scheduler" in result.reason
    assert set(gate_actions(loaded().environment, ["quotas"])) >= account.called
    changed = loaded(FILE.replace("{h200: 2}}}", "{h200: 1}}}"))
    result = quotas.run(gate("quotas", changed, seconds=0.2))
    assert "ComputeQuotaResources[0].Count is 2, and 1 is wanted" in result.reason
    more = loaded(FILE.replace("{h200: 2}}}", "{h200: 2}}, ghosts: {}}"))
    assert "quota of ghosts is not there" in quotas.run(gate("quotas", more, seconds=0.2)).reason


@pytest.mark.parametrize("module", [canary, nccl])
def test_a_gate_whose_jobs_nobody_would_run_says_so_at_once(gate: Any, module: Any) -> None:
    run = gate(module.__name__.rpartition(".")[2])
    result = module.run(run)
    assert result.skipped, result
    assert "without a scheduler. `podwright sandbox kubernetes install` builds a real one" in result.reason
    assert run.kubectl.items("Job.v1.batch") == []


def test_a_job_stays_as_it_was_made(gate: Any) -> None:
    run = gate("canary")
    job = made(run, "canary", canary.own_job(run))
    run.kubectl.apply(job.manifests)
    assert "status" not in (job.found() or {})
    assert job.pods() == []
    job.delete()


def test_what_is_wrong_with_jobs_cannot_be_said_where_none_runs(faults: Any) -> None:
    with pytest.raises(urllib.error.HTTPError, match="400") as refused:
        faults(jobs={"podwright-canary": "fails"})
    assert "no job runs on the stores of this sandbox" in refused.value.read().decode()
    refused.value.close()


def test_evidence_goes_into_the_bucket(gate: Any, aws: Aws, account: Account, tmp_path: Path) -> None:
    run = gate("cluster")
    evidence = evidence_of(run, "passed", cluster.run(run))
    keeper = Keeper(loaded().environment, account, tmp_path, None)
    location = keeper.keep(evidence)
    assert keeper.latest() == [(evidence, location)]
    assert location.startswith(f"s3://{BUCKET}/{NAME}/evidence/gated/cluster/")
    body = aws("s3").get_object(Bucket=BUCKET, Key=location.removeprefix(f"s3://{BUCKET}/"))["Body"].read()
    actual = json.loads(body)
    assert (actual["verdict"], actual["simulated"]) == ("passed", True)
    assert actual["answers"]["groups"][0]["CurrentCount"] == 2
    with pytest.raises(CommandError, match="cannot be written to s3://no-such-bucket/x"):
        Keeper(loaded().environment, account, tmp_path, "s3://no-such-bucket/x").keep(evidence)
