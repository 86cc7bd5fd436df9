"""`podwright promote` over three accounts and two regions, with the CDK CLI, the true gates and boto3.

The app writes its assembly by hand (`apps/cluster_app.py`): the environments are small, and so is the test. Whole
environments are promoted by `bin/bench --only promotion`.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import boto3
import pytest

from podwright.config.catalog.sandbox_account import access_key
from podwright.config.loading.project import Project
from podwright.operations.aws import sandbox_server as server
from podwright.planning.delivery.pipeline_steps import steps
from waiting import becomes, until

POSITIONS = {
    "dev": ("111122223333", "us-west-2", "usw2"),
    "staging": ("222233334444", "us-west-2", "usw2"),
    "prod": ("444455556666", "us-east-2", "use2"),
}
FILE = """
account: "{account}"
region: {region}
protection: destroy
# What somebody made before: in the sandbox a promotion makes it.
iam: {{permissions_boundary: "arn:aws:iam::{account}:policy/team/Boundary"}}
storage: {{buckets: {{checkpoints: acme-{account}-checkpoints}}}}
network: {{zones: [{zones}-az1]}}
cluster: {{orchestrator: slurm, zones: [{zones}-az1]}}
instance_groups:
  controller: {{instance_type: ml.m5.4xlarge, count: 1}}
  work: {{instance_type: ml.c5.4xlarge, count: 2, role: "arn:aws:iam::{account}:role/team/Nodes"}}
"""
PIPELINE = """
environments: [dev, staging, prod]
pipeline:
  stages:
    - {environments: dev, gates: [cluster]}
    - {environments: staging, gates: [cluster]}
    - {environments: prod, gates: [cluster], manual: true}
"""
Event = dict[str, Any]


class Promoting:
    """A project of three environments, and its sandbox."""

    def __init__(self, root: Path, running: server.Running) -> None:
        self.root, self.running = root, running
        self.names = [step.name for step in steps(Project.at(root).settings, Project.at(root).names)]

    @cache  # noqa: B019 - the sandbox of one test
    def client(self, environment: str, service: str) -> Any:
        """boto3's client in the account and region of an environment."""
        account, region, _ = POSITIONS[environment]
        session = boto3.Session(access_key(account), "sandbox", region_name=region)
        return session.client(service, endpoint_url=self.running.endpoint)

    def stacks(self, environment: str) -> list[str]:
        """The names of the stacks in its account and region."""
        return [stack["StackName"] for stack in self._described(environment)]

    def statuses(self, environment: str) -> list[str]:
        """Their statuses."""
        return [stack["StackStatus"] for stack in self._described(environment)]

    def _described(self, environment: str) -> list[Any]:
        return self.client(environment, "cloudformation").describe_stacks()["Stacks"]

    def begin(self, *options: str) -> subprocess.Popen[str]:
        """Start a promotion, in a process group of its own."""
        command = [sys.executable, "-P", "-m", "podwright.operations.cli", "promote", "--sandbox", "--json", *options]
        variables = {**os.environ, "CDK_HOME": str(self.root / ".podwright/home"), "PYTHONUNBUFFERED": "1"}
        return subprocess.Popen(
            command, cwd=self.root, env=variables, stdout=subprocess.PIPE, text=True, start_new_session=True
        )

    def run(self, *options: str, on: Callable[[Event], None] = lambda event: None) -> tuple[int, list[Event]]:
        """Promote; `on` gets what happens as it happens, and the promotion stands still meanwhile."""
        observed = list[Event]()
        with self.begin(*options) as process:
            assert process.stdout is not None
            for line in process.stdout:
                observed.append(json.loads(line))
                os.killpg(process.pid, signal.SIGSTOP)
                on(observed[-1])
                os.killpg(process.pid, signal.SIGCONT)
        return process.returncode, observed


@pytest.fixture(scope="module")
def promoting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Promoting]:
    root = tmp_path_factory.mktemp("promotion")
    (root / "environments").mkdir()
    for name, (account, region, zones) in POSITIONS.items():
        (root / f"environments/{name}.yaml").write_text(FILE.format(account=account, region=region, zones=zones))
    (root / "podwright.yaml").write_text(PIPELINE)
    app = Path(__file__).parents[1] / "apps/cluster_app.py"
    (root / "cdk.json").write_text(json.dumps({"app": f"{sys.executable} {app}", "versionReporting": False}))
    running = server.start(root, port=0, time_scale=0.25)
    resolved_promoting = Promoting(root, running)
    for name in POSITIONS:
        # The stacks have no assets, so of `cdk bootstrap` nothing is needed but its sign.
        parameter = {"Name": "/cdk-bootstrap/hnb659fds/version", "Value": "30", "Type": "String"}
        resolved_promoting.client(name, "ssm").put_parameter(**parameter)
    yield resolved_promoting
    server.stop(root)


