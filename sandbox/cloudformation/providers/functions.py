"""Lambda functions and layers: moto's Lambda holds them, the sandbox runs the Python ones."""

import io
import json
import zipfile
from typing import Any

from ...protocol.json_objects import JsonObject
from .api import Api, call, fit
from .base import Outcome, Provider, Request, unless_gone


class Function(Api):
    """AWS::Lambda::Function."""

    def update(self, request: Request) -> Outcome:
        """Change code and configuration."""
        values, name = _values(request), request.physical_id
        if request.properties["Code"] != request.previous["Code"]:
            client = request.client("lambda")
            shape = client.meta.service_model.operation_model("UpdateFunctionCode").input_shape
            client.update_function_code(FunctionName=name, **fit(values["Code"], shape))
        call(request, "lambda", "update_function_configuration", {**values, "FunctionName": name})
        return Outcome(name, request.attributes)


def _values(request: Request) -> JsonObject:
    """The API takes inline code as a zip archive; tags of the template are a list."""
    values = {key: value for key, value in request.properties.items() if key != "Code"}
    code = dict(request.properties["Code"])
    if "ZipFile" in code:
        code["ZipFile"] = _zip(code["ZipFile"], str(values.get("Runtime", "")))
    return {**values, "Code": code}


def _zip(source: str, runtime: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(zipfile.ZipInfo("index.py" if runtime.startswith("python") else "index.js"), source)
    return content.getvalue()


class Permission:
    """AWS::Lambda::Permission."""

    def create(self, request: Request) -> Outcome:
        """Add the statement to the function's policy."""
        statement = request.name(100)
        call(request, "lambda", "add_permission", {**request.properties, "StatementId": statement})
        return Outcome(statement, {"Id": statement})

    def update(self, request: Request) -> Outcome:
        """Every property is create-only."""
        return Outcome(request.physical_id, request.attributes)

    def delete(self, request: Request) -> None:
        """Take the statement out; a function that is gone took it along."""
        request.client("lambda").remove_permission(
            FunctionName=request.properties["FunctionName"], StatementId=request.physical_id
        )


class EventInvokeConfig:
    """AWS::Lambda::EventInvokeConfig: how often an event is tried, and who gets what fails."""

    def create(self, request: Request) -> Outcome:
        """Put the settings."""
        call(request, "lambda", "put_function_event_invoke_config", request.properties)
        return Outcome(f"{request.properties['FunctionName']}|{request.properties['Qualifier']}")

    def update(self, request: Request) -> Outcome:
        """Put the changed settings in the place of those that are there."""
        with unless_gone():
            self.delete(request)
        return self.create(request)

    def delete(self, request: Request) -> None:
        """Delete the settings; a function that is gone took them along."""
        request.client("lambda").delete_function_event_invoke_config(
            FunctionName=request.properties["FunctionName"], Qualifier=request.properties["Qualifier"]
        )


class Layer(Api):
    """AWS::Lambda::LayerVersion."""

    def delete(self, request: Request) -> None:
        """Delete the version that the ARN names."""
        name, version = request.physical_id.rsplit(":", 2)[-2:]
        request.client("lambda").delete_layer_version(LayerName=name, VersionNumber=int(version))


def _state_machine(request: Request) -> JsonObject:
    values = dict(request.properties)
    definition: Any = values.pop("DefinitionString", values.pop("Definition", {}))
    return {
        **values,
        "name": values.get("StateMachineName") or request.name(80),
        "definition": definition if isinstance(definition, str) else json.dumps(definition),
    }


FUNCTIONS: dict[str, Provider] = {
    "AWS::Lambda::Function": Function(
        "lambda",
        "create_function",
        "FunctionName",
        {"FunctionName": ""},
        "delete_function",
        name="FunctionName",
        name_limit=64,
        translate=_values,
        attributes={"Arn": "FunctionArn"},
    ),
    "AWS::Lambda::LayerVersion": Layer(
        "lambda",
        "publish_layer_version",
        "LayerVersionArn",
        {},
        name="LayerName",
        attributes={"LayerVersionArn": "LayerVersionArn"},
    ),
    "AWS::Lambda::Permission": Permission(),
    "AWS::Lambda::EventInvokeConfig": EventInvokeConfig(),
    "AWS::StepFunctions::StateMachine": Api(
        "stepfunctions",
        "create_state_machine",
        "stateMachineArn",
        {"stateMachineArn": ""},
        "delete_state_machine",
        ("update_state_machine",),
        translate=_state_machine,
        attributes={"Arn": "stateMachineArn"},
    ),
}
