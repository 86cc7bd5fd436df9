"""Teardown of real stacks in the sandbox, with what services and people leave in them."""

import argparse
import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cloudformation_cli import CloudFormationCdk
from podwright.config.catalog.sandbox_account import SANDBOX_ACCOUNT
from podwright.config.errors import CommandError
from podwright.operations.aws.account import Account
from podwright.operations.aws.sandbox_server import Running
from podwright.operations.cdk.cli import Synthesized
from podwright.operations.cdk.inputs import SynthesisInputs
from podwright.operations.cdk.progress import Progress
from podwright.operations.teardown import command as destroy
from podwright.operations.teardown import network as teardown_network
from podwright.operations.teardown.record import left_behind
from sandbox_stacks import StackUnderTest

REGION = "us-west-2"
FILE = f"""
account: "{SANDBOX_ACCOUNT}"
region: {REGION}
network: {{zones: [usw2-az1, usw2-az2]}}
instance_groups: {{system: {{instance_type: ml.m5.4xlarge, count: 2}}}}
"""
GUARDDUTY = [{"Key": "GuardDutyManaged", "Value": "true"}]
_numbers = itertools.count(1)


class CdkWithoutApp(CloudFormationCdk):
    """Deletes stacks that a test made by hand, so there is nothing to synthesize."""

    @contextmanager
    def synthesized(
        self, progress: Progress, *, validated: bool = False, incomplete: bool = False
    ) -> Iterator[Synthesized]:
        yield Synthesized(self.project)


