"""The Kubernetes objects that the table shows: read from templates, whatever CloudFormation fills in."""

import json
from typing import Any, cast

from podwright.operations.aws.account import Account
from podwright.operations.kubernetes.applied_objects import APPLIED, applied_objects, object_rows


def config_map(name: str, namespace: str = "") -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


class Account_:
    """An account with two stacks."""

    def client(self, service: str) -> "Account_":
        assert service == "cloudformation"
        return self

    def get_template(self, StackName: str, TemplateStage: str) -> dict[str, Any]:
        before, after = json.dumps([config_map("b", "team") | {"data": {"id": "|"}}]).split("|")
        manifest: Any = {"Fn::Join": ["", [before, {"Ref": "FileSystem"}, after]]}
        if StackName == "prod-eks":
            manifest = json.dumps([config_map("a"), config_map("a", "team")])
        resources = {"One": {"Type": APPLIED, "Properties": {"Manifest": manifest}}, "Two": {"Type": "AWS::S3::Bucket"}}
        return {"TemplateBody": {"Resources": resources}}


def test_objects_of_all_stacks_are_named() -> None:
    actual = applied_objects(cast(Account, Account_()), ["prod-eks", "prod-governance"])
    assert [(item["namespace"], item["name"]) for item in actual] == [("", "a"), ("team", "a"), ("team", "b")]
    assert object_rows(actual) == [("(cluster)", "ConfigMap", "a"), ("team", "ConfigMap", "a, b")]


def test_of_many_names_the_first_are_shown() -> None:
    many = [{"kind": "Queue", "namespace": "", "name": f"q{number}"} for number in range(1200)]
    first = ", ".join(f"q{number}" for number in range(12))
    assert object_rows(many) == [("(cluster)", "Queue", f"{first} and 1,188 more")]
    assert object_rows(many[:12]) == [("(cluster)", "Queue", first)]
