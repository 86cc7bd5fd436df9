"""Exports: one name once, and none changes or goes while another stack uses it."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from sandbox_stacks import StackUnderTest


def parameter(value: Any) -> dict[str, Any]:
    return {"One": {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": value}}}


def exporting(name: str, value: str) -> dict[str, Any]:
    return {"Out": {"Value": value, "Export": {"Name": name}}}


def test_an_export_in_use(stack: StackUnderTest, other_stack: StackUnderTest) -> None:
    name = f"{stack.name}:shared"
    stack.create(parameter("x"), Outputs=exporting(name, "one"))
    assert other_stack.create(parameter({"Fn::ImportValue": name})) == "CREATE_COMPLETE"
    assert stack.client.list_imports(ExportName=name)["Imports"] == [other_stack.name]

    assert stack.update(parameter("y"), Outputs=exporting(name, "two")) == "UPDATE_ROLLBACK_COMPLETE"
    assert f"Export {name} cannot be updated as it is in use by {other_stack.name}" in stack.reasons(stack.name)
    assert stack.update(parameter("y")) == "UPDATE_ROLLBACK_COMPLETE"
    assert f"Export {name} cannot be deleted as it is in use by {other_stack.name}" in stack.reasons(stack.name)
    assert stack.delete() == "UPDATE_ROLLBACK_COMPLETE"
    assert f"Cannot delete export {name} as it is in use by {other_stack.name}" in stack.reasons(stack.name)

    other_stack.delete()
    assert stack.update(parameter("y"), Outputs=exporting(name, "two")) == "UPDATE_COMPLETE"
    assert {"Name": name, "Value": "two"}.items() <= stack.client.list_exports()["Exports"][-1].items()
    assert stack.delete() == "DELETE_COMPLETE"


def test_a_name_is_exported_once(stack: StackUnderTest, other_stack: StackUnderTest) -> None:
    name = f"{stack.name}:once"
    stack.create(parameter("x"), Outputs=exporting(name, "one"))
    assert other_stack.create(parameter("x"), Outputs=exporting(name, "one")) == "ROLLBACK_COMPLETE"
    assert f"Export with name {name} is already exported by stack {stack.name}." in other_stack.reasons(
        other_stack.name
    )


def test_importing_what_nobody_exports(stack: StackUnderTest) -> None:
    with pytest.raises(ClientError, match="No export named nobody found"):
        stack.create(parameter({"Fn::ImportValue": "nobody"}))
