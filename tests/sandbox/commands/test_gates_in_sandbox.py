"""Gates against a live cluster of the sandbox: each passes, and fails for the reason that it is there for."""

import json
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gate_account import FILE, Direct, loaded, on
from governed_cluster import TOKEN, GovernedCluster, until
from podwright.config.catalog.instance_types import environment_types
from podwright.config.errors import CommandError
from podwright.operations.aws.account import Account
from podwright.operations.aws.clusters import nodes
from podwright.operations.aws.sandbox_server import Running
from podwright.operations.cli import main
from podwright.operations.gates import canary, cluster, command, nccl, quotas, verdicts
from podwright.operations.gates.evidence import Keeper, evidence_of
from podwright.operations.gates.jobs import made
from podwright.planning.delivery.gate_table import gate_actions
from podwright.planning.quota.compute_quotas import compute_quotas, scheduler_config
from podwright.planning.quota.policy import environment_policy

Aws = Callable[[str], Any]
NAME, BUCKET = "gated", "sagemaker-gated"
CALLED = set[str]()
"""IAM actions of the calls that were made."""


@pytest.fixture(scope="module")
def live(aws: Aws) -> Iterator[GovernedCluster]:
    """A cluster that is as its file says: operators, quotas, and nodes that publish their verdicts."""
    made = GovernedCluster(aws, NAME)
    for addon in ("hyperpod-dependencies", "amazon-sagemaker-hyperpod-training-operator"):
        aws("eks").create_addon(clusterName=NAME, addonName=addon)
    environment = loaded().environment
    policy = environment_policy(environment, environment_types({}))
    config = scheduler_config(environment.governance, policy)
    aws("sagemaker").create_cluster_scheduler_config(Name="policy", ClusterArn=made.arn, SchedulerConfig=config)
    for team, settings in compute_quotas(environment.governance, policy).items():
        aws("sagemaker").create_compute_quota(Name=team, ClusterArn=made.arn, **settings)
    aws("s3").create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    groups = aws("sagemaker").describe_cluster(ClusterName=NAME)["InstanceGroups"]
    scripts = groups[0]["LifeCycleConfig"]["SourceS3Uri"].removeprefix("s3://").partition("/")
    facts = {
        "groups": {"h200": {"benchmarks": "report"}},
        "benchmarks": {"mode": "quick", "results_uri": f"s3://{BUCKET}/{NAME}/benchmarks"},
    }
    aws("s3").put_object(Bucket=scripts[0], Key=f"{scripts[2]}node.json", Body=json.dumps(facts).encode())
    until(lambda: [node.status for node in nodes(SimpleNamespace(client=aws), NAME)] == ["Running"] * 2)
    yield made
    aws("sagemaker").delete_cluster(ClusterName=NAME)


class Caller(Account):
    """An account whose calls are counted."""

    def client(self, service: str) -> Any:
        made = super().client(service)
        made.meta.events.register("before-call", self._note)
        return made

    def _note(self, model: Any, **_: Any) -> None:
        CALLED.add(f"{model.service_model.signing_name}:{model.name}")


@pytest.fixture(scope="module")
def account(sandbox: Running, live: GovernedCluster) -> Account:
    return Caller("123456789012", "us-west-2", sandbox.endpoint, sandbox.environment("us-west-2"))


@pytest.fixture
def gate(aws: Aws, account: Account) -> Any:
    """Makes runs of gates."""
    return on(account, aws("eks").describe_cluster(name=NAME)["cluster"])


@pytest.fixture
def faults(sandbox: Running) -> Iterator[Callable[..., None]]:
    """Breaks something of the sandbox until the test ends."""
    broken = set[str]()

    def put(**what: Any) -> None:
        broken.update(what)
        url, body = f"{sandbox.endpoint}/podwright/faults", json.dumps(what).encode()
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
            urllib.request.Request(url, body, method="PUT")
        ).close()

    yield put
    put(**{name: {} for name in broken})


def test_a_cluster_at_its_target_passes(gate: Any, account: Any) -> None:
    CALLED.clear()
    result = cluster.run(gate("cluster"))
    assert result.passed, result
    assert [check.seen for check in result.checks] == ["InService", "2 of 2", "2 ready"]
    # Its calls are among those that a role for it gets.
    allowed = set(gate_actions(loaded().environment, ["cluster"]))
    assert CALLED
    assert allowed >= CALLED


