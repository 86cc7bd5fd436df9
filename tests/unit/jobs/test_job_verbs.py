"""`podwright jobs`, `why`, `logs` and `stop` on a recorded cluster: that of docs/scenarios/two-teams.md.

Team B has taken its node back from `train-a`, and then its own `train-b` made room for `experiment-b`. The objects are
as kubectl gave them, from Kueue 0.19.2 and the training operator of the sandbox's control plane.
"""

import json
import os
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from podwright.config.catalog.instance_types import environment_types
from podwright.config.loading.load import load_environment
from podwright.operations.cli import main
from podwright.operations.jobs.cluster_jobs import pod_rank
from podwright.operations.jobs.resources import of_pod
from podwright.operations.kubernetes import in_vpc
from podwright.operations.kubernetes import kubectl as kubectl_module
from podwright.operations.simulation.policies import policy_of
from podwright.planning.kubernetes.durations import go_seconds
from screens import screen

OWN, OTHER = "hyperpod-ns-team-a", "hyperpod-ns-team-b"

Change = Callable[[Callable[[list[Any]], None]], None]


@pytest.fixture
def project(recorded: Callable[[str], Path]) -> Path:
    """A project with the scenario's file, and a kubectl that answers from the record."""
    return recorded("two-teams")


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


def test_jobs_are_counted_by_priority_class(project: Path, capsys: Capture, change: Change) -> None:
    assert called(project, "jobs", "--by-priority", "--json") == 0
    result = json.loads(capsys.readouterr().out)
    counted = {each["class"]: each for each in result["classes"]}
    assert [each["priority"] for each in result["classes"]] == sorted(
        (each["priority"] for each in result["classes"]), reverse=True
    )
    for name, each in counted.items():
        jobs = [job for job in result["jobs"] if job["priority_class"] == name]
        assert each["pending"] + each["running"] + each["preempted"] == len(jobs)
        assert each["preempted"] == sum(job["state"] == "preempted" for job in jobs)
        assert each["oldest"] == min(job["created"] for job in jobs)
    assert called(project, "jobs", "--by-priority") == 0
    output = capsys.readouterr().out
    assert all(name in output for name in counted)

    # Without Kueue the class is that of the pods.
    def by_pods(items: list[Any]) -> None:
        items[:] = [item for item in items if item["kind"] != "Workload"]
        for item in items:
            if item["kind"] == "Pod":
                item["spec"] |= {"priorityClassName": "training-70", "priority": 70}

    change(by_pods)
    assert called(project, "jobs", "--by-priority", "--json") == 0
    classes = json.loads(capsys.readouterr().out)["classes"]
    assert ("training-70", 70) in [(each["class"], each["priority"]) for each in classes]


def test_jobs_are_listed_with_state_queue_and_reason(project: Path, capsys: Capture) -> None:
    assert called(project, "jobs") == 0
    rows = [line.split(maxsplit=7) for line in capsys.readouterr().out.splitlines()[2:]]
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


def test_a_job_holds_what_kueue_has_reserved_and_asks_for_all(project: Path, capsys: Capture) -> None:
    assert called(project, "jobs", "--json") == 0
    waiting, _, running = json.loads(capsys.readouterr().out)["jobs"]
    assert (waiting["holds"], waiting["size"]) == ({}, {"pods": 0, "least": 2, "most": 2})
    assert (waiting["asks"]["cpu"], waiting["asks"]["nvidia.com/gpu"]) == (88, 8)
    assert (running["holds"]["cpu"], running["holds"]["nvidia.com/gpu"]) == (88, 8)
    assert running["holds"] == running["asks"]
    (part,) = running["parts"]
    assert (part["priority_class"], part["has_quota"], part["accelerators"]) == ("experimentation-priority", True, 8)
    assert called(project, "jobs") == 0
    output = capsys.readouterr().out
    assert "size" not in output.splitlines()[1], "no job has several sizes"
    assert "0 of 88" in output


def test_jobs_of_the_cluster_itself_are_nobodys_work(project: Path, capsys: Capture, change: Change) -> None:
    def add(items: list[Any]) -> None:
        made = {"uid": "1", "name": "podwright-lustre-folders-0123456789", "creationTimestamp": "2026-11-25T10:00:00Z"}
        for number, namespace in enumerate(("kube-system", "default")):
            metadata = made | {"namespace": namespace, "uid": f"own-{number}"}
            items.append({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {}, "status": {}})

    change(add)
    assert called(project, "jobs", "--all", "--json") == 0
    namespaces = [job["namespace"] for job in json.loads(capsys.readouterr().out)["jobs"]]
    assert "kube-system" not in namespaces
    assert "default" in namespaces


