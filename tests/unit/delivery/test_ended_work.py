"""The jobs that a teardown deletes before the stacks."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from podwright.operations.aws.account import Account
from podwright.operations.cdk.progress import Progress
from podwright.operations.teardown import work
from synthesis import environment_of

FILE = """
account: "111122223333"
region: us-west-2
network: {zones: [usw2-az1, usw2-az2]}
instance_groups:
  system: {instance_type: ml.m5.4xlarge, count: 2}
  h100: {instance_type: ml.p5.48xlarge, count: 2}
governance: {teams: {llm: {quota: {h100: 1}}}}
"""


def job(name: str, state: str, team: str = "llm") -> Any:
    metadata = {"name": name, "namespace": "hyperpod-ns-llm", "uid": name}
    item = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": metadata}
    return SimpleNamespace(item=item, state=state, team=team)


def test_jobs_of_teams_go_in_every_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    jobs = [
        job("trains", "running"),
        job("waits", "waiting"),
        job("ended", "succeeded"),
        job("somebodys", "running", ""),
    ]
    deleted = list[str]()
    kubectl = SimpleNamespace(
        is_real=True, delete=lambda items: deleted.extend(item["metadata"]["name"] for item in items)
    )
    monkeypatch.setattr(work, "way", lambda *_: kubectl)
    monkeypatch.setattr(work, "read_cluster", lambda *_: SimpleNamespace(jobs=jobs, kind=lambda _: []))
    account = Account("111122223333", "us-west-2", "http://localhost:9", {})
    work.end_work(tmp_path, environment_of(FILE), account, Progress())
    # Pods of a job that has ended keep the claims that they mount.
    assert deleted == ["trains", "waits", "ended"]
