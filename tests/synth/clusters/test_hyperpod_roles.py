"""What nodes and Karpenter may do, by what the templates say."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import aws_cdk as cdk
import cdk_nag
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Template
from moto.iam.aws_managed_policies import aws_managed_policies_data

from podwright.constructs.common.permission import allow
from podwright.constructs.hyperpod.execution_role import ExecutionRole
from podwright.constructs.hyperpod.karpenter_role import KarpenterRole

EKS = "arn:aws:eks:us-west-2:111122223333:cluster/prod"
KEY = "arn:aws:kms:us-west-2:111122223333:key/01234567-89ab-cdef-0123-456789abcdef"
INTERFACES = "arn:aws:ec2:us-west-2:*:network-interface/*"
IN_VPC = {"ArnLike": {"ec2:Vpc": "arn:aws:ec2:us-west-2:*:vpc/vpc-0123456789abcdef0"}}
VIA_SAGEMAKER = {"kms:ViaService": "sagemaker.us-west-2.amazonaws.com"}


def make(stack: cdk.Stack, **options: Any) -> ExecutionRole:
    vpc = ec2.Vpc.from_vpc_attributes(stack, "Vpc", vpc_id="vpc-0123456789abcdef0", availability_zones=["us-west-2a"])
    nodes = ec2.SecurityGroup.from_security_group_id(stack, "Nodes", "sg-0123456789abcdef0")
    return ExecutionRole(
        stack, "Role", cluster_name="prod", eks_cluster_arn=EKS, vpc=vpc, security_groups=[nodes], **options
    )


def many(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def flat(value: Any) -> str:
    """An ARN with CloudFormation's joins resolved as in the commercial partition."""
    if isinstance(value, dict) and "Fn::Join" in value:
        return "".join(map(flat, value["Fn::Join"][1]))
    return "aws" if value == {"Ref": "AWS::Partition"} else str(value)


def statements(stack: cdk.Stack) -> Iterator[tuple[set[str], set[str], dict[str, Any]]]:
    """(actions, resources, conditions) of every statement of every policy."""
    for policy in Template.from_stack(stack).find_resources("AWS::IAM::Policy").values():
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
            assert statement["Effect"] == "Allow"
            resources = set(map(flat, many(statement["Resource"])))
            yield set(many(statement["Action"])), resources, statement.get("Condition", {})


def allowed(stack: cdk.Stack, action: str) -> list[tuple[set[str], dict[str, Any]]]:
    """Where, and on which conditions, an action is allowed."""
    return [(resources, condition) for actions, resources, condition in statements(stack) if action in actions]


def managed(name: str) -> set[str]:
    document = json.loads(aws_managed_policies_data)[name]["Document"]
    return {action for statement in document["Statement"] for action in many(statement["Action"])}


@pytest.mark.parametrize("policy", ["AmazonSageMakerClusterInstanceRolePolicy", "AmazonEKS_CNI_Policy"])
def test_allows_every_action_of_the_managed_policies_that_aws_documents(stack: cdk.Stack, policy: str) -> None:
    bucket = s3.Bucket.from_bucket_name(stack, "Bucket", "sagemaker-test")
    make(stack).grant_read(bucket, "prod")
    mine = {action for actions, _, _ in statements(stack) for action in actions}
    assert len(managed(policy)) >= 10
    assert managed(policy) - mine == set()


def test_attaches_no_managed_policy(stack: cdk.Stack) -> None:
    make(stack)
    (role,) = Template.from_stack(stack).find_resources("AWS::IAM::Role").values()
    assert "ManagedPolicyArns" not in role["Properties"]
    (trust,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "sagemaker.amazonaws.com"}


def test_reads_the_scripts_of_this_cluster_and_no_other_object(stack: cdk.Stack) -> None:
    bucket = s3.Bucket.from_bucket_name(stack, "Bucket", "sagemaker-test")
    make(stack).grant_read(bucket, "prod", kms.Key.from_key_arn(stack, "Key", KEY))
    assert allowed(stack, "s3:GetObject") == [({"arn:aws:s3:::sagemaker-test/prod/*"}, {})]
    assert allowed(stack, "s3:ListBucket") == [({"arn:aws:s3:::sagemaker-test"}, {})]