def test_a_narrow_terminal_has_no_column_of_kinds(project: Path) -> None:
    with screen(120) as wide:
        assert called(project, "jobs") == 0
    assert "kind" in wide.getvalue().splitlines()[1]
    with screen(70) as narrow:
        assert called(project, "jobs") == 0
    assert "Not shown in a width of 70: kind" in narrow.getvalue()


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
    rows = [line.split() for line in output.splitlines() if line.startswith("  ml.g5.12xlarge")]
    assert [" ".join(row[1:]) for row in rows] == [
        "8 GPUs 4 GPUs 8 GPUs 0 GPUs 8 GPUs 0 GPUs",
        "88 vCPUs 48 vCPUs 96 vCPUs 0 vCPUs 88 vCPUs 8 vCPUs",
    ]
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
    keys = ("resource", "asks", "guaranteed", "most", "holds", "others")
    assert [tuple(map(each.get, keys)) for each in answer["quota"]] == [
        ("nvidia.com/gpu", 4, 4, 8, 8, 0),
        ("cpu", 44, 48, 96, 88, 0),
    ]
    assert answer["queue_position"] == {"position": 1, "waiting": 1, "before": []}
    assert "couldn't assign flavors" in answer["kueue"][0]


def complete(project: Path, items: list[Any]) -> None:
    """With the queues and the nodes of the environment."""
    environment = load_environment(project / "environments/two-teams.yaml").environment
    chosen = policy_of(environment, environment_types(environment.instance_types)).objects
    items[:] = [item for item in items if item["kind"] != "LocalQueue"] + [*chosen]
    names = iter(sorted({item["spec"]["nodeName"] for item in items if item["kind"] == "Pod"}))
    for number, item in enumerate(items):
        item["metadata"].setdefault("uid", f"uid-{number}")
        labels = item["metadata"].get("labels") or {}
        if item["kind"] == "Node" and labels["sagemaker.amazonaws.com/instance-group-name"] == "training":
            item["metadata"] |= {"name": next(names)}
            labels["kubernetes.io/hostname"] = item["metadata"]["name"]


def test_why_says_when_it_would_start(project: Path, change: Change, capsys: Capture) -> None:
    """Team B runs on all nodes, for the four hours that work runs of which nothing is known."""

    assert called(project, "why", "train-a", "--json") == 0
    assert "it has no ClusterQueue" in json.loads(capsys.readouterr().out)["forecast"]["unknown"]
    change(partial(complete, project))
    assert called(project, "why", "train-a", "--json") == 0
    answer = json.loads(capsys.readouterr().out)["forecast"]
    # First team B takes the half that it is guaranteed, and train-a asks for all; failures of nodes take seconds.
    assert answer["starts_in"] == pytest.approx(8 * 3600 + 1, abs=10)
    assert (answer["job"], answer["flavor"]) == ("train-a", "ml.g5.12xlarge")
    assert "no other job is submitted from now on" in answer["assumptions"]
    assert called(project, "why", "train-b") == 0
    assert "train-b of team-b starts in 4.0 h on ml.g5.12xlarge, and ends in 8.0 h" in capsys.readouterr().out
    (project / "forbidden").write_text(OTHER)
    assert called(project, "why", "train-a") == 0
    assert "unknown: it takes the nodes and the queues of all teams, and kubectl says: Error" in capsys.readouterr().out


def test_why_says_when_a_job_that_runs_grows(project: Path, change: Change, capsys: Capture) -> None:
    def grow(items: list[Any]) -> None:
        complete(project, items)
        before = one(items, "Workload", "experiment-b")
        metadata = before["metadata"] | {"name": "larger", "uid": "uid-larger"}
        key = f"{OTHER}/{before['metadata']['name']}"
        metadata["annotations"] = {"kueue.x-k8s.io/workload-slice-replacement-for": key}
        pods = before["spec"]["podSets"][0]
        spec = before["spec"] | {"podSets": [pods | {"count": 3}]}
        items.append(before | {"metadata": metadata, "spec": spec, "status": {}})

    change(grow)
    assert called(project, "why", "experiment-b") == 0
    output = capsys.readouterr().out
    assert output.startswith("experiment-b of team-b runs at 2 of 3, could grow to 3 when 4 GPUs are free\n")
    assert "2 of 2 pods run, 8 of 12 GPUs, 88 of 132 vCPUs" in output, "slices of one job are not added up"
    # Of three pods of four GPUs its team can never hold more than two.
    assert "larger of team-b does not start: the elastic job of which it is a slice has ended" in output


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


