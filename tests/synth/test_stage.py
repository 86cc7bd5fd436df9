"""How the parts of an environment meet: order, adoption, and what every resource carries."""

import json
from typing import Any

import pytest
from kubernetes_validate import validate

from podwright.cdk8s_charts.image_pulls import image_pulls
from podwright.config.catalog.images import Image
from podwright.operations.kubernetes.rendered import rendered
from podwright.planning.helm.own_images import BENCHMARK_LABELS_IMAGE, own_images
from podwright.planning.kubernetes.deployed_values import DeployedValues, value_paths
from synthesis import Synthesis, environment_of, synthesize

KEY = "arn:aws:kms:us-west-2:111122223333:key/01234567-89ab-cdef-0123-456789abcdef"
ROLE = "arn:aws:iam::111122223333:role/Nodes"
BASE = """
account: "111122223333"
region: us-west-2
network: {zones: [usw2-az1, usw2-az2]}
instance_groups:
  system: {instance_type: ml.m5.4xlarge, count: 2}
  h100: {instance_type: ml.p5.48xlarge, count: 2}
"""
ADOPTED = f"""
account: "111122223333"
region: us-west-2
network:
  zones: [usw2-az1, usw2-az2]
  vpc:
    id: vpc-0123456789abcdef0
    cidr: 10.0.0.0/16
    security_group: sg-0123456789abcdef0
    subnets:
      usw2-az1: {{nodes: subnet-0123456789abcdef1, control_plane: subnet-0123456789abcdef2, nodes_cidr: 10.0.0.0/20}}
      usw2-az2: {{nodes: subnet-0123456789abcdef3, control_plane: subnet-0123456789abcdef4, nodes_cidr: 10.0.16.0/20}}
storage:
  kms_key: {KEY}
  lustre:
    zone: usw2-az1
    existing: {{id: fs-0123456789abcdef0, mount_name: abcdefgh, security_group: sg-0123456789abcdef1}}
  buckets: {{lifecycle: sagemaker-acme, checkpoints: acme-checkpoints}}
cluster:
  eks:
    existing: {{name: shared, security_group: sg-0123456789abcdef2, kubectl_role: "{ROLE}"}}
instance_groups:
  system: {{instance_type: ml.m5.4xlarge, count: 2, role: "{ROLE}"}}
"""


@pytest.fixture(scope="module")
def plain() -> Synthesis:
    return synthesize(environment_of(BASE))


@pytest.fixture(scope="module")
def adopted() -> Synthesis:
    return synthesize(environment_of(ADOPTED))


def one(actual: dict[str, dict[str, Any]]) -> dict[str, Any]:
    assert len(actual) == 1
    return next(iter(actual.values()))


def test_the_cluster_waits_for_its_scripts_and_add_ons_wait_for_nodes(plain: Synthesis) -> None:
    cluster = one(plain.resources("AWS::SageMaker::Cluster"))
    resources = plain.templates["cluster"]["Resources"]
    # A node that boots before its role's policy is there could read no scripts; one that goes after it could not end.
    needs = {"Custom::PodwrightLifecycle", "AWS::IAM::Role", "AWS::IAM::Policy"}
    assert {resources[name]["Type"] for name in cluster["DependsOn"]} == needs
    for address, addon in plain.resources("AWS::EKS::Addon").items():
        if address.startswith("cluster/"):
            assert "Custom::PodwrightNodesReady" in {resources[name]["Type"] for name in addon["DependsOn"]}


def test_the_dependencies_chart_is_in_the_stack_before_the_cluster(plain: Synthesis) -> None:
    assert [address.partition("/")[0] for address in plain.resources("Custom::AWSCDK-EKS-HelmChart")] == ["eks"]
    cluster = one(plain.resources("AWS::SageMaker::Cluster"))
    assert "test-eks:" in str(cluster["Properties"]["Orchestrator"])


def test_subnets_are_exported_whether_another_stack_uses_them_today_or_not(plain: Synthesis) -> None:
    exported = json.dumps(plain.templates["network"]["Outputs"])
    made = [address.removeprefix("network/") for address in plain.resources("AWS::EC2::Subnet")]
    private = [name for name in made if "public" not in name]
    assert len(private) == 4
    assert [name for name in private if f'"{name}"' not in exported] == []


