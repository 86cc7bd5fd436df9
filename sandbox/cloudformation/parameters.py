"""Template parameters: defaults, previous values, constraints, SSM look-ups and template rules."""

import re
from collections.abc import Callable
from typing import Any

from ..protocol.json_objects import JsonObject
from .evaluate import Evaluator
from .template import TemplateError

_SSM_VALUE = re.compile(r"AWS::SSM::Parameter::Value<(.*)>")


def effective(template: JsonObject, specified: list[JsonObject], previous: dict[str, str]) -> dict[str, str]:
    """The text of every parameter: given, else previous where asked for, else the default.

    `specified` has CloudFormation's request form (ParameterKey, ParameterValue, UsePreviousValue).
    Raises TemplateError in CloudFormation's words for an unknown key, a missing value or a broken constraint.
    """
    declared: JsonObject = template.get("Parameters", {})
    unknown = [item["ParameterKey"] for item in specified if item["ParameterKey"] not in declared]
    if unknown:
        raise TemplateError(f"Parameters: [{', '.join(unknown)}] do not exist in the template")
    values: dict[str, str] = {key: str(item["Default"]) for key, item in declared.items() if "Default" in item}
    for item in specified:
        key = item["ParameterKey"]
        if item.get("UsePreviousValue"):
            if key in previous:
                values[key] = previous[key]
        elif "ParameterValue" in item:
            values[key] = item["ParameterValue"]
    missing = [key for key in declared if key not in values]
    if missing:
        raise TemplateError(f"Parameters: [{', '.join(missing)}] must have values")
    for key, definition in declared.items():
        _check(key, definition, values[key])
    return values


def _check(key: str, definition: JsonObject, value: str) -> None:
    """Hold a parameter's value against its definition. Raises TemplateError, in CloudFormation's words."""
    kind = definition.get("Type", "String")
    items = value.split(",") if kind == "CommaDelimitedList" or kind.startswith("List<") else [value]
    allowed = definition.get("AllowedValues")
    if allowed and any(item not in map(str, allowed) for item in items):
        raise TemplateError(f"Parameter '{key}' must be one of AllowedValues")
    pattern = definition.get("AllowedPattern")
    if pattern and not all(re.fullmatch(pattern, item) for item in items):
        reason = definition.get("ConstraintDescription", f"Member must satisfy regular expression pattern: {pattern}")
        raise TemplateError(f"Parameter {key} failed to satisfy constraint: {reason}")
    for limit, broken in (
        ("MinLength", lambda bound: len(value) < bound),
        ("MaxLength", lambda bound: len(value) > bound),
        ("MinValue", lambda bound: float(value) < bound),
        ("MaxValue", lambda bound: float(value) > bound),
    ):
        if limit in definition and broken(float(definition[limit])):
            raise TemplateError(f"Parameter '{key}' breaks {limit} {definition[limit]} (sandbox)")
    if kind in ("Number", "List<Number>") and not all(re.fullmatch(r"\s*-?\d+(\.\d+)?\s*", item) for item in items):
        raise TemplateError(f"Parameter '{key}' must be a number.")


def typed(template: JsonObject, texts: dict[str, str], read_ssm: Callable[[str], str]) -> dict[str, Any]:
    """Parameter values as `Ref` yields them: lists split, SSM parameters read through `read_ssm`."""
    values: dict[str, Any] = {}
    for key, definition in template.get("Parameters", {}).items():
        kind, value = definition.get("Type", "String"), texts[key]
        ssm = _SSM_VALUE.fullmatch(kind)
        if ssm:
            kind, value = ssm[1], read_ssm(value)
        is_list = kind == "CommaDelimitedList" or kind.startswith("List<")
        values[key] = [item.strip() for item in value.split(",")] if is_list else value
    return values


def check_rules(evaluator: Evaluator) -> None:
    """Evaluate the `Rules` section; raises TemplateError with the description of the first assertion that fails."""
    for name, rule in evaluator.template.get("Rules", {}).items():
        if "RuleCondition" in rule and not evaluator.resolve(rule["RuleCondition"]):
            continue
        for assertion in rule.get("Assertions", []):
            if not evaluator.resolve(assertion["Assert"]):
                reason = assertion.get("AssertDescription", "the assertion is false")
                raise TemplateError(f"Template validation error: rule {name} failed: {reason} (sandbox)")
