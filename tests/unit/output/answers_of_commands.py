"""Answers of commands that need a cluster, an account, a compiler or a registry, from recorded or built states."""

import shutil
import sys
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any

import pytest

from doctor_corpus import bundle
from podwright.config.findings import Level
from podwright.config.loading.artifacts import ChartArchive
from podwright.config.loading.project import Project
from podwright.operations import cli
from podwright.operations.artifacts import charts, image_check, kernels
from podwright.operations.aws.account import Account
from podwright.operations.aws.clusters import Cluster, Group, Node
from podwright.operations.commands import deploy
from podwright.operations.doctor import collect_command
from podwright.operations.doctor.bundle import Bundle
from podwright.operations.drift import command as drift
from podwright.operations.drift.compare import Comparison
from podwright.operations.drift.judge import Drift
from podwright.operations.kubernetes import connect
from podwright.operations.kubernetes import kubectl as kubectl_module
from podwright.operations.live.cluster_table import write_report
from podwright.operations.nodes import command as nodes
from podwright.operations.output.console import write_line
from podwright.operations.output.tables import Block
from podwright.operations.scaling import plan
from podwright.operations.scaling.command import lines as scale_lines
from podwright.operations.scaling.occupancy import Occupancy, RunningJob
from podwright.operations.simulation.forecast_lines import assumption_lines, forecast_lines
from podwright.operations.workers import command as workers
from podwright.planning.simulation.summary.forecast import Forecast
from podwright.planning.simulation.summary.outcome import Stop
from report_account import write_assembly

ROOT = Path(__file__).parents[3]
_RECORDED = ROOT / "tests/unit/jobs"
_ACCOUNT = Account("111122223333", "us-west-2", None, {})
_NODE = "i-0123456789abcde{:02}"


def written(blocks: Iterable[Block]) -> None:
    for block in blocks:
        write_line(block)


def on_the_recorded_cluster(folder: Path, *words: str) -> None:
    """A command on the cluster of two teams that `tests/unit/jobs` has recorded."""
    (folder / "environments").mkdir()
    (folder / "logs").mkdir()
    (folder / "forbidden").touch()
    shutil.copy(ROOT / "environments/two-teams.yaml", folder / "environments")
    shutil.copy(_RECORDED / "two_teams.json", folder / "cluster.json")
    program = folder / "kubectl"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -I {_RECORDED}/fake_kubectl.py {folder} "$@"\n')
    program.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kubectl_module, "tool", lambda _: str(program))
        options = ("--kubeconfig", str(program), "--project", str(folder))
        # `--` ends the options of `run`.
        at = words.index("--") if "--" in words else len(words)
        assert cli.main([*words[:at], *options, *words[at:]]) == 0


def forecast(_: Path) -> None:
    stop = Stop(
        3600.0, "train-a-of-the-first-team", "team-a", "align-the-largest-model", "team-b", "InCohortReclamation"
    )
    waits = "couldn't assign flavors to pod set worker: insufficient unused quota for nvidia.com/gpu, 8 more needed"
    domains = tuple((f"nn-{number:017x}, nn-{number + 9:017x}", 8) for number in range(20))
    result = Forecast("align", "team-b", 5400.0, 90_000.0, "ml.p5en.48xlarge", domains, (stop,), (stop,), waits)
    written(forecast_lines(result))
    written(forecast_lines(result._replace(starts_in=None)))
    written(assumption_lines(["a job runs as long as its team's jobs did lately, " * 3]))


