"""Collecting a bundle: what the account says, what it does not let us see, and no secrets."""

import argparse
import json
import os
import subprocess
import tarfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from doctor_small_cluster import LONG_AGO, cluster, nodes, pod
from podwright.config.errors import CommandError
from podwright.operations.aws.account import Account
from podwright.operations.aws.calls import Reader
from podwright.operations.doctor import collect as collecting
from podwright.operations.doctor import collect_kubernetes, collect_logs
from podwright.operations.doctor.bundle import Bundle
from podwright.operations.doctor.collect import collect
from podwright.operations.doctor.command import lines, run
from podwright.operations.doctor.diagnose import diagnose
from podwright.operations.kubernetes.kubectl import Refused
from preflight_account import PreflightAccount, environment

EVENT = "83ea0bb5-be77-45e8-a458-0a87f778a205"
KEY = "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY12"
WHO = {"EventId": EVENT, "ClusterArn": "arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdefghijkl"}
SOME_EVENT = {
    **WHO,
    "ClusterName": "prod",
    "ResourceType": "InstanceGroup",
    "InstanceGroupName": "h200",
    "EventTime": "2026-11-21T09:30:00Z",
    "EventLevel": "Error",
    "Description": "Failed to provision EC2 Instance",
}
FAILURE = {"EventMetadata": {"Instance": {"FailureMessage": "We currently do not have sufficient capacity"}}}


class FakeKubectl:
    """kubectl that knows one pod, which stands still, and its log."""

    def items(self, kind: str, *arguments: str) -> list[dict[str, Any]]:
        del arguments
        if kind.startswith("workloads"):
            raise Refused('error: the server doesn\'t have a resource type "workloads"')
        if kind == "events":
            raise Refused("Error from server (Forbidden): events is forbidden")
        crash = {"name": "main", "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
        env = [{"name": "WANDB_API_KEY", "value": "0123456789abcdef0123456789abcdef01234567"}]
        spec = {"nodeName": "hyperpod-i-h0", "containers": [{"name": "main", "env": env}]}
        return [pod("llama-0", "Running", spec=spec, status={"containerStatuses": [crash]})] if kind == "pods" else []

    def run(self, *arguments: str) -> str:
        return f"{LONG_AGO} export AWS_SECRET_ACCESS_KEY={KEY}" if "logs" in arguments else ""


def preflight_account(**changed: Any) -> PreflightAccount:
    """An account with a cluster that lacks two instances, and a failed lifecycle log with a key in it."""
    made = PreflightAccount()
    short = cluster(
        current=2,
        NodeProvisioningMode="Continuous",
        Orchestrator={"Eks": {"ClusterArn": "arn:aws:eks:us-west-2:111122223333:cluster/prod"}},
    )
    made.answers = {
        ("sagemaker", "describe_cluster"): short,
        ("sagemaker", "list_cluster_nodes"): {"ClusterNodeSummaries": nodes()},
        ("sagemaker", "list_cluster_events"): {"Events": [SOME_EVENT]},
        ("sagemaker", "describe_cluster_event"): {"EventDetails": {**SOME_EVENT, "EventDetails": FAILURE}},
        ("sagemaker", "list_cluster_operations"): {"ClusterOperationSummaries": []},
        ("sagemaker", "list_compute_quotas"): {"ComputeQuotaSummaries": []},
        ("sagemaker", "list_cluster_scheduler_configs"): {"ClusterSchedulerConfigSummaries": []},
        ("service-quotas", "list_service_quotas"): {"Quotas": []},
        ("ec2", "describe_subnets"): {"Subnets": []},
        ("ec2", "describe_security_groups"): {"SecurityGroups": []},
        ("fsx", "describe_file_systems"): {"FileSystems": []},
        ("cloudformation", "describe_stacks"): {"Stacks": []},
        ("cloudformation", "list_stack_resources"): {"StackResourceSummaries": []},
        ("logs", "describe_log_streams"): _streams,
        ("logs", "get_log_events"): {
            "events": [{"timestamp": 1795000000000, "message": f"mounting\nAWS_SECRET_ACCESS_KEY={KEY}"}]
        },
    } | {(key.partition("__")[0], key.partition("__")[2]): value for key, value in changed.items()}
    return made


def _streams(logStreamNamePrefix: str, **_: Any) -> dict[str, Any]:
    if not logStreamNamePrefix.startswith("LifecycleConfig"):
        return {"logStreams": []}
    return {"logStreams": [{"logStreamName": "LifecycleConfig/h200/i-h9", "lastEventTimestamp": 1795000000000}]}


def denied(operation: str) -> ClientError:
    return ClientError({"Error": {"Code": "AccessDeniedException", "Message": "you may not"}}, operation)


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Bundle]:
    def run(preflight_account: PreflightAccount, kubectl: Any = None) -> Bundle:
        monkeypatch.setattr(Account, "reader", lambda *_: Reader(preflight_account.client))
        monkeypatch.setattr(collect_kubernetes, "way", lambda *_: kubectl)
        account = Account("111122223333", "us-west-2", None, {})
        for service in ("cloudformation", "eks"):
            account._clients[service] = preflight_account.client(service)
        return collect(environment("{}").environment, account, tmp_path, runner=False)

    return run


