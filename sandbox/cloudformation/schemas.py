"""The CloudFormation provider schemas that cfn-lint ships: the sandbox's law of what a resource type is.

Source: cfn-lint 1.58.0, `cfnlint/data/schemas` (AWS's published provider schemas, by region).
"""

import re
from functools import cache, cached_property
from typing import Any

from cfnlint.schema._exceptions import ResourceNotFoundError
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

# The lists of regions of these two contradict each other in most regions, though one is nothing without the other:
# together they are the regions of task governance, nearly those that the first one's description names.
_TOGETHER = {
    "AWS::SageMaker::ComputeQuota": "AWS::SageMaker::ClusterSchedulerConfig",
    "AWS::SageMaker::ClusterSchedulerConfig": "AWS::SageMaker::ComputeQuota",
}
# One of the few regions that the lists of both name.
_COMPLETE_REGION = "us-east-1"
# Types that CloudFormation or the CDK itself handles; they have no provider schema.
PSEUDO_TYPES = {"AWS::CDK::Metadata", "AWS::CloudFormation::WaitConditionHandle"}


def is_custom(resource_type: str) -> bool:
    """Whether CloudFormation hands a resource of this type to a Lambda function."""
    return resource_type.startswith("Custom::") or resource_type == "AWS::CloudFormation::CustomResource"


class ResourceSchema:
    """One provider schema. Property paths are JSON pointers below the properties, without the leading slash."""

    def __init__(self, resource_type: str, region: str, document: dict[str, Any]):
        self.resource_type, self.region = resource_type, region
        self.document = document

    @cached_property
    def create_only(self) -> list[str]:
        """Properties whose change replaces the resource."""
        return self._paths("createOnlyProperties") + self._paths("conditionalCreateOnlyProperties")

    @cached_property
    def read_only(self) -> list[str]:
        """Properties that only the service sets: the attributes that Fn::GetAtt may read."""
        return self._paths("readOnlyProperties")

    @cached_property
    def primary_identifier(self) -> list[str]:
        """The properties that make up the physical id."""
        return self._paths("primaryIdentifier")

    @property
    def tag_property(self) -> str | None:
        """The property that carries tags, or None where the type takes none."""
        tagging = self.document.get("tagging", {})
        if tagging.get("taggable") is False or (not tagging and "Tags" not in self.document.get("properties", {})):
            return None
        return tagging.get("tagProperty", "/properties/Tags").removeprefix("/properties/")

    def has_attribute(self, name: str) -> bool:
        """Whether `Fn::GetAtt` may read this attribute."""
        if is_custom(self.resource_type) or self.resource_type in PSEUDO_TYPES:
            return True
        return any(re.fullmatch(pattern, name) for pattern in self._attributes)

    @cached_property
    def _attributes(self) -> list[str]:
        return list(PROVIDER_SCHEMA_MANAGER.get_type_getatts(self.resource_type, self.region))

    def _paths(self, keyword: str) -> list[str]:
        return [path.removeprefix("/properties/") for path in self.document.get(keyword, [])]

    def definition(self, path: str) -> dict[str, Any]:
        """The schema of one property path (`VpcConfig/Subnets`, `*` for array items), references followed."""
        current: dict[str, Any] = self.document
        for name in path.split("/"):
            current = self._follow(current)
            current = current.get("items", {}) if name == "*" else current.get("properties", {}).get(name, {})
        return self._follow(current)

    def _follow(self, schema: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in schema:
            target: Any = self.document
            for name in schema["$ref"].removeprefix("#/").split("/"):
                target = target[name]
            schema = target
        return schema


@cache
def find(resource_type: str, region: str) -> ResourceSchema | None:
    """The schema of a type in a region, or None if the region does not know the type.

    Custom resources and the types of PSEUDO_TYPES have an open schema.
    """
    if resource_type in PSEUDO_TYPES or is_custom(resource_type):
        return ResourceSchema(resource_type, region, {"properties": {}})
    try:
        document = PROVIDER_SCHEMA_MANAGER.get_resource_schema(region, resource_type).schema
        return ResourceSchema(resource_type, region, dict(document))
    except ResourceNotFoundError:
        if resource_type in _TOGETHER and _listed(_TOGETHER[resource_type], region):
            return find(resource_type, _COMPLETE_REGION)
        return None


def _listed(resource_type: str, region: str) -> bool:
    try:
        PROVIDER_SCHEMA_MANAGER.get_resource_schema(region, resource_type)
    except ResourceNotFoundError:
        return False
    return True


def values_at(properties: Any, path: str) -> list[Any]:
    """All values at a property path; `*` stands for every array item."""
    values = [properties]
    for name in path.split("/"):
        results: list[Any] = []
        for value in values:
            if name == "*" and isinstance(value, list):
                results += value
            elif isinstance(value, dict) and name in value:
                results.append(value[name])
        values = results
    return values


def changed_create_only(resource_type: str, region: str, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """The create-only property paths whose values differ: those that make the update a replacement."""
    schema = find(resource_type, region)
    return [path for path in schema.create_only if values_at(old, path) != values_at(new, path)] if schema else []


def kept_name(resource_type: str, region: str, old: dict[str, Any], new: dict[str, Any]) -> str | None:
    """The name that a replacement would share with what it replaces, or None if they differ or are generated."""
    schema = find(resource_type, region)
    kind = resource_type.rsplit("::", 1)[-1]
    names = {"Name", f"{kind}Name"} & set(schema.create_only) if schema else set[str]()
    return next((new[name] for name in sorted(names) if name in new and old.get(name) == new[name]), None)


def with_stack_tags(
    resource_type: str, region: str, tags: dict[str, str], properties: dict[str, Any]
) -> dict[str, Any]:
    """The properties with the stack's tags added below the resource's own, where the type takes tags."""
    schema = find(resource_type, region)
    name = schema.tag_property if schema and tags else None
    if schema is None or name is None or "/" in name:
        return properties
    own = properties.get(name)
    if schema.definition(name).get("type") == "object":
        return {**properties, name: {**tags, **(own or {})}}
    taken = {tag["Key"] for tag in own or []}
    return {
        **properties,
        name: [*(own or []), *({"Key": key, "Value": value} for key, value in tags.items() if key not in taken)],
    }
