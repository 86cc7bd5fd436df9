"""Evaluates IAM policies for a call: statements, resources, conditions, boundaries and explicit denials.

Source: AWS IAM User Guide, "Policy evaluation logic" and "IAM JSON policy elements: Condition operators", 2026-11.
Operators for dates and IP addresses are not evaluated: an allowing statement with one never applies, a denying one
always does.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Literal

from ..protocol.json_objects import JsonObject

Verdict = Literal["allowed", "implicitDeny", "explicitDeny"]
Context = Mapping[str, Sequence[str]]
_VARIABLE: Final = re.compile(r"\$\{([^}]+)\}")
# Escapes of these three characters. Source: IAM User Guide, "IAM policy elements: Variables and tags".
_LITERAL: Final = {"*": "[*]", "?": "[?]", "$": "$"}
_SET_OPERATORS: Final = ("ForAnyValue", "ForAllValues")


@dataclass(frozen=True, slots=True)
class Call:
    """An action on a resource."""

    action: str
    """Action, such as s3:GetObject."""
    resources: tuple[str, ...]
    """The ARN; several where the service knows one resource by more than one form, `*` for actions without resources.
    Empty where the resource is not known: then statements are not asked about it.
    """
    context: Context = field(default_factory=dict)
    """Values of condition keys, by lower-case key."""


def verdict(call: Call, policies: Iterable[JsonObject], boundary: Iterable[JsonObject] | None = None) -> Verdict:
    """Evaluate identity policies and, unless it is None, the permissions boundary for a call."""
    effects = [_effects(policies, call)]
    if boundary is not None:
        effects.append(_effects(boundary, call))
    if any("Deny" in layer for layer in effects):
        return "explicitDeny"
    return "allowed" if all("Allow" in layer for layer in effects) else "implicitDeny"


def _effects(documents: Iterable[JsonObject], call: Call) -> set[str]:
    statements = [statement for document in documents for statement in listed(document.get("Statement", []))]
    return {item["Effect"] for item in statements if applies(item, call, denies=item["Effect"] == "Deny")}


def applies(statement: JsonObject, call: Call, *, denies: bool) -> bool:
    """Return True if a statement applies to a call. Conditions that are not evaluated count against the caller."""
    if "Action" in statement:
        about = any(_matches(pattern, call.action, ignore_case=True) for pattern in listed(statement["Action"]))
    else:
        excluded = listed(statement.get("NotAction", []))
        about = not any(_matches(pattern, call.action, ignore_case=True) for pattern in excluded)
    return about and _concerns(statement, call) and _holds(statement.get("Condition", {}), call.context, denies)


def _concerns(statement: JsonObject, call: Call) -> bool:
    if not call.resources:
        return True
    key = "Resource" if "Resource" in statement else "NotResource"
    patterns = [filled for text in listed(statement.get(key, [])) if (filled := _filled(text, call.context))]
    about = any(_matches(pattern, resource) for pattern in patterns for resource in call.resources)
    return about if key == "Resource" else not about


def _holds(conditions: JsonObject, context: Context, denies: bool) -> bool:
    """Return True if all conditions of a statement hold."""
    asked = [(operator, key, values) for operator, keys in conditions.items() for key, values in keys.items()]
    return all(
        _condition(operator, context.get(key.lower()), _texts(values), context, denies)
        for operator, key, values in asked
    )


def _condition(
    operator: str, actual: Sequence[str] | None, expected: Sequence[str], context: Context, denies: bool
) -> bool:
    """Return True if a key of an operator holds."""
    quantifier, _, name = operator.rpartition(":")
    optional = name.endswith("IfExists")
    name = name.removesuffix("IfExists")
    if name == "Null":
        return (expected[0].lower() == "true") == (not actual)
    if name not in _OPERATORS or (quantifier and quantifier not in _SET_OPERATORS):
        return denies
    compare, negated = _OPERATORS[name]
    if not actual:
        # A missing key satisfies negated operators, and those with IfExists.
        return optional or negated or quantifier == "ForAllValues"
    values = [filled for text in expected if (filled := _filled(text, context))]

    def matches(value: str) -> bool:
        return any(compare(pattern, value) for pattern in values) != negated

    return all(map(matches, actual)) if negated or quantifier == "ForAllValues" else any(map(matches, actual))


def _number(compare: Callable[[float, float], bool]) -> Callable[[str, str], bool]:
    return lambda expected, actual: compare(float(actual), float(expected))


def _arn(pattern: str, arn: str) -> bool:
    """Return True if each of an ARN's six parts matches."""
    patterns, parts = pattern.split(":", 5), arn.split(":", 5)
    return len(patterns) == len(parts) and all(map(_matches, patterns, parts))


_POSITIVE: Final[dict[str, Callable[[str, str], bool]]] = {
    "StringEquals": lambda expected, actual: expected == actual,
    "StringEqualsIgnoreCase": lambda expected, actual: expected.lower() == actual.lower(),
    "StringLike": lambda expected, actual: _matches(expected, actual),
    "ArnEquals": _arn,
    "ArnLike": _arn,
    "NumericEquals": _number(lambda actual, expected: actual == expected),
}
_OPERATORS: Final[dict[str, tuple[Callable[[str, str], bool], bool]]] = {
    **{name: (compare, False) for name, compare in _POSITIVE.items()},
    **{re.sub("^(String|Arn|Numeric)", r"\1Not", name): (compare, True) for name, compare in _POSITIVE.items()},
    "Bool": (lambda expected, actual: expected.lower() == actual.lower(), False),
    "NumericLessThan": (_number(lambda actual, expected: actual < expected), False),
    "NumericLessThanEquals": (_number(lambda actual, expected: actual <= expected), False),
    "NumericGreaterThan": (_number(lambda actual, expected: actual > expected), False),
    "NumericGreaterThanEquals": (_number(lambda actual, expected: actual >= expected), False),
}


def _filled(text: str, context: Context) -> str | None:
    """Return a text with its policy variables replaced; None if one has no value."""
    missing = False

    def value(match: re.Match[str]) -> str:
        nonlocal missing
        name, _, default = match[1].partition(",")
        values = [_LITERAL[name]] if name in _LITERAL else context.get(name.strip().lower(), [])
        missing |= not values and not default
        return values[0] if values else default.strip(" '")

    result = _VARIABLE.sub(value, text)
    return None if missing else result


def _matches(pattern: str, text: str, ignore_case: bool = False) -> bool:
    return _compiled(pattern, ignore_case).fullmatch(text) is not None


@cache
def _compiled(pattern: str, ignore_case: bool) -> re.Pattern[str]:
    """Return the regular expression of IAM's pattern: `*` for any characters, `?` for one; escaped ones are literal."""
    parts = (
        {"*": ".*", "?": ".", "[*]": r"\*", "[?]": r"\?"}.get(part, re.escape(part))
        for part in re.split(r"(\[\*\]|\[\?\]|\*|\?)", pattern)
    )
    return re.compile("".join(parts), re.DOTALL | (re.IGNORECASE if ignore_case else 0))


def listed(value: Any) -> list[Any]:
    """Return a list, also for a single value."""
    return value if isinstance(value, list) else [value]


def _texts(value: Any) -> list[str]:
    return [str(item).lower() if isinstance(item, bool) else str(item) for item in listed(value)]
