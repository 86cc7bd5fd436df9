"""Launchers in the commands of jobs: what podwright takes off, keeps and refuses."""

import pytest

from job_environment import rendered, with_jobs
from podwright.config.findings import Finding
from podwright.planning.jobs.launcher import launch_of, started_by_launcher
from podwright.planning.rules.run import findings


@pytest.mark.parametrize(
    ("command", "retained", "script"),
    [
        ("train.py --nnodes 4", "", "train.py --nnodes 4"),
        ("torchrun train.py", "", "train.py"),
        ("/opt/conda/bin/torchrun --nproc_per_node=8 --nnodes 4 train.py --lr 1", "", "train.py --lr 1"),
        ("hyperpodrun --rdzv-backend=hyperpod --shutdown-timeout=60 train.py", "--shutdown-timeout=60", "train.py"),
        ("hyperpodrun --pre-train-script pre.sh train.py", "--pre-train-script pre.sh", "train.py"),
        ("python3 -m torch.distributed.run --node_rank 1 --tee 3 train.py", "--tee 3", "train.py"),
        ("/usr/bin/python3.11 -u -m torch.distributed.run --rdzv_id=7 train.py", "", "train.py"),
        ("torchrun --master_addr=a --master-port 1 -r 3 -m pkg.train --x", "-r 3 -m", "pkg.train --x"),
        ("torchrun --nproc 8 --max-r 3 train.py", "--max-r 3", "train.py"),
        ("torchrun --standalone -- train.py", "", "train.py"),
        ("python -u train.py", "", "train.py"),
        ("python -m pkg.train", "-m", "pkg.train"),
        ("python -c pass", "", "python -c pass"),
        ("bash train.sh", "", "bash train.sh"),
    ],
)
def test_a_launcher_loses_the_arguments_that_podwright_sets(command: str, retained: str, script: str) -> None:
    started = started_by_launcher(command.split())
    assert (started.retained, started.script) == (tuple(retained.split()), tuple(script.split()))


def test_its_arguments_are_known_by_name_and_value() -> None:
    launch = launch_of(["torchrun", "--nnodes=1:4", "--nproc_per_node", "8", "--rdzv-id=x", "t.py"])
    assert launch
    assert (launch.launcher, launch.dropped) == ("torchrun", {"nnodes": "1:4", "nproc-per-node": "8", "rdzv-id": "x"})
    assert launch_of(["python", "train.py"]) is None
    assert launch_of([]) is None


def args(*command: str, **job: object) -> list[str]:
    (manifest,) = rendered("hyperpod_pytorch", command=list(command), **job)
    (container,) = manifest["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"]
    return [*container["command"], *container["args"]]


def test_hyperpodrun_starts_the_script_of_a_command_that_was_taken_over() -> None:
    own = args("train.py", "--lr", "1")
    assert own[0] == "hyperpodrun"
    assert args("torchrun", "--nproc_per_node=8", "--nnodes=1", "train.py", "--lr", "1") == own
    assert args("hyperpodrun", "--max-restarts=2", "train.py") == [*own[:-3], "--max-restarts=2", "train.py"]
    image = rendered("hyperpod_pytorch", command=["hyperpodrun", "train.py"], launch="image")
    (container,) = image[-1]["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"]
    assert container["command"] == ["hyperpodrun", "train.py"]


def found(rule: str, **job: object) -> list[Finding]:
    platform = {"platform": {"cert_manager": {}, "training_operator": {}, "kubeflow_trainer": {}}}
    return [item for item in findings(with_jobs({"job": job}, **platform)) if item.id == rule]


@pytest.mark.parametrize(
    "command",
    [
        ["bash", "-c", "torchrun train.py"],
        ["/bin/sh", "train.sh"],
        ["torchrun", "bash", "train.sh"],
        ["accelerate", "launch", "train.py"],
        ["python", "-c", "import train"],
        ["torchrun", "--nnodes=1"],
        ["bash", "--no-python"],
    ],
)
def test_a_command_that_hyperpodrun_cannot_start_is_refused(command: list[str]) -> None:
    (finding,) = found("JOB041", kind="hyperpod_pytorch", command=command)
    assert finding.path == "jobs.job.command"
    assert "[train.py" in finding.hint


def test_hyperpodrun_needs_a_script() -> None:
    (finding,) = found("JOB041", kind="hyperpod_pytorch")
    assert finding.message == "there is no command, so hyperpodrun has no script to start"
    assert "command: [train.py" in finding.hint
    assert found("JOB041", kind="hyperpod_pytorch", launch="image") == []