def test_a_node_that_takes_no_work_fails_the_cluster(gate: Any, aws: Aws) -> None:
    node = nodes(SimpleNamespace(client=aws), NAME)[0]
    label = "sagemaker.amazonaws.com/node-health-status"
    kubectl = gate("cluster").kubectl
    path = f"/api/v1/nodes/{node.kubernetes_name}"
    _patch(kubectl, path, {"metadata": {"labels": {label: "Unschedulable"}}})
    try:
        result = cluster.run(gate("cluster", seconds=0.2))
    finally:
        _patch(kubectl, path, {"metadata": {"labels": {label: "Schedulable"}}})
    assert not result.passed
    assert f"{node.id} of h200 node-health-status is Unschedulable" in result.reason


def _patch(kubectl: Direct, path: str, body: Any) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/merge-patch+json"}
    request = urllib.request.Request(kubectl.endpoint + path, json.dumps(body).encode(), headers, method="PATCH")
    urllib.request.urlopen(request, context=kubectl.tls).close()


def test_verdicts_of_nodes_decide(gate: Any, faults: Any, account: Any) -> None:
    faults(verdicts={})
    CALLED.clear()
    assert (result := verdicts.run(gate("verdicts"))).passed, result
    assert set(gate_actions(loaded().environment, ["verdicts"])) >= CALLED
    faults(verdicts={"h200": "fail"})
    result = verdicts.run(gate("verdicts"))
    assert not result.passed
    assert "fail: simulated 40 percent is below 80" in result.reason
    assert "will not pass by waiting" in result.reason
    assert len(result.answers["records"]) == 2
    faults(verdicts={"h200": "none"})
    result = verdicts.run(gate("verdicts", seconds=0.2))
    assert "no verdict, Running" in result.reason
    # Nothing measured proves nothing, unless the file says that it will do.
    faults(verdicts={"h200": "skip"})
    assert not verdicts.run(gate("verdicts")).passed
    assert verdicts.run(gate("verdicts", loaded(gates={"verdicts": {"accept": ["pass", "skip"]}}))).passed


def test_quotas_in_force_pass_and_others_do_not(gate: Any, faults: Any, account: Any) -> None:
    CALLED.clear()
    assert (result := quotas.run(gate("quotas"))).passed, result
    assert set(gate_actions(loaded().environment, ["quotas"])) >= CALLED
    faults(queues={"hyperpod-ns-research-clusterqueue": "somebody stopped it"})
    result = quotas.run(gate("quotas", seconds=0.2))
    assert "ClusterQueue of research not Active, Stopped: somebody stopped it" in result.reason
    assert "LocalQueue of research not Active, ClusterQueueIsInactive" in result.reason
    changed = loaded(FILE.replace("{h200: 2}}}", "{h200: 1}}}"))
    result = quotas.run(gate("quotas", changed, seconds=0.2))
    assert "ComputeQuotaResources[0].Count is 2, and 1 is wanted" in result.reason
    more = loaded(FILE.replace("{h200: 2}}}", "{h200: 2}}, ghosts: {}}"))
    assert "quota of ghosts is not there" in quotas.run(gate("quotas", more, seconds=0.2)).reason


PLAIN = {"gates": {"nccl": {"image": "registry/nccl-tests:2"}}}


def test_the_canary_completes_and_goes(gate: Any, account: Any) -> None:
    CALLED.clear()
    run = gate("canary", loaded(**PLAIN))
    result = canary.run(run)
    assert result.passed, result
    assert [check.seen for check in result.checks] == ["succeeded, pods: 2 Succeeded"]
    nodes = {pod["node"] for pod in result.answers["pods"]}
    assert len(nodes) == 2, "each pod is on a node of its own"
    assert left(run) == []
    assert set(gate_actions(loaded().environment, ["canary"])) >= CALLED


def left(run: Any) -> list[str]:
    """Jobs and pods that are still there."""
    actual = [*run.kubectl.items("Job.v1.batch"), *run.kubectl.items("pods")]
    actual += run.kubectl.items("HyperPodPyTorchJob.v1.sagemaker.amazonaws.com")
    return [item["metadata"]["name"] for item in actual]


@pytest.mark.parametrize(
    ("fault", "seconds", "words"),
    [
        ("fails", 20, "ended with exit code 1"),
        ("image", 1.5, "ImagePullBackOff: Back-off pulling image"),
        ("hangs", 1.5, "not reached in"),
    ],
)
def test_a_canary_that_does_not_complete_says_why(
    gate: Any, faults: Any, fault: str, seconds: float, words: str
) -> None:
    faults(jobs={"podwright-canary": fault})
    run = gate("canary", loaded(**PLAIN), seconds)
    result = canary.run(run)
    assert not result.passed
    assert words in result.reason
    assert left(run) == [], "a canary goes also when it fails"
    if fault == "fails":
        assert "it was told to fail" in next(iter(result.answers["logs"].values()))