def test_nothing_is_made_that_is_adopted(adopted: Synthesis) -> None:
    for resource_type in (
        *("AWS::EC2::VPC", "AWS::EC2::Subnet", "AWS::EC2::VPCEndpoint", "AWS::EC2::SecurityGroup"),
        *("AWS::EKS::Cluster", "AWS::EKS::Addon", "AWS::FSx::FileSystem", "AWS::S3::Bucket", "AWS::KMS::Key"),
    ):
        assert adopted.resources(resource_type) == {}, resource_type
    roles = [role["Properties"].get("Description", "") for role in adopted.resources("AWS::IAM::Role").values()]
    assert not [text for text in roles if text.startswith("Nodes of HyperPod")]
    group = one(adopted.resources("AWS::SageMaker::Cluster"))["Properties"]["InstanceGroups"][0]
    assert group["ExecutionRole"] == ROLE
    assert group["OverrideVpcConfig"] == {
        "Subnets": ["subnet-0123456789abcdef1"],
        "SecurityGroupIds": ["sg-0123456789abcdef0"],
    }


def test_rules_that_are_there_are_not_made_again(adopted: Synthesis) -> None:
    assert adopted.resources("AWS::EC2::SecurityGroupIngress")
    present = synthesize(environment_of(ADOPTED.replace("name: shared,", "name: shared, node_rules: true,")))
    eks = [address for address in present.resources("AWS::EC2::SecurityGroupIngress") if address.startswith("eks/")]
    assert eks == []


def test_boundary_path_and_tags_reach_every_role() -> None:
    boundary = "arn:aws:iam::111122223333:policy/Boundary"
    settings = f"iam: {{permissions_boundary: {boundary}, role_path: /platform/}}\ntags: {{cost-center: ai}}\n"
    roles = synthesize(environment_of(BASE + settings)).resources("AWS::IAM::Role")
    assert roles
    for address, role in roles.items():
        assert role["Properties"]["PermissionsBoundary"] == boundary, address
        assert role["Properties"]["Path"] == "/platform/", address
        assert {"Key": "cost-center", "Value": "ai"} in role["Properties"]["Tags"], address


def test_nodes_may_read_scripts_of_their_own() -> None:
    own = BASE.replace(
        "count: 2}\n  h100", "count: 2, lifecycle: {source: s3://sagemaker-own/a, on_create: up.sh}}\n  h100"
    )
    synthesis = synthesize(environment_of(own))
    assert "sagemaker-own/a/*" in str(synthesis.resources("AWS::IAM::Policy"))
    groups = one(synthesis.resources("AWS::SageMaker::Cluster"))["Properties"]["InstanceGroups"]
    scripts = {group["InstanceGroupName"]: group["LifeCycleConfig"] for group in groups}
    assert scripts["system"] == {"SourceS3Uri": "s3://sagemaker-own/a", "OnCreate": "up.sh"}
    assert "Fn::GetAtt" in str(scripts["h100"])


def test_nodes_have_the_further_security_groups_of_the_file() -> None:
    groups = ["sg-0123456789abcdef8", "sg-0123456789abcdef9"]
    text = BASE.replace("network: {", f"network: {{node_security_groups: [{', '.join(groups)}], ")
    made = synthesize(environment_of(text))
    cluster = one(made.resources("AWS::SageMaker::Cluster"))["Properties"]
    assert cluster["VpcConfig"]["SecurityGroupIds"][1:] == groups
    for group in cluster["InstanceGroups"]:
        assert group["OverrideVpcConfig"]["SecurityGroupIds"][1:] == groups
    # They are somebody's: no rule of ours is added to them.
    rules = [
        *made.resources("AWS::EC2::SecurityGroupIngress").values(),
        *made.resources("AWS::EC2::SecurityGroupEgress").values(),
    ]
    assert not [rule for rule in rules if rule["Properties"]["GroupId"] in groups]


