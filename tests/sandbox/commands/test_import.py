"""Clusters that somebody made by calls of their own, read into environment files."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse

from governed_cluster import GovernedCluster, quota, until
from podwright.config.errors import CommandError
from podwright.config.loading.load import load_environment
from podwright.config.settings.environment import Environment
from podwright.config.settings.governance.task_governance import ADDON
from podwright.operations.adoption.differences import compare
from podwright.operations.adoption.reading import RunningCluster, read
from podwright.operations.adoption.settings import environment_settings
from podwright.operations.aws.account import Account
from podwright.operations.aws.calls import Reader
from podwright.operations.aws.sandbox_server import Running
from podwright.planning.rules import findings
from sandbox_network import surroundings

Aws = Callable[[str], Any]
REGION, ACCOUNT = "us-west-2", "123456789012"


@pytest.fixture
def account(sandbox: Running) -> Account:
    return Account(ACCOUNT, REGION, sandbox.endpoint, {})


@pytest.fixture(scope="module")
def on_eks(aws: Aws) -> GovernedCluster:
    """A cluster with a file system that its scripts mount, an administrator, and a team."""
    cluster = GovernedCluster(aws, "Consoled")
    around = cluster.around
    system = aws("fsx").create_file_system(
        FileSystemType="LUSTRE",
        StorageCapacity=1200,
        SubnetIds=around.subnets[:1],
        SecurityGroupIds=[around.security_group],
        LustreConfiguration={"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 125},
    )["FileSystem"]
    bucket, _, prefix = around.scripts.removeprefix("s3://").partition("/")
    body = f"mount -t lustre {system['DNSName']}@tcp:/x /fsx".encode()
    aws("s3").put_object(Bucket=bucket, Key=f"{prefix}mount.sh", Body=body)
    principal = {"clusterName": cluster.name, "principalArn": around.role}
    aws("eks").create_access_entry(**principal)
    policy = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
    aws("eks").associate_access_policy(**principal, policyArn=policy, accessScope={"type": "cluster"})
    aws("sagemaker").create_compute_quota(Name="q-research", ClusterArn=cluster.arn, **quota("research", 1))
    until(lambda: aws("sagemaker").describe_cluster(ClusterName=cluster.name)["InstanceGroups"][0]["TargetCount"] == 2)
    return cluster


def written(running: RunningCluster, name: str, folder: Path) -> Environment:
    (folder / f"{name}.yaml").write_text(environment_settings(running, name).text("# head"))
    loaded = load_environment(folder / f"{name}.yaml")
    assert [item for item in findings(loaded.environment, loaded.source) if str(item.level) == "error"] == []
    return loaded.environment


def test_a_cluster_of_the_console(on_eks: GovernedCluster, aws: Aws, account: Account, tmp_path: Path) -> None:
    running = read(account, "Consoled")
    assert running.gaps == []
    environment = written(running, "consoled", tmp_path)
    around, adopted = on_eks.around, environment.cluster.eks.existing
    vpc, lustre = environment.network.vpc, environment.storage.lustre
    assert vpc is not None
    assert adopted is not None
    assert lustre is not None
    assert lustre.existing is not None
    assert (environment.cluster.name, vpc.security_group) == ("Consoled", around.security_group)
    assert [each.nodes for each in vpc.subnets.values()] == around.subnets[:1]
    assert (adopted.name, adopted.kubectl_role) == ("Consoled", around.role)
    (system,) = aws("fsx").describe_file_systems(FileSystemIds=[lustre.existing.id])["FileSystems"]
    assert lustre.existing.mount_name == system["LustreConfiguration"]["MountName"]
    group = environment.instance_groups["h200"]
    assert (group.count, group.role, group.lifecycle and group.lifecycle.source) == (2, around.role, around.scripts)
    assert environment.governance.teams["research"].quota["ml.p5en.48xlarge"].instances == 1

    actual = compare(running, "consoled", tmp_path / "consoled.yaml", tmp_path, sandbox=True)
    named, by_default = "podwright names subnets and security groups for every group", "AWS's default"
    words = {
        "InstanceGroups[h200].CapacityRequirements.OnDemand": "HyperPod's default, written out",
        "InstanceGroups[h200].OverrideVpcConfig.SecurityGroupIds": named,
        "InstanceGroups[h200].OverrideVpcConfig.Subnets": named,
        "NodeRecovery": by_default,
        "Tags": "podwright tags what it deploys",
        "ComputeQuotaConfig.PreemptTeamTasks": by_default,
        "ComputeQuotaConfig.ResourceSharingConfig.BorrowLimit": by_default,
        "ComputeQuotaConfig.ResourceSharingConfig.Strategy": by_default,
    }
    assert {item.property for item in actual.deviations} == words.keys()
    assert all(item.now is None and words[item.property] in item.why for item in actual.deviations)


@pytest.fixture(scope="module")
def with_home(aws: Aws) -> GovernedCluster:
    """A cluster with home folders of OpenZFS that its scripts mount, and add-ons with settings."""
    cluster = GovernedCluster(aws, "homely")
    around = cluster.around
    configuration = {"DeploymentType": "SINGLE_AZ_2", "ThroughputCapacity": 320, "AutomaticBackupRetentionDays": 3}
    systems = [
        aws("fsx").create_file_system(
            FileSystemType="OPENZFS",
            StorageCapacity=128,
            SubnetIds=around.subnets[:1],
            SecurityGroupIds=[around.security_group],
            OpenZFSConfiguration=configuration,
        )["FileSystem"]
        for _ in range(2)
    ]
    bucket, _, prefix = around.scripts.removeprefix("s3://").partition("/")
    body = "\n".join(f"mount -t nfs {system['DNSName']}:/fsx /home" for system in systems).encode()
    aws("s3").put_object(Bucket=bucket, Key=f"{prefix}mount.sh", Body=body)
    eks = aws("eks")
    of_cluster = {"clusterName": cluster.name}
    network = {"configurationValues": "enableNetworkPolicy: 'true'", "serviceAccountRoleArn": around.role}
    eks.update_addon(**of_cluster, addonName=ADDON, configurationValues='{"replicas": 2}')
    eks.create_addon(**of_cluster, addonName="vpc-cni", **network)
    aws("sagemaker").create_compute_quota(Name="q-vision", ClusterArn=cluster.arn, **quota("vision", 1))
    return cluster


def test_home_folders_and_settings_of_addons(
    with_home: GovernedCluster, aws: Aws, account: Account, tmp_path: Path
) -> None:
    running = read(account, "homely")
    environment = written(running, "homely", tmp_path)
    text = (tmp_path / "homely.yaml").read_text()
    home = environment.storage.home
    assert home
    assert home.openzfs.existing
    first, second = sorted(running.file_systems)
    assert (home.openzfs.existing.id, home.openzfs.existing.security_group) == (first, with_home.around.security_group)
    assert (home.openzfs.zone, home.openzfs.mount) == ("usw2-az1", "/home")
    comments = " ".join(line.strip().removeprefix("# ") for line in text.splitlines())
    assert "It stays as it was made: 128 GiB, SINGLE_AZ_2, 320 MB/s, backups of 3 days." in comments
    assert f"OPENZFS {second} is left out: a file has one of OpenZFS" in comments
    # Task governance is installed by the file as well, and the VPC CNI stays with the cluster's owner.
    eks, version = environment.cluster.eks, aws("eks").describe_addon(clusterName="homely", addonName=ADDON)
    assert eks.addons == {ADDON: version["addon"]["addonVersion"]}
    assert json.loads(eks.addon_configurations[ADDON]) == {"replicas": 2}
    assert '{"enableNetworkPolicy": "true"}' in comments
    assert f"and role {with_home.around.role}" in comments

    actual = compare(running, "homely", tmp_path / "homely.yaml", tmp_path, sandbox=True)
    assert [item for item in actual.deviations if item.resource.startswith("AWS::EKS::Addon")] == []


def test_another_configuration_of_an_addon_is_a_difference(
    with_home: GovernedCluster, account: Account, tmp_path: Path
) -> None:
    running = read(account, "homely")
    written(running, "homely", tmp_path)
    changed = {**running.addons[ADDON], "configurationValues": "replicas: 3", "serviceAccountRoleArn": "arn:aws:iam::x"}
    other = replace(running, addons={**running.addons, ADDON: changed})
    actual = compare(other, "homely", tmp_path / "homely.yaml", tmp_path, sandbox=True)
    of_addons = [item for item in actual.deviations if item.resource.startswith("AWS::EKS::Addon")]
    assert {(item.property, item.now, item.file) for item in of_addons} == {
        ("ConfigurationValues.replicas", 3, 2),
        ("ServiceAccountRoleArn", "arn:aws:iam::x", None),
    }


def test_slurm_by_the_file_beside_its_scripts(aws: Aws, account: Account, tmp_path: Path) -> None:
    around = surroundings(aws)
    bucket = around.scripts.removeprefix("s3://").partition("/")[0]
    parameters = {
        "workload_manager": "slurm",
        "controller_group": "head",
        "worker_groups": [{"instance_group_name": "gpu", "partition_name": "training"}],
    }
    key = "scripts/provisioning_parameters.json"
    aws("s3").put_object(Bucket=bucket, Key=key, Body=json.dumps(parameters).encode())
    shared = {
        "ExecutionRole": around.role,
        "LifeCycleConfig": {"SourceS3Uri": around.scripts, "OnCreate": "on_create.sh"},
    }
    groups = [("head", "ml.m5.4xlarge", 1), ("gpu", "ml.g5.2xlarge", 2)]
    aws("sagemaker").create_cluster(
        ClusterName="classic",
        VpcConfig={"Subnets": around.subnets, "SecurityGroupIds": [around.security_group]},
        InstanceGroups=[
            {"InstanceGroupName": name, "InstanceType": kind, "InstanceCount": count, **shared}
            for name, kind, count in groups
        ],
    )
    running = read(account, "classic")
    environment = written(running, "classic", tmp_path)
    assert environment.cluster.orchestrator == "slurm"
    assert environment.cluster.slurm.configuration == "provisioning_parameters"
    parts = {name: group.slurm for name, group in environment.instance_groups.items()}
    assert {name: (part.node_type, part.partition) for name, part in parts.items() if part} == {
        "head": ("controller", None),
        "gpu": ("compute", "training"),
    }
    # Without subnets of its own a group has those of the cluster, in both zones.
    assert environment.instance_groups["gpu"].zones == ("usw2-az1", "usw2-az2")


def test_a_name_that_is_nearly_right(on_eks: GovernedCluster, account: Account) -> None:
    with pytest.raises(CommandError, match="no HyperPod cluster Consold in us-west-2") as stop:
        read(account, "Consold")
    assert stop.value.hint == "did you mean Consoled?"


def denied(sandbox: Running, *operations: str) -> Any:
    """The account for somebody who may not make some calls."""
    session = boto3.Session("sandbox", "sandbox", region_name=REGION)
    body = b'{"__type": "AccessDeniedException", "message": "not authorized"}'

    def refuse(request: Any, **_: Any) -> AWSResponse:
        raw = SimpleNamespace(stream=lambda *_, **__: iter([body]))
        return AWSResponse(request.url, 400, {"x-amzn-errortype": "AccessDeniedException"}, raw)

    def client(service: str) -> Any:
        made = session.client(service, endpoint_url=sandbox.endpoint)
        for operation in operations:
            made.meta.events.register(f"before-send.{operation}", refuse)
        return made

    return SimpleNamespace(id=ACCOUNT, region=REGION, reader=lambda _: Reader(client))


def test_what_may_not_be_read_is_named_in_the_file(on_eks: GovernedCluster, sandbox: Running, tmp_path: Path) -> None:
    running = read(denied(sandbox, "sagemaker.ListComputeQuotas", "fsx.DescribeFileSystems"), "Consoled")
    assert {gap.action for gap in running.gaps} == {"sagemaker:ListComputeQuotas", "fsx:DescribeFileSystems"}
    environment = written(running, "partly", tmp_path)
    assert environment.storage.lustre is None
    text = (tmp_path / "partly.yaml").read_text()
    assert "# Not read: quotas of teams: sagemaker list-compute-quotas: you may not make this call" in text
    assert "sagemaker:ListComputeQuotas is missing" in text


def test_what_no_file_can_do_without_stops_it(on_eks: GovernedCluster, sandbox: Running) -> None:
    with pytest.raises(CommandError, match="describe-cluster is not answered") as stop:
        read(denied(sandbox, "sagemaker.DescribeCluster"), "Consoled")
    assert stop.value.hint == "a role needs sagemaker:DescribeCluster for this"
