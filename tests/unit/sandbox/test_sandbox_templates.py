"""How the sandbox reads templates: formats, parameters, conditions, intrinsic functions, order."""

from typing import Any

import pytest

from podwright.sandbox.cloudformation import parameters
from podwright.sandbox.cloudformation.evaluate import KNOWN_AFTER_APPLY, Evaluator
from podwright.sandbox.cloudformation.graph import order
from podwright.sandbox.cloudformation.template import TemplateError, parse

PSEUDO = {"AWS::Region": "us-west-2", "AWS::AccountId": "123456789012", "AWS::Partition": "aws"}


class Values:
    """A scope with made-up values: `Ref` gives `id-NAME`."""

    def ref(self, logical_id: str) -> Any:
        return f"id-{logical_id}"

    def attribute(self, logical_id: str, name: str) -> Any:
        return {"Arns": ["one", "two"], "Later": KNOWN_AFTER_APPLY}.get(name, f"{logical_id}.{name}")

    def imported(self, name: str) -> str:
        return f"imported {name}"

    def zones(self, region: str) -> list[str]:
        return [f"{region}a", f"{region}b"]

    def dynamic(self, service: str, reference: str) -> str:
        return f"<{service} {reference}>"


def evaluator(**sections: Any) -> Evaluator:
    return Evaluator({"Resources": {}, **sections}, {"Text": "given", "List": ["a", "b"]}, PSEUDO, Values())


@pytest.mark.parametrize(
    ("value", "result"),
    [
        ({"Ref": "Bucket"}, "id-Bucket"),
        ({"Ref": "Text"}, "given"),
        ({"Ref": "AWS::Region"}, "us-west-2"),
        ({"Fn::GetAtt": ["A", "B.C"]}, "A.B.C"),
        ({"Fn::GetAtt": "A.B.C"}, "A.B.C"),
        ({"Fn::Sub": "${Text}-${A.Arn}-${!Kept}-${AWS::Region}"}, "given-A.Arn-${Kept}-us-west-2"),
        ({"Fn::Sub": ["${x}-${Text}", {"x": {"Ref": "A"}}]}, "id-A-given"),
        ({"Fn::Join": ["-", ["a", {"Ref": "Text"}, 1, True]]}, "a-given-1-true"),
        ({"Fn::Join": [",", {"Ref": "List"}]}, "a,b"),
        ({"Fn::Select": ["1", {"Fn::GetAtt": ["A", "Arns"]}]}, "two"),
        ({"Fn::Select": [1, {"Fn::Split": ["/", "x/y"]}]}, "y"),
        ({"Fn::Select": [5, {"Fn::Split": [":", {"Fn::GetAtt": ["A", "Later"]}]}]}, KNOWN_AFTER_APPLY),
        ({"Fn::FindInMap": ["M", {"Ref": "AWS::Region"}, "v"]}, 7),
        ({"Fn::If": ["Yes", "a", {"Ref": "AWS::NoValue"}]}, "a"),
        ({"a": {"Fn::If": ["No", "a", {"Ref": "AWS::NoValue"}]}, "b": 1}, {"b": 1}),
        ([1, {"Ref": "AWS::NoValue"}, 2], [1, 2]),
        ({"Fn::GetAZs": ""}, ["us-west-2a", "us-west-2b"]),
        ({"Fn::Base64": "x"}, "eA=="),
        ({"Fn::ImportValue": {"Fn::Sub": "${Text}:x"}}, "imported given:x"),
        ({"Fn::Cidr": ["10.0.0.0/16", 2, 8]}, ["10.0.0.0/24", "10.0.1.0/24"]),
        ("{{resolve:ssm:/a/b}}!", "<ssm /a/b>!"),
        ({"Condition": "Yes"}, True),
        ({"Condition": {"StringEquals": {}}}, {"Condition": {"StringEquals": {}}}),
    ],
)
def test_intrinsic_functions(value: Any, result: Any) -> None:
    conditions = {"Yes": {"Fn::Equals": ["a", "a"]}, "No": {"Fn::Not": [{"Condition": "Yes"}]}}
    assert evaluator(Conditions=conditions, Mappings={"M": {"us-west-2": {"v": 7}}}).resolve(value) == result


@pytest.mark.parametrize(
    ("condition", "result"),
    [
        ({"Fn::And": [{"Fn::Equals": [1, "1"]}, {"Fn::Equals": [True, "true"]}]}, True),
        ({"Fn::Or": [{"Fn::Equals": [1, 2]}, {"Fn::Equals": ["a", "b"]}]}, False),
        ({"Fn::Not": [{"Fn::Equals": [{"Ref": "Text"}, "given"]}]}, False),
        ({"Fn::Contains": [["a", "b"], "b"]}, True),
    ],
)
def test_conditions(condition: Any, result: bool) -> None:
    assert evaluator(Conditions={"C": condition}).condition("C") is result


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"Fn::FindInMap": ["M", "a", "b"]}, "Unable to get mapping for M::a::b"),
        ({"Fn::Select": [9, ["a"]]}, "cannot select nonexistent value at index 9"),
        ({"Fn::Join": [",", "text"]}, "requires two parameters"),
        ({"Fn::Transform": {}}, r"Fn::Transform is not supported \(sandbox\)"),
        ({"Fn::Sub": "${List}"}, "Fn::Sub needs text"),
        ({"Fn::If": ["Nothing", 1, 2]}, "Unresolved condition dependency Nothing"),
        ({"Fn::Cidr": ["10.0.0.0/24", 3, 7]}, "cannot divide"),
    ],
)
def test_functions_that_cannot_be_evaluated(value: Any, message: str) -> None:
    with pytest.raises(TemplateError, match=message):
        evaluator(Mappings={"M": {}}).resolve(value)


