"""What an environment file of another account says exists is made for a rehearsal, once, under the ids of the file."""

from pathlib import Path
from typing import Any

import pytest

from podwright.config.errors import CommandError
from podwright.config.loading.load import load_environment
from podwright.config.settings.environment import Environment
from podwright.operations.aws.account import Account
from podwright.operations.aws.sandbox_server import Running
from podwright.operations.preflight.check import Outcome
from podwright.operations.preflight.inquiry import preflight
from podwright.operations.preflight.stand_ins import make_stand_ins

KEY = "arn:aws:kms:us-west-2:444455556666:key/0f0e0d0c-0b0a-4908-8706-050403020100"
FILE = f"""
account: "444455556666"
region: us-west-2
network:
  zones: [usw2-az1, usw2-az2]
  vpc:
    id: vpc-00000000000000001
    cidr: 10.7.0.0/16
    security_group: sg-00000000000000001
    subnets:
      usw2-az1: {{nodes: subnet-00000000000000001, nodes_cidr: 10.7.0.0/18, control_plane: subnet-00000000000000002}}
      usw2-az2: {{nodes: subnet-00000000000000003, nodes_cidr: 10.7.192.0/18}}
storage:
  kms_key: {KEY}
  buckets: {{checkpoints: theirs-checkpoints}}
  lustre:
    zone: usw2-az1
    existing: {{id: fs-00000000000000001, mount_name: abcdefgh, security_group: sg-00000000000000002}}
cluster:
  eks:
    existing:
      name: theirs
      security_group: sg-00000000000000003
      kubectl_role: arn:aws:iam::444455556666:role/path/Kubectl
instance_groups:
  system: {{instance_type: ml.m5.4xlarge, count: 2}}
"""


@pytest.fixture(scope="module")
def account(sandbox: Running) -> Account:
    return Account("444455556666", "us-west-2", sandbox.endpoint, {})


def environment_in(folder: Path, text: str = FILE) -> Any:
    (folder / "theirs.yaml").write_text(text)
    return load_environment(folder / "theirs.yaml")


def adopted(account: Account) -> dict[str, Any]:
    """What is there, as AWS's own operations show it."""
    vpc = [{"Name": "vpc-id", "Values": ["vpc-00000000000000001"]}]
    ec2, eks = account.client("ec2"), account.client("eks")
    return {
        "vpcs": [item["CidrBlock"] for item in ec2.describe_vpcs(Filters=vpc)["Vpcs"]],
        "subnets": {
            item["SubnetId"]: (item["CidrBlock"], item["AvailabilityZoneId"])
            for item in ec2.describe_subnets(Filters=vpc)["Subnets"]
        },
        "groups": {
            item["GroupId"]
            for item in ec2.describe_security_groups(Filters=vpc)["SecurityGroups"]
            if item["GroupName"] != "default"
        },
        "file systems": [
            (item["FileSystemId"], item["LustreConfiguration"]["MountName"])
            for item in account.client("fsx").describe_file_systems()["FileSystems"]
        ],
        "clusters": [
            eks.describe_cluster(name=name)["cluster"]["resourcesVpcConfig"]["clusterSecurityGroupId"]
            for name in eks.list_clusters()["clusters"]
        ],
        "key": account.client("kms").describe_key(KeyId=KEY)["KeyMetadata"]["Arn"],
        "buckets": [item["Name"] for item in account.client("s3").list_buckets()["Buckets"]],
        "administrators": eks.list_access_entries(clusterName="theirs")["accessEntries"],
    }


def test_all_of_it_is_made_once(account: Account, tmp_path: Path) -> None:
    environment: Environment = environment_in(tmp_path).environment
    make_stand_ins(environment, account)
    first = adopted(account)
    assert first == {
        "vpcs": ["10.7.0.0/16"],
        "subnets": {
            "subnet-00000000000000001": ("10.7.0.0/18", "usw2-az1"),
            # The file has no range for it: it gets the last one that is free.
            "subnet-00000000000000002": ("10.7.191.240/28", "usw2-az1"),
            "subnet-00000000000000003": ("10.7.192.0/18", "usw2-az2"),
        },
        "groups": {f"sg-0000000000000000{number}" for number in (1, 2, 3)},
        "file systems": [("fs-00000000000000001", "abcdefgh")],
        "clusters": ["sg-00000000000000003"],
        "key": KEY,
        "buckets": ["theirs-checkpoints"],
        "administrators": ["arn:aws:iam::444455556666:role/path/Kubectl"],
    }
    make_stand_ins(environment, account)
    assert adopted(account) == first


def test_preflight_finds_what_was_made(account: Account, tmp_path: Path) -> None:
    loaded = environment_in(tmp_path)
    make_stand_ins(loaded.environment, account)
    outcomes: list[Outcome] = preflight(loaded, account, tmp_path, seconds=120)
    missing = [item.message for outcome in outcomes for item in outcome.findings if "does not exist" in item.message]
    assert missing == []


def test_what_cannot_be_made_is_a_sentence(account: Account, tmp_path: Path) -> None:
    text = FILE.replace("usw2-az2: {nodes: subnet-00000000000000003", "usw2-az9: {nodes: subnet-00000000000000009")
    with pytest.raises(CommandError, match="us-west-2 has no zone usw2-az9"):
        make_stand_ins(environment_in(tmp_path, text).environment, account)
