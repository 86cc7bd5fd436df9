"""Handlers that call an API: properties are fitted to the operation's input by botocore's service model.

A property reaches the member of the same name, whatever the case of its first letter; a value is converted to the
member's type. So one table row describes a resource type whose API mirrors its CloudFormation schema.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.model import ListShape, MapShape, Shape, StructureShape

from ...protocol.json_objects import JsonObject, tags_of
from .base import HandlerError, Outcome, Request
from .recorded import attributes_of


def fit(value: Any, shape: Shape) -> Any:
    """A CloudFormation value as this input shape wants it; members that the shape lacks are left out."""
    model: Any = shape  # botocore's stubs hide that members, member and value are shapes
    if isinstance(shape, StructureShape):
        if not isinstance(value, dict):
            return value
        members = {name.lower(): (name, member) for name, member in model.members.items()}
        return {
            members[key.lower()][0]: fit(item, members[key.lower()][1])
            for key, item in value.items()
            if key.lower() in members
        }
    if isinstance(shape, ListShape):
        return [fit(item, model.member) for item in value] if isinstance(value, list) else [fit(value, model.member)]
    if isinstance(shape, MapShape):
        if isinstance(value, list):  # CloudFormation's list of Key/Value pairs
            value = {item["Key"]: item["Value"] for item in value}
        return {str(key): fit(item, model.value) for key, item in value.items()}
    return scalar(value, shape.type_name)


def scalar(value: Any, kind: str) -> Any:
    """A property as a member of that type of an API's shape takes it."""
    if kind == "boolean":
        return value if isinstance(value, bool) else str(value).lower() == "true"
    if kind in ("integer", "long"):
        return int(value)
    if kind in ("float", "double"):
        return float(value)
    if kind == "string" and not isinstance(value, str):
        return json.dumps(value) if isinstance(value, dict | list) else _text(value)
    return value


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def call(request: Request, service: str, operation: str, values: Mapping[str, Any]) -> JsonObject:
    """Call an API operation with those of `values` that its input takes."""
    client = request.client(service)
    name = client.meta.method_to_api_mapping[operation]
    return getattr(client, operation)(**fit(dict(values), client.meta.service_model.operation_model(name).input_shape))


def retag(request: Request, arn: str) -> None:
    """Give a resource of SageMaker the tags of its properties, and take away those that the former ones had."""
    before, after = tags_of(request.previous), tags_of(request.properties)
    sagemaker = request.client("sagemaker")
    if after:
        sagemaker.add_tags(ResourceArn=arn, Tags=[{"Key": key, "Value": value} for key, value in after.items()])
    if removed := sorted(before.keys() - after.keys()):
        sagemaker.delete_tags(ResourceArn=arn, TagKeys=removed)


def pick(answer: Any, path: str) -> Any:
    """The value at a dotted path of an answer, or None."""
    for part in path.split("."):
        answer = answer.get(part) if isinstance(answer, dict) else None
    return answer


@dataclass(frozen=True)
class Api:
    """A resource type that one API's create, update and delete operations serve.

    `identifier` and `attributes` are dotted paths into the create operation's answer; `identify` maps the input
    members that address the resource in update and delete to the attribute or property that fills them, `""` to the
    physical id.
    `after` finishes the resource and may add attributes. `name` is the property that gets a generated name when the
    template has none. Read-only properties that the API does not return get a plausible value.
    """

    service: str
    create_operation: str
    identifier: str | tuple[str, ...]
    identify: Mapping[str, str]
    delete_operation: str | None = None
    update_operations: tuple[str, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    name_limit: int = 63
    name_lower: bool = False
    translate: Callable[[Request], JsonObject] = lambda request: request.properties
    after: Callable[[Request, str], JsonObject] = lambda request, physical_id: {}

    def create(self, request: Request) -> Outcome:
        """Call the create operation."""
        values = dict(self.translate(request))
        if self.name and self.name not in request.properties:
            values[self.name] = request.name(self.name_limit, self.name_lower)
        answer = call(request, self.service, self.create_operation, values)
        paths = (self.identifier,) if isinstance(self.identifier, str) else self.identifier
        parts = [pick(answer, path) or pick(values, path) for path in paths]
        if not all(parts):
            raise HandlerError.saying(f"{self.create_operation} returned no {', '.join(paths)} (sandbox)")
        physical_id = "|".join(map(str, parts))
        made = {name: value for name, path in self.attributes.items() if (value := pick(answer, path)) is not None}
        return Outcome(physical_id, {**attributes_of(request), **made, **self.after(request, physical_id)})

    def update(self, request: Request) -> Outcome:
        """Call the update operations; without one, only CloudFormation's record changes."""
        for operation in self.update_operations:
            call(request, self.service, operation, {**self.translate(request), **self._address(request)})
        return Outcome(request.physical_id, {**request.attributes, **self.after(request, request.physical_id)})

    def delete(self, request: Request) -> None:
        """Call the delete operation, if there is one."""
        if self.delete_operation is None:
            return
        call(request, self.service, self.delete_operation, self._address(request))

    def _address(self, request: Request) -> dict[str, str]:
        known = {**request.properties, **request.attributes, "": request.physical_id}
        return {member: known[source] for member, source in self.identify.items()}