@pytest.mark.parametrize(
    ("count", "reason"), [(2, "lacks 8 GPUs of ml.g5.12xlarge"), (1, "Kueue has not said anything yet")]
)
def test_kueues_verdict_holds_for_equal_jobs(
    count: int, reason: str, project: Path, change: Change, capsys: Capture
) -> None:
    """Kueue passes by what equals a job without room, and says nothing of it."""

    def another(items: list[Any]) -> None:
        job, waiting = (one(items, kind, "train-a") for kind in ("PyTorchJob", "Workload"))
        named = {"uid": "uid-twin", "name": "twin", "namespace": OWN, "creationTimestamp": "2099-01-01T00:00:00Z"}
        items.append(job | {"metadata": named})
        spec = waiting["spec"] | {"podSets": [part | {"count": count} for part in waiting["spec"]["podSets"]]}
        metadata = named | {"uid": "workload-twin", "ownerReferences": [{"uid": "uid-twin", "controller": True}]}
        items.append(waiting | {"metadata": metadata, "spec": spec, "status": {}})

    change(another)
    assert called(project, "why", "twin") == 0
    assert capsys.readouterr().out.startswith(f"twin of team-a is waiting: {reason}\n")


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


PULLED = 'Successfully pulled image "trainer:1.0" in {} ({} including waiting). Image size: 14000000000 bytes.'


@pytest.mark.parametrize(
    ("engine", "timeout", "words"),
    [
        ("kueue", 600, "that is 84% of the 600 s in which Kueue wants all pods ready"),
        ("kueue", 500, "Kueue wants all pods ready within 500 s, so a job on a node without the image"),
        ("hyperpod", None, ""),
    ],
)
def test_the_slowest_pull_is_held_against_the_time_to_get_ready(
    project: Path, change: Change, capsys: Capture, engine: str, timeout: int | None, words: str
) -> None:
    """By the kubelet's own words; the one pod's node has pulled, and the other's had the image."""
    messages = [PULLED.format("7m1.5s", "8m23.7s"), 'Container image "trainer:1.0" already present on machine']

    def pulled(items: list[Any]) -> None:
        for number, message in enumerate(messages):
            pod = one(items, "Pod", f"experiment-b-worker-{number}")
            about = {"kind": "Pod", "name": pod["metadata"]["name"]}
            position = {"name": f"pull-{number}", "namespace": OTHER, "uid": f"pull-{number}"}
            event = {"apiVersion": "v1", "kind": "Event", "metadata": position, "involvedObject": about}
            items.append(event | {"reason": "Pulled", "message": message, "lastTimestamp": "2026-11-25T17:50:00Z"})

    change(pulled)
    if timeout:
        file = project / "environments/two-teams.yaml"
        wait = f"governance:\n  engine: {engine}\n  wait_for_pods: {{timeout_seconds: {timeout}}}\n"
        file.write_text(file.read_text().replace("governance:\n", wait))
    assert called(project, "why", "experiment-b", "--json") == 0
    answer = json.loads(capsys.readouterr().out)["image_pulls"]
    assert answer["ready_within_seconds"] == timeout
    assert [(pull["pod"][-1], round(pull["seconds"], 1)) for pull in answer["pulls"]] == [("0", 503.7), ("1", 0.0)]
    assert called(project, "why", "experiment-b") == 0
    output = capsys.readouterr().out
    assert "1 of 2 images were on their node already" in output
    assert "the slowest pull took 504 s (28 MB/s): trainer:1.0 for experiment-b-worker-0" in output
    assert words in " ".join(output.split())
    assert ("Kueue wants" in output) == bool(timeout)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("623.5ms", 0.6235), ("1.5s", 1.5), ("5m34s", 334), ("1h0m2.5s", 3602.5), ("17m31.526306107s", 1051.526306107)],
)
def test_durations_are_read_as_go_writes_them(text: str, expected: float) -> None:
    assert go_seconds(text) == pytest.approx(expected)


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
    [log] = [call["words"] for call in calls(project) if call["words"][0] == "logs"]
    assert "--follow" in log


