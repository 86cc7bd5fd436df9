"""Gates on Slurm: what a session runs is run here by bash, with a Slurm that scripts stand in for."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gate_account import context
from podwright.config.errors import CommandError
from podwright.config.loading.load import load_environment
from podwright.operations.aws.session import ClusterNode
from podwright.operations.gates import canary, nccl, quotas, slurm
from podwright.operations.gates.gate import Context

ENVIRONMENT = load_environment(Path(__file__).parents[3] / "environments/slurm-classic.yaml")
RECORD = {"verdict": "pass", "results": [{"name": "all_reduce", "value": 480.0, "reason": ""}]}
TOOLS = {
    # The last argument of srun is the script; it is run once for each node.
    "srun": 'echo "$@" >> $LOG; for o in "$@"; do [[ $o == --nodes=* ]] && n=${o#--nodes=}; done\n'
    '[[ -e $DOWN ]] && { echo "srun: error: nodes are down" >&2; exit 1; }\n'
    'for ((i = 0; i < n; i++)); do SLURM_NODEID=$i bash -c "${@: -1}" || exit 1; done',
    "scancel": 'echo scancel "$@" >> $LOG',
    "sudo": '"$@"',
    "nvidia-smi": "echo 'GPU 0: NVIDIA'",
    "aws": 'echo aws "$@" >> $LOG; mkdir -p "${@: -1}"',
    "python3": "cat $RECORD",
    "sacctmgr": "cat $ACCOUNTS",
}


class Account:
    """An account whose sessions are processes of this machine."""

    endpoint = None

    def client(self, service: str) -> Any:
        source = {"SourceS3Uri": "s3://sagemaker-x/prod/abc", "OnCreate": "on_create.sh"}
        groups = [
            {"InstanceGroupName": name, "InstanceType": group.types[0], "LifeCycleConfig": source}
            for name, group in ENVIRONMENT.environment.instance_groups.items()
        ]
        assert service in ("sagemaker", "ssm")
        return SimpleNamespace(
            describe_cluster=lambda **_: {"ClusterStatus": "InService", "InstanceGroups": groups},
            terminate_session=lambda **provided: self.ended.append(provided["SessionId"]),
        )

    def __init__(self) -> None:
        self.ended: list[str] = []


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The controller, with files that say what its tools answer."""
    for name, text in TOOLS.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / name).chmod(0o755)
    paths = {name: tmp_path / name.lower() for name in ("LOG", "DOWN", "RECORD", "ACCOUNTS")}
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for name, path in paths.items():
        monkeypatch.setenv(name, str(path))
    paths["LOG"].touch()
    paths["RECORD"].write_text(json.dumps(RECORD))
    groups = ENVIRONMENT.environment.instance_groups
    existing = [ClusterNode("arn:cluster/abc", name, f"i-{at}") for at, name in enumerate(groups)]
    monkeypatch.setattr(slurm, "session_nodes", lambda *_: existing)

    def command(_: Any, node: ClusterNode, line: str) -> list[str]:
        kind = groups[node.group].slurm
        assert kind
        assert kind.node_type == "controller"
        # SSM prints lines of its own around what the command says.
        line = f"echo; echo 'Starting session with SessionId: s-1'; {line}; echo 'Exiting session: s-1'"
        return ["bash", "-c", line]

    monkeypatch.setattr(slurm, "one_command", command)
    return SimpleNamespace(**paths, there=existing)


@pytest.fixture
def run(node: Any) -> Callable[..., Context]:
    return lambda name, minutes=1: context(name, Account(), ENVIRONMENT, minutes)


def compute() -> str:
    return next(
        name
        for name, group in ENVIRONMENT.environment.instance_groups.items()
        if group.slurm and group.slurm.node_type == "compute"
    )