def test_keys_are_used_through_the_service_that_holds_the_data(stack: cdk.Stack) -> None:
    bucket, key = s3.Bucket.from_bucket_name(stack, "Bucket", "sagemaker-test"), kms.Key.from_key_arn(stack, "Key", KEY)
    role = make(stack, volume_keys=[key])
    role.grant_read(bucket, "prod", key)
    role.grant_results(bucket, "prod/benchmarks", key)
    role.grant_secret("arn:aws:secretsmanager:us-west-2:111122223333:secret:slurm", key)
    services = {
        action: condition["StringEquals"]["kms:ViaService"].partition(".")[0]
        for actions, _, condition in statements(stack)
        for action in actions
        if action.startswith("kms:") and action != "kms:Decrypt"
    }
    assert services == {"kms:GenerateDataKey": "s3", "kms:DescribeKey": "sagemaker", "kms:CreateGrant": "sagemaker"}
    through = ("s3.us-west-2.amazonaws.com", "secretsmanager.us-west-2.amazonaws.com")
    decrypted = [condition for _, condition in allowed(stack, "kms:Decrypt")]
    assert decrypted == [{"StringEquals": {"kms:ViaService": service}} for service in through]


def test_writes_benchmark_results_and_no_other_object(stack: cdk.Stack) -> None:
    bucket = s3.Bucket.from_bucket_name(stack, "Bucket", "sagemaker-test")
    role, key = make(stack), kms.Key.from_key_arn(stack, "Key", KEY)
    role.grant_read(bucket, "prod", key)
    role.grant_results(bucket, "prod/benchmarks", key)
    assert allowed(stack, "s3:PutObject") == [({"arn:aws:s3:::sagemaker-test/prod/benchmarks/*"}, {})]
    assert [keys for keys, _ in allowed(stack, "kms:GenerateDataKey")] == [{KEY}]
    clusters = {"arn:aws:sagemaker:us-west-2:111122223333:cluster/*"}
    assert allowed(stack, "sagemaker:DescribeClusterNode") == [(clusters, {})]


def test_writes_logs_of_this_cluster_only(stack: cdk.Stack) -> None:
    make(stack)
    group = "arn:aws:logs:us-west-2:111122223333:log-group:/aws/sagemaker/Clusters/prod/*"
    assert allowed(stack, "logs:PutLogEvents") == [({f"{group}:log-stream:*"}, {})]
    assert allowed(stack, "logs:CreateLogGroup") == [({group}, {})]
    namespace = {"StringEquals": {"cloudwatch:namespace": "/aws/sagemaker/Clusters"}}
    assert allowed(stack, "cloudwatch:PutMetricData") == [({"*"}, namespace)]


def test_handles_interfaces_of_its_vpc_only(stack: cdk.Stack) -> None:
    make(stack)
    group = "arn:aws:ec2:us-west-2:*:security-group/sg-0123456789abcdef0"
    assert allowed(stack, "ec2:DeleteNetworkInterface") == [({INTERFACES}, IN_VPC)]
    assert allowed(stack, "ec2:CreateNetworkInterface") == [
        ({INTERFACES, group}, {}),
        ({"arn:aws:ec2:us-west-2:*:subnet/*"}, IN_VPC),
    ]
    instances = "arn:aws:ec2:us-west-2:*:instance/*"
    assert ({instances, group}, {}) in allowed(stack, "ec2:AttachNetworkInterface")


def test_hands_out_pod_identities_of_its_eks_cluster_only(stack: cdk.Stack) -> None:
    make(stack)
    assert allowed(stack, "eks-auth:AssumeRoleForPodIdentity") == [({EKS}, {})]
    clusters = {"arn:aws:sagemaker:us-west-2:111122223333:cluster/*"}
    assert allowed(stack, "sagemaker:AttachClusterNodeNetworkInterface") == [(clusters, {})]


def test_asks_for_what_the_environment_uses_only(stack: cdk.Stack) -> None:
    make(stack)
    used = {"fsx:DescribeFileSystems", "cloudwatch:DescribeAlarms", "kms:CreateGrant", "s3:GetObject", "s3:PutObject"}
    assert not used & {action for actions, _, _ in statements(stack) for action in actions}