def test_a_job_without_pods_or_logs_says_why(project: Path, capsys: Capture) -> None:
    assert called(project, "logs", "train-a") == 1
    assert "train-a has no pods; it is preempted: lacks 8 GPUs" in capsys.readouterr().err
    assert called(project, "logs", "experiment-b") == 1
    assert "experiment-b-worker-0 has no log: Error from server (BadRequest)" in capsys.readouterr().err


FIRST = "experiment-b-worker-0"
NO_PROGRAM = 'failed to create containerd task: exec: "torchrun": executable file not found in $PATH: unknown'
ENDED = {"terminated": {"exitCode": 1, "reason": "Error"}}


def with_state(
    state: dict[str, Any], last: dict[str, Any] | None = None, restarts: int = 0, init: dict[str, Any] | None = None
) -> Callable[[list[Any]], None]:
    """An edit that gives the container of the first pod a state, its last one, and that of an init container."""

    def edit(items: list[Any]) -> None:
        status = one(items, "Pod", FIRST)["status"]
        own = {"name": "pytorch", "state": state, "lastState": last or {}, "restartCount": restarts}
        status["containerStatuses"] = [own]
        status["initContainerStatuses"] = [{"name": "fetch", "state": init, "restartCount": 0}] if init else []

    return edit


@pytest.mark.parametrize(
    ("state", "last", "restarts", "words"),
    [
        (
            {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "trainer:2"'}},
            None,
            0,
            ['pytorch does not run: ImagePullBackOff: Back-off pulling image "trainer:2"', "`kubectl describe pod`"],
        ),
        (
            {"waiting": {"reason": "CreateContainerConfigError", "message": 'secret "hub" not found'}},
            None,
            0,
            ['pytorch does not run: CreateContainerConfigError: secret "hub" not found'],
        ),
        (
            {"waiting": {"reason": "RunContainerError", "message": NO_PROGRAM}},
            None,
            0,
            [f"pytorch does not run: RunContainerError: {NO_PROGRAM}", "check its entry point"],
        ),
        (
            {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s restarting failed container"}},
            {"terminated": {"exitCode": 128, "reason": "StartError", "message": NO_PROGRAM}},
            3,
            ["it ended 4 times, last with exit code 128 (StartError)", NO_PROGRAM, "check its entry point"],
        ),
        (
            {"terminated": {"exitCode": 128, "reason": "StartError", "message": NO_PROGRAM}},
            None,
            0,
            [f"pytorch has ended with exit code 128 (StartError): {NO_PROGRAM}", "check its entry point"],
        ),
        ({"terminated": {"exitCode": 2, "reason": "Error"}}, None, 0, ["pytorch has ended with exit code 2"]),
    ],
)
def test_a_container_that_printed_nothing_says_why(
    project: Path,
    capsys: Capture,
    change: Change,
    state: dict[str, Any],
    last: dict[str, Any] | None,
    restarts: int,
    words: list[str],
) -> None:
    change(with_state(state, last, restarts))
    for log in ("without", "empty"):
        if log == "empty":
            (project / "logs" / FIRST).touch()
            (project / "logs" / f"{FIRST}.previous").touch()
        assert called(project, "logs", "experiment-b") == 1
        printed = " ".join(capsys.readouterr().err.split())
        assert [word for word in words if word not in printed] == [], printed
        assert "    →" in printed or "→" in printed


def test_a_restarted_container_has_the_log_before_its_restart(project: Path, capsys: Capture, change: Change) -> None:
    change(with_state({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s"}}, ENDED, 2))
    (project / "logs" / FIRST).touch()
    (project / "logs" / f"{FIRST}.previous").write_text("RuntimeError: size mismatch for weight\n")
    assert called(project, "logs", "experiment-b") == 0
    messages = capsys.readouterr()
    assert messages.out == "RuntimeError: size mismatch for weight\n"
    printed = " ".join(messages.err.split())
    assert "nothing since its last restart; before:" in printed
    assert "CrashLoopBackOff: back-off 40s; it ended 3 times, last with exit code 1 → The last lines" in printed
    # One that runs again prints its own lines, and says that it was restarted.
    change(with_state({"running": {}}, ENDED, 1))
    (project / "logs" / FIRST).write_text("step 1\n")
    assert called(project, "logs", "experiment-b") == 0
    messages = capsys.readouterr()
    assert messages.out == "step 1\n"
    assert "pytorch runs again: it was restarted once, last after exit code 1" in " ".join(messages.err.split())
    assert "`podwright why two-teams experiment-b" in " ".join(messages.err.split())


def test_a_failed_container_says_its_exit_code_after_its_log(project: Path, capsys: Capture, change: Change) -> None:
    change(with_state({"terminated": {"exitCode": 137, "reason": "OOMKilled"}}))
    (project / "logs" / FIRST).write_text("step 1\n")
    assert called(project, "logs", "experiment-b") == 0
    messages = capsys.readouterr()
    assert messages.out == "step 1\n"
    assert "exit code 137 (OOMKilled) → Raise the memory limit" in " ".join(messages.err.split())
    assert called(project, "logs", "experiment-b", "--json") == 0
    assert json.loads(capsys.readouterr().out)["state"] == "pytorch has ended with exit code 137 (OOMKilled)"


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"running": {}}, "it runs and has printed nothing yet; `podwright logs two-teams experiment-b --follow"),
        ({"terminated": {"exitCode": 0, "reason": "Completed"}}, "has ended with exit code 0, and printed nothing"),
    ],
)
def test_a_heading_is_never_alone(
    project: Path, capsys: Capture, change: Change, state: dict[str, Any], words: str
) -> None:
    change(with_state(state))
    (project / "logs" / FIRST).touch()
    assert called(project, "logs", "experiment-b") == 0
    assert words in " ".join(capsys.readouterr().err.split())


def test_a_container_that_waits_for_an_init_container_names_it(project: Path, capsys: Capture, change: Change) -> None:
    initializing = {"waiting": {"reason": "PodInitializing"}}
    change(with_state(initializing, init={"waiting": {"reason": "ErrImagePull", "message": "no such image"}}))
    assert called(project, "logs", "experiment-b") == 1
    assert "fetch does not run: ErrImagePull: no such image" in " ".join(capsys.readouterr().err.split())
    change(with_state({"running": {}}, init={"terminated": {"exitCode": 0, "reason": "Completed"}}))
    (project / "logs" / FIRST).write_text("step 1\n")
    assert called(project, "logs", "experiment-b") == 0
    assert "fetch" not in capsys.readouterr().err


def test_a_sidecar_that_was_restarted_hides_no_failure(project: Path, capsys: Capture, change: Change) -> None:
    """An init container that restarts always runs beside the others, which do not wait for it."""

    def with_sidecar(items: list[Any]) -> None:
        with_state(ENDED, init={"running": {}})(items)
        pod = one(items, "Pod", FIRST)
        pod["spec"]["initContainers"] = [{"name": "fetch", "restartPolicy": "Always"}]
        pod["status"]["initContainerStatuses"][0] |= {"lastState": ENDED, "restartCount": 1}

    change(with_sidecar)
    assert called(project, "logs", "experiment-b") == 1
    assert "pytorch has ended with exit code 1" in " ".join(capsys.readouterr().err.split())


def test_machines_get_the_same_exit_code(project: Path, capsys: Capture, change: Change) -> None:
    change(with_state(ENDED))
    (project / "logs" / FIRST).touch()
    assert called(project, "logs", "experiment-b", "--json") == 1
    assert json.loads(capsys.readouterr().out)["state"].startswith("pytorch has ended with exit code 1")
    (project / "logs" / FIRST).write_text("step 1\n")
    assert called(project, "logs", "experiment-b", "--json") == 0


def test_a_pod_requests_the_most_that_runs_at_a_time() -> None:
    def container(cpu: str, **more: Any) -> dict[str, Any]:
        return {"resources": {"requests": {"cpu": cpu}}, **more}

    sidecar = container("1", restartPolicy="Always")
    assert of_pod({"containers": [container("2"), container("3")]}) == {"cpu": 5000}
    assert of_pod({"containers": [container("2")], "initContainers": [container("4"), container("3")]}) == {"cpu": 4000}
    assert of_pod({"containers": [container("2")], "initContainers": [sidecar]}) == {"cpu": 3000}
    # The second init container runs beside the sidecar that was started before it.
    assert of_pod({"containers": [container("2")], "initContainers": [sidecar, container("4")]}) == {"cpu": 5000}
    assert of_pod({"containers": [container("2")], "initContainers": [container("4"), sidecar]}) == {"cpu": 4000}


def test_following_says_how_the_container_ended_meanwhile(
    project: Path, capsys: Capture, change: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "logs" / FIRST).write_text("step 1\n")
    stream = kubectl_module.Kubectl.stream

    def ends(*arguments: Any) -> None:
        stream(*arguments)
        change(with_state(ENDED))

    monkeypatch.setattr(kubectl_module.Kubectl, "stream", ends)
    assert called(project, "logs", "experiment-b", "--follow") == 0
    assert "pytorch has ended with exit code 1" in " ".join(capsys.readouterr().err.split())


def test_ranks_are_counted_by_the_launchers_own_number(project: Path, capsys: Capture, change: Change) -> None:
    def launched(items: list[Any]) -> None:
        for item in items:
            if item["kind"] == "Pod" and "experiment-b" in item["metadata"]["name"]:
                item["spec"]["containers"][0]["command"] = ["torchrun", "--nproc-per-node=1", "train.py"]

    change(launched)
    (project / "logs/experiment-b-worker-1").write_text("second\n")
    assert called(project, "logs", "experiment-b", "--rank", "1") == 0
    assert capsys.readouterr().out == "second\n"
    assert called(project, "logs", "experiment-b", "--rank", "2") == 2
    assert "its 2 pods have ranks 0 to 1" in capsys.readouterr().err


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


def test_why_says_that_the_budget_of_its_team_keeps_a_job(project: Path, change: Change, capsys: Capture) -> None:
    note = {
        "team": "team-a",
        "accelerator_hours": 1000,
        "used": 1012.5,
        "begin": "2026-11-01T00:00+00:00",
        "state": "reached",
        "held": True,
    }
    note |= {"at": "2026-11-26T12:05+00:00", "end": "2026-12-01T00:00+00:00"}

    def budgeted(items: list[Any]) -> None:
        own = [item for item in items if item["metadata"].get("namespace") == OWN]
        for item in own:
            if item["kind"] == "LocalQueue":
                item["metadata"]["annotations"] = {"podwright/budget": json.dumps(note)}
            if item["kind"] == "Workload":
                item["metadata"]["annotations"] = {"podwright/priority-before-budget": "75"}

    change(budgeted)
    assert called(project, "why", "train-a") == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert (
        "Budget of team-a 1,012.5 of 1,000 accelerator-hours of team-a are used, as was counted 2026-11-26" in printed
    )
    assert "its queue is held until 2026-12-01T00:00Z: nothing of team-a starts before" in printed
    assert "instead of 75 until 2026-12-01T00:00Z" in printed
    note["state"] = "near"
    change(budgeted)
    assert called(project, "why", "train-a", "--json") == 0
    assert "budget" not in json.loads(capsys.readouterr().out)


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


@pytest.mark.parametrize(
    ("part", "number", "name"),
    [
        ("jobset.sigs.k8s.io/job-index", "batch.kubernetes.io/job-completion-index", "train-node-{0}-{1}-abcde"),
        ("leaderworkerset.sigs.k8s.io/group-index", "leaderworkerset.sigs.k8s.io/worker-index", "serve-{0}-{1}"),
    ],
)
def test_ranks_go_on_from_one_part_of_a_job_to_the_next(part: str, number: str, name: str) -> None:
    positions = [(0, 0), (0, 1), (0, 10), (1, 0), (1, 2), (10, 0)]
    pods = [
        {"metadata": {"name": name.format(*position), "labels": {part: str(position[0]), number: str(position[1])}}}
        for position in positions
    ]
    mixed = [*pods[3:], *pods[:3]]
    assert sorted(mixed, key=pod_rank) == pods


def test_a_leader_is_the_first_of_its_group_although_its_name_has_the_groups_number() -> None:
    labels = {"leaderworkerset.sigs.k8s.io/group-index": "3"}
    worker = "leaderworkerset.sigs.k8s.io/worker-index"
    leader = {"metadata": {"name": "serve-3", "labels": labels | {worker: "0"}}}
    other = {"metadata": {"name": "serve-3-1", "labels": labels | {worker: "1"}}}
    assert sorted([other, leader], key=pod_rank) == [leader, other]
