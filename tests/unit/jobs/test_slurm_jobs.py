"""Jobs of Slurm: their scripts, and the commands about them on a login node that scripts stand in for."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from podwright.config.catalog.instance_types import environment_types
from podwright.config.loading.load import load_environment
from podwright.operations.aws.session import ClusterNode, NotConnected
from podwright.operations.cli import main
from podwright.operations.gates import slurm
from podwright.planning.jobs.batch_script import batch_script, container_image

ROOT = Path(__file__).resolve().parents[3]
IMAGE = "111122223333.dkr.ecr.us-west-2.amazonaws.com/llm:1"
JOBS = f"""
jobs:
  llama:
    {{kind: sbatch, team: research, group: h200, priority: training, image: "{IMAGE}", nodes: 4,
     command: [/opt/bin/torchrun, --nnodes=9, --max-restarts=2, train.py, --name, it's],
     env: {{NOTE: "a b"}}, folders: {{/scratch: /opt/dlami/nvme}}}}
  one: {{kind: sbatch, team: product, group: h200, image: /fsx/images/llm.sqsh, accelerators: 1, command: [nvidia-smi],
         borrow: true, time_limit_minutes: 90, auto_resume: false}}
"""
QUEUE = """\
7|llama|research|ann|RUNNING|training|4|gres/gpu:8|2026-11-25T10:00:00|100|None|2026-11-25T10:01:00
8|late|research|ann|PENDING|training|4|gres/gpu:8|2026-11-25T11:00:00|100|AssocGrpGRES|N/A
9|first|product_borrow|cy|PENDING|training|1|gres/gpu:8|2026-11-25T11:30:00|200|Resources|2026-11-26T03:00:00
10|odd|product|cy|NODE_FAIL|training|1|N/A|N/A|0|NodeDown|N/A
"""
TOOLS = {
    "sudo": '"$@"',
    "runuser": 'echo "$@" >> $LOG; cat > $SCRIPT; [[ -e $REFUSE ]] && { cat $REFUSE >&2; exit 1; }; echo 11',
    "squeue": 'echo squeue "$@" >> $LOG; cat $QUEUE',
    "scancel": 'echo scancel "$@" >> $LOG',
    "scontrol": 'echo "   StdOut=$SCRIPT"',
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "environments").mkdir()
    text = (ROOT / "environments/slurm-classic.yaml").read_text()
    (tmp_path / "environments/slurm-classic.yaml").write_text(text + JOBS)
    return tmp_path


@pytest.fixture
def login(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A login node whose sessions are processes of this machine; the folder of what it answers and was told."""
    for name, text in TOOLS.items():
        (project / name).write_text(f"#!/bin/bash\n{text}\n")
        (project / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{project}:{os.environ['PATH']}")
    for name in ("LOG", "SCRIPT", "REFUSE", "QUEUE"):
        monkeypatch.setenv(name, str(project / name.lower()))
    (project / "log").touch()
    (project / "queue").write_text(QUEUE)
    account = SimpleNamespace(endpoint=None)
    monkeypatch.setattr("podwright.operations.jobs.slurm_jobs.account_for", lambda *_: account)
    nodes = [ClusterNode("arn:cluster/abc", name, "i-1") for name in ("controller", "login", "h200")]
    monkeypatch.setattr(slurm, "session_nodes", lambda *_: nodes)

    def command(_: Any, node: ClusterNode, line: str) -> list[str]:
        assert node.group == "login"
        return ["bash", "-c", f"echo 'Starting session'; {line}; echo 'Exiting session'"]

    monkeypatch.setattr(slurm, "one_command", command)
    return project


Capture = pytest.CaptureFixture[str]


def called(project: Path, *words: str) -> int:
    return main([words[0], "slurm-classic", *words[1:], "--project", str(project)])


def script(project: Path, name: str) -> str:
    environment = load_environment(project / "environments/slurm-classic.yaml").environment
    return batch_script(environment, name, environment_types({}))


def options(text: str) -> list[str]:
    return [line.removeprefix("#SBATCH --") for line in text.splitlines() if line.startswith("#SBATCH")]


def test_account_qos_and_partition_follow_from_team_and_group(project: Path) -> None:
    assert options(script(project, "llama")) == [
        "job-name=llama", "account=research", "qos=research_training", "partition=training", "nodes=4",
        "ntasks-per-node=1", "gpus-per-node=8", "output=%x-%j.out", "exclusive",
    ]  # fmt: skip
    assert options(script(project, "one")) == [
        "job-name=one", "account=product_borrow", "partition=training", "nodes=1", "ntasks-per-node=1",
        "gpus-per-node=1", "time=90", "output=%x-%j.out",
    ]  # fmt: skip


def test_a_script_does_in_bash_what_its_job_says(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run with a srun that prints its arguments, one a line; the inner shell expands what the node knows."""
    (project / "srun").write_text('#!/bin/bash\nprintf "%s\\n" "$@"; [[ $* != *torchrun* ]] || bash -c "${@: -1}"\n')
    (project / "scontrol").write_text("#!/bin/bash\necho node-1; echo node-2\n")
    (project / "torchrun").write_text('#!/bin/bash\nprintf "<%s>\\n" "$@" "$NOTE"\n')
    for tool in ("srun", "scontrol", "torchrun"):
        (project / tool).chmod(0o755)
    environment = os.environ | {
        "PATH": f"{project}:{os.environ['PATH']}", "SLURM_JOB_NODELIST": "node-[1-2]", "SLURM_NNODES": "2",
    }  # fmt: skip
    (project / "job.sh").write_text(script(project, "llama"))
    done = subprocess.run(
        ["bash", str(project / "job.sh")], env=environment, capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert lines[0] == "--auto-resume=1"
    assert lines[1] == "--container-image=111122223333.dkr.ecr.us-west-2.amazonaws.com#llm:1"
    assert lines[2] == "--container-mounts=/fsx:/fsx,/home:/home,/opt/dlami/nvme:/scratch"
    notices = [line.strip("<>") for line in lines if line.startswith("<")]
    assert notices == [
        "--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=node-1:29500", "--nproc-per-node=8", "--max-restarts=2",
        "train.py", "--name", "it's", "a b",
    ]  # fmt: skip
    last = script(project, "one").splitlines()[-1]
    assert last == "srun --container-image=/fsx/images/llm.sqsh --container-mounts=/fsx:/fsx,/home:/home nvidia-smi"


@pytest.mark.parametrize(
    ("image", "expected"),
    [("nvcr.io/nvidia/pytorch:25.01-py3", "nvcr.io#nvidia/pytorch:25.01-py3"), ("ubuntu:24.04", "ubuntu:24.04"),
     ("nvidia/cuda:13", "nvidia/cuda:13"), ("localhost:5000/a", "localhost:5000#a"), ("/fsx/a.sqsh", "/fsx/a.sqsh")],
)  # fmt: skip
def test_images_are_named_as_enroot_takes_them(image: str, expected: str) -> None:
    assert container_image(image) == expected


def test_a_script_is_rendered_and_written(project: Path, capsys: Capture) -> None:
    assert main(["render", "jobs", "slurm-classic", "llama", "--project", str(project)]) == 0
    assert capsys.readouterr().out.startswith("# jobs/llama.sh\n---\n#!/bin/bash\n")


def test_a_script_is_handed_to_sbatch_as_a_user_of_the_team(login: Path, capsys: Capture) -> None:
    assert called(login, "submit", "llama", "--user", "bo", "--set", "nodes=2") == 0
    assert "--nodes=2" in (login / "script").read_text()
    assert (login / "log").read_text() == "-l bo -c sbatch --parsable\n"
    assert capsys.readouterr().out.startswith("Job 11 of bo\nWhere it stands:  podwright why slurm-classic llama\n")
    assert called(login, "submit", "one", "--dry-run") == 0
    assert "-l cy -c sbatch --test-only" in (login / "log").read_text(), "the team's only user"
    assert called(login, "submit", "llama") == 2
    assert "say as which user with --user" in capsys.readouterr().err
    assert called(login, "submit", "llama", "--user", "cy") == 2
    assert "cy is none of research's users\n    → known: ann, bo" in capsys.readouterr().err


def test_what_sbatch_refuses_is_said(login: Path, capsys: Capture) -> None:
    (login / "refuse").write_text("sbatch: error: Invalid qos specification\n")
    assert called(login, "submit", "llama", "--user", "ann") == 1
    assert "on i-1: sbatch: error: Invalid qos specification" in capsys.readouterr().err


def test_a_command_runs_on_slurm_too(login: Path) -> None:
    words = ["--team", "research", "--group", "h200", "--nodes", "2", "--user", "ann", "--image", "a:1"]
    assert called(login, "run", *words, "--", "torchrun", "train.py") == 0
    text = (login / "script").read_text()
    assert "#SBATCH --nodes=2" in text
    assert "torchrun --nnodes" in text


def test_the_queue_is_a_table_of_jobs(login: Path, capsys: Capture) -> None:
    assert called(login, "jobs", "--json") == 0
    running, late, first, failed = json.loads(capsys.readouterr().out)["jobs"]
    assert (running["state"], running["accelerators"], running["reason"]) == ("running", 32, "")
    assert (late["position"], late["reason"]) == ([2, 2], "its account uses all GPUs that it may")
    assert (first["position"], first["team"], first["account"]) == ([1, 2], "product", "product_borrow")
    assert (failed["state"], failed["reason"], failed["created"]) == ("failed", "node_fail", None)
    assert called(login, "jobs", "--team", "product") == 0
    assert "llama" not in capsys.readouterr().out


def test_why_logs_and_stop(login: Path, capsys: Capture) -> None:
    (login / "script").write_text("one\ntwo\nthree\n")
    assert called(login, "why", "first") == 0
    output = capsys.readouterr().out
    assert "first (9) of product_borrow is waiting: the nodes that it needs are not free yet" in output
    assert "1 of 2 that wait in the partition (Slurm says Resources)" in output
    assert "Slurm expects it to start at 2026-11-26T03:00:00" in output
    assert called(login, "logs", "llama", "--lines", "2") == 0
    assert capsys.readouterr().out == "two\nthree\n"
    assert called(login, "logs", "llama", "--previous") == 2
    assert "on Slurm a job has one output" in capsys.readouterr().err
    assert called(login, "stop", "llama") == 0
    assert "scancel 7\n" in (login / "log").read_text()
    assert "To start it again: podwright submit slurm-classic llama" in capsys.readouterr().out
    assert called(login, "stop", "nix") == 1
    assert "Slurm of slurm-classic has no job nix" in capsys.readouterr().err


RANKS = """\
setting up
[rank0] step_time: 1.0 s
[rank1] step_time: 2.0 s
[rank2] step_time: 1.0 s
"""


def test_the_output_of_a_rank(login: Path, capsys: Capture) -> None:
    (login / "script").write_text(RANKS)
    assert called(login, "logs", "llama", "--rank", "1") == 0
    assert capsys.readouterr().out == "setting up\n[rank1] step_time: 2.0 s\n"
    assert called(login, "logs", "llama", "--slowest", "--json") == 0
    assert json.loads(capsys.readouterr().out)["slowest"]["rank"] == 1


def test_output_is_followed_until_the_job_ends(login: Path, capsys: Capture) -> None:
    """It is running when it is asked for, writes more, and has gone from the queue a moment later."""
    (login / "squeue").write_text(
        "#!/bin/bash\n[[ $* == *--jobs=7* ]] || exec cat $QUEUE\n"
        '[[ -e $LOG.asked ]] && exit; touch $LOG.asked; echo "[rank0] done" >> $SCRIPT; cat $QUEUE\n'
    )
    (login / "script").write_text(RANKS)
    assert called(login, "logs", "llama", "--follow", "--rank", "0", "--lines", "2", "--json") == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines == [{"id": "7", "line": "[rank0] done"}]


def test_a_sandbox_without_slurm_says_that_it_is_simulated(
    login: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def refuse(*_: object) -> list[str]:
        raise NotConnected("the node is simulated and runs no Slurm", "run it against AWS")

    monkeypatch.setattr(slurm, "one_command", refuse)
    account = SimpleNamespace(endpoint="http://localhost:1")
    monkeypatch.setattr("podwright.operations.jobs.slurm_jobs.account_for", lambda *_: account)
    assert called(login, "submit", "llama", "--user", "bo") == 0
    output = capsys.readouterr().out
    assert output.startswith("#!/bin/bash\n")
    assert "Nothing runs: the node is simulated and runs no Slurm. sbatch would get the script above." in output
    assert called(login, "submit", "llama", "--user", "bo", "--json") == 0
    assert json.loads(capsys.readouterr().out)["simulated"] is True
    assert called(login, "jobs") == 1
    assert "the node is simulated and runs no Slurm" in capsys.readouterr().err
    account.endpoint = None
    assert called(login, "submit", "llama", "--user", "bo") == 1
    assert capsys.readouterr().out == ""


Edit = Callable[[str], str]


@pytest.mark.parametrize(
    ("old", "new", "id", "words"),
    [
        ("nodes: 4", "nodes: 9", "JOB050", "it needs 9 nodes at once; h200 has 8"),
        ("nodes: 4", "nodes: 6", "JOB050", "6 nodes have 48 GPUs; account research is limited to 40"),
        ("group: h200, priority", "group: login, priority", "JOB050", "login is a group of login nodes"),
        ("quota: {h200: 3}", "quota: {h200: 3}, share: lend", "JOB050", "has no account for what it borrows"),
        (
            "\njobs:",
            "\njobs:\n  other: {kind: job, group: h200, image: a}",
            "JOB002",
            "kind is job and orchestrator is slurm",
        ),
        ("accelerators: 1", "mounts: {/a: b}", "JOB051", "mounts is for jobs on EKS"),
    ],
)
def test_what_slurm_would_never_start_is_refused(
    old: str, new: str, id: str, words: str, project: Path, capsys: Capture
) -> None:
    file = project / "environments/slurm-classic.yaml"
    file.write_text(file.read_text().replace(old, new))
    assert called(project, "check") == 1
    output = capsys.readouterr().out
    assert id in output
    assert words in output


def test_a_batch_script_needs_slurm(project: Path, capsys: Capture) -> None:
    shutil.copy(ROOT / "environments/two-teams.yaml", project / "environments")
    file = project / "environments/two-teams.yaml"
    file.write_text(file.read_text().replace("kind: pytorch", "kind: sbatch", 1).replace("    auto_resume: 3\n", "", 1))
    assert main(["check", "two-teams", "--project", str(project)]) == 1
    assert "it becomes a batch script, and there is no Slurm" in capsys.readouterr().out
