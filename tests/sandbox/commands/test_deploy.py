"""A user's own project, from `podwright init` to `podwright destroy`, with nothing activated and no AWS account.

What the CDK CLI does once is done by a command in a process of its own; the commands between run in this one.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from cloudformation_cdk import podwright, stored_assembly
from podwright.operations.aws import sandbox_server as server
from podwright.operations.programs.helm import tool

PODWRIGHT = [sys.executable, "-P", "-m", "podwright.operations.cli"]
STACKS = {f"sandbox-{name}" for name in ("network", "storage", "eks", "cluster")}
# The policy comes by the function of ours, the quotas by CloudFormation.
TEAMS = """
governance:
  task_governance: {fallback: [scheduler_config]}
  teams: {ours: {quota: {training: 2}}, yours: {quota: {training: {accelerators: 2}}}}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("deploy") / "cluster"
    podwright(folder.parent, "init", str(folder))
    server.start(folder, port=0, time_scale=0.25)
    yield folder
    server.stop(folder)


def start(project: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start podwright as a terminal does: in a process group of its own, heeding Ctrl-C, with nothing activated."""
    bare = {"PATH": "/usr/bin:/bin", "HOME": os.environ["HOME"], "CDK_HOME": str(project), "CDK_VALIDATION": "false"}
    command = [*PODWRIGHT, *arguments]
    return subprocess.Popen(
        command,
        cwd=project,
        env=bare,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell lets its background jobs ignore it, and these tests may run in one.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def run_by_itself(project: Path, *arguments: str) -> str:
    process = start(project, *arguments)
    output, errors = process.communicate()
    assert process.returncode == 0, output + errors
    return output


def run(project: Path, *arguments: str, code: int = 0) -> tuple[str, str]:
    answer = podwright(project, *arguments, code=code)
    return answer.output, answer.errors


def deploy(project: Path, *more: str) -> tuple[dict[str, Any], str]:
    output, errors = run(project, "deploy", "--json", *more)
    return json.loads(output), errors


def nodes(report: dict[str, Any], group: str) -> set[str]:
    return {node["id"] for node in report["nodes"] if node["group"] == group}


def test_life_of_a_project(project: Path) -> None:
    interrupt_a_deployment(project)
    first = json.loads(run_by_itself(project, "deploy", "--json"))
    assert {stack["name"]: stack["status"] for stack in first["stacks"]} == dict.fromkeys(STACKS, "CREATE_COMPLETE")
    assert first["cluster"]["status"] == "InService"
    assert {group["name"]: group["target"] for group in first["groups"]} == {"system": 2, "training": 2}
    assert {node["status"] for node in first["nodes"] if node["group"] == "system"} == {"Running"}
    assert len(nodes(first, "training")) == 2

    again, output = deploy(project)
    assert output.count("no changes") == len(STACKS)
    assert nodes(again, "training") == nodes(first, "training")
    use_kubectl(project, again)

    file = project / "environments/sandbox.yaml"
    file.write_text(file.read_text().replace("ml.g5.12xlarge\n    count: 2", "ml.g5.12xlarge\n    count: 3") + TEAMS)
    refuse_to_take_nodes_away(project, first["sandbox"])
    more, output = deploy(project, "--allow", "system")
    assert output.count("no changes") >= 2
    assert nodes(more, "training") > nodes(first, "training")
    assert [(quota["team"], quota["status"]) for quota in more["quotas"]] == [("ours", "Created"), ("yours", "Created")]

    printed, _ = run(project, "status")
    assert "Cluster sandbox: InService" in printed
    assert "ml.g5.12xlarge: 2 accelerators, 24 vCPU, 96 GiB" in printed
    assert "Simulated: a stand-in for AWS" in printed
    report_on_it(project)
    say_what_other_quotas_would_have_done(project, file)
    import_it(project)

    _, errors = run(project, "destroy", code=2)
    assert "--yes deletes without asking" in errors
    printed = run_by_itself(project, "destroy", "--yes")
    assert all(name in printed for name in STACKS)
    assert json.loads(run(project, "status", "--json")[0])["stacks"] == []
    assert run(project, "destroy", "--yes")[0] == "sandbox: no stack to delete\n"


def import_it(project: Path) -> None:
    """The file that is read back from the cluster asks for the same cluster, quotas and policy."""
    actual = json.loads(run(project, "import", "sandbox", "--sandbox", "--name", "again", "--json")[0])
    assert (actual["gaps"], actual["findings"]) == ([], [])
    comparison = actual["comparison"]
    # The cluster, both quotas, the policy and the add-on of task governance.
    assert comparison["compared"] == 5
    assert [(item["property"], item["now"], item["file"]) for item in comparison["deviations"]] == [
        ("Tags[podwright:environment].Value", "sandbox", "again")
    ]
    _, errors = run(project, "import", "sandbox", "--sandbox", "--name", "again", code=2)
    assert "nothing is overwritten" in errors
    (project / "environments/again.yaml").unlink()


def refuse_to_take_nodes_away(project: Path, endpoint: str) -> None:
    """Somebody enlarges a group; the next deployment, which is about another one, would take its node away again."""
    sagemaker = boto3.Session("sandbox", "sandbox", region_name="us-west-2").client("sagemaker", endpoint_url=endpoint)
    groups = sagemaker.describe_cluster(ClusterName="sandbox")["InstanceGroups"]
    system = next(group for group in groups if group["InstanceGroupName"] == "system")
    retained = ("InstanceGroupName", "InstanceType", "LifeCycleConfig", "ExecutionRole", "OverrideVpcConfig")
    expected = {key: system[key] for key in retained} | {"InstanceCount": 3}
    sagemaker.update_cluster(ClusterName="sandbox", InstanceGroups=[expected])

    drift = json.loads(run(project, "drift", "--json", code=1)[0])
    assert drift["next_deploy"] == ["the next deploy that touches the cluster would set system 3 → 2"]
    assert [item["property"] for item in drift["drift"]] == ["InstanceGroups[system].InstanceCount"]
    _, errors = run(project, "deploy", code=1)
    assert "CHG004  system: the deployment would set system 3 → 2" in errors
    assert "InstanceGroups[training].InstanceCount: 2 → 3  [adds nodes, 15 to 25 min]" in errors
    actual = json.loads(run(project, "diff", "--json", "--assembly", str(stored_assembly(project, "sandbox")))[0])
    assert [(need["id"], need["name"]) for need in actual["approval"]["reasons"] if need["refused"]] == [
        ("CHG004", "system")
    ]
    assert actual["digest"] in errors


def say_what_other_quotas_would_have_done(project: Path, file: Path) -> None:
    """Two jobs of last month under what is deployed, and under a file that leaves their team room for one of them."""
    rows = ["team,submitted,duration,accelerators,pods", "ours,0,3600,4,1", "ours,60,3600,4,1", "theirs,60,3600,4,1"]
    (project / "traces").mkdir()
    (project / "traces/sandbox.csv").write_text("\n".join(rows))
    assert json.loads(run(project, "diff", "--json")[0])["quota_effect"] is None, "nothing changes"
    before = file.read_text()
    file.write_text(before.replace("ours: {quota: {training: 2}}", "ours: {quota: {training: 1}, share: lend}"))
    effect = json.loads(run(project, "diff", "--json")[0])["quota_effect"]
    assert (effect["jobs"], effect["left_out"]) == (2, {"unknown team": 1})
    ours = [next(team for team in policy["teams"] if team["team"] == "ours") for policy in effect["policies"]]
    assert [team["waits"]["max_seconds"] for team in ours] == [0, 3541]
    printed, _ = run(project, "diff", "--trace", "traces/sandbox.csv", "--days", "1")
    assert "quotas    the same 2 jobs (CSV) before and after:" in printed
    file.write_text(before)


def use_kubectl(project: Path, report: dict[str, Any]) -> None:
    """Real kubectl with the kubeconfig that `connect` writes: its token, its certificate, its address."""
    printed, _ = run(project, "connect")
    kubeconfig = printed.splitlines()[0].removeprefix("export KUBECONFIG=")
    shown = subprocess.run(
        [tool("kubectl"), "get", "nodes", "--output=name"],
        env={"KUBECONFIG": kubeconfig, "HOME": str(project)},
        capture_output=True,
        text=True,
    )
    assert shown.returncode == 0, shown.stderr
    assert {f"node/hyperpod-{id}" for id in nodes(report, "system")} <= set(shown.stdout.split())


def interrupt_a_deployment(project: Path) -> None:
    """Press Ctrl-C while stacks are being made."""
    process = start(project, "deploy")
    assert process.stderr is not None
    output = []
    for line in process.stderr:
        output.append(line)
        if "sandbox-network" in line:
            break
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 130, "".join([*output, errors])
    assert errors.strip().endswith("podwright: interrupted")


def report_on_it(project: Path) -> None:
    changes = project / "changes.json"
    changes.write_text('{"environment": "sandbox", "stacks": []}')
    assembly = ("--assembly", str(stored_assembly(project, "sandbox")), "--changes", "changes.json")
    printed, output = run(project, "report", "--live", "--json", *assembly)
    actual = json.loads(printed)
    assert {group["name"]: group["target"] for group in actual["status"]["groups"]} == {"system": 2, "training": 3}
    assert "benchmarks" not in actual["status"]["unseen"]
    assert "cluster" in output
    drawn = {group["name"]: group["count"] for group in actual["architecture"]["groups"]}
    assert drawn == {"system": 2, "training": 3}
    printed, _ = run(project, "report", "--live", *assembly)
    page = (project / ".podwright/reports/podwright-report-sandbox.html").read_text()
    assert printed.startswith(".podwright/reports/podwright-report-sandbox.html: ")
    assert "in the sandbox: no instance runs there" in page
    assert "The deployed stacks are as the file says." in page
