"""The strict check of resource properties: cfn-lint's engine on resolved properties, told in CloudFormation's words.

`validate_properties` is what a resource handler would refuse. `validate_template` evaluates a whole template with
placeholder values for what only a deployment knows, and checks every resource; it needs no server.

Wording: CloudFormation validates with the everit-org/json-schema library, whose messages are public; a message that has
no such source ends with "(sandbox)".
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cfnlint.core import get_rules
from cfnlint.helpers import TEMPLATED_PROPERTY_CFN_PATHS
from cfnlint.jsonschema import CfnTemplateValidator
from cfnlint.jsonschema.exceptions import ValidationError
from cfnlint.rules import CloudFormationLintRule
from cfnlint.rules.jsonschema.CfnLintJsonSchema import CfnLintJsonSchema
from cfnlint.template import Template

from ...config.catalog.sandbox_account import SANDBOX_ACCOUNT
from ..protocol.json_objects import JsonObject, with_shared_text
from . import parameters, schemas
from .evaluate import KNOWN_AFTER_APPLY, Evaluator
from .graph import order
from .scope import PlannedScope
from .stack import Stack, StackRequest

# E3644 refuses instance types by a region list that is known to be incomplete (it has ml.p5e.48xlarge in no region).
# E3022, E3060, E3064 and E3701 compare the resources of a template; a handler sees one, and EC2 refuses an overlap.
# The others keep no memory of what they saw, so a rule serves all templates.
_IGNORED_RULES = ["W", "I", "E3644", "E3022", "E3060", "E3064", "E3701"]

_checking = threading.Lock()
"""Lock for cfn-lint, which does not support threads; stacks are deployed in parallel."""


@dataclass(frozen=True)
class Failure:
    """One property that a resource handler refuses."""

    logical_id: str
    resource_type: str
    path: tuple[str | int, ...]
    message: str
    keyword: str

    @property
    def pointer(self) -> str:
        """Where, as a JSON pointer below the properties: `#/InstanceGroups/0/InstanceCount`."""
        return "/".join(["#", *map(str, self.path)])

    def __str__(self) -> str:
        return f"{self.pointer}: {self.message}"


@lru_cache(maxsize=1)
def property_rule() -> CloudFormationLintRule:
    """Load cfn-lint's rules, and return the rule for properties with its child rules."""
    rules = get_rules([], _IGNORED_RULES, ["E"], {}, False)
    rules.run(None, Template(None, {"Resources": {}}))  # This connects rules with their child rules.
    for rule in rules:
        if isinstance(rule, CfnLintJsonSchema):
            # Lists of instance classes by region repeat few names: 34 MB become 9.
            rule._schema = with_shared_text(rule._schema)
    return rules.rules["E3002"]


def _errors(resource_type: str, properties: JsonObject, region: str, logical_id: str) -> list[ValidationError]:
    definition = {"Type": resource_type, "Properties": properties}
    template = Template(None, {"Resources": {logical_id: definition}}, regions=[region])
    path = template.context.path.descend(path="Resources", cfn_path="Resources").descend(path=logical_id, cfn_path="*")
    validator = CfnTemplateValidator({}).evolve(cfn=template, context=template.context.evolve(path=path))
    rule: Any = property_rule()
    with _checking:
        return list(rule.validate(validator, None, definition, {}))


def validate_properties(
    resource_type: str, properties: JsonObject, region: str, logical_id: str = "Resource"
) -> list[Failure]:
    """Everything that is wrong with the resolved properties of one resource, in document order.

    Checks the provider schema (required, unknown, type, enum, pattern, limits, exclusive properties), cfn-lint's
    error-level rules for the type, and that no read-only property is set. A type that the region does not know fails.
    """
    schema = schemas.find(resource_type, region)
    if schema is None:
        return [Failure(logical_id, resource_type, (), f"Unrecognized resource types: [{resource_type}]", "type")]
    if resource_type in schemas.PSEUDO_TYPES:
        return []
    failures = [
        failure
        for error in _errors(resource_type, properties, region, logical_id)
        if not _touches_unknown(error)
        for failure in _failures(error, logical_id, resource_type)
    ]
    failures += [
        Failure(
            logical_id,
            resource_type,
            tuple(path.split("/")),
            "the property is read-only and cannot be set (sandbox)",
            "readOnly",
        )
        for path in schema.read_only
        if schemas.values_at(properties, path)
    ]
    failures += _local_files(schema, properties, logical_id)
    return list(dict.fromkeys(failures))


