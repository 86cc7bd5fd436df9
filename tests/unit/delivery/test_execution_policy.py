"""The policies that `podwright pipeline bootstrap` writes for CloudFormation's role."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from podwright.config.catalog.facts import DATA
from podwright.planning.delivery.execution_policy import MAX_CHARACTERS, documents, needed, policies_template

ROOT = Path(__file__).resolve().parents[3]


@cache
def templates() -> list[dict[str, Any]]:
    """The reviewed templates of all environments and of the pipeline."""
    files = [*ROOT.glob("tests/snapshot/templates/*/*.json"), *ROOT.glob("tests/snapshot/pipeline/*.json")]
    return [json.loads(file.read_text()) for file in sorted(files)]


def policies(actions: frozenset[str], existing: frozenset[str] = frozenset()) -> list[dict[str, Any]]:
    prefixes = ["prod", "podwright-prod"]
    return documents(actions, partition="aws", account="111122223333", prefixes=prefixes, existing=existing)


def test_it_is_known_what_every_resource_needs() -> None:
    resolved_needed = needed(templates())
    assert resolved_needed.unknown == frozenset()
    assert {"sagemaker:CreateCluster", "fsx:CreateFileSystem", "codebuild:CreateProject"} <= resolved_needed.actions
    assert {"lambda:InvokeFunction", "codepipeline:CreatePipeline", "ssm:GetParameters"} <= resolved_needed.actions


def test_what_the_templates_do_not_hold_is_not_allowed() -> None:
    network = json.loads((ROOT / "tests/snapshot/templates/prod/network.json").read_text())
    services = {action.partition(":")[0] for action in needed([network]).actions}
    assert "ec2" in services
    assert not services & {"sagemaker", "eks", "fsx", "rds"}


def test_a_type_without_schema_is_named() -> None:
    assert needed([{"Resources": {"X": {"Type": "AWS::New::Thing"}}}]).unknown == {"AWS::New::Thing"}


def test_the_table_is_what_the_schemas_say() -> None:
    """As cfn-lint carries CloudFormation's schemas, without names that are no actions of IAM."""
    from cfnlint.data import AdditionalSpecs
    from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

    spec = json.loads((Path(AdditionalSpecs.__file__).parent / "Policies.json").read_text())
    table = json.loads((DATA / "handler_permissions.json").read_text())
    different = {}
    for name, actions in table["schemas"].items():
        handlers = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", name).schema["handlers"].values()
        output = {action for handler in handlers for action in handler.get("permissions", [])}
        expected = {
            action
            for action in output
            if action.lower().partition(":")[2]
            in spec.get(action.partition(":")[0].lower(), {"Actions": {}})["Actions"]
        }
        if expected != set(actions):
            different[name] = expected ^ set(actions)
    assert different == {}
    assert not [action for actions in table["schemas"].values() for action in actions if "*" in action]


def test_every_policy_fits_and_together_they_allow_all() -> None:
    expected = needed(templates()).actions
    actual = policies(expected)
    allowed = {action for item in actual for statement in item["Statement"] for action in statement["Action"]}
    assert allowed == expected
    assert all(len(json.dumps(item, separators=(",", ":"))) <= MAX_CHARACTERS for item in actual)
    assert 1 < len(actual) <= 10


def test_iam_is_allowed_on_the_stacks_own_roles_alone() -> None:
    for item in policies(needed(templates()).actions):
        for statement in item["Statement"]:
            if any(action.startswith("iam:") for action in statement["Action"]):
                assert "*" not in statement["Resource"]
                for arn in statement["Resource"]:
                    own = "/prod-*" in arn or "/podwright-prod-*" in arn
                    assert own or arn.endswith("role/aws-service-role/*"), arn


def test_existing_roles_that_a_template_names_may_be_passed_on() -> None:
    arn = "arn:aws:iam::111122223333:role/ml/Training"
    resolved_needed = needed([{"Resources": {"X": {"Type": "AWS::IAM::Role", "Properties": {"Arn": arn}}}}])
    assert resolved_needed.roles == {arn}
    [passed] = [
        statement
        for item in policies(resolved_needed.actions, resolved_needed.roles)
        for statement in item["Statement"]
        if statement["Resource"] == [arn]
    ]
    assert passed["Action"] == ["iam:GetRole", "iam:PassRole"]


def test_the_template_names_policies_as_the_command_does() -> None:
    actual = policies_template([{"Version": "2012-10-17", "Statement": []}] * 2, "podwright-execution")
    names = [item["Properties"]["ManagedPolicyName"] for item in actual["Resources"].values()]
    assert names == ["podwright-execution-1", "podwright-execution-2"]


@pytest.mark.parametrize("size", [1, 40, 400])
def test_any_number_of_actions_is_parted_into_policies(size: int) -> None:
    actions = frozenset(f"service{number}:DescribeSomethingWithALongName" for number in range(size))
    actual = policies(actions)
    assert {action for item in actual for statement in item["Statement"] for action in statement["Action"]} == actions
    assert all(len(json.dumps(item, separators=(",", ":"))) <= MAX_CHARACTERS for item in actual)
