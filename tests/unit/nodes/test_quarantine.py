"""Nodes that are taken out of work and given back: what Kubernetes or Slurm is told, and what is written down."""

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from drill_cluster import BROKEN, OTHER, REPLACED, DrillCluster
from podwright.operations.aws.session import NotConnected
from podwright.operations.cli import main
from podwright.operations.kubernetes.kubectl import Refused
from podwright.operations.nodes import quarantine
from podwright.operations.scaling import occupancy
from refusals import refusal
from test_node_command import FILE, SLURM

KEY = f"prod/quarantine/{BROKEN}.json"
BUCKET = "sagemaker-prod-111122223333-us-west-2"


class Workplace(DrillCluster):
    """A cluster with its bucket, kubectl and Slurm, which keep what they are told."""

    def __init__(self) -> None:
        super().__init__(REPLACED)
        self.objects: dict[str, dict[str, str]] = {}
        self.messages: list[str] = []
        self.refusals: dict[str, str] = {}
        self.answer = ""

    def client(self, service: str) -> Any:
        return self

    def get_caller_identity(self) -> dict[str, str]:
        return {"Arn": "arn:aws:sts::111122223333:assumed-role/MlPlatform/ada"}

    def put_object(self, Bucket: str, Key: str, Body: bytes, ContentType: str) -> None:
        assert Bucket == BUCKET
        self.objects[Key] = json.loads(Body)

    def get_object(self, Bucket: str, Key: str) -> dict[str, Any]:
        if Key not in self.objects:
            raise refusal("NoSuchKey")
        return {"Body": io.BytesIO(json.dumps(self.objects[Key]).encode())}

    def get_paginator(self, operation: str) -> Any:
        if operation != "list_objects_v2":
            return super().get_paginator(operation)
        rows = [{"Key": key} for key in self.objects]
        return type("Pages", (), {"paginate": lambda _, **__: [{"Contents": rows}]})()

    def delete_object(self, Bucket: str, Key: str) -> None:
        self.objects.pop(Key, None)

    def run(self, *arguments: str) -> str:
        """Kubectl, and with one argument a command on Slurm's controller."""
        self.messages.append(" ".join(arguments))
        for word, message in self.refusals.items():
            if word in arguments[0]:
                raise Refused(message)
        return self.answer


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments/prod.yaml").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    made = Workplace()
    account = SimpleNamespace(id="111122223333", region="us-west-2", endpoint=None, client=made.client)
    monkeypatch.setattr("podwright.operations.arguments.account_of", lambda *_: account)
    monkeypatch.setattr(quarantine, "kubectl_of", lambda *_: made)
    for module in (quarantine, occupancy):
        monkeypatch.setattr(module, "Slurm", lambda *_: made)
    return made


def take_out(reason: str = "ECC errors, ticket 12") -> int:
    return main(["node", "quarantine", "prod", f"hyperpod-{BROKEN}", "--reason", reason])


def test_on_eks_reason_and_label_come_before_the_taint(workplace: Workplace) -> None:
    assert take_out() == 0
    annotate, label, taint = workplace.messages
    node = f"nodes hyperpod-{BROKEN}"
    assert annotate.startswith(f"annotate --overwrite {node} podwright/quarantine-reason=ECC errors, ticket 12 ")
    assert label == f"label --overwrite {node} podwright/quarantine=true"
    assert taint == f"taint --overwrite {node} podwright/quarantine=true:NoSchedule"
    retained = workplace.objects[KEY]
    assert (retained["node"], retained["reason"]) == (BROKEN, "ECC errors, ticket 12")
    assert retained["by"].endswith("/ada")