def test_a_bundle_holds_what_the_account_says(collected: Callable[..., Bundle]) -> None:
    bundle = collected(preflight_account(), FakeKubectl())
    assert bundle.json("cluster")["ClusterName"] == "prod"
    assert bundle.entries("event_details")[EVENT]["EventDetails"] == FAILURE
    assert "mounting" in bundle.files["logs/LifecycleConfig/h200/i-h9.log"]
    assert {"no-capacity"} <= {finding.cause.id for finding in diagnose(bundle).findings}


def test_what_may_not_be_seen_is_named_and_the_rest_is_there(collected: Callable[..., Bundle]) -> None:
    closed = preflight_account(
        fsx__describe_file_systems=denied("DescribeFileSystems"),
        logs__describe_log_streams=denied("DescribeLogStreams"),
    )
    bundle = collected(closed, FakeKubectl())
    assert (
        bundle.index.unseen["file_systems"]
        == "fsx describe-file-systems: you may not make this call (AccessDeniedException)"
    )
    assert "you may not" in bundle.index.unseen["lifecycle_logs"]
    assert "forbidden" in bundle.index.unseen["kubernetes_events"]
    assert "workloads" not in bundle.index.unseen
    assert {"no-capacity"} <= {finding.cause.id for finding in diagnose(bundle).findings}
    assert any("DescribeFileSystems" in line for line in lines(diagnose(bundle)))


