"""Calls of roles that services take on, and of CloudFormation's, are judged by the roles' policies."""

import json
import urllib.request
from collections.abc import Callable
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from podwright.operations.aws import sandbox_server as server
from sandbox_stacks import StackUnderTest

Aws = Callable[[str], Any]
REGION = "us-west-2"
TRUST = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "lambda.amazonaws.com"}}


def document(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def allow(action: str, resource: str = "*", **more: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": action, "Resource": resource, **more}


def session(sandbox: server.Running, aws: Aws, role: str) -> Callable[[str], Any]:
    """boto3 clients with the credentials that Lambda would have of a role."""
    keys = aws("sts").assume_role(RoleArn=role, RoleSessionName="handler")["Credentials"]
    opened = boto3.Session(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"], region_name=REGION)
    return lambda service: opened.client(service, endpoint_url=sandbox.endpoint)


def refused(call: Callable[..., Any], **arguments: Any) -> str:
    """Code and message of a call that is denied."""
    with pytest.raises(ClientError) as refusal:
        call(**arguments)
    error = refusal.value.response["Error"]
    return f"{error['Code']}: {error['Message']}"


def test_policies_conditions_and_the_boundary_decide(sandbox: server.Running, aws: Aws) -> None:
    iam, name = aws("iam"), "judged"
    limit = iam.create_policy(PolicyName="limit", PolicyDocument=document(allow("logs:*"), allow("cloudwatch:*")))
    role = iam.create_role(
        RoleName=name, AssumeRolePolicyDocument=document(TRUST), PermissionsBoundary=limit["Policy"]["Arn"]
    )["Role"]["Arn"]
    logs, metrics, s3 = map(session(sandbox, aws, role), ("logs", "cloudwatch", "s3"))
    group = f"arn:aws:logs:{REGION}:123456789012:log-group:/own/*"
    denied = refused(logs.create_log_group, logGroupName="/own/a")
    assert denied.startswith(
        "AccessDeniedException: User: arn:aws:sts::123456789012:assumed-role/judged/handler is not"
    )
    assert "perform: logs:CreateLogGroup on resource: arn:aws:logs" in denied
    assert denied.endswith("because no identity-based policy allows the logs:CreateLogGroup action")

    own = {"StringEquals": {"cloudwatch:namespace": "Own"}}
    statements = [allow("logs:Create*", group), allow("cloudwatch:PutMetricData", Condition=own), allow("s3:*")]
    iam.put_role_policy(RoleName=name, PolicyName="own", PolicyDocument=document(*statements))
    logs.create_log_group(logGroupName="/own/a")
    assert "logs:CreateLogGroup" in refused(logs.create_log_group, logGroupName="/other/a")
    data = [{"MetricName": "x", "Value": 1.0}]
    metrics.put_metric_data(Namespace="Own", MetricData=data)
    assert "cloudwatch:PutMetricData" in refused(metrics.put_metric_data, Namespace="Other", MetricData=data)
    assert refused(s3.list_objects_v2, Bucket="any").endswith(
        "because no permissions boundary allows the s3:ListBucket action"
    )

    explicit = {"Effect": "Deny", "Action": "logs:CreateLogGroup", "Resource": f"{group[:-1]}b"}
    iam.put_role_policy(RoleName=name, PolicyName="no", PolicyDocument=document(explicit))
    assert "explicit deny in an identity-based policy" in refused(logs.create_log_group, logGroupName="/own/b")
    session(sandbox, aws, role)("sts").get_caller_identity()


def test_the_role_of_a_stack_needs_what_handlers_call(aws: Aws, stack: StackUnderTest) -> None:
    iam, boundary = aws("iam"), "arn:aws:iam::123456789012:policy/podwright-boundary"
    trust = TRUST | {"Principal": {"Service": "cloudformation.amazonaws.com"}}
    role = iam.create_role(RoleName="deploys", AssumeRolePolicyDocument=document(trust))["Role"]["Arn"]
    bounded = {"StringEquals": {"iam:PermissionsBoundary": boundary}}
    own = "arn:aws:iam::123456789012:role/stack-*"
    policy = document(
        allow("iam:CreateRole", own, Condition=bounded),
        allow("iam:*", own, Condition={"Null": {"iam:PermissionsBoundary": "true"}})
        | {"Action": ["iam:GetRole*", "iam:List*", "iam:TagRole", "iam:UntagRole", "iam:Delete*", "iam:Detach*"]},
    )
    iam.put_role_policy(RoleName="deploys", PolicyName="own", PolicyDocument=policy)
    made: dict[str, Any] = {
        "Type": "AWS::IAM::Role",
        "Properties": {"AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": [TRUST]}},
    }
    assert stack.create({"Free": made}, options={"RoleARN": role, "OnFailure": "DO_NOTHING"}) == "CREATE_FAILED"
    reason = stack.reasons("Free")
    assert "is not authorized to perform: iam:CreateRole" in reason
    assert "HandlerErrorCode: AccessDenied" in reason


def test_the_role_of_a_stack_needs_it_on_what_the_stack_touches(aws: Aws, stack: StackUnderTest) -> None:
    trust = TRUST | {"Principal": {"Service": "cloudformation.amazonaws.com"}}
    role = aws("iam").create_role(RoleName="logs-only", AssumeRolePolicyDocument=document(trust))["Role"]["Arn"]
    own = allow("logs:CreateLogGroup", f"arn:aws:logs:{REGION}:123456789012:log-group:/own/*")
    others = {"Effect": "Allow", "NotAction": "logs:CreateLogGroup", "Resource": "*"}
    aws("iam").put_role_policy(RoleName="logs-only", PolicyName="own", PolicyDocument=document(own, others))
    groups: dict[str, Any] = {
        name: {"Type": "AWS::Logs::LogGroup", "Properties": {"LogGroupName": f"/{name.lower()}/group"}}
        for name in ("Own", "Other")
    }
    options: dict[str, Any] = {"RoleARN": role, "OnFailure": "DO_NOTHING"}
    assert stack.create(groups, options=options) == "CREATE_FAILED"
    assert not stack.reasons("Own").strip()
    assert f"on resource: arn:aws:logs:{REGION}:123456789012:log-group:/other/group because" in stack.reasons("Other")


def test_a_role_that_changes_keeps_the_policies_of_other_resources(aws: Aws, stack: StackUnderTest) -> None:
    """In a rollback the role comes after its policies."""

    def resources(word: str, **others: Any) -> dict[str, Any]:
        trust = {"Version": "2012-10-17", "Statement": [TRUST]}
        inline = [{"PolicyName": word, "PolicyDocument": json.loads(document(allow(f"{word}:*")))}]
        role = {"AssumeRolePolicyDocument": trust, "Policies": inline}
        of_role = json.loads(document(allow(f"{word}:Get*")))
        policy = {"PolicyName": "apart", "Roles": [{"Ref": "Role"}], "PolicyDocument": of_role}
        return {
            "Role": {"Type": "AWS::IAM::Role", "Properties": role},
            "Policy": {"Type": "AWS::IAM::Policy", "Properties": policy},
            **others,
        }

    assert stack.create(resources("s3")) == "CREATE_COMPLETE"
    name = stack.physical_id("Role")
    fails = {"Type": "AWS::SQS::Queue", "DependsOn": "Policy", "Properties": {"MessageRetentionPeriod": -1}}
    assert stack.update(resources("sqs", Fails=fails)) == "UPDATE_ROLLBACK_COMPLETE"
    assert sorted(aws("iam").list_role_policies(RoleName=name)["PolicyNames"]) == ["apart", "s3"]
    policy = aws("iam").get_role_policy(RoleName=name, PolicyName="apart")["PolicyDocument"]
    assert policy["Statement"][0]["Action"] == "s3:Get*"


def test_what_was_judged_is_counted(sandbox: server.Running, aws: Aws) -> None:
    role = aws("iam").create_role(RoleName="counted", AssumeRolePolicyDocument=document(TRUST))["Role"]["Arn"]
    refused(session(sandbox, aws, role)("sns").publish, TopicArn=f"arn:aws:sns:{REGION}:123456789012:t", Message="x")
    with urllib.request.urlopen(f"{sandbox.endpoint}/podwright/authorization") as answer:
        shown = json.load(answer)
    assert shown["actions"]["sns:Publish"] >= 1
    assert shown["calls"] == sum(shown["actions"].values())
    assert f"arn:aws:sns:{REGION}:123456789012:t" in [one["resource"] for one in shown["denied"]]
