"""Reading CloudFormation templates: text to a plain dictionary, and the checks that need no deployment."""

import json
from typing import Any, cast

import yaml

from ..protocol.json_objects import JsonObject


class TemplateError(Exception):
    """A template or its parameters are refused; the message is what CloudFormation's ValidationError would say."""


class _Loader(yaml.SafeLoader):
    """YAML as CloudFormation reads it: short function tags, and dates that stay text."""


def _without_dates(resolvers: list[Any]) -> list[Any]:
    return [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]


_Loader.yaml_implicit_resolvers = {
    first: _without_dates(resolvers) for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _short_tag(loader: _Loader, suffix: str, node: yaml.Node) -> JsonObject:
    if isinstance(node, yaml.ScalarNode):
        value: Any = loader.construct_scalar(node)
        if suffix == "GetAtt":
            value = str(value).split(".", 1)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_mapping(cast(yaml.MappingNode, node), deep=True)
    return {suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}": value}


_Loader.add_multi_constructor("!", _short_tag)

_SECTIONS = {
    "AWSTemplateFormatVersion",
    "Description",
    "Metadata",
    "Parameters",
    "Rules",
    "Mappings",
    "Conditions",
    "Transform",
    "Resources",
    "Outputs",
    "Hooks",
}
_RESOURCE_KEYS = {
    "Type",
    "Properties",
    "DependsOn",
    "Condition",
    "Metadata",
    "DeletionPolicy",
    "UpdateReplacePolicy",
    "UpdatePolicy",
    "CreationPolicy",
}
_DELETION_POLICIES = {"Delete", "Retain", "Snapshot", "RetainExceptOnCreate"}


def parse(body: str) -> JsonObject:
    """Parse a template in JSON or YAML and check its outline.

    Returns the template as plain dictionaries; short tags (`!Ref`) become their long form.
    Raises TemplateError when the text cannot be read or a section, a resource or its keys are not as the template
    reference allows (AWS CloudFormation template reference, "Template anatomy" and "Resource attribute reference").
    """
    try:
        template = json.loads(body) if body.lstrip().startswith("{") else yaml.load(body, Loader=_Loader)
    except (json.JSONDecodeError, yaml.YAMLError) as error:
        raise TemplateError(f"Template format error: {error}") from error
    if not isinstance(template, dict):
        raise TemplateError("Template format error: unsupported structure.")
    unknown = sorted(set(template) - _SECTIONS)
    if unknown:
        raise TemplateError(f"Invalid template property or properties [{', '.join(map(str, unknown))}]")
    if template.get("Transform"):
        raise TemplateError("Transforms and macros are not supported (sandbox)")
    resources = template.get("Resources")
    if not isinstance(resources, dict) or not resources:
        raise TemplateError("Template format error: At least one Resources member must be defined.")
    for logical_id, resource in resources.items():
        _check_resource(logical_id, resource)
    return template


def _check_resource(logical_id: str, resource: Any) -> None:
    if not str(logical_id).isalnum():
        raise TemplateError(f"Template format error: Resource name {logical_id} is non alphanumeric.")
    if not isinstance(resource, dict) or not isinstance(resource.get("Type"), str):
        raise TemplateError(
            f"Template format error: [/Resources/{logical_id}] Every Resources object must contain a Type member."
        )
    unknown = sorted(set(resource) - _RESOURCE_KEYS)
    if unknown:
        raise TemplateError(f"Invalid template resource property '{unknown[0]}'")
    for key in ("DeletionPolicy", "UpdateReplacePolicy"):
        if key in resource and resource[key] not in _DELETION_POLICIES:
            raise TemplateError(f"Template format error: Unrecognized {key} {resource[key]} for resource {logical_id}")