def test_a_home_in_two_zones_is_reached_from_all_subnets_of_nodes() -> None:
    """Also from a subnet beside the first of its zone, and from a zone that has none of the two servers."""
    network = "network: {zones: [usw2-az1, usw2-az2, usw2-az3], subnets: {usw2-az3: {more_nodes: [10.16.224.0/20]}}}"
    home = "storage: {home: {openzfs: {zone: usw2-az2, deployment: multi_az_1, standby_zone: usw2-az1}}}\n"
    made = synthesize(environment_of(BASE.replace("network: {zones: [usw2-az1, usw2-az2]}", network) + home))
    system = one(made.resources("AWS::FSx::FileSystem"))["Properties"]
    configuration = system["OpenZFSConfiguration"]
    preferred, standby = system["SubnetIds"]
    assert configuration["PreferredSubnetId"] == preferred
    assert "usw2az2" in json.dumps(preferred)
    assert "usw2az1" in json.dumps(standby)
    imported = {table["Fn::ImportValue"] for table in configuration["RouteTableIds"]}
    outputs = made.templates["network"]["Outputs"].values()
    tables = {output["Value"]["Ref"] for output in outputs if output["Export"]["Name"] in imported}
    associations = made.resources("AWS::EC2::SubnetRouteTableAssociation")
    of_nodes = [association["Properties"] for name, association in associations.items() if "nodes" in name]
    assert tables == {properties["RouteTableId"]["Ref"] for properties in of_nodes}
    assert len(tables) == 4


def test_claims_without_a_team_are_applied_as_they_are_rendered() -> None:
    claims = "{data: {path: /shared, read_only: true}, all: {namespace: tools}}"
    text = f"{BASE}storage: {{lustre: {{zone: usw2-az1, claims: {claims}}}}}\n"
    environment = environment_of(text)
    made = synthesize(environment)
    applied = json.dumps(made.resources("Custom::AWSCDK-EKS-KubernetesResource"))
    values = {path: path for path in value_paths(environment)}
    objects = [
        item
        for item in rendered(environment, DeployedValues.parse(values), {})
        if item["kind"].startswith("PersistentVolume")
    ]
    volumes = {item["metadata"]["name"]: item["spec"] for item in objects if item["kind"] == "PersistentVolume"}
    named = [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in objects if "Claim" in item["kind"]]
    assert named == [("default", "data"), ("tools", "all")]
    assert volumes["default-data"]["csi"]["volumeAttributes"]["mountname"] == "lustre.lustre.mount_name/shared"
    assert volumes["default-data"]["mountOptions"] == ["flock", "ro"]
    # The root of a file system is its mount name alone.
    assert volumes["tools-all"]["csi"]["volumeAttributes"]["mountname"] == "lustre.lustre.mount_name"
    assert len({volume["csi"]["volumeHandle"] for volume in volumes.values()}) == 2
    for name in ("default-data", "tools-all"):
        assert name in applied
    for item in objects:
        validate(item, "1.34", strict=True)


def test_nodes_of_a_group_pull_its_images() -> None:
    images = ["111122223333.dkr.ecr.us-west-2.amazonaws.com/train:1", "public.ecr.aws/docker/library/debian:13"]
    environment = environment_of(BASE.replace("count: 2}\n", f"count: 2, pull_images: {json.dumps(images)}}}\n", 2))
    applied = json.dumps(synthesize(environment).resources("Custom::AWSCDK-EKS-KubernetesResource"))
    values = DeployedValues.parse({path: path for path in value_paths(environment)})
    objects = [item for item in rendered(environment, values, {}) if "podwright-images" in item["metadata"]["name"]]
    assert [item["metadata"]["name"] for item in objects] == ["podwright-images-system", "podwright-images-h100"]
    for item in objects:
        validate(item, "1.34", strict=True)
        pod = item["spec"]["template"]["spec"]
        assert [container["image"] for container in pod["initContainers"]] == images
        assert pod["tolerations"] == [{"operator": "Exists"}]
        # What it requested would be missing to a job that takes the whole node.
        assert not any("resources" in container for container in (*pod["initContainers"], *pod["containers"]))
        assert item["metadata"]["name"] in applied
    original = Image.parse(BENCHMARK_LABELS_IMAGE)
    held = Image.parse("111122223333.dkr.ecr.us-west-2.amazonaws.com/python:1")
    (first, _) = image_pulls(environment.instance_groups, {original.name: held})
    pod = first["spec"]["template"]["spec"]
    # Jobs name their images as they are; what sleeps is podwright's.
    assert [container["image"] for container in (*pod["initContainers"], *pod["containers"])] == [*images, str(held)]
    assert original in own_images(environment)