def test_logs_of_nodes_that_are_not_well_come_first(
    collected: Callable[..., Bundle], monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = nodes({"InstanceId": "i-h1", "InstanceStatus": {"Status": "Failure"}})
    streams = [
        {"logStreamName": f"LifecycleConfig/h200/i-h{number}", "lastEventTimestamp": 1795000000000 - number}
        for number in range(3)
    ]
    monkeypatch.setattr(collect_logs, "_MOST_STREAMS", 2)
    account = preflight_account(
        sagemaker__list_cluster_nodes={"ClusterNodeSummaries": failed},
        sagemaker__describe_cluster_node={"NodeDetails": {"InstanceId": "i-h1"}},
        logs__describe_log_streams=lambda logStreamNamePrefix, **_: {
            "logStreams": streams if logStreamNamePrefix.startswith("LifecycleConfig") else []
        },
    )
    bundle = collected(account)
    assert sorted(bundle.logs("lifecycle_logs")) == [f"logs/LifecycleConfig/h200/i-h{n}.log" for n in (0, 1)]
    streams[1]["lastEventTimestamp"] = 1
    assert "logs/LifecycleConfig/h200/i-h1.log" in collected(account).files


def test_without_a_way_to_kubernetes_its_sources_are_unseen(collected: Callable[..., Bundle]) -> None:
    unseen = collected(preflight_account()).index.unseen
    assert unseen["pods"] == "the Kubernetes API cannot be reached from here"
    assert "pod_logs" in unseen


def test_where_nothing_is_there_is_nothing_to_say(collected: Callable[..., Bundle]) -> None:
    absent = ClientError({"Error": {"Code": "ResourceNotFound", "Message": "no such cluster"}}, "DescribeCluster")
    with pytest.raises(CommandError, match="there is no cluster example"):
        collected(preflight_account(sagemaker__describe_cluster=absent))
    bundle = collected(preflight_account(sagemaker__describe_cluster=denied("DescribeCluster")))
    assert "cluster" in bundle.index.unseen


def test_no_secret_is_in_a_bundle_that_is_written(collected: Callable[..., Bundle], tmp_path: Path) -> None:
    bundle = collected(preflight_account(), FakeKubectl())
    bundle.write(tmp_path / "prod.tar.gz")
    with tarfile.open(tmp_path / "prod.tar.gz") as archive:
        texts = [file.read().decode() for member in archive if (file := archive.extractfile(member))]
    assert len(texts) == len(bundle.files)
    assert not [text for text in texts if KEY in text or "0123456789abcdef0123456789abcdef01234567" in text]
    assert bundle.index.redacted["named secret"] >= 2
    assert (tmp_path / "prod.tar.gz").stat().st_mode & 0o077 == 0


def test_a_bundle_is_read_as_it_was_written(collected: Callable[..., Bundle], tmp_path: Path) -> None:
    bundle = collected(preflight_account(), FakeKubectl())
    for name in ("prod.tar.gz", "prod"):
        bundle.write(tmp_path / name)
        assert Bundle.read(tmp_path / name).files == bundle.files
        with pytest.raises(CommandError, match="exists already"):
            bundle.write(tmp_path / name)


@pytest.mark.parametrize(
    ("index", "complaint"),
    [
        (None, "no bundle.json"),
        ("{", "not JSON"),
        ('{"format": 2}', "format 2, and this podwright reads 1"),
        ("{}", "taken: Field required"),
    ],
)
def test_what_is_no_bundle_is_refused(tmp_path: Path, index: str | None, complaint: str) -> None:
    folder = tmp_path / "bundle"
    folder.mkdir()
    if index is not None:
        (folder / "bundle.json").write_text(index)
    with pytest.raises(CommandError, match=complaint):
        Bundle.read(folder)


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bundle.tar.gz").write_text("no archive")
    with pytest.raises(CommandError, match=r"is not a readable \.tar\.gz: file could not be opened successfully$"):
        Bundle.read(tmp_path / "bundle.tar.gz")
    with pytest.raises(CommandError, match="no such bundle"):
        Bundle.read(tmp_path / "nothing.tar.gz")


def test_the_command_reads_a_bundle(
    collected: Callable[..., Bundle], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    collected(preflight_account(), FakeKubectl()).write(tmp_path / "bundle")
    args = argparse.Namespace(environment=str(tmp_path / "bundle"), json=True)
    assert run(args) == 1
    messages = json.loads(capsys.readouterr().out)
    assert messages["verdict"] == "explained"
    assert all(cause["sources"] and cause["evidence"] and cause["fix"] for cause in messages["causes"])
    args.json = False
    assert run(args) == 1
    assert "AWS has no instances of the type" in capsys.readouterr().out


def test_the_runner_hands_out_objects_without_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The command that the runner gets is run here, with a kubectl that prints one pod."""
    items = FakeKubectl().items("pods")
    (tmp_path / "kubectl").write_text(
        "#!/bin/sh\n"
        f"case $2 in pods) cat {tmp_path}/pods.json;; workloads*) exit 1;; *) echo '{{\"items\": []}}';; esac\n"
    )
    (tmp_path / "kubectl").chmod(0o755)
    (tmp_path / "pods.json").write_text(json.dumps({"items": items}))

    def in_vpc(account: Account, environment: Any, command: str, write: Callable[[str], None]) -> int:
        del account, environment
        variables = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command], env=variables, capture_output=True, text=True, check=True
        )
        for line in done.stdout.splitlines():
            write(line)
        return done.returncode

    monkeypatch.setattr(collect_kubernetes, "run_in_vpc", in_vpc)
    monkeypatch.setattr(collect_kubernetes, "way", lambda *_: None)
    collection = collecting.Collection(Reader(preflight_account().client), datetime.now(UTC))
    account = Account("111122223333", "us-west-2", None, {})
    collect_kubernetes.collect_kubernetes(collection, environment("{}").environment, account, tmp_path, runner=True)
    pods = json.loads(collection.files["kubernetes/pods.json"])["items"]
    assert pods[0]["metadata"]["name"] == "llama-0"
    assert "env" not in pods[0]["spec"]["containers"][0]
    assert "kubernetes/workloads.json" not in collection.files
