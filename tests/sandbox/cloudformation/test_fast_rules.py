"""The sandbox validates resources faster than cfn-lint, with the same findings."""

from collections.abc import Iterator
from typing import Any

import pytest
from cfnlint.jsonschema import validators

from podwright.sandbox.cloudformation import validation

SPOILED: list[tuple[str, dict[str, Any]]] = [
    ("AWS::SQS::Queue", {"DelaySeconds": "soon", "Delay": 5, "Tags": [{"Key": "team"}]}),
    (
        "AWS::KMS::Key",
        {"KeyUsage": "NO_SUCH_USAGE", "KeyPolicy": {"Version": "2012-10-17", "Statement": {"Effect": 1}}},
    ),
    (
        "AWS::IAM::Role",
        {"AssumeRolePolicyDocument": {"Statement": [{"Effect": "Perhaps", "Action": "sts:AssumeRole"}]}},
    ),
    ("AWS::EC2::Subnet", {"VpcId": "no-vpc", "CidrBlock": "10.0.0.0/99"}),
    ("AWS::Lambda::Function", {"Code": {"ZipFile": "a"}, "Runtime": "python1.5", "Role": "r", "Timeout": 5000}),
    ("AWS::S3::Bucket", {"BucketName": "Upper_Case", "AccessControl": "None"}),
]


def findings() -> list[list[validation.Failure]]:
    return [validation.validate_properties(kind, properties, "us-west-2") for kind, properties in SPOILED]


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[list[validation.Failure]]]:
    """What cfn-lint finds by itself."""
    with monkeypatch.context() as patch:
        patch.setattr(validation, "speed_up", lambda rules: None)
        validation.property_rule.cache_clear()
        actual = findings()
    validation.property_rule.cache_clear()
    yield actual
    validation.property_rule.cache_clear()


def test_shortcuts_change_no_finding(plain: list[list[validation.Failure]]) -> None:
    assert all(plain)
    assert findings() == plain


def test_a_second_validation_makes_no_class(monkeypatch: pytest.MonkeyPatch) -> None:
    first, made, create = findings(), list[Any](), validators.create

    def count(**arguments: Any) -> Any:
        made.append(arguments)
        return create(**arguments)

    monkeypatch.setattr(validators, "create", count)
    assert findings() == first
    assert made == []
