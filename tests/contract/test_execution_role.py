"""CloudFormation's role of the pipeline, judged on each resource that it makes, changes and deletes."""

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, cast

from podwright.planning.delivery.execution_policy import POWER, documents, needed
from podwright.sandbox.authorization.evaluation import Verdict, verdict
from podwright.sandbox.cloudformation.role_calls import Touched, Verb, calls
from synthesis import NAMES, environment, synthesis

BOUNDARY = "arn:aws:iam::{account}:policy/podwright-boundary"
VERBS = cast(tuple[Verb, ...], ("create", "update", "delete"))
PROVIDER = "https://oidc.eks.us-west-2.amazonaws.com/id/0123456789ABCDEF0123456789ABCDEF"


def resolved(value: Any, account: str, resources: dict[str, Any], stack: str, exports: dict[str, Any]) -> Any:
    """A property with its references to roles as CloudFormation would put them, and other references as text."""

    def inner(item: Any) -> Any:
        return resolved(item, account, resources, stack, exports)

    match value:
        case {"Fn::ImportValue": name}:
            home, exporting, exported = exports[name]
            return resolved(exported, account, exporting, home, exports)
        case {"Ref": "AWS::Partition"}:
            return "aws"
        case {"Ref": "AWS::AccountId"}:
            return account
        case {"Ref": name} if name in resources:
            return name_of(stack, name, resources[name])
        case {"Fn::GetAtt": [name, "Arn"]} if resources[name]["Type"] == "AWS::IAM::Role":
            path = resources[name]["Properties"].get("Path", "/")
            return f"arn:aws:iam::{account}:role{path}{name_of(stack, name, resources[name])}"
        case {"Fn::GetAtt": [_, "OpenIdConnectIssuerUrl"]}:
            return PROVIDER
        case {"Fn::Join": [delimiter, parts]}:
            return delimiter.join(str(inner(part)) for part in parts)
        case dict():
            return {key: inner(item) for key, item in value.items()}
        case list():
            return [inner(item) for item in value]
    return value


def name_of(stack: str, logical_id: str, resource: dict[str, Any]) -> str:
    """The physical name: the template's, or what CloudFormation makes of stack and logical id."""
    return resource["Properties"].get("RoleName") or f"{stack}-{logical_id}-0123456789AB"


@cache
def touched(name: str) -> list[Touched]:
    """Every resource of an environment that CloudFormation makes."""
    account, region = environment(name).account, environment(name).region
    templates = {f"{name}-{stack}": item for stack, item in synthesis(name).templates.items()}
    # An environment without a pipeline has no boundary: with one, its role would have to do the same.
    added = (
        {} if environment(name).iam.permissions_boundary else {"PermissionsBoundary": BOUNDARY.format(account=account)}
    )
    exports = {
        output["Export"]["Name"]: (stack, template["Resources"], output["Value"])
        for stack, template in templates.items()
        for output in template.get("Outputs", {}).values()
        if "Export" in output
    }
    boundaries = {
        name_of(stack, key, item): (added | item["Properties"]).get("PermissionsBoundary")
        for stack, template in templates.items()
        for key, item in template["Resources"].items()
        if item["Type"] == "AWS::IAM::Role"
    }
    actual = []
    for stack, template in templates.items():
        resources = template["Resources"]
        for logical_id, resource in resources.items():
            properties = added | resolved(resource.get("Properties", {}), account, resources, stack, exports)
            physical = name_of(stack, logical_id, {"Properties": properties})
            actual.append(Touched(resource["Type"], properties, account, region, physical, boundaries.get))
    return actual


def judged(name: str) -> Iterator[str]:
    """The calls that the role's policies refuse, with what calls them."""
    account, templates = environment(name).account, list(synthesis(name).templates.values())
    boundaries = [environment(name).iam.permissions_boundary or BOUNDARY.format(account=account)]
    desired = needed(templates)
    policies = documents(desired, partition="aws", account=account, prefixes=[name], boundaries=boundaries)
    verdicts: dict[str, Verdict] = {}
    for resource in touched(name):
        for verb in VERBS:
            for call in calls(resource, verb):
                # Resources of one type mostly make the same calls.
                if (key := repr(call)) not in verdicts:
                    verdicts[key] = verdict(call, policies)
                if verdicts[key] != "allowed":
                    yield f"{name}: {resource.resource_type}: {verb} {call.action} {' '.join(call.resources)}"


def test_the_execution_role_may_do_what_is_needed() -> None:
    refused = [line for name in NAMES for line in judged(name)]
    assert not refused, "\n".join(refused)


def test_what_a_pipeline_deploys_has_the_boundary() -> None:
    for name in ("dev", "staging", "prod"):
        boundary = environment(name).iam.permissions_boundary
        assert boundary == BOUNDARY.format(account=environment(name).account)
        roles = synthesis(name).resources("AWS::IAM::Role")
        assert roles
        assert {json.dumps(role["Properties"].get("PermissionsBoundary")) for role in roles.values()} == {
            json.dumps(boundary)
        }


def test_calls_of_iam_are_on_something() -> None:
    """The judge finds what it has to judge: roles, their boundary, the linked role of FSx."""
    actual = {(call.action, *call.resources) for each in touched("prod") for call in calls(each, "create")}
    linked = [resource for action, *resources in actual for resource in resources if action == "iam:PutRolePolicy"]
    assert any("s3.data-source.lustre.fsx.amazonaws.com" in arn for arn in linked)
    assert any(re.search(":role/prod-", arn) for arn in linked)
    assert {action for action, *_ in actual} >= POWER - {"iam:PutRolePermissionsBoundary"}