def test_volumes_alarms_and_lustre(stack: cdk.Stack) -> None:
    key = kms.Key.from_key_arn(stack, "Key", KEY)
    make(stack, volume_keys=[key], lustre=True).grant_alarms(["errors", "errors"])
    for_aws = {"StringEquals": VIA_SAGEMAKER, "Bool": {"kms:GrantIsForAWSResource": "true"}}
    assert allowed(stack, "kms:CreateGrant") == [({KEY}, for_aws)]
    assert allowed(stack, "kms:DescribeKey") == [({KEY}, {"StringEquals": VIA_SAGEMAKER})]
    alarm = {"arn:aws:cloudwatch:us-west-2:111122223333:alarm:errors"}
    assert allowed(stack, "cloudwatch:DescribeAlarms") == [(alarm, {})]
    assert allowed(stack, "fsx:DescribeFileSystems") == [({"*"}, {})]


def test_karpenter(stack: cdk.Stack) -> None:
    KarpenterRole(stack, "Karpenter", volume_keys=[kms.Key.from_key_arn(stack, "Key", KEY)])
    (role,) = Template.from_stack(stack).find_resources("AWS::IAM::Role").values()
    (trust,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "hyperpod.sagemaker.amazonaws.com"}
    clusters = {"arn:aws:sagemaker:us-west-2:111122223333:cluster/*"}
    assert allowed(stack, "sagemaker:BatchAddClusterNodes") == [(clusters, {})]
    ((keys, condition),) = allowed(stack, "kms:CreateGrant")
    assert keys == {KEY}
    assert condition["StringEquals"] == VIA_SAGEMAKER
    assert condition["Bool"] == {"kms:GrantIsForAWSResource": "true"}
    assert "Decrypt" in condition["ForAllValues:StringEquals"]["kms:GrantOperations"]


def role_of(stack: cdk.Stack) -> iam.IRole:
    service = cast(iam.IPrincipal, iam.ServicePrincipal("sagemaker.amazonaws.com"))
    return cast(iam.IRole, iam.Role(stack, "Role", assumed_by=service))


def findings(stack: cdk.Stack) -> tuple[list[str], list[str]]:
    """What cdk-nag finds in the app of `stack`: what nobody accepted, and the reasons of the rest."""
    app = cast(cdk.App, stack.node.root)
    cdk.Validations.of(app).add_plugins(cdk_nag.AwsSolutionsChecks(app))
    with suppress(RuntimeError):
        app.synth()
    report = json.loads(Path(app.outdir, "validation-report.json").read_text())
    (plugin,) = report["pluginReports"]
    accepted = [violation["reason"] for violation in plugin.get("suppressedViolations", [])]
    return [violation["ruleName"] for violation in plugin["violations"]], accepted


def test_every_wildcard_has_its_reason(stack: cdk.Stack) -> None:
    bucket = s3.Bucket.from_bucket_name(stack, "Bucket", "sagemaker-test")
    role = make(stack, lustre=True)
    role.grant_alarms(["errors"])
    role.grant_read(bucket, "prod")
    role.grant_results(bucket, "prod/benchmarks")
    KarpenterRole(stack, "Karpenter")
    refused, reasons = findings(stack)
    assert refused == []
    assert len(reasons) >= 9
    assert all(len(reason) > 20 for reason in reasons)


def test_the_reason_reaches_a_wildcard_that_another_stack_exports(tmp_path: Path) -> None:
    app = cdk.App(outdir=str(tmp_path))
    stage = cdk.Stage(app, "prod", env=cdk.Environment(account="111122223333", region="us-west-2"))
    storage, cluster = cdk.Stack(stage, "storage"), cdk.Stack(stage, "cluster")
    bucket = s3.CfnBucket(storage, "Bucket")
    role = role_of(cluster)
    allow(role, ["s3:GetObject"], [f"{bucket.attr_arn}/prod/*"], because="Only a deployment knows the digest.")
    refused, reasons = findings(cluster)
    assert [rule for rule in refused if "IAM" in rule] == []
    assert reasons == ["Only a deployment knows the digest."]


def test_a_wildcard_without_a_reason_is_refused(stack: cdk.Stack) -> None:
    role = role_of(stack)
    with pytest.raises(ValueError, match=r"s3:GetObject on Resource::\*: a wildcard needs a reason"):
        allow(role, ["s3:GetObject"], ["*"])
    with pytest.raises(ValueError, match=r"Action::s3:Get\*: a wildcard needs a reason"):
        allow(role, ["s3:Get*"], ["arn:aws:s3:::b/k"])
    with pytest.raises(ValueError, match="the reason explains no wildcard"):
        allow(role, ["s3:GetObject"], ["arn:aws:s3:::b/k"], because="Nobody knows.")