@pytest.mark.parametrize(
    "job",
    [
        {"command": ["torchrun", "--no-python", "train.sh"]},
        {"command": ["bash", "train.sh"], "hyperpodrun_args": ["--no-python"]},
        {"command": ["bash", "-c", "hyperpodrun train.py"], "launch": "image"},
        {"command": ["-m", "pkg.train"]},
    ],
)
def test_a_command_that_hyperpodrun_can_start_is_not(job: dict[str, object]) -> None:
    assert found("JOB041", kind="hyperpod_pytorch", **job) == []


@pytest.mark.parametrize(
    ("job", "refused"),
    [
        ({"kind": "hyperpod_pytorch", "command": ["torchrun", "--nnodes=4", "t.py"], "nodes": 2}, 1),
        ({"kind": "hyperpod_pytorch", "command": ["torchrun", "--nproc_per_node=4", "t.py"]}, 1),
        (
            {
                "kind": "hyperpod_pytorch",
                "command": ["torchrun", "--nproc_per_node=4", "t.py"],
                "processes_per_node": 4,
            },
            0,
        ),
        ({"kind": "hyperpod_pytorch", "command": ["torchrun", "--nnodes=$(NODES)", "t.py"], "nodes": 2}, 0),
        ({"kind": "pytorch", "command": ["torchrun", "--nnodes", "1:4", "t.py"], "nodes": 2}, 1),
        ({"kind": "pytorch", "command": ["torchrun", "--nnodes", "2:2", "--nproc-per-node=4", "t.py"], "nodes": 2}, 0),
        ({"kind": "train", "command": ["torchrun", "--nnodes=4", "t.py"], "nodes": 2}, 1),
        ({"kind": "jobset", "command": ["torchrun", "--nnodes=4", "t.py"], "nodes": 4, "slices": 2}, 1),
        ({"kind": "jobset", "command": ["torchrun", "--nnodes=2", "t.py"], "nodes": 4, "slices": 2}, 0),
        ({"kind": "job", "command": ["torchrun", "--nnodes=2", "t.py"], "nodes": 4}, 0),
    ],
)
def test_arguments_that_contradict_the_job_are_refused(job: dict[str, object], refused: int) -> None:
    assert len(found("JOB042", **job)) == refused


@pytest.mark.parametrize(
    ("job", "refused"),
    [
        ({"command": ["torchrun", "t.py"], "nodes": 2}, 1),
        ({"command": ["torchrun", "t.py"]}, 0),
        ({"command": ["torchrun", "--nnodes=1", "t.py"], "nodes": 2}, 0),
        ({"command": ["python", "t.py"], "nodes": 2}, 0),
    ],
)
def test_torchrun_in_several_pods_of_a_job_is_refused(job: dict[str, object], refused: int) -> None:
    assert len(found("JOB043", kind="job", **job)) == refused


@pytest.mark.parametrize(
    ("engine", "team", "refused"), [("kueue", "llm", 1), ("hyperpod", "llm", 1), ("kai", "llm", 0)]
)
def test_an_elastic_pytorch_job_in_a_queue_of_kueue_is_refused(engine: str, team: str, refused: int) -> None:
    job = {"kind": "pytorch", "team": team, "elastic": {"min_replicas": 2, "max_replicas": 4}}
    environment = with_jobs({"job": job}, governance={"engine": engine})
    assert len([item for item in findings(environment) if item.id == "JOB044"]) == refused


def test_restarts_are_counted_for_each_pod_and_a_variable_of_the_job_wins() -> None:
    (job,) = rendered("pytorch", nodes=4, retries=3, env={"PET_NODE_RANK": "7"})
    assert job["spec"]["runPolicy"]["backoffLimit"] == 12
    (container,) = job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    assert [each for each in container["env"] if each["name"] == "PET_NODE_RANK"] == [
        {"name": "PET_NODE_RANK", "value": "7"}
    ]


def test_an_elastic_pytorch_job_starts_with_the_most_workers() -> None:
    elastic = {"elastic": {"min_replicas": 2, "max_replicas": 4}, "overrides": {"governance": {"engine": "kai"}}}
    (most,) = rendered("pytorch", **elastic)
    (fewer,) = rendered("pytorch", **elastic, nodes=3)
    assert [each["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] for each in (most, fewer)] == [4, 3]
