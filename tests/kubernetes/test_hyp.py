"""AWS's own `hyp` against a sandbox, as somebody uses it who took a role of the cluster's administrators."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from control_plane_parts import require_parts
from governed_cluster import GovernedCluster
from needs import needs
from podwright.config.catalog.drills import HEALTH_LABEL
from podwright.config.catalog.sandbox_account import SANDBOX_ACCOUNT
from podwright.operations.aws import sandbox_server as server
from waiting import until

Aws = Callable[[str], Any]
ROOT = Path(__file__).parents[2]
HYP = ROOT / ".podwright/hyp-3.12.0/bin/python"
REGION, NAME = "us-west-2", "of-hyp"
OPERATOR = "amazon-sagemaker-hyperpod-training-operator"
ADMIN = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
NODES = {
    "InstanceType": "ml.p5en.48xlarge",
    "TotalNodes": 2,
    "AcceleratorDevicesAvailable": 16,
    "NodeHealthStatus=Schedulable": 2,
    "DeepHealthCheckStatus=Passed": "N/A",
}
JOB = ("--job-name", "demo", "--image", "registry.example/train:1", "--instance-type", "ml.p5en.48xlarge")

# Importing hyp takes five CPU seconds, so its commands are forks of one process. Each line of its input holds the
# arguments of a command and the files for its output and errors.
COMMANDS = """
import json, os, sys
from sagemaker.hyperpod.cli.hyp_cli import cli
for line in sys.stdin:
    arguments, *files = json.loads(line)
    child = os.fork()
    if not child:
        for number, file in enumerate(files, 1):
            os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        cli(arguments, "hyp")
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""

pytestmark = needs(HYP.exists(), "sagemaker-hyperpod with all that it depends on, where .ci/run puts it")


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[server.Running]:
    """One whose clusters are real ones."""
    require_parts()
    root = tmp_path_factory.mktemp("hyp")
    yield server.start(root, port=0, time_scale=0.1, kubernetes="real")
    server.stop(root)


@pytest.fixture(scope="module")
def aws(sandbox: server.Running) -> Aws:
    """boto3 clients that wait for a slow machine: an add-on is there when its programs are."""
    session, once = boto3.Session("sandbox", "sandbox", region_name=REGION), {"total_max_attempts": 1}
    settings = Config(read_timeout=900, retries=once)
    return lambda service: session.client(service, endpoint_url=sandbox.endpoint, config=settings)


@pytest.fixture(scope="module")
def governed(aws: Aws) -> GovernedCluster:
    return GovernedCluster(aws, NAME, addon=False)


@pytest.fixture(scope="module")
def hyp(
    sandbox: server.Running, aws: Aws, governed: GovernedCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., str]]:
    """Runs a command of `hyp` on the cluster with the role's keys and a home of its own; gives what it prints."""
    trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": SANDBOX_ACCOUNT}}
    rights = {"Effect": "Allow", "Action": ["sagemaker:*", "eks:*"], "Resource": "*"}
    role = aws("iam").create_role(RoleName="hyp", AssumeRolePolicyDocument=json.dumps({"Statement": [trust]}))
    document = json.dumps({"Version": "2012-10-17", "Statement": [rights]})
    aws("iam").put_role_policy(RoleName="hyp", PolicyName="rights", PolicyDocument=document)
    arn = role["Role"]["Arn"]
    aws("eks").create_access_entry(clusterName=NAME, principalArn=arn)
    entry = {"clusterName": NAME, "principalArn": arn, "policyArn": ADMIN}
    aws("eks").associate_access_policy(**entry, accessScope={"type": "cluster"})
    keys = aws("sts").assume_role(RoleArn=arn, RoleSessionName="ana")["Credentials"]
    home = tmp_path_factory.mktemp("home")
    variables = {
        "HOME": str(home),
        "KUBECONFIG": str(home / ".kube/config"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "AWS_ACCESS_KEY_ID": keys["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": keys["SecretAccessKey"],
        "AWS_SESSION_TOKEN": keys["SessionToken"],
        # It tells AWS of each command and has no switch against that: here nobody answers, and it continues.
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "NO_PROXY": "localhost,127.0.0.1",
    }

    environment, pipe = os.environ | sandbox.environment(REGION) | variables, subprocess.PIPE
    output, errors = home / "output", home / "errors"
    with subprocess.Popen([HYP, "-c", COMMANDS], env=environment, stdin=pipe, stdout=pipe, text=True) as process:
        requests, answers = process.stdin, process.stdout
        assert requests
        assert answers

        def run(*arguments: str) -> str:
            print(json.dumps([arguments, str(output), str(errors)]), file=requests, flush=True)
            assert answers.readline() == "0\n", output.read_text() + errors.read_text()
            return output.read_text()

        run("set-cluster-context", "--cluster-name", NAME, "--region", REGION)
        yield run


def ready(governed: GovernedCluster) -> int:
    """How many nodes are ready, and healthy as HyperPod's agents say."""
    nodes = governed.kubernetes("/api/v1/nodes")["items"]
    healthy = [node for node in nodes if node["metadata"]["labels"].get(HEALTH_LABEL) == "Schedulable"]
    conditions = [entry for node in healthy for entry in node["status"].get("conditions") or ()]
    return sum(entry["type"] == "Ready" and entry["status"] == "True" for entry in conditions)


def test_clusters_are_listed_and_one_is_chosen(governed: GovernedCluster, hyp: Callable[..., str]) -> None:
    def listed() -> list[Any]:
        clusters = json.loads(hyp("list-cluster", "--region", REGION, "--output", "json"))
        return [group for cluster in clusters if cluster["Cluster"] == NAME for group in cluster["Instances"]]

    until(lambda: ready(governed) == 2)
    until(lambda: listed() == [NODES])
    context = f"arn:aws:eks:{REGION}:{SANDBOX_ACCOUNT}:cluster/{NAME}"
    assert context in hyp("get-cluster-context")


def test_a_job_is_made_listed_and_deleted(aws: Aws, governed: GovernedCluster, hyp: Callable[..., str]) -> None:
    aws("eks").create_addon(clusterName=NAME, addonName=OPERATOR)
    named = {"clusterName": NAME, "addonName": OPERATOR}
    until(lambda: aws("eks").describe_addon(**named)["addon"]["status"] == "ACTIVE")

    def jobs() -> list[list[str]]:
        """The rows of the table: name, namespace and status."""
        rows = [line.split() for line in hyp("list", "hyp-pytorch-job", "--namespace", "default").splitlines()]
        return [row[:3] for row in rows if row[1:2] == ["default"]]

    def phases() -> list[str]:
        return [pod["status"]["phase"] for pod in governed.kubernetes("/api/v1/namespaces/default/pods")["items"]]

    hyp("create", "hyp-pytorch-job", *JOB, "--node-count", "1", "--namespace", "default")
    until(lambda: phases() == ["Running"])
    until(lambda: jobs() == [["demo", "default", "Running"]])
    [pod] = governed.kubernetes("/api/v1/namespaces/default/pods")["items"]
    [container] = pod["spec"]["containers"]
    assert container["image"] == "registry.example/train:1"
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "8"
    hyp("delete", "hyp-pytorch-job", "--job-name", "demo", "--namespace", "default")
    until(lambda: phases() == [])
    until(lambda: jobs() == [])
