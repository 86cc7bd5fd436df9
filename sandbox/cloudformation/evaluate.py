"""Evaluating a template: parameters, conditions and intrinsic functions.

Source of the behaviour: AWS CloudFormation template reference, "Intrinsic functions", "Parameters" and "Rules".
"""

import base64
import ipaddress
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..protocol.json_objects import JsonObject
from .template import TemplateError

_SUB_VARIABLE = re.compile(r"\$\{(!?)([^}]*)\}")
_DYNAMIC_REFERENCE = re.compile(r"\{\{resolve:(ssm|ssm-secure|secretsmanager):([^}]*)\}\}")
_FUNCTIONS = {"Ref"} | {
    f"Fn::{name}"
    for name in (
        "GetAtt",
        "Sub",
        "Join",
        "Select",
        "Split",
        "If",
        "Equals",
        "Not",
        "And",
        "Or",
        "Contains",
        "Base64",
        "FindInMap",
        "GetAZs",
        "ImportValue",
        "Cidr",
    )
}

# Stands for a value that only the deployment will know. Source: the text of DescribeChangeSet's AfterValue.
KNOWN_AFTER_APPLY = "{{changeSet:KNOWN_AFTER_APPLY}}"


class NoValue:
    """The type of NO_VALUE, what `Ref: AWS::NoValue` yields: the property is left out."""


NO_VALUE = NoValue()


class Scope(Protocol):
    """Where the values come from that a template does not hold itself."""

    def ref(self, logical_id: str) -> Any:
        """The physical id of a resource of the stack."""
        ...

    def attribute(self, logical_id: str, name: str) -> Any:
        """An attribute of a resource of the stack."""
        ...

    def imported(self, name: str) -> str:
        """The value that another stack exports under this name."""
        ...

    def zones(self, region: str) -> list[str]:
        """The Availability Zone names of a region."""
        ...

    def dynamic(self, service: str, reference: str) -> str:
        """The value behind `{{resolve:service:reference}}`."""
        ...


@dataclass
class Evaluator:
    """Evaluates values of one template for one stack.

    `pseudo` holds the pseudo parameters (`AWS::Region`, …), `parameters` the parameter values after their types were
    applied: a list for list types, text otherwise.
    """

    template: JsonObject
    parameters: dict[str, Any]
    pseudo: dict[str, Any]
    scope: Scope
    _conditions: dict[str, bool] = field(default_factory=dict)

    def resolve(self, value: Any) -> Any:
        """The value with every intrinsic function replaced by its result; raises TemplateError for a bad one."""
        if isinstance(value, dict):
            name, function = self._function(value)
            if function:
                result = function(value[name])
                return self._dereferenced(result) if isinstance(result, str) else result
            resolved = {key: self.resolve(item) for key, item in value.items()}
            return {key: item for key, item in resolved.items() if item is not NO_VALUE}
        if isinstance(value, list):
            return [item for item in map(self.resolve, value) if item is not NO_VALUE]
        return self._dereferenced(value) if isinstance(value, str) else value

    def _dereferenced(self, text: str) -> str:
        """The text with the value of each dynamic reference; functions may have written some of them."""
        return _DYNAMIC_REFERENCE.sub(lambda match: self.scope.dynamic(match[1], match[2]), text)

    def condition(self, name: str) -> bool:
        """Whether a condition of the template holds."""
        if name not in self._conditions:
            definition = self.template.get("Conditions", {}).get(name)
            if definition is None:
                raise TemplateError(
                    f"Template format error: Unresolved condition dependency {name} in the Resources "
                    "block of the template"
                )
            self._conditions[name] = bool(self.resolve(definition))
        return self._conditions[name]

    def active(self, definition: JsonObject) -> bool:
        """Whether a resource or output exists, by its Condition."""
        return "Condition" not in definition or self.condition(definition["Condition"])

    def _function(self, value: JsonObject) -> tuple[str, Callable[[Any], Any] | None]:
        if len(value) != 1:
            return "", None
        name = next(iter(value))
        if name == "Condition" and isinstance(value[name], str):
            return name, self.condition
        if name != "Ref" and not name.startswith("Fn::"):
            return name, None
        if name not in _FUNCTIONS:
            raise TemplateError(f"Template error: {name} is not supported (sandbox)")
        return name, getattr(self, "_" + name.removeprefix("Fn::").lower())

    def _ref(self, name: str) -> Any:
        if name == "AWS::NoValue":
            return NO_VALUE
        if name in self.pseudo:
            return self.pseudo[name]
        if name in self.parameters:
            return self.parameters[name]
        return self.scope.ref(name)

    def _getatt(self, argument: Any) -> Any:
        logical_id, name = argument.split(".", 1) if isinstance(argument, str) else argument
        return self.scope.attribute(logical_id, self.resolve(name))

    def _sub(self, argument: Any) -> str:
        text, variables = argument if isinstance(argument, list) else (argument, {})

        def replace(match: re.Match[str]) -> str:
            literal, name = match[1], match[2]
            if literal:
                return "${" + name + "}"
            if name in variables:
                return text_of(self.resolve(variables[name]), "Fn::Sub")
            return text_of(self._getatt(name) if "." in name and "::" not in name else self._ref(name), "Fn::Sub")

        return _SUB_VARIABLE.sub(replace, text)

    def _join(self, argument: Any) -> str:
        separator, values = argument
        values = self.resolve(values)
        if values == KNOWN_AFTER_APPLY:
            return KNOWN_AFTER_APPLY
        if not isinstance(values, list):
            raise TemplateError(
                "Template error: every Fn::Join object requires two parameters, (1) a string delimiter "
                "and (2) a list of strings to be joined or a function that returns a list of strings."
            )
        return separator.join(text_of(item, "Fn::Join") for item in values)

    def _select(self, argument: Any) -> Any:
        index, values = int(self.resolve(argument[0])), self.resolve(argument[1])
        if values == KNOWN_AFTER_APPLY:
            return KNOWN_AFTER_APPLY
        if not isinstance(values, list) or not 0 <= index < len(values):
            raise TemplateError(f"Template error: Fn::Select cannot select nonexistent value at index {index}")
        return values[index]

    def _split(self, argument: Any) -> Any:
        text = text_of(self.resolve(argument[1]), "Fn::Split")
        return KNOWN_AFTER_APPLY if KNOWN_AFTER_APPLY in text else text.split(argument[0])

    def _if(self, argument: Any) -> Any:
        return self.resolve(argument[1] if self.condition(argument[0]) else argument[2])

    def _equals(self, argument: Any) -> bool:
        left, right = self.resolve(argument)
        return _scalar(left) == _scalar(right)

    def _not(self, argument: Any) -> bool:
        return not self.resolve(argument[0])

    def _and(self, argument: Any) -> bool:
        return all(self.resolve(item) for item in argument)

    def _or(self, argument: Any) -> bool:
        return any(self.resolve(item) for item in argument)

    def _contains(self, argument: Any) -> bool:
        return _scalar(self.resolve(argument[1])) in [_scalar(item) for item in self.resolve(argument[0])]

    def _base64(self, argument: Any) -> str:
        return base64.b64encode(text_of(self.resolve(argument), "Fn::Base64").encode()).decode()

    def _findinmap(self, argument: Any) -> Any:
        table, first, second = (text_of(self.resolve(item), "Fn::FindInMap") for item in argument[:3])
        try:
            return self.template["Mappings"][table][first][second]
        except KeyError:
            raise TemplateError(f"Template error: Unable to get mapping for {table}::{first}::{second}") from None

    def _getazs(self, argument: Any) -> list[str]:
        return self.scope.zones(self.resolve(argument) or self.pseudo["AWS::Region"])

    def _importvalue(self, argument: Any) -> str:
        return self.scope.imported(text_of(self.resolve(argument), "Fn::ImportValue"))

    def _cidr(self, argument: Any) -> list[str]:
        block, count = self.resolve(argument[0]), int(self.resolve(argument[1]))
        if block == KNOWN_AFTER_APPLY:
            return [KNOWN_AFTER_APPLY] * count
        host_bits = int(self.resolve(argument[2])) if len(argument) > 2 else 8
        network = ipaddress.ip_network(block)
        subnets = network.subnets(new_prefix=network.max_prefixlen - host_bits)
        blocks = [str(subnet) for subnet, _ in zip(subnets, range(count), strict=False)]
        if len(blocks) < count:
            raise TemplateError(f"Template error: Fn::Cidr object cannot divide {block} into {count} blocks (sandbox)")
        return blocks