def _local_files(schema: schemas.ResourceSchema, properties: JsonObject, logical_id: str) -> list[Failure]:
    """cfn-lint takes a file name where `aws cloudformation package` would upload a file; CloudFormation does not."""
    prefix = f"Resources/{schema.resource_type}/Properties/"
    paths = [item.removeprefix(prefix) for item in TEMPLATED_PROPERTY_CFN_PATHS if item.startswith(prefix)]
    return [
        Failure(
            logical_id, schema.resource_type, tuple(path.split("/")), "expected type: JSONObject, found: String", "type"
        )
        for path in paths
        if schema.definition(path).get("type") == "object"
        for value in schemas.values_at(properties, path)
        if isinstance(value, str) and KNOWN_AFTER_APPLY not in value
    ]


_COMPOSITE = {"anyOf", "oneOf", "allOf", "not", "if", "uniqueItems", "contains"}


def _touches_unknown(error: ValidationError) -> bool:
    """Whether the value that was refused is, or for composite keywords holds, one that only a deployment knows."""
    judged = isinstance(error.instance, str) or error.validator in _COMPOSITE
    return judged and KNOWN_AFTER_APPLY in str(error.instance)


def _failures(error: ValidationError, logical_id: str, resource_type: str) -> list[Failure]:
    path = tuple(error.path)[1:]
    keyword = str(error.validator)
    if keyword == "additionalProperties" and path:
        message, path = f"extraneous key [{path[-1]}] is not permitted", path[:-1]
    elif keyword in _WORDS:
        message = _WORDS[keyword](error)
    else:
        message = f"{error.message} (sandbox)"
    return [Failure(logical_id, resource_type, path, message, keyword)]


def _required(error: ValidationError) -> str:
    name = error.message.split("'")[1]
    return f"required key [{name}] not found"


_JSON_TYPES = {dict: "JSONObject", list: "JSONArray", str: "String", bool: "Boolean", int: "Integer", float: "Double"}


def _type(error: ValidationError) -> str:
    value: Any = error.validator_value
    kind: type = type(error.instance)
    requested = value if isinstance(value, str) else "/".join(value)
    names = {
        "object": "JSONObject",
        "array": "JSONArray",
        "string": "String",
        "boolean": "Boolean",
        "integer": "Integer",
        "number": "Number",
    }
    return f"expected type: {names.get(requested, requested)}, found: {_JSON_TYPES.get(kind, 'Null')}"


def _items(error: ValidationError) -> list[Any]:
    value: Any = error.instance
    return value


_WORDS: dict[str, Callable[[ValidationError], str]] = {
    "required": _required,
    "type": _type,
    "pattern": lambda error: "failed validation constraint for keyword [pattern]",
    "enum": lambda error: f"{error.instance} is not a valid enum value",
    "minimum": lambda error: f"{error.instance} is not greater or equal to {error.validator_value}",
    "maximum": lambda error: f"{error.instance} is not less or equal to {error.validator_value}",
    "minLength": lambda error: f"expected minLength: {error.validator_value}, actual: {len(str(error.instance))}",
    "maxLength": lambda error: f"expected maxLength: {error.validator_value}, actual: {len(str(error.instance))}",
    "minItems": lambda error: f"expected minimum item count: {error.validator_value}, found: {len(_items(error))}",
    "maxItems": lambda error: f"expected maximum item count: {error.validator_value}, found: {len(_items(error))}",
    "uniqueItems": lambda error: "array items are not unique",
}


def resolved_properties(
    template: JsonObject, region: str, account: str = SANDBOX_ACCOUNT
) -> dict[str, tuple[str, JsonObject]]:
    """Type and properties of every active resource, evaluated without a deployment, in dependency order.

    What only a deployment knows is KNOWN_AFTER_APPLY. Raises TemplateError where the template itself is wrong: a
    reference to nothing, an attribute that a type does not have.
    """
    scope = PlannedScope(template, region)
    texts = {key: str(item.get("Default", KNOWN_AFTER_APPLY)) for key, item in template.get("Parameters", {}).items()}
    pseudo = Stack("Template", region, StackRequest("", template, texts, {}), account).pseudo()
    evaluator = Evaluator(template, parameters.typed(template, texts, scope.ssm), pseudo, scope)
    definitions = {logical_id: template["Resources"][logical_id] for logical_id in order(evaluator)}
    return {
        logical_id: (item["Type"], evaluator.resolve(item.get("Properties", {})))
        for logical_id, item in definitions.items()
    }


def validate_template(template: JsonObject, region: str, account: str = SANDBOX_ACCOUNT) -> list[Failure]:
    """Check every resource of a template as its handler would, without a deployment and without a server.

    Values that only a deployment knows are taken as right. Raises TemplateError as `resolved_properties` does.
    """
    return [
        failure
        for logical_id, (kind, properties) in resolved_properties(template, region, account).items()
        for failure in validate_properties(kind, properties, region, logical_id)
    ]