def test_a_release_takes_all_of_it_back_and_may_be_repeated(workplace: Workplace) -> None:
    take_out()
    workplace.messages.clear()
    assert main(["node", "release", "prod", BROKEN]) == 0
    assert [words.rpartition(" ")[2] for words in workplace.messages[1:]] == ["podwright/quarantine-"] * 2
    assert workplace.messages[0].endswith(
        "podwright/quarantine-reason- podwright/quarantined-by- podwright/quarantined-since-"
    )
    assert workplace.objects == {}
    workplace.refusals, workplace.messages = {"taint": 'taint "podwright/quarantine" not found'}, []
    assert main(["node", "release", "prod", BROKEN, OTHER]) == 0
    taints = [words for words in workplace.messages if words.startswith("taint")]
    assert [words.split()[3] for words in taints] == [f"hyperpod-{BROKEN}", f"hyperpod-{OTHER}"], "each by itself"


def test_what_kubernetes_refuses_is_not_written_down(workplace: Workplace, capsys: pytest.CaptureFixture[str]) -> None:
    workplace.refusals = {"label": "nodes is forbidden"}
    assert take_out() == 1
    assert "Kubernetes does not take it: nodes is forbidden" in capsys.readouterr().err
    assert workplace.objects == {}


def test_on_slurm_the_node_is_drained_with_the_reason(workplace: Workplace) -> None:
    Path("environments/prod.yaml").write_text(SLURM.replace("TYPE", "compute, partition: gpu"))
    assert take_out("it's hot") == 0
    (drain,) = workplace.messages
    assert drain.startswith("scontrol update nodename=ip-10-16-0-7 state=drain reason='podwright quarantine: it'")
    assert list(workplace.objects) == [KEY]
    assert main(["node", "release", "prod", BROKEN]) == 0
    assert workplace.messages[1] == "scontrol update nodename=ip-10-16-0-7 state=resume"
    assert workplace.objects == {}
    # What HyperPod or somebody else has drained stays drained.
    assert main(["node", "release", "prod", BROKEN]) == 0
    assert len(workplace.messages) == 2


def test_slurms_controller_runs_no_jobs(workplace: Workplace, capsys: pytest.CaptureFixture[str]) -> None:
    Path("environments/prod.yaml").write_text(SLURM.replace("TYPE", "controller"))
    assert take_out() == 1
    assert f"{BROKEN} is Slurm's controller, which runs no jobs" in capsys.readouterr().err
    assert workplace.messages == []


@pytest.mark.parametrize("reason", ["", "  ", "two\nlines"])
def test_a_reason_is_one_line(workplace: Workplace, reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        take_out(reason)
    assert "say why, in one line" in capsys.readouterr().err


SQUEUE = "77|pretrain|research|ada|RUNNING|gpu|4|gres/gpu:8|2026-11-21T10:00:00|10|None|2026-11-21T10:00:05"


def test_jobs_on_a_node_of_slurm_are_named_with_their_size(
    workplace: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = SimpleNamespace(cluster=SimpleNamespace(orchestrator="slurm", name="prod"))
    monkeypatch.setattr(occupancy, "slurm_names", lambda *_: {"i-1": "ip-10-0-0-1", "i-2": "ip-10-0-0-2"})
    workplace.answer = f"podwright-node ip-10-0-0-1\n{SQUEUE}\npodwright-node ip-10-0-0-2\n{SQUEUE}\n"
    nodes = [SimpleNamespace(id="i-1"), SimpleNamespace(id="i-2")]
    account = SimpleNamespace(endpoint=None)
    check: Any = occupancy.occupancy
    (job,) = check(environment, account, Path(), nodes).jobs
    assert str(job) == "pretrain (77) of research, on 2 of its 4 nodes"
    assert job.nodes == ("i-1", "i-2")
    assert "squeue --noheader --nodelist=$node" in workplace.messages[0]

    def unreachable(*_: Any) -> Any:
        raise NotConnected("no session")

    monkeypatch.setattr(occupancy, "Slurm", unreachable)
    with pytest.raises(NotConnected):
        check(environment, account, Path(), nodes)
    # Nothing runs on nodes that only the sandbox plays.
    assert check(environment, SimpleNamespace(endpoint="http://localhost"), Path(), nodes).jobs == ()