def _scalar(value: Any) -> Any:
    # YAML's true and 1 are "true" and "1" wherever CloudFormation compares or joins them.
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if isinstance(value, int | float) else value


def text_of(value: Any, function: str) -> str:
    """A scalar as CloudFormation writes it; raises TemplateError for a list or an object."""
    value = _scalar(value)
    if not isinstance(value, str):
        raise TemplateError(f"Template error: {function} needs text but received {value!r} (sandbox)")
    return value


def references(value: Any) -> set[str]:
    """The names that a value refers to with Ref, Fn::GetAtt or Fn::Sub: resources, parameters, pseudo parameters."""
    result = set[str]()

    def visit(item: Any) -> None:
        """Collect the logical ids that an expression refers to."""
        if isinstance(item, list):
            for element in item:
                visit(element)
        elif isinstance(item, dict):
            for key, argument in item.items():
                if key == "Ref" and isinstance(argument, str):
                    result.add(argument)
                elif key == "Fn::GetAtt":
                    result.add(argument.split(".", 1)[0] if isinstance(argument, str) else argument[0])
                elif key == "Fn::Sub":
                    text, variables = argument if isinstance(argument, list) else (argument, {})
                    result.update(
                        name.split(".", 1)[0]
                        for literal, name in _SUB_VARIABLE.findall(text)
                        if not literal and name not in variables
                    )
                    visit(variables)
                    continue
                visit(argument)

    visit(value)
    return result


def conditional_references(evaluator: Evaluator, definition: JsonObject, names: Iterable[str]) -> set[str]:
    """The resources that a resource depends on: DependsOn and references in its properties, bar unchosen `Fn::If`."""
    depends_on = definition.get("DependsOn", [])
    explicit = {depends_on} if isinstance(depends_on, str) else set(depends_on)
    chosen = _choose(definition.get("Properties", {}), evaluator)
    return (explicit | references(chosen)) & set(names)


def _choose(value: Any, evaluator: Evaluator) -> Any:
    if isinstance(value, list):
        return [_choose(item, evaluator) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"Fn::If"}:
        name, yes, no = value["Fn::If"]
        return _choose(yes if evaluator.condition(name) else no, evaluator)
    return {key: _choose(item, evaluator) for key, item in value.items()}