def test_yaml_with_short_tags_is_json() -> None:
    body = """
AWSTemplateFormatVersion: 2010-09-09
Resources:
  Topic:
    Type: AWS::SNS::Topic
    Properties:
      TopicName: !Sub '${AWS::StackName}-x'
      KmsMasterKeyId: !GetAtt Key.Arn
      Tags: [!If [C, !Ref A, !Ref 'AWS::NoValue']]
"""
    properties = {
        "TopicName": {"Fn::Sub": "${AWS::StackName}-x"},
        "KmsMasterKeyId": {"Fn::GetAtt": ["Key", "Arn"]},
        "Tags": [{"Fn::If": ["C", {"Ref": "A"}, {"Ref": "AWS::NoValue"}]}],
    }
    template = parse(body)
    assert template["Resources"]["Topic"]["Properties"] == properties
    assert template["AWSTemplateFormatVersion"] == "2010-09-09"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("{", "Template format error"),
        ("- a", "unsupported structure"),
        ('{"Resources": {}}', "At least one Resources member"),
        ('{"Resources": {"A": {"Type": "T"}}, "Outpust": {}}', r"Invalid template property or properties \[Outpust\]"),
        ('{"Resources": {"A-B": {"Type": "T"}}}', "Resource name A-B is non alphanumeric"),
        ('{"Resources": {"A": {"Properties": {}}}}', "must contain a Type member"),
        ('{"Resources": {"A": {"Type": "T", "DeletionPolicy": "Keep"}}}', "Unrecognized DeletionPolicy Keep"),
        ('{"Transform": "X", "Resources": {"A": {"Type": "T"}}}', "Transforms and macros are not supported"),
    ],
)
def test_templates_out_of_shape(body: str, message: str) -> None:
    with pytest.raises(TemplateError, match=message):
        parse(body)


DECLARED = {
    "Parameters": {
        "Size": {"Type": "Number", "Default": 3, "MinValue": 1, "MaxValue": 9},
        "Name": {"Type": "String", "AllowedPattern": "[a-z]+", "ConstraintDescription": "small letters"},
        "Zones": {"Type": "CommaDelimitedList", "Default": "a, b"},
        "Kind": {"Type": "String", "Default": "x", "AllowedValues": ["x", "y"]},
        "Version": {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/version"},
    }
}


def given(**values: str) -> list[dict[str, Any]]:
    return [{"ParameterKey": key, "ParameterValue": value} for key, value in values.items()]


def test_parameters_are_given_kept_or_default() -> None:
    asked = [*given(Size="5"), {"ParameterKey": "Name", "UsePreviousValue": True}]
    texts = parameters.effective(DECLARED, asked, {"Name": "before", "Kind": "y"})
    assert texts == {"Size": "5", "Name": "before", "Zones": "a, b", "Kind": "x", "Version": "/version"}
    assert parameters.typed(DECLARED, texts, lambda name: f"value of {name}") == {
        "Size": "5", "Name": "before", "Zones": ["a", "b"], "Kind": "x", "Version": "value of /version",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, r"Parameters: \[Name\] must have values"),
        ({"Name": "a", "Nmae": "b"}, r"Parameters: \[Nmae\] do not exist in the template"),
        ({"Name": "A"}, "Parameter Name failed to satisfy constraint: small letters"),
        ({"Name": "a", "Kind": "z"}, "Parameter 'Kind' must be one of AllowedValues"),
        ({"Name": "a", "Size": "0"}, "Parameter 'Size' breaks MinValue 1"),
        ({"Name": "a", "Size": "12"}, "Parameter 'Size' breaks MaxValue 9"),
    ],
)
def test_parameters_that_are_refused(values: dict[str, str], message: str) -> None:
    with pytest.raises(TemplateError, match=message):
        parameters.effective(DECLARED, given(**values), {})


def test_rules_are_asserted() -> None:
    contains = {"Fn::Contains": [["given"], {"Ref": "Text"}]}
    assertion: dict[str, Any] = {"Assert": contains, "AssertDescription": "must be given"}
    parameters.check_rules(evaluator(Rules={"R": {"Assertions": [assertion]}}))
    assertion["Assert"] = {"Fn::Not": [assertion["Assert"]]}
    with pytest.raises(TemplateError, match="must be given"):
        parameters.check_rules(evaluator(Rules={"R": {"Assertions": [assertion]}}))


def test_order_follows_what_is_really_used() -> None:
    resources = {
        "A": {"Type": "T", "Properties": {"x": {"Fn::If": ["No", {"Ref": "B"}, {"Ref": "C"}]}}},
        "B": {"Type": "T", "DependsOn": ["A"]},
        "C": {"Type": "T"},
        "Off": {"Type": "T", "Condition": "No"},
    }
    actual = order(evaluator(Resources=resources, Conditions={"No": {"Fn::Equals": [1, 2]}}))
    assert list(actual) == ["C", "A", "B"]
    assert actual["B"] == ["A"]
