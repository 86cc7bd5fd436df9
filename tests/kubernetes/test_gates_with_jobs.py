"""Gates whose jobs run on a real control plane: each passes, and fails for the reason that it is there for."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from control_plane_parts import require_parts
from gate_account import FILE, NAME, Caller, breaking, gated_cluster, loaded, on, patch
from podwright.config.loading.load import LoadedEnvironment
from podwright.config.settings.gates import GateName
from podwright.operations.aws import sandbox_server as server
from podwright.operations.cli import main
from podwright.operations.gates import canary, command, nccl, quotas
from podwright.operations.gates.gate import Context
from podwright.operations.gates.jobs import made
from podwright.planning.delivery.gate_table import gate_actions
from waiting import CEILING_SECONDS, until

REGION = "us-west-2"
PLAIN = {"gates": {"nccl": {"image": "registry/nccl-tests:2"}}}
Event = Callable[[Any, str], bool]
QUEUE = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/hyperpod-ns-research-clusterqueue"


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    """That of a sandbox whose clusters are real ones, with the cluster of the file."""
    require_parts("kueue", "training-operator", "mpi-operator")
    root = tmp_path_factory.mktemp("gates")
    running = server.start(root, port=0, time_scale=0.1, kubernetes="real")
    try:
        gated_cluster(_client_of(running.endpoint))
        yield Caller("123456789012", REGION, running.endpoint, running.environment(REGION))
    finally:
        server.stop(root)


def _client_of(endpoint: str) -> Callable[[str], Any]:
    """boto3 clients that wait for a slow machine: an add-on is there when its programs are."""
    session, once = boto3.Session("sandbox", "sandbox", region_name=REGION), {"total_max_attempts": 1}
    settings = Config(read_timeout=CEILING_SECONDS, retries=once)
    return lambda service: session.client(service, endpoint_url=endpoint, config=settings)


@pytest.fixture
def gate(account: Caller) -> Any:
    """Makes runs of gates, once both nodes take work."""
    make = on(account, account.client("eks").describe_cluster(name=NAME)["cluster"])
    until(lambda: len(make("canary").kubectl.items("nodes")) == 2)
    account.called.clear()

    def gate(name: GateName, environment: LoadedEnvironment | None = None, ends_at: str | Event = "") -> Context:
        """Make a run whose time is over at an event or once it says a text, and that otherwise waits for long."""
        run = make(name, environment, CEILING_SECONDS)
        say = run.say

        def listened(text: str) -> None:
            say(text)
            if ends_at(run, text) if callable(ends_at) else ends_at and ends_at in text:
                run.seconds = 0

        run.say = listened
        return run

    return gate


@pytest.fixture
def faults(account: Caller) -> Iterator[Callable[..., None]]:
    assert account.endpoint
    with breaking(account.endpoint) as put:
        yield put


def keeps_work_waiting(run: Any, text: str) -> bool:
    """Return True once Kueue has found no quota for work, while the gate waits for a job to grow or to shrink."""
    if "grows to" not in text and "shrinks to" not in text:
        return False
    workloads = run.kubectl.ask("GET", "/apis/kueue.x-k8s.io/v1beta2/workloads")["items"]
    conditions = [entry for item in workloads for entry in item.get("status", {}).get("conditions", ())]
    return any((entry["type"], entry["status"]) == ("QuotaReserved", "False") for entry in conditions)


def left(run: Any) -> list[str]:
    """Jobs that are still there. Their pods go a moment later."""
    actual = [*run.kubectl.items("Job.v1.batch"), *run.kubectl.items("MPIJob.v2beta1.kubeflow.org")]
    actual += run.kubectl.items("HyperPodPyTorchJob.v1.sagemaker.amazonaws.com")
    return [item["metadata"]["name"] for item in actual]


def test_quotas_are_in_force_while_their_queues_admit(gate: Any, account: Caller) -> None:
    result = quotas.run(gate("quotas"))
    assert result.passed, result
    assert set(gate_actions(loaded().environment, ["quotas"])) >= account.called
    run = gate("quotas", ends_at="Stopped")
    patch(run.kubectl, QUEUE, {"spec": {"stopPolicy": "Hold"}})
    try:
        until(lambda: "Stopped" in json.dumps(run.kubectl.ask("GET", QUEUE)["status"]))
        reason = quotas.run(run).reason
    finally:
        patch(run.kubectl, QUEUE, {"spec": {"stopPolicy": None}})
    assert "ClusterQueue of research not Active, Stopped: " in reason
    assert "LocalQueue of research not Active, ClusterQueueIsInactive: " in reason
    assert quotas.run(gate("quotas")).passed, "it admits again"


def test_the_canary_completes_and_goes(gate: Any, account: Caller) -> None:
    run = gate("canary", loaded(**PLAIN))
    result = canary.run(run)
    assert result.passed, result
    assert [check.seen for check in result.checks] == ["succeeded, pods: 2 Succeeded"]
    assert all(pod["node"].startswith("hyperpod-i-") for pod in result.answers["pods"])
    until(lambda: left(run) == [])
    assert set(gate_actions(loaded().environment, ["canary"])) >= account.called


@pytest.mark.parametrize(
    ("fault", "ends_at", "words"),
    [
        ("fails", "", "ended with exit code 1"),
        ("image", "ImagePullBackOff", "ImagePullBackOff: Back-off pulling image"),
        ("hangs", "2 Running", "not reached in"),
    ],
)
def test_a_canary_that_does_not_complete_says_why(gate: Any, faults: Any, fault: str, ends_at: str, words: str) -> None:
    faults(jobs={"podwright-canary": fault})
    run = gate("canary", loaded(**PLAIN), ends_at)
    result = canary.run(run)
    assert not result.passed
    assert words in result.reason
    until(lambda: left(run) == [])
    if fault == "fails":
        assert "it was told to fail" in next(iter(result.answers["logs"].values()))


def test_an_elastic_job_grows_and_shrinks(gate: Any) -> None:
    run = gate("canary")
    result = canary.run(run)
    assert result.passed, result
    assert [check.wanted for check in result.checks] == ["succeeded", "1 pods", "2 pods", "1 pods"]
    until(lambda: left(run) == [])


def test_an_elastic_job_does_not_grow_over_what_others_hold(gate: Any) -> None:
    run = gate("canary")
    whole_node = {"nodes": 1, "accelerators": 8, "priority": "inference"}
    other = made(run, "holds", canary.own_job(run).model_copy(update=whole_node))
    other.kubectl.apply(other.manifests)
    try:
        until(lambda: [pod["status"]["phase"] for pod in other.pods()] == ["Running"])
        result = canary.run(gate("canary", ends_at=keeps_work_waiting))
    finally:
        other.delete()
    assert "grows to 1 pods" in result.reason
    assert "something else holds what it would grow over" in result.next_step


def test_an_elastic_job_that_nobody_is_above_does_not_shrink(gate: Any) -> None:
    """Its extra replicas have the highest priority, so work of the same team waits for them."""
    highest = loaded(FILE.replace("extra_priority: extra", "extra_priority: inference"))
    result = canary.run(gate("canary", highest, ends_at=keeps_work_waiting))
    assert "shrinks to 2 pods" in result.reason


def test_bandwidth_is_held_against_the_line(gate: Any, faults: Any) -> None:
    result = nccl.run(gate("nccl", loaded(**PLAIN)))
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
    until(lambda: left(run) == [])


def test_what_a_killed_gate_left_is_gone_on_with(gate: Any, faults: Any) -> None:
    run = gate("canary", loaded(**PLAIN))
    job = made(run, "canary", canary.own_job(run))
    run.kubectl.apply(job.manifests)
    observed = list[str]()
    run.say = observed.append
    assert canary.run(run).passed
    assert f"{job.name} exists from an earlier run, and is resumed" in observed
    # One that has ended proves nothing of now.
    faults(jobs={"podwright-canary": "fails"})
    run.kubectl.apply(job.manifests)
    until(lambda: "BackoffLimitExceeded" in str(job.found()))
    faults(jobs={})
    assert canary.run(gate("canary", loaded(**PLAIN))).passed


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
    account: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
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