def drifted(folder: Path) -> None:
    """What somebody changed, what a service did, and what a deployment would set."""
    made = [
        Drift(
            "prod-cluster",
            "Cluster",
            "AWS::SageMaker::Cluster",
            "InstanceGroups[h200].InstanceCount",
            16,
            12,
            noise,
            what,
        )
        for noise, what in (
            (False, "somebody changed the number of instances; the next deployment sets it again"),
            (True, "autoscaling sets it"),
        )
    ]
    compared = Comparison(made, 230, ["the next deploy would set h200 12 → 16"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drift, "open_target", lambda _: (SimpleNamespace(name="prod"), _ACCOUNT))
        patch.setattr(drift, "compare", lambda *_: compared)
        assert cli.main(["drift", "prod", "--all", "--project", str(ROOT)]) == 1


def deployed(state: dict[str, Any]) -> None:
    """What a first deployment ends with."""
    write_report(state)
    write_line(deploy._next_steps(Project.at(ROOT).load("prod").environment, sandbox=True))


def scaled(folder: Path) -> None:
    """A group that loses nodes on which a job runs."""
    shutil.copytree(ROOT / "environments", folder / "environments")
    names = [_NODE.format(number) for number in range(2)]
    group = Group.of({"InstanceGroupName": "training", "CurrentCount": 2})
    cluster = Cluster("two-teams", "arn", "InService", "", True, False, "eks", (group,))
    job = RunningJob("align-the-largest-model", "team-of-the-longest-name", tuple(names), 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "account_for", lambda *_: _ACCOUNT)
        patch.setattr(plan, "existing_cluster", lambda *_: cluster)
        patch.setattr(
            plan, "cluster_nodes", lambda *_: [Node(id, "training", "ml.g5.12xlarge", "Running") for id in names]
        )
        patch.setattr(plan, "occupancy", lambda *_: Occupancy((job,), ()))
        patch.setattr(plan, "_changes", lambda *_: None)
        made = plan.plan_scaling(plan.Request(folder, "two-teams", "training", 1, (names[0],)))
    written(scale_lines(made))


def collected(folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        environment = Project.at(ROOT).load("prod").environment
        patch.setattr(collect_command, "open_target", lambda _: (environment, _ACCOUNT))
        patch.setattr(collect_command, "collect", lambda *_, **__: Bundle.of(bundle("no-capacity-at-creation")))
        out = str(folder / "bundle.tar.gz")
        assert cli.main(["collect", "prod", "--out", out, "--project", str(ROOT)]) == 0


def fetched(folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        archive = ROOT / ".podwright/charts/hyperpod-dependencies.zip"
        patch.setattr(charts, "fetch", lambda *_, **__: ChartArchive("hyperpod-dependencies", archive, "0123abcd" * 8))
        assert cli.main(["chart", "fetch", "--project", str(ROOT)]) == 0


def built(folder: Path) -> None:
    programs = folder / ".podwright/kernels-x86_64.zip"
    programs.parent.mkdir()
    programs.write_bytes(b"programs")
    shutil.copytree(ROOT / "environments", folder / "environments")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "build", lambda *_, **__: programs)
        assert cli.main(["kernels", "build", "--project", str(folder)]) == 0


def image(_: Path) -> None:
    components = [
        image_check.ImageComponent(
            name, version, PurePosixPath(f"opt/amazon/{name}/lib/x86_64-linux-gnu/lib{name}.so.{version}")
        )
        for name, version in (("efa", "1.43.2"), ("nccl", "2.27.7"), ("cuda", "12.9.1"))
    ]
    problem = "NCCL 2.27.7 with a plug-in for EFA that is older than the one which it was tried with"
    image_check._write(
        "111122223333.dkr.ecr.us-west-2.amazonaws.com/pretrain:1.0", "x86_64", components, [(Level.WARNING, problem)]
    )


def connected(folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connect, "tool", lambda _: "/opt/podwright/kubectl")
        connect._say(folder / ".podwright/kubeconfig-prod")


def reached(folder: Path) -> None:
    """Workers of a manager, of which one is not reached yet."""
    shutil.copytree(ROOT / "environments", folder / "environments")
    states = {"oregon": (True, "connected"), "ohio": (False, "failed to connect: dial tcp 10.30.0.4:443: i/o timeout")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "_side", lambda *_: SimpleNamespace(account=_ACCOUNT, cluster={}))
        patch.setattr(workers, "required_way", lambda *_: SimpleNamespace(is_real=True))
        patch.setattr(workers, "make_path", lambda *_: "a peering, and routes of both networks")
        patch.setattr(workers, "worker_token", lambda *_, **__: "token")
        patch.setattr(workers, "write_secret", lambda *_: None)
        patch.setattr(workers, "state", lambda _, worker: states[worker])
        patch.setattr(workers, "_PATIENCE_SECONDS", 0)
        patch.setattr(workers, "_POLL_SECONDS", 0)
        assert cli.main(["workers", "shared-platform-wanted", "--sandbox", "--project", str(folder)]) == 1


def replaced(_: Path) -> None:
    """Nodes that HyperPod replaces, and one that it does not."""
    group = [SimpleNamespace(id=_NODE.format(number), group="h200", updated=None) for number in range(16)]
    before: Any = [SimpleNamespace(jobs=["hyperpod-ns-research/hyperpodpytorchjob/llama-pretraining"])] * 2
    written(f"  {line}" for line in nodes._warnings("replace", group[:2], group, before))  # type: ignore[arg-type]
    refused = "InvalidNodeStatus: the node is being updated, and cannot be replaced before it is done (try again)"
    accepted = [group[0].id]
    seconds = {group[0].id: 1300.0}
    written(
        nodes._lines({"action": "replace", "accepted": accepted, "failed": {group[1].id: refused}, "seconds": seconds})
    )


def reported(folder: Path) -> None:
    assembly = str(write_assembly(folder / "cdk.out", "prod"))
    out = str(folder / "report.html")
    assert cli.main(["report", "prod", "--assembly", assembly, "--out", out, "--project", str(ROOT)]) == 0