def test_a_task_runs_on_each_node(run: Callable[..., Context], node: Any) -> None:
    result = canary.run(run("canary"))
    assert result.passed, result
    assert result.reason == "2 of 2 tasks completed"
    cancelled, asked = node.LOG.read_text().splitlines()[:2]
    name = cancelled.rpartition("=")[2]
    assert cancelled.startswith("scancel --quiet --name=podwright-canary-")
    assert f"--job-name={name} " in asked
    assert "--nodes=2 --ntasks-per-node=1" in asked
    node.DOWN.touch()
    result = canary.run(run("canary"))
    assert not result.passed
    assert "nodes are down" in result.reason
    assert "sinfo -R" in result.next_step


def test_bandwidth_comes_from_the_programs_of_the_nodes(run: Callable[..., Context], node: Any) -> None:
    rows, messages = slurm.all_reduce(run("nccl"), compute(), 2)
    assert messages.passed, messages
    assert rows == [nccl.Row(16 * 2**30, 480.0, None)]
    assert "aws s3 cp --quiet --recursive s3://sagemaker-x/prod/abc" in node.LOG.read_text()
    node.RECORD.write_text("Traceback: no such file")
    assert slurm.all_reduce(run("nccl"), compute(), 2)[1].reason == "the job printed no record"
    nothing = {"results": [{"name": "collectives", "value": None, "reason": "no programs"}]}
    node.RECORD.write_text(json.dumps(nothing))
    with pytest.raises(CommandError, match="measured no all-reduce: no programs"):
        slurm.all_reduce(run("nccl"), compute(), 2)


def test_teams_are_accounts_with_their_limits(run: Callable[..., Context], node: Any) -> None:
    from podwright.config.catalog.instance_types import environment_types
    from podwright.planning.node.slurm_facts import team_limits

    environment = ENVIRONMENT.environment
    limits = team_limits(environment.governance, environment.instance_groups, environment_types({}))
    rows = ["root||", *(f"{team}||{','.join(f'{k}={v}' for k, v in value.items())}" for team, value in limits.items())]
    node.ACCOUNTS.write_text("\n".join(rows) + "\n")
    made = run("quotas", 0.001)
    result = quotas.run(made)
    assert result.passed, result
    assert len(result.checks) == sum(bool(value) for value in limits.values()) > 0
    team, *_ = (team for team, value in limits.items() if value)
    lower = [f"{team}||gres/gpu=1" if row.startswith(f"{team}|") else row for row in rows]
    node.ACCOUNTS.write_text("\n".join(lower) + "\n")
    lowered = quotas.run(run("quotas", 0.001))
    assert not lowered.passed
    assert f"account {team} gres/gpu=1" in lowered.reason
    node.ACCOUNTS.write_text("root||\n")
    result = quotas.run(run("quotas", 0.001))
    assert not result.passed
    assert "is not there" in result.reason


def test_a_session_that_is_given_up_is_ended(
    run: Callable[..., Context], monkeypatch: pytest.MonkeyPatch, node: Any, tmp_path: Path
) -> None:
    made = run("canary", 0.0001)
    monkeypatch.setattr(slurm, "_GRACE", 0.2)
    plugin = tmp_path / "plugin"
    plugin.write_text("#!/bin/bash\nexec sleep 30\n")
    plugin.chmod(0o755)
    # As the real one's, its first argument is what StartSession answered.
    monkeypatch.setattr(slurm, "one_command", lambda *_: [str(plugin), json.dumps({"SessionId": "s-7"})])
    with pytest.raises(CommandError, match="no answer in"):
        slurm.Slurm(made).run("true")
    assert made.account.ended == ["s-7"]  # pyrefly: ignore


def test_where_there_is_no_controller(run: Callable[..., Context], monkeypatch: pytest.MonkeyPatch, node: Any) -> None:
    monkeypatch.setattr(slurm, "session_nodes", lambda *_: [])
    with pytest.raises(CommandError, match="no controller of slurm-classic is running"):
        canary.run(run("canary"))


def test_nccl_proves_nothing_in_the_sandbox(run: Callable[..., Context]) -> None:
    made = run("nccl")
    made.account.endpoint = "http://localhost:1"  # pyrefly: ignore
    result = nccl.run(made)
    assert (result.skipped, result.reason) == (True, "nothing is proved: nodes of the sandbox have no GPUs")
