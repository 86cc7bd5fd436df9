"""Our templates, corrupted: a property of a resource at a time, and the sandbox refuses it at that property."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from corruptions import Corruption, corruptions, distinct
from podwright.sandbox.cloudformation.providers.registry import is_recorded_only
from podwright.sandbox.cloudformation.template import TemplateError
from podwright.sandbox.cloudformation.validation import resolved_properties, validate_properties, validate_template
from sandbox_stacks import StackUnderTest
from synthesis import NAMES, environment, synthesis

Aws = Callable[[str], Any]
Resource = tuple[str, str, dict[str, Any]]
# What the sandbox keeps as a record only; a new type has to be made real or written down here.
RECORDED_ONLY = {
    "AWS::Batch::JobQueue",
    "AWS::Batch::QuotaShare",
    "AWS::Batch::SchedulingPolicy",
    "AWS::Batch::ServiceEnvironment",
    "AWS::CDK::Metadata",
    "AWS::CodeBuild::Project",
    "AWS::EKS::Capability",
    "AWS::SageMaker::MlflowApp",
}


@pytest.fixture(scope="module")
def resources() -> list[Resource]:
    """Region, type and properties of each resource of all environments; equal ones only once."""
    equal = {}
    for name in NAMES:
        region = environment(name).region
        for template in synthesis(name).templates.values():
            for kind, properties in resolved_properties(template, region).values():
                # Most differ by the name of their environment alone.
                text = json.dumps(properties, sort_keys=True).replace(name, "NAME")
                equal.setdefault((region, kind, text), (region, kind, properties))
    return [*equal.values()]


@pytest.fixture(scope="module")
def everything(resources: list[Resource]) -> list[Corruption]:
    """The corruptions of all environments; the same one of the same type only once."""
    return list(distinct(item for region, kind, actual in resources for item in corruptions(kind, actual, region)))


def test_our_resources_are_accepted(resources: list[Resource]) -> None:
    failures = [
        f"{kind}: {failure}"
        for region, kind, properties in resources
        for failure in validate_properties(kind, properties, region)
    ]
    assert failures == []


def test_corruptions_are_refused_at_their_property(everything: list[Corruption]) -> None:
    """Every fourth: one kind of corruption has dozens of places in each type."""
    accepted = list[str]()
    for item in everything[::4]:
        failures = validate_properties(item.resource_type, item.properties, item.region)
        if not any(item.names in str(failure) and failure.path[: len(item.path)] == item.path for failure in failures):
            accepted.append(f"{item}: {[str(failure) for failure in failures]}")
    assert accepted == []


def test_the_corruptions_reach_far(everything: list[Corruption], resources: list[Resource]) -> None:
    kinds = {item.kind for item in everything}
    assert kinds >= {"unknown", "required", "type", "enum", "pattern", "minLength", "maxLength", "minimum", "maximum"}
    types = {kind for _, kind, _ in resources}
    free = {kind for kind in types if kind.startswith("Custom::")} | {"AWS::CDK::Metadata"}
    # A handle has no property that could be wrong.
    free |= {"AWS::CloudFormation::WaitConditionHandle"}
    assert {item.resource_type for item in everything} == types - free


def test_no_type_is_silently_a_record(resources: list[Resource]) -> None:
    assert {kind for _, kind, _ in resources if is_recorded_only(kind)} <= RECORDED_ONLY


def queue(**properties: Any) -> dict[str, Any]:
    return {"Queue": {"Type": "AWS::SQS::Queue", "Properties": properties}}


@pytest.mark.parametrize(
    ("resources", "reason"),
    [
        (queue(Delay=1), "#: extraneous key [Delay] is not permitted"),
        (queue(DelaySeconds="soon"), "#/DelaySeconds: expected type: Integer, found: String"),
        (queue(Arn="arn:aws:sqs:us-west-2:123456789012:x"), "#/Arn: the property is read-only and cannot be set"),
        (queue(Tags=[{"Key": "k"}]), "#/Tags/0: required key [Value] not found"),
        (
            {"Key": {"Type": "AWS::KMS::Alias", "Properties": {"AliasName": "no-prefix", "TargetKeyId": "x"}}},
            "#/AliasName: failed validation constraint for keyword [pattern]",
        ),
    ],
)
def test_the_engine_refuses_and_rolls_back(stack: StackUnderTest, resources: dict[str, Any], reason: str) -> None:
    assert stack.create(resources) == "ROLLBACK_COMPLETE"
    [name] = resources
    assert f"Properties validation failed for resource {name} with message:\n{reason}" in stack.reasons(name)


def test_a_change_set_is_refused_early_with_every_place(aws: Aws) -> None:
    body = '{"Resources": {"Queue": {"Type": "AWS::SQS::Queue", "Properties": {"Delay": 1, "KmsMasterKeyId": {}}}}}'
    client = aws("cloudformation")
    client.create_change_set(StackName="early", ChangeSetName="set", ChangeSetType="CREATE", TemplateBody=body)
    actual = client.describe_change_set(StackName="early", ChangeSetName="set")
    assert (actual["Status"], actual["ExecutionStatus"]) == ("FAILED", "UNAVAILABLE")
    assert "AWS::EarlyValidation::PropertyValidation" in actual["StatusReason"]
    events = client.describe_events(StackName="early", ChangeSetName="set")["OperationEvents"]
    assert {event["ValidationPath"] for event in events} == {
        "/Resources/Queue/Properties",
        "/Resources/Queue/Properties/KmsMasterKeyId",
    }
    client.delete_stack(StackName="early")


@pytest.mark.parametrize(
    ("resources", "reason"),
    [
        ({"X": {"Type": "AWS::No::Such"}}, r"Unrecognized resource types: \[AWS::No::Such\]"),
        (queue(QueueName={"Ref": "Nobody"}), r"Unresolved resource dependencies \[Nobody\] in the Resources block"),
        (queue(QueueName={"Fn::GetAtt": ["Queue", "Arn"]}), r"Circular dependency between resources: \[Queue\]"),
        (
            queue() | {"User": {"Type": "AWS::SSM::Parameter", "Properties": {
                "Type": "String", "Value": {"Fn::GetAtt": ["Queue", "Colour"]}}}},
            "resource Queue does not support attribute type Colour in Fn::GetAtt",
        ),
        ({"X": {"Type": "AWS::SQS::Queue", "Propertys": {}}}, "Invalid template resource property 'Propertys'"),
        ({}, "At least one Resources member must be defined"),
    ],
)  # fmt: skip
def test_templates_that_are_refused_as_a_whole(stack: StackUnderTest, resources: dict[str, Any], reason: str) -> None:
    with pytest.raises(stack.client.exceptions.ClientError, match=reason):
        stack.create(resources)


def test_offline_the_template_itself_is_checked_too() -> None:
    template = {"Resources": queue(QueueName={"Fn::GetAtt": ["Nobody", "Arn"]})}
    with pytest.raises(TemplateError, match="Nobody"):
        validate_template(template, "us-west-2")
