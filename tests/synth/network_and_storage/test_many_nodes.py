"""Clusters with more nodes than one subnet holds: 25,000 GPUs in one zone."""

from pathlib import Path
from typing import Any

import pytest

from podwright.config.loading.load import LoadedEnvironment, environment_from
from podwright.config.loading.source import parse_source
from podwright.operations import cli
from podwright.planning.rules.run import findings
from synthesis import environment_of, synthesize

# 3,125 × 8 = 25,000 GPUs. Of 50 addresses each a /16 holds 1,310 nodes.
FILE = """
account: "111122223333"
region: us-west-2
network:
  zones: [usw2-az2, usw2-az3]
  secondary_cidrs: [100.64.0.0/16, 100.65.0.0/16, 100.66.0.0/16]
  subnets:
    usw2-az2: {more_nodes: [100.66.0.0/16, 100.64.0.0/16, 100.65.0.0/16]}
storage: {lustre: {zone: usw2-az2, backups: {}}}
cluster: {eks: {admins: ["arn:aws:iam::111122223333:role/MlPlatform"]}}
instance_groups:
  system: {instance_type: ml.m5.4xlarge, count: 2, zones: [usw2-az2, usw2-az3]}
  h200: {instance_type: ml.p5en.48xlarge, count: 3125, zone: usw2-az2, network_interface: efa-only}
acknowledge:
  - {rule: NET017, reason: AWS raised Network Address Usage of the VPC to 256000}
"""
ONE_SUBNET = FILE.replace("more_nodes: [100.66.0.0/16, 100.64.0.0/16, 100.65.0.0/16]", "nodes: 100.64.0.0/16")
BEFORE = FILE.replace("    usw2-az2: {more_nodes: [100.66.0.0/16, 100.64.0.0/16, 100.65.0.0/16]}", "    usw2-az2: {}")


def loaded(text: str) -> LoadedEnvironment:
    return environment_from(parse_source(text, "many.yaml"), "many")


def found(text: str, id: str) -> Any:
    return next((finding for finding in findings(loaded(text).environment) if finding.id == id), None)


def test_25000_gpus_pass_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments/many.yaml").write_text(FILE)
    assert cli.main(["check", "many", "--project", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "error" not in printed
    assert "AWS raised Network Address Usage" in printed


def test_one_subnet_holds_no_3125_nodes_and_the_hint_names_what_is_not_there_yet() -> None:
    finding = found(ONE_SUBNET, "NET013")
    assert "3125 × 50 = 156,250" in finding.message
    assert "65,531" in finding.message
    assert "network.subnets.usw2-az2.more_nodes" in finding.hint
    # It is set already.
    assert "efa-only" not in finding.hint
    without = found(ONE_SUBNET.replace(", network_interface: efa-only", ""), "NET013")
    assert "set `network_interface: efa-only` on h200" in without.hint


def test_nodes_lie_in_one_subnet_each() -> None:
    """A /26 of 59 addresses holds one node of 50, so three of these hold three, though they have 177 addresses."""
    small = FILE.replace("100.66.0.0/16, 100.64.0.0/16, 100.65.0.0/16]", "100.64.0.0/26, 100.65.0.0/26]").replace(
        "    usw2-az2: {", "    usw2-az2: {nodes: 100.66.0.0/26, "
    )
    small = small.replace("zones: [usw2-az2, usw2-az3]}", "zone: usw2-az3}")
    assert found(small.replace("3125", "3"), "NET013") is None
    finding = found(small.replace("3125", "4"), "NET013")
    assert "nodes of 50 addresses in 50 + 50 + 50 = 150" in finding.message


def test_units_of_address_usage_count_interfaces_without_an_address() -> None:
    unaccepted = FILE[: FILE.index("acknowledge")]
    assert "h200 3,125 × 66 = 206,310 units" in found(unaccepted, "NET017").message
    assert found(FILE.replace("3125", "4000"), "NET018") is not None


def test_groups_get_all_subnets_of_their_zone_and_existing_ones_stay() -> None:
    before, after = synthesize(environment_of(BEFORE, name="many")), synthesize(environment_of(FILE, name="many"))
    old, new = before.resources("AWS::EC2::Subnet"), after.resources("AWS::EC2::Subnet")
    assert {key: new[key] for key in old} == old
    further = {key: new[key]["Properties"] for key in new.keys() - old.keys()}
    assert {subnet["CidrBlock"] for subnet in further.values()} == {f"100.{part}.0.0/16" for part in (64, 65, 66)}
    assert {subnet["AvailabilityZoneId"] for subnet in further.values()} == {"usw2-az2"}
    for key in further:
        # EC2 refuses a subnet in a range that the VPC does not have yet.
        (needed,) = new[key]["DependsOn"]
        assert after.templates["network"]["Resources"][needed]["Type"] == "AWS::EC2::VPCCidrBlock"
    (cluster,) = after.resources("AWS::SageMaker::Cluster").values()
    groups = {group["InstanceGroupName"]: group for group in cluster["Properties"]["InstanceGroups"]}
    subnets = groups["h200"]["OverrideVpcConfig"]["Subnets"]
    assert len(subnets) == 4
    assert len(groups["system"]["OverrideVpcConfig"]["Subnets"]) == 5
    # The cluster's own subnet is create-only.
    assert cluster["Properties"]["VpcConfig"]["Subnets"] == [subnets[0]]
    # Image layers and scripts come through the gateway endpoint of S3, from each subnet.
    (gateway,) = [
        item["Properties"]
        for item in after.resources("AWS::EC2::VPCEndpoint").values()
        if item["Properties"]["VpcEndpointType"] == "Gateway"
    ]
    assert len(gateway["RouteTableIds"]) == len(new) - 2


def test_an_adopted_network_names_further_subnets() -> None:
    adopted = """
  zones: [usw2-az2, usw2-az3]
  vpc:
    id: vpc-0123456789abcdef0
    cidr: 10.0.0.0/8
    subnets:
      usw2-az2:
        nodes: subnet-0123456789abcdef1
        nodes_cidr: 10.1.0.0/16
        control_plane: subnet-0123456789abcdef8
        more_nodes: {subnet-0123456789abcdef3: 10.3.0.0/16, subnet-0123456789abcdef2: 10.2.0.0/16}
      usw2-az3:
        nodes: subnet-0123456789abcdef4
        nodes_cidr: 10.4.0.0/16
        control_plane: subnet-0123456789abcdef9
"""
    text = FILE[: FILE.index("\n  zones")] + adopted + FILE[FILE.index("storage:") :]
    (cluster,) = synthesize(environment_of(text, name="many")).resources("AWS::SageMaker::Cluster").values()
    groups = {group["InstanceGroupName"]: group for group in cluster["Properties"]["InstanceGroups"]}
    assert groups["h200"]["OverrideVpcConfig"]["Subnets"] == [f"subnet-0123456789abcdef{part}" for part in (1, 2, 3)]
    assert found(text.replace("10.2.0.0/16", "10.9.0.0/20"), "NET013").hint.startswith(
        "name further subnets of usw2-az2 with"
    )
