"""Every resource type that a setting can lead to deploys: those that no environment has, in a stack of their own.

Types of the environments' templates are deployed with these. What the constructs can emit is read from their source, so
that a new type without a handler, or without a place here, is found.
"""

import ast
import importlib
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from podwright.sandbox.cloudformation.providers.registry import is_recorded_only
from sandbox_stacks import StackUnderTest

Aws = Callable[[str], Any]
ROOT = Path(__file__).parents[3]
ROLE = {
    "Type": "AWS::IAM::Role",
    "Properties": {
        "AssumeRolePolicyDocument": {
            "Version": "2012-10-17",
            "Statement": [
                {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
            ],
        }
    },
}
ROLE_ARN = {"Fn::GetAtt": ["Role", "Arn"]}
DENY = {"Version": "2012-10-17", "Statement": [{"Effect": "Deny", "Action": "s3:*", "Resource": "*"}]}


def stage(name: str, category: str, provider: str, **artifacts: Any) -> dict[str, Any]:
    """A stage of a pipeline with one action."""
    kind = {"Category": category, "Owner": "AWS", "Provider": provider, "Version": "1"}
    return {"Name": name, "Actions": [{"Name": name, "ActionTypeId": kind, **artifacts}]}


# Records: no API of the sandbox shows what chat channels and pipelines are.
RECORDED_ONLY = {
    "AWS::Batch::JobQueue",
    "AWS::Batch::QuotaShare",
    "AWS::Batch::SchedulingPolicy",
    "AWS::Batch::ServiceEnvironment",
    "AWS::CDK::Metadata",
    "AWS::Chatbot::MicrosoftTeamsChannelConfiguration",
    "AWS::Chatbot::SlackChannelConfiguration",
    "AWS::CodeBuild::Project",
    "AWS::CodePipeline::Pipeline",
    "AWS::EKS::Capability",
    "AWS::SageMaker::MlflowApp",
}
RESOURCES: dict[str, Any] = {
    "Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.77.0.0/16"}},
    "Range": {"Type": "AWS::EC2::VPCCidrBlock", "Properties": {"VpcId": {"Ref": "Vpc"}, "CidrBlock": "100.77.0.0/16"}},
    "Nodes": {
        "Type": "AWS::EC2::Subnet",
        "DependsOn": ["Range"],
        "Properties": {"VpcId": {"Ref": "Vpc"}, "CidrBlock": "100.77.0.0/16", "AvailabilityZoneId": "usw2-az2"},
    },
    "Role": ROLE,
    "Profile": {"Type": "AWS::IAM::InstanceProfile", "Properties": {"Roles": [{"Ref": "Role"}]}},
    "Policy": {"Type": "AWS::IAM::ManagedPolicy", "Properties": {"PolicyDocument": DENY}},
    "Identity": {
        "Type": "AWS::IAM::OIDCProvider",
        "Properties": {"Url": "https://token.actions.githubusercontent.com", "ClientIdList": ["sts.amazonaws.com"]},
    },
    "Slack": {
        "Type": "AWS::Chatbot::SlackChannelConfiguration",
        "Properties": {
            "ConfigurationName": "every-type",
            "IamRoleArn": ROLE_ARN,
            "SlackWorkspaceId": "T0123456789",
            "SlackChannelId": "C0123456789",
        },
    },
    "Teams": {
        "Type": "AWS::Chatbot::MicrosoftTeamsChannelConfiguration",
        "Properties": {
            "ConfigurationName": "every-type-teams",
            "IamRoleArn": ROLE_ARN,
            "TeamId": "01234567-89ab-cdef-0123-456789abcdef",
            "TeamsChannelId": "19%3aabc%40thread.tacv2",
            "TeamsTenantId": "01234567-89ab-cdef-0123-456789abcdef",
        },
    },
    "Pipeline": {
        "Type": "AWS::CodePipeline::Pipeline",
        "Properties": {
            "RoleArn": ROLE_ARN,
            "ArtifactStore": {"Type": "S3", "Location": "every-type-artifacts"},
            "Stages": [
                stage("Source", "Source", "CodeStarSourceConnection", OutputArtifacts=[{"Name": "files"}]),
                stage("Build", "Build", "CodeBuild", InputArtifacts=[{"Name": "files"}]),
            ],
        },
    },
}


@cache
def emitted_types() -> frozenset[str]:
    """The types of all level 1 classes that constructs and stacks use, and those in the environments' templates."""
    files = [file for folder in ("constructs", "stacks") for file in sorted((ROOT / folder).rglob("*.py"))]
    return frozenset(kind for file in files for kind in _types_of(file)) | in_environments()


@cache
def in_environments() -> frozenset[str]:
    """The types in the snapshots of `environments/`, which other tests deploy."""
    templates = (json.loads(file.read_text()) for file in (ROOT / "tests/snapshot/templates").rglob("*.json"))
    return frozenset(item["Type"] for template in templates for item in template.get("Resources", {}).values())


def _types_of(file: Path) -> Iterator[str]:
    """Types of the classes `alias.CfnName` in a module that imports `from aws_cdk import aws_name as alias`."""
    tree = ast.parse(file.read_text())
    aliases = {
        name.asname or name.name: name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "aws_cdk"
        for name in node.names
        if name.name.startswith("aws_")
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in aliases:
            module = importlib.import_module(f"aws_cdk.{aliases[node.value.id]}")
            kind = getattr(getattr(module, node.attr), "CFN_RESOURCE_TYPE_NAME", None)
            if kind:
                yield kind


def test_every_type_has_a_handler_or_is_known_to_be_a_record() -> None:
    assert {kind for kind in emitted_types() if is_recorded_only(kind)} <= RECORDED_ONLY


def test_types_that_no_environment_has_deploy_and_go(stack: StackUnderTest, aws: Aws) -> None:
    ours = {item["Type"] for item in RESOURCES.values()}
    assert emitted_types() - in_environments() - ours == set()
    created = stack.create(RESOURCES)
    assert created == "CREATE_COMPLETE", "; ".join(event.get("ResourceStatusReason", "") for event in stack.events())
    vpc = stack.physical_id("Vpc")
    [shown] = aws("ec2").describe_vpcs(VpcIds=[vpc])["Vpcs"]
    ranges = {entry["CidrBlock"]: entry["CidrBlockState"]["State"] for entry in shown["CidrBlockAssociationSet"]}
    assert ranges == {"10.77.0.0/16": "associated", "100.77.0.0/16": "associated"}
    # A subnet in a range that the VPC does not have is refused, as the range's absence was before.
    without = {"Vpc": RESOURCES["Vpc"], "Nodes": {**RESOURCES["Nodes"], "DependsOn": []}}
    other = StackUnderTest(aws("cloudformation"))
    assert other.create(without) == "ROLLBACK_COMPLETE"
    assert "100.77.0.0/16" in other.reasons("Nodes")
    # The range goes after its subnet.
    smaller = {name: RESOURCES[name] for name in RESOURCES if name not in ("Nodes", "Range")}
    assert stack.update(smaller) == "UPDATE_COMPLETE"
    [shown] = aws("ec2").describe_vpcs(VpcIds=[vpc])["Vpcs"]
    left = [e["CidrBlock"] for e in shown["CidrBlockAssociationSet"] if e["CidrBlockState"]["State"] == "associated"]
    assert left == ["10.77.0.0/16"]
    assert stack.delete() == "DELETE_COMPLETE"