def test_an_elastic_job_grows_and_shrinks(gate: Any, faults: Any) -> None:
    run = gate("canary")
    result = canary.run(run)
    assert result.passed, result
    assert [check.wanted for check in result.checks] == ["succeeded", "1 pods", "2 pods", "1 pods"]
    assert left(run) == []
    faults(jobs={"podwright-elastic-": "rigid"})
    result = canary.run(gate("canary", seconds=4))
    assert "grows to 1 pods" in result.reason
    faults(jobs={"podwright-elastic-": "greedy"})
    result = canary.run(gate("canary", seconds=5))
    assert "shrinks to 2 pods" in result.reason


def test_bandwidth_is_held_against_the_line(gate: Any, faults: Any) -> None:
    run = gate("nccl", loaded(**PLAIN))
    result = nccl.run(run)
    assert result.passed, result
    assert "at 16 GiB, wanted at least 350 GB/s (expected 430)" in result.reason
    faults(jobs={"podwright-nccl": "slow"})
    result = nccl.run(gate("nccl", loaded(**PLAIN)))
    assert not result.passed
    assert "3.2 GB/s at 16 GiB" in result.reason
    assert "that is TCP, not EFA" in result.next_step
    faults(jobs={"podwright-nccl": "wrong"})
    assert "results 12 wrong" in nccl.run(gate("nccl", loaded(**PLAIN))).reason
    faults(jobs={"podwright-nccl": "fails"})
    assert "over 2 nodes: " in nccl.run(gate("nccl", loaded(**PLAIN))).reason


def test_an_interrupted_gate_leaves_nothing(gate: Any) -> None:
    run = gate("canary", loaded(**PLAIN))

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    run.sleep = interrupted
    with pytest.raises(KeyboardInterrupt):
        canary.run(run)
    assert left(run) == []


def test_what_a_killed_gate_left_is_gone_on_with(gate: Any, faults: Any) -> None:
    run = gate("canary", loaded(**PLAIN))
    job = made(run, "canary", canary.own_job(run))
    run.kubectl.apply(job.manifests)
    observed = list[str]()
    run.say = observed.append
    result = canary.run(run)
    assert result.passed
    assert f"{job.name} is there from an earlier run, and is resumed" in observed
    # One that has ended proves nothing of now.
    faults(jobs={"podwright-canary": "fails"})
    run.kubectl.apply(job.manifests)
    until(lambda: "conditions" in str(job.found()) and "BackoffLimitExceeded" in str(job.found()))
    faults(jobs={})
    assert canary.run(gate("canary", loaded(**PLAIN))).passed


def test_evidence_goes_into_the_bucket(gate: Any, aws: Aws, account: Account, tmp_path: Path) -> None:
    run = gate("cluster")
    evidence = evidence_of(run, "passed", cluster.run(run))
    location = Keeper(loaded().environment, account, tmp_path, None).keep(evidence)
    assert location.startswith(f"s3://{BUCKET}/{NAME}/evidence/gated/cluster/")
    body = aws("s3").get_object(Bucket=BUCKET, Key=location.removeprefix(f"s3://{BUCKET}/"))["Body"].read()
    actual = json.loads(body)
    assert (actual["verdict"], actual["simulated"]) == ("passed", True)
    assert actual["answers"]["groups"][0]["CurrentCount"] == 2
    with pytest.raises(CommandError, match="cannot be written to s3://no-such-bucket/x"):
        Keeper(loaded().environment, account, tmp_path, "s3://no-such-bucket/x").keep(evidence)


EXISTING = """cluster:
  name: gated
  eks:
    existing:
      name: gated
      security_group: sg-0123456789abcdef0
      kubectl_role: arn:aws:iam::123456789012:role/kubectl
      dependencies_installed: true
"""


def test_the_whole_command_with_the_real_kubectl(
    account: Account, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = FILE.replace("cluster: {name: gated}\n", EXISTING).replace("canary: {elastic: grows}", "canary: {nodes: 1}")
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments/gated.yaml").write_text(text)
    monkeypatch.setattr("podwright.operations.arguments.account_of", lambda *_: account)
    # What the file says of an existing control plane is not what this test is about.
    monkeypatch.setattr(command, "stop_on_errors", lambda _: None)
    asked = ["gate", "gated", "canary", "cluster", "--project", str(tmp_path), "--evidence", str(tmp_path / "kept")]
    assert main(asked) == 0
    messages = capsys.readouterr()
    assert [line.split()[:2] for line in messages.out.splitlines()[::2]] == [
        ["passed", "cluster"],
        ["passed", "canary"],
    ]
    assert "(simulated)" in messages.out
    assert "submits podwright-canary-" in messages.err
    retained = sorted((tmp_path / "kept/gated").glob("*/*.json"))
    assert [json.loads(file.read_text())["gate"] for file in retained] == ["canary", "cluster"]