def deploys(group: int) -> bool:
    """Whether a process of the group is the CDK CLI's deployment."""
    for folder in Path("/proc").glob("[0-9]*"):
        # Processes end while they are looked at.
        with suppress(OSError):
            of_group = int((folder / "stat").read_text().rpartition(")")[2].split()[2]) == group
            if of_group and b"deploy" in (folder / "cmdline").read_bytes().split(b"\0"):
                return True
    return False


def named(events: list[Event], word: str) -> list[str]:
    return [event["step"] for event in events if event["event"] == word]


def test_killed_inside_a_deployment_it_goes_on_and_a_failed_gate_keeps_prod_untouched(promoting: Promoting) -> None:
    process = promoting.begin()
    assert process.stdout is not None
    for line in process.stdout:
        event = json.loads(line)
        if (event["event"], event.get("step")) == ("started", "dev.deploy"):
            break
        assert event["event"] != "failed", event
    until(lambda: deploys(process.pid))
    # The promotion alone stands still, so that it cannot note the end of what its CDK CLI does.
    os.kill(process.pid, signal.SIGSTOP)
    # Once CloudFormation works on it: before that there is a change set without a template.
    until(lambda: promoting.statuses("dev") not in ([], ["REVIEW_IN_PROGRESS"]))
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()

    deleted = dict[str, Any]()

    def lose_the_cluster(event: Event) -> None:
        if (event["event"], event.get("step")) == ("passed", "staging.deploy"):
            client = promoting.client("staging", "sagemaker")
            deleted.update(client.describe_cluster(ClusterName="staging"))
            client.delete_cluster(ClusterName="staging")

    code, events = promoting.run(on=lose_the_cluster)
    assert code == 1
    assert named(events, "skipped") == promoting.names[: promoting.names.index("dev.deploy")]
    assert named(events, "failed") == ["staging.gate"], json.dumps(events[-3:], indent=1)
    [failed] = [event for event in events if event["event"] == "failed"]
    assert "not touched: prod" in failed["advice"]
    assert any("podwright promote" in sentence for sentence in failed["advice"])
    evidence = [file for file in failed["evidence"] if file.startswith("evidence/staging/")]
    assert evidence
    assert all((promoting.root / file).is_file() for file in failed["evidence"])
    assert (promoting.stacks("dev"), promoting.stacks("staging")) == (["dev-cluster"], ["staging-cluster"])
    assert promoting.stacks("prod") == []
    assert promoting.client("prod", "sagemaker").list_clusters()["ClusterSummaries"] == []
    # The deployment that was killed made its stack once; the second run waited for it, or found it done.
    created = promoting.client("dev", "cloudformation").describe_stack_events(StackName="dev-cluster")["StackEvents"]
    assert [event["ResourceStatus"] for event in created if event["LogicalResourceId"] == "Cluster"] == [
        "CREATE_COMPLETE",
        "CREATE_IN_PROGRESS",
    ]

    code, events = promoting.run("--from", "prod")
    assert (code, promoting.stacks("prod")) == (1, [])

    groups = [
        {key: group[key] for key in ("InstanceGroupName", "InstanceType", "ExecutionRole", "SlurmConfig")}
        | {"InstanceCount": group["TargetCount"]}
        for group in deleted["InstanceGroups"]
    ]
    client = promoting.client("staging", "sagemaker")
    becomes([], lambda: client.list_clusters()["ClusterSummaries"])
    client.create_cluster(ClusterName="staging", InstanceGroups=groups)
    code, events = promoting.run()
    assert code == 1
    assert named(events, "passed") == ["staging.gate", "prod.preflight", "prod.effects"]
    assert named(events, "waiting") == ["prod.approval"]
    assert promoting.stacks("prod") == []
    code, events = promoting.run("--approve", "prod")
    assert code == 0
    assert named(events, "passed") == ["prod.deploy", "prod.gate"]
    assert named(events, "started") == ["prod.deploy", "prod.gate"]

    for name, (account, region, _) in POSITIONS.items():
        stacks = promoting.client(name, "cloudformation").describe_stacks()["Stacks"]
        assert [stack["StackId"].rpartition("/")[0] for stack in stacks] == [
            f"arn:aws:cloudformation:{region}:{account}:stack/{name}-cluster"
        ]
        cluster = promoting.client(name, "sagemaker").describe_cluster(ClusterName=name)
        assert cluster["ClusterArn"].startswith(f"arn:aws:sagemaker:{region}:{account}:cluster/")
    code, events = promoting.run()
    assert (code, named(events, "skipped")) == (0, promoting.names)
