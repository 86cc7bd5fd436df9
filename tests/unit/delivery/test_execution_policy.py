"""The policies that `podwright pipeline bootstrap` writes for CloudFormation's role."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from podwright.config.catalog.facts import DATA, table
from podwright.planning.delivery.execution_policy import (
    MAX_CHARACTERS,
    POWER,
    Needed,
    documents,
    needed,
    policies_template,
)
from podwright.planning.delivery.role_boundary import boundary, unknown_policies
from podwright.sandbox.authorization.evaluation import Call, Verdict, verdict

ROOT = Path(__file__).resolve().parents[3]


@cache
def templates() -> list[dict[str, Any]]:
    """The reviewed templates of all environments and of the pipeline."""
    files = [*ROOT.glob("tests/snapshot/templates/*/*.json"), *ROOT.glob("tests/snapshot/pipeline/*.json")]
    return [json.loads(file.read_text()) for file in sorted(files)]


PREFIXES = ["prod", "podwright-prod"]
BOUNDARY = "arn:aws:iam::111122223333:policy/podwright-boundary"
# What IAM allows on users and groups, of which we make none, and what would free a role of its boundary.
REFUSED = re.compile("iam:([A-Za-z]*(User|Group)Policy|DeleteRolePermissionsBoundary)")


def policies(desired: Needed) -> list[dict[str, Any]]:
    return documents(desired, partition="aws", account="111122223333", prefixes=PREFIXES, boundaries=[BOUNDARY])


def judge(action: str, resource: str, **context: list[str]) -> Verdict:
    """What the policies for all our templates say of one call."""
    return verdict(Call(action, (resource,), context), role_policies())


@cache
def role_policies() -> list[dict[str, Any]]:
    return policies(needed(templates()))


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
    desired = needed(templates())
    actual = policies(desired)
    statements = [statement for item in actual for statement in item["Statement"] if statement["Effect"] == "Allow"]
    allowed = {action for statement in statements for action in statement["Action"]}
    assert allowed == {action for action in desired.actions if not REFUSED.fullmatch(action)}
    assert all(len(json.dumps(item, separators=(",", ":"))) <= MAX_CHARACTERS for item in actual)
    assert 1 < len(actual) <= 10


def test_iam_is_allowed_on_the_stacks_own_roles_alone() -> None:
    role = "arn:aws:iam::111122223333:role"
    for action in ("iam:CreateRole", "iam:PutRolePolicy", "iam:AttachRolePolicy", "iam:PassRole", "iam:DeleteRole"):
        bounded = {"iam:permissionsboundary": [BOUNDARY]}
        assert judge(action, f"{role}/prod-cluster-Role", **bounded) == "allowed", action
        assert judge(action, f"{role}/path/prod-cluster-Role", **bounded) == "allowed", action
        assert judge(action, f"{role}/Administrator", **bounded) == "implicitDeny", action
    assert judge("iam:ListRoles", "*") == "allowed"
    assert judge("iam:ListOpenIDConnectProviders", "*") == "allowed"
    assert judge("iam:CreateUser", "arn:aws:iam::111122223333:user/prod-user") == "implicitDeny"


def test_roles_are_made_and_given_power_with_their_boundary_alone() -> None:
    role = "arn:aws:iam::111122223333:role/prod-cluster-Role"
    for action in sorted(POWER):
        assert judge(action, role) != "allowed", action
        assert judge(action, role, **{"iam:permissionsboundary": [f"{BOUNDARY}-other"]}) != "allowed", action
        assert judge(action, role, **{"iam:permissionsboundary": [BOUNDARY]}) == "allowed", action
    assert judge("iam:DeleteRolePermissionsBoundary", role) == "implicitDeny"
    for verb in ("CreatePolicyVersion", "SetDefaultPolicyVersion", "DeletePolicy"):
        assert judge(f"iam:{verb}", BOUNDARY) == "explicitDeny", verb


def test_what_takes_the_condition_is_what_iam_says() -> None:
    """Actions of roles that add power and know the key; those that remove it go without."""
    from cfnlint.data import AdditionalSpecs

    spec = json.loads((Path(AdditionalSpecs.__file__).parent / "Policies.json").read_text())["iam"]["Actions"]
    lists = [name for name in ("listroles", "listopenidconnectproviders") if spec[name].get("Resources")]
    assert lists == []
    assert {"role"} == {kind for action in POWER for kind in spec[action.partition(":")[2].lower()]["Resources"]}


def test_linked_role_of_fsx_gets_power_only_where_there_are_associations() -> None:
    linked = "arn:aws:iam::111122223333:role/aws-service-role"
    fsx = f"{linked}/s3.data-source.lustre.fsx.amazonaws.com/AWSServiceRoleForFSxS3Access_fs-01"
    for action in ("iam:PutRolePolicy", "iam:AttachRolePolicy", "iam:GetRole", "iam:CreateServiceLinkedRole"):
        assert judge(action, fsx) == "allowed", action
    assert judge("iam:PutRolePolicy", f"{linked}/eks.amazonaws.com/AWSServiceRoleForAmazonEKS") == "implicitDeny"
    assert needed([{"Resources": {"X": {"Type": "AWS::FSx::FileSystem"}}}]).linked == frozenset()


def test_providers_of_eks_and_github_alone() -> None:
    providers = "arn:aws:iam::111122223333:oidc-provider"
    for host in ("oidc.eks.us-west-2.amazonaws.com/id/0123", "token.actions.githubusercontent.com"):
        assert judge("iam:CreateOpenIDConnectProvider", f"{providers}/{host}") == "allowed"
    assert judge("iam:CreateOpenIDConnectProvider", f"{providers}/accounts.example.com") == "implicitDeny"


def bounded(action: str, resource: str) -> Verdict:
    """What a role with a policy that allows everything may do under the boundary."""
    everything = {"Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
    return verdict(Call(action, (resource,)), [everything], [limit()])


@cache
def limit() -> dict[str, Any]:
    return boundary(templates(), partition="aws", account="111122223333", prefixes=PREFIXES)


def test_a_role_cannot_get_past_its_boundary() -> None:
    iam = "arn:aws:iam::111122223333"
    assert bounded("sagemaker:DescribeCluster", "arn:aws:sagemaker:us-west-2:111122223333:cluster/a") == "allowed"
    assert bounded("iam:PassRole", f"{iam}:role/prod-cluster-Role") == "allowed"
    linked = f"{iam}:role/aws-service-role/elasticloadbalancing.amazonaws.com/AWSServiceRoleForElasticLoadBalancing"
    assert bounded("iam:CreateServiceLinkedRole", linked) == "allowed"
    assert bounded("sts:AssumeRole", "arn:aws:iam::444455556666:role/podwright-prod-read") == "allowed"
    refused = {
        "iam:CreateRole": f"{iam}:role/prod-new",
        "iam:PutRolePolicy": f"{iam}:role/prod-cluster-Role",
        "iam:CreatePolicyVersion": BOUNDARY,
        "iam:CreateUser": f"{iam}:user/x",
        "iam:PassRole": f"{iam}:role/Administrator",
        "sts:AssumeRole": f"{iam}:role/Administrator",
        "organizations:LeaveOrganization": "*",
    }
    assert {action: bounded(action, arn) for action, arn in refused.items()} == dict.fromkeys(refused, "implicitDeny")


def test_the_boundary_lets_every_role_do_what_its_policies_say() -> None:
    for template in templates():
        for resource in template["Resources"].values():
            properties = resource.get("Properties", {})
            held = [item["PolicyDocument"] for item in properties.get("Policies", []) if isinstance(item, dict)]
            if resource["Type"] == "AWS::IAM::Policy":
                held.append(properties["PolicyDocument"])
            actions = {action for document in held for item in document["Statement"] for action in listed(item)}
            for action in actions - {"iam:CreateServiceLinkedRole", "iam:PassRole", "sts:AssumeRole"}:
                assert bounded(action, "*") == "allowed", action
    assert unknown_policies(templates()) == []


def listed(statement: dict[str, Any]) -> list[str]:
    return statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]


def test_services_of_managed_policies_are_what_aws_says() -> None:
    from moto.iam.aws_managed_policies import aws_managed_policies_data

    known = json.loads(aws_managed_policies_data)
    for row in table("managed_policies"):
        actions = {action for item in known[row["policy"]]["Document"]["Statement"] for action in listed(item)}
        assert set(row["services"].split()) == {action.partition(":")[0] for action in actions}, row["policy"]


def test_a_policy_that_nobody_knows_has_no_boundary() -> None:
    own = {"Type": "AWS::IAM::Role", "Properties": {"ManagedPolicyArns": ["arn:aws:iam::111122223333:policy/Own"]}}
    assert unknown_policies([{"Resources": {"X": own}}]) == ["arn:aws:iam::111122223333:policy/Own"]


def test_existing_roles_that_a_template_names_may_be_passed_on() -> None:
    arn = "arn:aws:iam::111122223333:role/ml/Training"
    resolved_needed = needed([{"Resources": {"X": {"Type": "AWS::IAM::Role", "Properties": {"Arn": arn}}}}])
    assert resolved_needed.roles == {arn}
    [passed] = [
        statement
        for item in policies(resolved_needed)
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
    actual = policies(Needed(actions, frozenset(), frozenset()))
    assert {action for item in actual for statement in item["Statement"] for action in statement["Action"]} == actions
    assert all(len(json.dumps(item, separators=(",", ":"))) <= MAX_CHARACTERS for item in actual)
