"""Runs the examples of `docs/python/` as apps, and deploys their stacks to the sandbox."""

import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from cloudformation_cli import bootstrap
from cloudformation_cli import deploy as deploy_assembly
from governed_cluster import GovernedCluster
from podwright.config.catalog.charts import HYPERPOD_DEPENDENCIES, chart
from podwright.config.loading.artifacts import Artifacts, LockedChart, archive_file, pack, write_artifacts
from podwright.operations.artifacts.stand_ins import stand_in
from podwright.operations.aws.account import Account
from podwright.operations.aws.sandbox_server import Running
from podwright.operations.cli import main
from sandbox_network import Surroundings, eks_cluster, surroundings

EXAMPLES = Path(__file__).resolve().parents[2] / "docs/python"
ACCOUNT = "123456789012"
# Node reads the chart from its working directory, so these apps need a Node of their own.
WITH_CHARTS = ("existing_cluster", "stage_in_pipeline")
Aws = Callable[[str], Any]
Deploy = Callable[..., None]


@pytest.fixture
def deploy(sandbox: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Deploy:
    """Deploys an example in a project of its own, with the values of the sandbox in place of those that it shows."""

    def run(name: str, inner: str = "", **values: Any) -> None:
        project = tmp_path / "project"
        project.mkdir(exist_ok=True)
        lock_a_chart(project)
        text = (EXAMPLES / f"{name}.py").read_text().replace("111122223333", ACCOUNT)
        for constant, value in values.items():
            (line,) = [line for line in text.splitlines() if line.startswith(f"{constant} = ")]
            text = text.replace(line, f"{constant} = {value!r}")
        app = project / "app.py"
        app.write_text(text)
        assembly = tmp_path / "assembly"
        account = Account(ACCOUNT, "us-west-2", sandbox.endpoint, {})
        if name in WITH_CHARTS:
            variables = os.environ | {"CDK_OUTDIR": str(assembly)}
            subprocess.run([sys.executable, "-P", app], cwd=project, env=variables, check=True)
        else:
            with monkeypatch.context() as patch:
                patch.setattr(cdk, "App", partial(cdk.App, outdir=str(assembly)))
                runpy.run_path(str(app), run_name="__main__")
        assert bootstrap(account)
        assert deploy_assembly(account, assembly / inner)

    return run


def lock_a_chart(project: Path) -> None:
    """What `podwright chart fetch` leaves in a project, with a chart of our own for the real one."""
    expected = chart(HYPERPOD_DEPENDENCIES)
    archive = stand_in(expected)
    file = archive_file(project, expected, archive.digest)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(pack(archive.path))
    locked = LockedChart(
        version=expected.version, repository=expected.repository, revision=expected.revision, sha256=archive.digest
    )
    write_artifacts(project, Artifacts(charts={expected.name: locked}))


@pytest.fixture(scope="module")
def around(aws: Aws) -> Surroundings:
    return surroundings(aws)


def test_a_cluster_in_an_existing_network_and_eks_cluster(aws: Aws, deploy: Deploy, around: Surroundings) -> None:
    control_plane = eks_cluster(aws, around, "platform-of-somebody")
    network = control_plane["resourcesVpcConfig"]
    trust = (
        '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", '
        '"Principal": {"Service": "lambda.amazonaws.com"}}]}'
    )
    kubectl = aws("iam").create_role(RoleName="Kubectl", AssumeRolePolicyDocument=trust)["Role"]["Arn"]
    policy = {
        "principalArn": kubectl,
        "policyArn": "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy",
        "accessScope": {"type": "cluster"},
    }
    aws("eks").create_access_entry(clusterName=control_plane["name"], principalArn=kubectl)
    aws("eks").associate_access_policy(clusterName=control_plane["name"], **policy)
    deploy(
        "existing_cluster",
        VPC=network["vpcId"],
        SUBNETS=dict(zip(("usw2-az1", "usw2-az2"), around.subnets, strict=True)),
        EKS_NAME=control_plane["name"],
        EKS_SECURITY_GROUP=network["clusterSecurityGroupId"],
        KUBECTL_ROLE=kubectl,
    )
    cluster = aws("sagemaker").describe_cluster(ClusterName="platform")
    assert cluster["ClusterStatus"] == "InService"
    # The sandbox fails nodes with EFA whose security group is not open to itself.
    assert {group["InstanceGroupName"]: group["TargetCount"] for group in cluster["InstanceGroups"]} == {
        "system": 2,
        "training": 2,
    }


def test_a_cluster_with_slurm(aws: Aws, deploy: Deploy) -> None:
    deploy("slurm_cluster")
    cluster = aws("sagemaker").describe_cluster(ClusterName="slurm")
    assert cluster["ClusterStatus"] == "InService"
    parts = {group["InstanceGroupName"]: group["SlurmConfig"]["NodeType"] for group in cluster["InstanceGroups"]}
    assert parts == {"controller": "Controller", "login": "Login", "training": "Compute"}


def test_a_lustre_file_system_alone(aws: Aws, deploy: Deploy, around: Surroundings) -> None:
    subnet = aws("ec2").describe_subnets(SubnetIds=around.subnets[:1])["Subnets"][0]
    deploy("lustre_with_efa", VPC=subnet["VpcId"], SUBNET=subnet["SubnetId"], CLIENTS=around.security_group)
    everything = aws("fsx").describe_file_systems()["FileSystems"]
    items = [item for item in everything if subnet["SubnetId"] in item["SubnetIds"]]
    assert [(item["StorageCapacity"], item["LustreConfiguration"]["EfaEnabled"]) for item in items] == [(9600, True)]
    alarms = aws("cloudwatch").describe_alarms()["MetricAlarms"]
    assert items[0]["FileSystemId"] in [alarm["Dimensions"][0]["Value"] for alarm in alarms if alarm["Dimensions"]]


def test_quotas_of_an_existing_cluster(aws: Aws, deploy: Deploy) -> None:
    governed = GovernedCluster(aws, "quotas-of-python")
    deploy("quotas", CLUSTER="quotas-of-python", CLUSTER_ARN=governed.arn, EKS_NAME=governed.name)
    quotas = aws("sagemaker").list_compute_quotas(ClusterArn=governed.arn)["ComputeQuotaSummaries"]
    assert {quota["Name"]: quota["Status"] for quota in quotas} == {"research": "Created", "product": "Created"}


def test_a_whole_environment_as_a_stage(
    aws: Aws, deploy: Deploy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["init", str(tmp_path / "project")]) == 0
    deploy("stage_in_pipeline", "assembly-sandbox")
    stacks = aws("cloudformation").describe_stacks()["Stacks"]
    assert {stack["StackName"] for stack in stacks} >= {
        f"sandbox-{name}" for name in ("network", "storage", "eks", "cluster")
    }
    assert aws("sagemaker").describe_cluster(ClusterName="sandbox")["ClusterStatus"] == "InService"


def test_every_example_is_deployed_and_has_a_page() -> None:
    names = {file.stem for file in EXAMPLES.glob("*.py")}
    assert names == {"existing_cluster", "slurm_cluster", "lustre_with_efa", "quotas", "stage_in_pipeline"}
    pages = (EXAMPLES / "index.md").read_text()
    assert all(f"{name}.py" in pages for name in names)
