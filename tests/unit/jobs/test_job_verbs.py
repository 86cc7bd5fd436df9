"""`podwright jobs`, `why`, `logs` and `stop` on a recorded cluster: that of docs/scenarios/two-teams.md.

Team B has taken its node back from `train-a`, and then its own `train-b` made room for `experiment-b`. The objects are
as kubectl gave them, from Kueue 0.19.2 and the training operator of the sandbox's control plane.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from podwright.operations.cli import main
from podwright.operations.kubernetes import in_vpc
from podwright.operations.kubernetes import kubectl as kubectl_module

ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).parent
OWN, OTHER = "hyperpod-ns-team-a", "hyperpod-ns-team-b"

Change = Callable[[Callable[[list[Any]], None]], None]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the scenario's file, and a kubectl that answers from the record."""
    (tmp_path / "environments").mkdir()
    shutil.copy(ROOT / "environments/two-teams.yaml", tmp_path / "environments")
    shutil.copy(HERE / "two_teams.json", tmp_path / "cluster.json")
    (tmp_path / "forbidden").touch()
    (tmp_path / "logs").mkdir()
    program = tmp_path / "kubectl"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -I {HERE}/fake_kubectl.py {tmp_path} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setattr(kubectl_module, "tool", lambda _: str(program))
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


@pytest.fixture
def change(project: Path) -> Change:
    """Changes the recorded objects."""

    def changed(edit: Callable[[list[Any]], None]) -> None:
        items = json.loads((project / "cluster.json").read_text())
        edit(items)
        (project / "cluster.json").write_text(json.dumps(items))

    return changed


def called(project: Path, *words: str) -> int:
    return main(
        [words[0], "two-teams", *words[1:], "--kubeconfig", str(project / "kubectl"), "--project", str(project)]
    )


def calls(project: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (project / "calls").read_text().splitlines()]


def one(items: list[Any], kind: str, name: str) -> Any:
    (item,) = (item for item in items if item["kind"] == kind and name in item["metadata"]["name"])
    return item


Capture = pytest.CaptureFixture[str]


def test_jobs_are_listed_with_state_queue_and_reason(project: Path, capsys: Capture) -> None:
    assert called(project, "jobs") == 0
    rows = [line.split(maxsplit=7) for line in capsys.readouterr().out.splitlines()[3:]]
    assert [row[:4] for row in rows] == [
        ["team-a", "train-a", "pytorch", "preempted"],
        ["team-b", "train-b", "pytorch", "preempted"],
        ["team-b", "experiment-b", "pytorch", "running"],
    ]
    assert "preempted by train-b: lacks 8 GPUs of ml.g5.12xlarge" in rows[0][-1]