class SandboxEnvironment:
    """An environment of its own in the sandbox."""

    def __init__(self, project: Path, name: str, account: Account) -> None:
        self.project, self.name, self.account = project, name, account
        self.cdk = CdkWithoutApp(project, name, SynthesisInputs(project, {}, {}), self.account, project / "log")

    def client(self, service: str) -> Any:
        return self.account.client(service)

    def stack(
        self, kind: str, resources: dict[str, Any], *, protected: bool = False, **sections: Any
    ) -> StackUnderTest:
        stack = StackUnderTest(self.client("cloudformation"), f"{self.name}-{kind}")
        status = stack.create(resources, options={"EnableTerminationProtection": protected}, **sections)
        assert status == "CREATE_COMPLETE", stack.log()
        return stack

    def network(self, policy: str = "Delete", *, protected: bool = False) -> tuple[str, str]:
        """A network stack; gives VPC and subnet."""
        vpc = {"Type": "AWS::EC2::VPC", "DeletionPolicy": policy, "Properties": {"CidrBlock": "10.9.0.0/16"}}
        subnet = {
            "Type": "AWS::EC2::Subnet",
            "DeletionPolicy": policy,
            "Properties": {"VpcId": {"Ref": "Vpc"}, "CidrBlock": "10.9.0.0/24", "AvailabilityZoneId": "usw2-az1"},
        }
        export = {"Vpc": {"Value": {"Ref": "Vpc"}, "Export": {"Name": f"{self.name}-vpc"}}}
        made = self.stack("network", {"Vpc": vpc, "Subnet": subnet}, protected=protected, Outputs=export)
        return made.physical_id("Vpc"), made.physical_id("Subnet")

    def bucket(self, kind: str, name: str, policy: str, *, protected: bool = False) -> str:
        """A stack with a versioned bucket that holds two versions and a marker of an object."""
        bucket = f"{self.name}-{name}-{SANDBOX_ACCOUNT}"
        versioned = {"BucketName": bucket, "VersioningConfiguration": {"Status": "Enabled"}}
        resource = {"Type": "AWS::S3::Bucket", "DeletionPolicy": policy, "Properties": versioned}
        self.stack(kind, {"Bucket": resource}, protected=protected)
        s3 = self.client("s3")
        for body in (b"one", b"two"):
            s3.put_object(Bucket=bucket, Key="checkpoint", Body=body)
        s3.delete_object(Bucket=bucket, Key="checkpoint")
        return bucket

    def guardduty(self, vpc: str, subnet: str) -> tuple[str, str]:
        """The endpoint and the group that GuardDuty makes in a VPC whose nodes it watches."""
        ec2 = self.client("ec2")
        tags = lambda kind: [{"ResourceType": kind, "Tags": GUARDDUTY}]  # noqa: E731
        group = ec2.create_security_group(
            GroupName=f"GuardDutyManagedSecurityGroup-{vpc}",
            Description="Associated with VPC endpoint",
            VpcId=vpc,
            TagSpecifications=tags("security-group"),
        )["GroupId"]
        endpoint = ec2.create_vpc_endpoint(
            VpcEndpointType="Interface",
            VpcId=vpc,
            ServiceName=f"com.amazonaws.{REGION}.guardduty-data",
            SubnetIds=[subnet],
            SecurityGroupIds=[group],
            TagSpecifications=tags("vpc-endpoint"),
        )["VpcEndpoint"]["VpcEndpointId"]
        return endpoint, group

    def names(self) -> set[str]:
        """The stacks that are there."""
        pages = self.client("cloudformation").get_paginator("describe_stacks").paginate()
        stack_names = {stack["StackName"] for page in pages for stack in page["Stacks"]}
        return {name.removeprefix(f"{self.name}-") for name in stack_names if name.startswith(f"{self.name}-")}

    def destroy(self, *options: str) -> None:
        parser = argparse.ArgumentParser()
        destroy.add_arguments(parser)
        args = parser.parse_args([self.name, *options])
        args.project = self.project
        assert destroy.run(args) == 0

    def plan(self, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
        self.destroy("--dry-run", "--json", *options)
        return json.loads(capsys.readouterr().out)


@pytest.fixture(scope="module")
def account(sandbox: Running) -> Account:
    """One for all tests: making its clients takes longer than the tests do."""
    return Account(SANDBOX_ACCOUNT, REGION, sandbox.endpoint, {})


@pytest.fixture
def simulated(account: Account, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SandboxEnvironment:
    name = f"bye{next(_numbers)}"
    (tmp_path / "environments").mkdir()
    (tmp_path / f"environments/{name}.yaml").write_text(FILE)
    made = SandboxEnvironment(tmp_path, name, account)
    monkeypatch.setattr(destroy, "cdk_for", lambda *_: made.cdk)
    monkeypatch.setattr(teardown_network, "_POLL_SECONDS", 0.05)
    return made


def test_what_guardduty_and_kubernetes_leave_behind_goes_with_the_network(
    simulated: SandboxEnvironment, aws: Callable[[str], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    ec2 = aws("ec2")
    vpc, subnet = simulated.network()
    endpoint, group = simulated.guardduty(vpc, subnet)
    left = ec2.create_network_interface(SubnetId=subnet, Description="aws-K8S-i-0123456789abcdef0")
    interface = left["NetworkInterface"]["NetworkInterfaceId"]
    # CloudFormation alone does not get rid of it, and says so in EC2's words.
    stuck = StackUnderTest(aws("cloudformation"), f"{simulated.name}-network")
    assert stuck.delete() == "DELETE_FAILED"
    assert f"The subnet '{subnet}' has dependencies and cannot be deleted." in stuck.reasons("Subnet")

    plan = simulated.plan(capsys)
    assert {(item["kind"], item["name"], item["by"]) for item in plan["blockers"]} == {
        ("guardduty endpoint", endpoint, "podwright"),
        ("guardduty group", group, "podwright"),
        ("interface", interface, "podwright"),
    }
    (stack,) = plan["stacks"]
    assert (stack["action"], stack["order"]) == ("retry", 1)
    assert any("has dependencies and cannot be deleted" in reason for reason in stack["reasons"])
    simulated.destroy("--yes")
    assert simulated.names() == set()
    assert ec2.describe_vpcs(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["Vpcs"] == []
    output = capsys.readouterr().err
    assert f"deleted {interface}: the VPC CNI left it behind" in output


def test_a_group_of_guardduty_alone_keeps_the_vpc(simulated: SandboxEnvironment, aws: Callable[[str], Any]) -> None:
    vpc, _ = simulated.network()
    tags = [{"ResourceType": "security-group", "Tags": GUARDDUTY}]
    aws("ec2").create_security_group(GroupName="g", Description="x", VpcId=vpc, TagSpecifications=tags)
    stuck = StackUnderTest(aws("cloudformation"), f"{simulated.name}-network")
    assert stuck.delete() == "DELETE_FAILED"
    assert f"The vpc '{vpc}' has dependencies and cannot be deleted." in stuck.reasons("Vpc")
    simulated.destroy("--yes")
    assert simulated.names() == set()


def test_an_adopted_network_is_left_alone(
    simulated: SandboxEnvironment, aws: Callable[[str], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    ec2 = aws("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.0.0/24")["Subnet"]["SubnetId"]
    endpoint, _ = simulated.guardduty(vpc, subnet)
    group = {"Type": "AWS::EC2::SecurityGroup", "Properties": {"GroupDescription": "nodes", "VpcId": vpc}}
    simulated.stack("network", {"Nodes": group})
    assert simulated.plan(capsys)["blockers"] == []
    simulated.destroy("--yes")
    assert simulated.names() == set()
    vpc_endpoints = ec2.describe_vpc_endpoints(VpcEndpointIds=[endpoint])["VpcEndpoints"]
    assert vpc_endpoints[0]["State"] == "available"


def test_what_is_somebody_elses_stops_it_unless_its_stack_is_left(
    simulated: SandboxEnvironment, aws: Callable[[str], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    ec2 = aws("ec2")
    vpc, subnet = simulated.network()
    own = ec2.create_network_interface(SubnetId=subnet, Description="of my proxy")
    own = own["NetworkInterface"]["NetworkInterfaceId"]
    second = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.1.0/24")["Subnet"]["SubnetId"]
    tag = [{"Key": "elbv2.k8s.aws/cluster", "Value": "prod"}]
    balancer = aws("elbv2").create_load_balancer(Name=simulated.name, Subnets=[subnet, second], Tags=tag)
    arn = balancer["LoadBalancers"][0]["LoadBalancerArn"]
    simulated.stack("eks", {"Topic": {"Type": "AWS::SNS::Topic"}})
    plan = simulated.plan(capsys)
    mine = {item["kind"]: (item["name"], item["by"]) for item in plan["blockers"]}
    assert mine["load balancer"] == (arn, "you")
    assert mine["interface"][1] == "you"
    with pytest.raises(
        CommandError, match=f"load balancer {simulated.name} was made by a controller in the cluster, and"
    ) as caught:
        simulated.destroy("--yes")
    assert "delete its Service or Ingress before the cluster" in caught.value.hint
    assert f"delete-network-interface --network-interface-id {own}" in caught.value.hint
    assert simulated.names() == {"network", "eks"}
    simulated.destroy("--yes", "--leave-blocked")
    assert simulated.names() == {"network"}
    aws("elbv2").delete_load_balancer(LoadBalancerArn=arn)
    ec2.delete_network_interface(NetworkInterfaceId=own)
    ec2.delete_subnet(SubnetId=second)
    simulated.destroy("--yes")
    assert simulated.names() == set()


def test_a_bucket_with_versions_is_emptied_only_when_it_is_named(
    simulated: SandboxEnvironment, aws: Callable[[str], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    bucket = simulated.bucket("storage", "checkpoints", "Delete")
    (actual,) = simulated.plan(capsys)["blockers"]
    assert (actual["kind"], actual["by"]) == ("bucket", "you")
    assert "3 object versions, 0.0 MiB" in actual["why"]
    with pytest.raises(CommandError, match="is not empty") as caught:
        simulated.destroy("--yes")
    assert f"--empty-bucket {bucket}" in caught.value.hint
    assert simulated.names() == {"storage"}
    simulated.destroy("--yes", "--empty-bucket", bucket)
    assert simulated.names() == set()
    assert bucket not in [item["Name"] for item in aws("s3").list_buckets()["Buckets"]]


def test_what_is_retained_stays_is_recorded_and_goes_when_it_is_named(
    simulated: SandboxEnvironment, aws: Callable[[str], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    bucket = simulated.bucket("storage", "lake", "Retain", protected=True)
    assert [(item["name"], item["action"]) for item in simulated.plan(capsys)["stacks"]] == [
        (f"{simulated.name}-storage", "keep")
    ]
    with pytest.raises(CommandError, match=r"belongs to .*-storage, which stays") as caught:
        simulated.destroy("--yes", "--delete-data", bucket)
    assert f"--unprotect {simulated.name}-storage" in caught.value.hint
    simulated.destroy("--yes", "--unprotect", f"{simulated.name}-storage")
    assert simulated.names() == set()
    printed = capsys.readouterr().out
    assert f"left: AWS::S3::Bucket {bucket} (3 object versions" in printed
    assert f"podwright destroy {simulated.name} --delete-data {bucket}" in printed
    assert bucket in [item["Name"] for item in aws("s3").list_buckets()["Buckets"]]
    (retained,) = simulated.plan(capsys)["kept"]
    assert (retained["name"], retained["costs"]) == (bucket, True)
    # As the record says it, long after the stack.
    simulated.destroy("--yes", "--delete-data", bucket)
    assert bucket not in [item["Name"] for item in aws("s3").list_buckets()["Buckets"]]
    assert left_behind(simulated.project, simulated.name, SANDBOX_ACCOUNT, REGION) == []


def test_a_rehearsal_ends_with_nothing_left(simulated: SandboxEnvironment, aws: Callable[[str], Any]) -> None:
    vpc, subnet = simulated.network("Retain", protected=True)
    zone = {"VpcId": vpc, "CidrBlock": "10.9.1.0/24", "AvailabilityZoneId": "usw2-az2"}
    role = aws("iam").create_role(RoleName=simulated.name, AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    cluster = {
        "Name": simulated.name,
        "RoleArn": role,
        "DeletionProtection": True,
        "ResourcesVpcConfig": {"SubnetIds": [subnet, {"Ref": "Other"}]},
    }
    eks = {
        "Other": {"Type": "AWS::EC2::Subnet", "Properties": zone},
        "Cluster": {"Type": "AWS::EKS::Cluster", "Properties": cluster},
    }
    simulated.stack("eks", eks)
    buckets = {simulated.bucket("storage", "a", "Retain", protected=True), simulated.bucket("capacity", "b", "Delete")}
    simulated.destroy("--dry-run", "--sandbox", "--yes")
    assert len(simulated.names()) == 4
    simulated.destroy("--sandbox", "--yes")
    assert simulated.names() == set()
    assert buckets.isdisjoint(item["Name"] for item in aws("s3").list_buckets()["Buckets"])
    assert aws("ec2").describe_vpcs(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["Vpcs"] == []


def test_a_peering_with_a_worker_goes_with_the_network(
    simulated: SandboxEnvironment, aws: Callable[[str], Any]
) -> None:
    ec2 = aws("ec2")
    vpc, _ = simulated.network()
    other = ec2.create_vpc(CidrBlock="10.8.0.0/16")["Vpc"]["VpcId"]
    tags = [{"Key": "Name", "Value": f"podwright-{simulated.name}-worker"}]
    ec2.create_vpc_peering_connection(
        VpcId=vpc, PeerVpcId=other, TagSpecifications=[{"ResourceType": "vpc-peering-connection", "Tags": tags}]
    )
    stuck = StackUnderTest(aws("cloudformation"), f"{simulated.name}-network")
    assert stuck.delete() == "DELETE_FAILED"
    assert f"The vpc '{vpc}' has dependencies and cannot be deleted." in stuck.reasons("Vpc")
    simulated.destroy("--yes")
    assert simulated.names() == set()


def test_a_retained_network_goes_piece_by_piece_when_it_is_named(
    simulated: SandboxEnvironment, aws: Callable[[str], Any]
) -> None:
    vpc, subnet = simulated.network("Retain")
    simulated.guardduty(vpc, subnet)
    simulated.destroy("--yes")
    assert simulated.names() == set()
    vpc_endpoints = aws("ec2").describe_vpc_endpoints(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["VpcEndpoints"]
    assert [item["State"] for item in vpc_endpoints] == ["available"]  # a network that stays keeps what is in it
    simulated.destroy("--yes", "--delete-data", vpc, "--delete-data", subnet)
    assert aws("ec2").describe_vpcs(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["Vpcs"] == []


def test_a_stack_whose_export_somebody_imports_is_named(
    simulated: SandboxEnvironment, aws: Callable[[str], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    simulated.network()
    value = {
        "Type": "AWS::SSM::Parameter",
        "Properties": {"Type": "String", "Value": {"Fn::ImportValue": f"{simulated.name}-vpc"}},
    }
    other = StackUnderTest(aws("cloudformation"))
    assert other.create({"Parameter": value}) == "CREATE_COMPLETE"
    foreign = simulated.stack("website", {"Topic": {"Type": "AWS::SNS::Topic"}})
    plan = simulated.plan(capsys)
    (actual,) = plan["blockers"]
    assert (actual["kind"], actual["by"]) == ("export", "you")
    assert f"{other.name} imports {simulated.name}-vpc" in actual["why"]
    with pytest.raises(CommandError, match=f"{other.name} imports"):
        simulated.destroy("--yes")
    assert other.delete() == "DELETE_COMPLETE"
    simulated.destroy("--yes")
    # A stack of somebody's whose name begins with the environment's is none of its stacks.
    assert simulated.names() == {"website"}
    foreign.delete()


def test_file_systems_and_keys_that_are_named_go_in_an_order_that_works(
    simulated: SandboxEnvironment,
    aws: Callable[[str], Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from podwright.operations.teardown import data

    monkeypatch.setattr(data, "_POLL_SECONDS", 0.05)
    vpc, subnet = simulated.network("Retain")
    group = {
        "Type": "AWS::EC2::SecurityGroup",
        "DeletionPolicy": "Retain",
        "Properties": {"GroupDescription": "lustre", "VpcId": vpc},
    }
    lustre = {
        "Type": "AWS::FSx::FileSystem",
        "DeletionPolicy": "Retain",
        "Properties": {
            "FileSystemType": "LUSTRE",
            "StorageCapacity": 1200,
            "SubnetIds": [subnet],
            "SecurityGroupIds": [{"Ref": "Group"}],
            "LustreConfiguration": {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 125},
        },
    }
    key = {"Type": "AWS::KMS::Key", "DeletionPolicy": "Retain", "Properties": {"KeyPolicy": {"Statement": []}}}
    storage = simulated.stack("storage", {"Group": group, "Lustre": lustre, "Key": key})
    system, secret = storage.physical_id("Lustre"), storage.physical_id("Key")
    retained = {item["name"]: item for item in simulated.plan(capsys)["kept"]}
    assert retained[system]["holds"] == "1,200 GiB"
    named = [vpc, secret, subnet, storage.physical_id("Group"), system]
    simulated.destroy("--yes", *(word for name in named for word in ("--delete-data", name)))
    assert system not in {item["FileSystemId"] for item in aws("fsx").describe_file_systems()["FileSystems"]}
    assert aws("kms").describe_key(KeyId=secret)["KeyMetadata"]["KeyState"] == "PendingDeletion"
    assert aws("ec2").describe_vpcs(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["Vpcs"] == []


def test_what_the_stacks_have_made_is_in_nobodys_way(
    simulated: SandboxEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    """Interfaces of NAT gateways and endpoints go with them, described or not."""
    vpc = {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.9.0.0/16"}}
    subnet = {"Type": "AWS::EC2::Subnet", "Properties": {"VpcId": {"Ref": "Vpc"}, "CidrBlock": "10.9.0.0/24"}}
    address = {"Type": "AWS::EC2::EIP", "Properties": {"Domain": "vpc"}}
    nat = {"SubnetId": {"Ref": "Subnet"}, "AllocationId": {"Fn::GetAtt": ["Address", "AllocationId"]}}
    service = {"VpcId": {"Ref": "Vpc"}, "ServiceName": f"com.amazonaws.{REGION}.sts", "VpcEndpointType": "Interface"}
    endpoint = {"Type": "AWS::EC2::VPCEndpoint", "Properties": {**service, "SubnetIds": [{"Ref": "Subnet"}]}}
    gateway = {"Type": "AWS::EC2::NatGateway", "Properties": nat}
    made = {"Vpc": vpc, "Subnet": subnet, "Address": address, "Nat": gateway, "Endpoint": endpoint}
    stack = simulated.stack("network", made)
    network_interfaces = simulated.client("ec2").describe_network_interfaces(
        Filters=[{"Name": "subnet-id", "Values": [stack.physical_id("Subnet")]}]
    )["NetworkInterfaces"]
    assert len(network_interfaces) == 2
    assert simulated.plan(capsys)["blockers"] == []
    simulated.destroy("--yes")
    assert simulated.names() == set()