def test_the_same_as_json(project: Path, capsys: Capture) -> None:
    assert called(project, "jobs", "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    first, _, last = answer["jobs"]
    assert (first["position"], first["preempted_by"], first["accelerators"]) == ([1, 1], "train-b", 8)
    assert (last["position"], last["preempted_by"], last["reason"], last["running_pods"]) == (None, "", "", 2)
    assert [job["priority"] for job in answer["jobs"]] == [70, 70, 80]


@pytest.mark.parametrize("columns", [80, 120])
def test_a_table_fits_its_terminal(
    columns: int, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert called(project, "jobs") == 0
    lines = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    assert max(map(len, lines)) <= columns
    assert ("kind" in lines[1]) == (columns >= 100)


def test_a_teams_role_sees_its_own_namespace(project: Path, capsys: Capture) -> None:
    """It may not list across namespaces, and is told what it may not read."""
    (project / "forbidden").write_text(OTHER)
    assert called(project, "jobs") == 0
    output = capsys.readouterr().out
    assert "train-a" in output
    assert "train-b" not in output.replace("preempted by", "")
    assert f"Not readable by you: {OTHER}" in output
    assert "by a job of queue hyperpod-ns-team-b-clusterqueue" in output
    assert called(project, "why", "train-a") == 0
    output = capsys.readouterr().out
    assert "not readable" in output
    assert "team-a has 4 GPUs left of its guarantee, and would have to borrow 4 GPUs." in output


def test_the_runner_in_the_vpc_answers_the_same(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """Where no way leads to the API: each question is a build, whose log brings the answer."""
    (project / "logs/experiment-b-worker-1").write_text("[default1]:five\n")
    lines: list[str] = []

    def runner(_account: Any, _environment: Any, command: str, write: Callable[[str], None]) -> int:
        lines.append(command)
        # The program drops the two words of a kubeconfig, which the runner has of its own.
        path = f"{project}/vpc:{os.environ['PATH']}"
        done = subprocess.run(["bash", "-c", command], env=os.environ | {"PATH": path}, capture_output=True, text=True)
        for line in done.stdout.splitlines():
            write(line)
        return done.returncode

    (project / "vpc").mkdir()
    (project / "vpc/kubectl").write_text(f'#!/bin/sh\nexec {project}/kubectl --kubeconfig x "$@"\n')
    (project / "vpc/kubectl").chmod(0o755)
    account = SimpleNamespace(endpoint=None)
    monkeypatch.setattr("podwright.operations.jobs.reach.account_for", lambda *_: account)
    monkeypatch.setattr(in_vpc, "way", lambda *_: None)
    monkeypatch.setattr(in_vpc, "run_in_vpc", runner)
    options = ["--project", str(project)]
    assert main(["jobs", "two-teams", *options]) == 0
    assert "preempted by train-b: lacks 8 GPUs" in capsys.readouterr().out
    assert len(lines) == 2, "each build takes a minute"
    assert main(["why", "two-teams", "train-a", *options]) == 0
    assert "Of 8 GPUs 0 GPUs are idle." in capsys.readouterr().out
    for words in ([], ["--follow"]):
        assert main(["logs", "two-teams", "experiment-b", "--rank", "5", *words, *options]) == 0
        assert capsys.readouterr().out == "[default1]:five\n"
    assert main(["stop", "two-teams", "experiment-b", *options]) == 0
    assert calls(project)[-1]["words"][0] == "delete"
    assert max(map(len, lines)) < 5500, "CodeBuild takes no more"


def test_jobs_that_ended_are_listed_on_request(project: Path, change: Change, capsys: Capture) -> None:
    def ended(items: list[Any]) -> None:
        one(items, "PyTorchJob", "train-a")["status"] = {"conditions": [{"type": "Succeeded", "status": "True"}]}

    change(ended)
    assert called(project, "jobs", "--team", "team-a") == 0
    assert "No jobs wait or run on two-teams. --all lists" in capsys.readouterr().out
    assert called(project, "jobs", "--team", "team-a", "--all") == 0
    assert "succeeded" in capsys.readouterr().out


def test_why_a_job_of_another_team_had_to_go(project: Path, capsys: Capture) -> None:
    assert called(project, "why", "train-a") == 0
    output = capsys.readouterr().out
    assert output.startswith("train-a of team-a is preempted: lacks 8 GPUs of ml.g5.12xlarge\n")
    assert "1 of 1 that wait in hyperpod-ns-team-a-localqueue" in output
    assert "by train-b of team-b: that team took back what it is guaranteed (InCohortReclamation)" in output
    assert "ml.g5.12xlarge  8 GPUs      4 GPUs   8 GPUs  0 GPUs       8 GPUs  0 GPUs" in output
    assert "Of 8 GPUs 0 GPUs are idle." in output
    assert "PyTorchJob/train-a CreatedWorkload: Created Workload" in output
    assert "UID" not in output
    assert output.endswith(f"To take it back:  podwright stop two-teams train-a --kubeconfig {project}/kubectl\n")


def test_why_a_job_had_to_go_for_one_of_its_own_team(project: Path, capsys: Capture) -> None:
    assert called(project, "why", "train-b", "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["preemption"] | {"time": ""} == {
        "by": "experiment-b", "team": "team-b", "queue": "hyperpod-ns-team-b-clusterqueue", "reason": "InClusterQueue",
        "time": "",
    }  # fmt: skip
    (gpus,) = answer["quota"]
    assert (gpus["asks"], gpus["guaranteed"], gpus["most"], gpus["holds"], gpus["others"]) == (4, 4, 8, 8, 0)
    assert answer["queue_position"] == {"position": 1, "waiting": 1, "before": []}
    assert "couldn't assign flavors" in answer["kueue"][0]


def test_a_queue_is_in_the_order_of_priority_and_time(project: Path, change: Change, capsys: Capture) -> None:
    """A job that waits behind one of a higher priority and an older one is third, wherever it stands in the list."""

    def queued(items: list[Any]) -> None:
        waiting = one(items, "Workload", "train-b")
        job = one(items, "PyTorchJob", "train-b")
        for name, priority, created in (("older", 70, "2026-11-20T00:00:00Z"), ("higher", 90, "2099-01-01T00:00:00Z")):
            uid = {"uid": f"uid-{name}", "name": name, "namespace": OTHER, "creationTimestamp": created}
            items.append(job | {"metadata": uid})
            metadata = uid | {
                "uid": f"workload-{name}",
                "ownerReferences": [{"uid": f"uid-{name}", "controller": True}],
            }
            items.append(waiting | {"metadata": metadata, "spec": waiting["spec"] | {"priority": priority}})

    change(queued)
    assert called(project, "why", "train-b") == 0
    output = capsys.readouterr().out
    assert "3 of 3 that wait in hyperpod-ns-team-b-localqueue" in output
    assert "before it: higher (priority 90), older (priority 70)" in output


def test_a_pod_that_cannot_start_is_named(project: Path, change: Change, capsys: Capture) -> None:
    def stuck(items: list[Any]) -> None:
        waiting = {"reason": "ImagePullBackOff", "message": "Back-off pulling image trainer:1.0"}
        pod = one(items, "Pod", "experiment-b-worker-1")
        pod["status"] |= {"phase": "Pending", "containerStatuses": [{"name": "pytorch", "state": {"waiting": waiting}}]}

    change(stuck)
    assert called(project, "jobs") == 0
    assert "stuck" in capsys.readouterr().out
    assert called(project, "why", "experiment-b") == 0
    output = capsys.readouterr().out
    assert "experiment-b-worker-1: ImagePullBackOff: Back-off pulling image trainer:1.0" in output
    assert output.endswith(f"Its log:          podwright logs two-teams experiment-b --kubeconfig {project}/kubectl\n")


def test_the_log_of_a_rank_is_that_of_its_pod(project: Path, capsys: Capture) -> None:
    (project / "logs/experiment-b-worker-0").write_text("first\n")
    (project / "logs/experiment-b-worker-1").write_text("[default0]:four\n[default1]:five\nall\n")
    assert called(project, "logs", "experiment-b") == 0
    assert capsys.readouterr().out == "first\n"
    assert called(project, "logs", "experiment-b", "--rank", "5") == 0
    assert capsys.readouterr().out == "[default1]:five\nall\n"
    assert called(project, "logs", "experiment-b", "--rank", "5", "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["pod"], answer["lines"]) == ("experiment-b-worker-1", ["[default1]:five", "all"])
    assert called(project, "logs", "experiment-b", "--rank", "8") == 2
    assert "its 2 pods have ranks 0 to 7" in capsys.readouterr().err


def test_following_hands_kubectl_over(project: Path, capsys: Capture) -> None:
    (project / "logs/experiment-b-worker-0").write_text("step 1\n")
    assert called(project, "logs", "experiment-b", "--follow", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"pod": "experiment-b-worker-0", "line": "step 1"}
    assert "--follow" in calls(project)[-1]["words"]


def test_a_job_without_pods_or_logs_says_why(project: Path, capsys: Capture) -> None:
    assert called(project, "logs", "train-a") == 1
    assert "train-a has no pods; it is preempted: lacks 8 GPUs" in capsys.readouterr().err
    assert called(project, "logs", "experiment-b") == 1
    assert "experiment-b-worker-0 has no log: Error from server (BadRequest)" in capsys.readouterr().err


def test_the_slowest_rank_is_named_with_its_node(project: Path, capsys: Capture) -> None:
    for pod, times in (
        ("experiment-b-worker-0", (1.0, 1.1, 1.0, 1.0)),
        ("experiment-b-worker-1", (1.0, 1.0, 1.6, 1.0)),
    ):
        lines = [f"[default{local}]:step 7 step_time: {seconds} s" for local, seconds in enumerate(times)] * 3
        (project / "logs" / pod).write_text("\n".join(lines) + "\n")
    assert called(project, "logs", "experiment-b", "--slowest") == 0
    output = capsys.readouterr().out
    assert "Rank 6 is the slowest: 1.6 s a step, 60 % over the median of 8 ranks; it runs in " in output
    assert "experiment-b-worker-1 on i-" in output
    assert called(project, "logs", "experiment-b", "--slowest", "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["slowest"]["rank"], len(answer["ranks"])) == (6, 8)


def test_a_job_that_logs_no_step_times_is_told_the_forms(project: Path, capsys: Capture) -> None:
    (project / "logs/experiment-b-worker-0").write_text("loss 0.1\n")
    assert called(project, "logs", "experiment-b", "--slowest") == 0
    messages = capsys.readouterr()
    assert "logs no step times that podwright knows: `step_time: 1.2 s`" in messages.out
    assert "experiment-b-worker-1 has no log" in messages.err


def test_stopping_deletes_the_job_alone(project: Path, capsys: Capture) -> None:
    assert called(project, "stop", "experiment-b") == 0
    output = capsys.readouterr().out
    assert "Stopped PyTorchJob experiment-b, which was running; 2 pods have 30 s to end." in output
    assert "To start it again: podwright submit two-teams experiment-b" in output
    last = calls(project)[-1]
    (item,) = json.loads(last["input"])["items"]
    assert last["words"] == ["delete", "--filename=-", "--ignore-not-found", "--wait=false"]
    assert (item["kind"], item["metadata"]) == ("PyTorchJob", {"name": "experiment-b", "namespace": OTHER})


def test_a_job_is_looked_for_only_in_its_teams_namespace(project: Path) -> None:
    assert called(project, "stop", "train-a", "--json") == 0
    reads = [call["words"] for call in calls(project) if call["words"][0] == "get"]
    assert [words[-1] for words in reads] == [f"--namespace={OWN}"]


@pytest.mark.parametrize("verb", ["why", "logs", "stop"])
def test_an_unknown_job_or_team_says_what_there_is(verb: str, project: Path, change: Change, capsys: Capture) -> None:
    assert called(project, verb, "train-c") == 1
    assert "the cluster of two-teams has no job train-c" in capsys.readouterr().err
    assert called(project, verb, "train-a", "--team", "team-c") == 2
    assert "two-teams has no team team-c\n    → known: team-a, team-b" in capsys.readouterr().err
    change(lambda items: items.remove(one(items, "PyTorchJob", "train-a")))
    assert called(project, verb, "train-a") == 1
    assert "`podwright submit two-teams train-a` hands it over" in capsys.readouterr().err


def test_jobs_of_one_name_are_told_apart_by_team(project: Path, change: Change, capsys: Capture) -> None:
    def twice(items: list[Any]) -> None:
        job = one(items, "PyTorchJob", "train-b")
        metadata = job["metadata"] | {"name": "sweep", "uid": "uid-other"}
        items.append(job | {"metadata": metadata})
        items.append(job | {"metadata": metadata | {"namespace": OWN, "uid": "uid-own"}})

    change(twice)
    assert called(project, "stop", "sweep") == 2
    assert "2 jobs are called sweep, of team-a, team-b\n    → say which with --team" in capsys.readouterr().err
    assert called(project, "stop", "sweep", "--team", "team-a") == 0


def test_what_kubernetes_does_not_answer_is_no_empty_list(project: Path, capsys: Capture) -> None:
    (project / "kubectl").write_text("#!/bin/sh\necho 'connection refused' >&2; exit 1\n")
    assert called(project, "jobs") == 1
    assert "Kubernetes does not show jobs: connection refused" in capsys.readouterr().err
    missing = ["jobs", "two-teams", "--kubeconfig", "absent", "--project", str(project)]
    assert main(missing) == 2
    assert "--kubeconfig absent is not a file" in capsys.readouterr().err
