"""Shortcuts in cfn-lint 1.58.0, with the same findings: without them, validating a resource takes twice as long."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from cfnlint.context import Context
from cfnlint.jsonschema._utils import Unset
from cfnlint.jsonschema.exceptions import ValidationError
from cfnlint.rules import CloudFormationLintRule
from cfnlint.rules.jsonschema.Base import BaseJsonSchema
from cfnlint.schema.resolver import RefResolver

_ADDITIONAL_CHECKS = "E1101"
"""The rule by which rules of other modules join the validation of a schema's part."""


def speed_up(rules: Iterable[CloudFormationLintRule]) -> None:
    """Replace two methods of rules that know their child rules."""
    rules = [*rules]
    # First the rule that the validators of the others contain.
    for rule in rules:
        if rule.id == _ADDITIONAL_CHECKS:
            rule.cfnLint = _ChildRules(rule).validate  # type: ignore[attr-defined]
    for rule in rules:
        if isinstance(rule, BaseJsonSchema) and type(rule).extend_validator is BaseJsonSchema.extend_validator:
            rule.extend_validator = _Validators(rule).extended  # type: ignore[method-assign]


class _ChildRules:
    """The child rules of a rule by keyword, where cfn-lint tries all of them on each part of a schema."""

    def __init__(self, rule: CloudFormationLintRule):
        self._by_keyword = defaultdict[str, list[Any]](list)
        for child in rule.child_rules.values():
            if child is not None and child.id:
                for keyword in child.keywords:  # type: ignore[attr-defined]
                    self._by_keyword[keyword].append(child)

    def validate(
        self, validator: Any, keywords: Iterable[str], instance: Any, schema: Any
    ) -> Iterator[ValidationError]:
        """Stands in for `CfnLint.cfnLint`."""
        chosen = [(keyword, child) for keyword in keywords for child in self._by_keyword.get(keyword, ())]
        if not chosen:
            return
        validator = validator.evolve(function_filter=validator.function_filter.evolve(add_cfn_lint_keyword=False))
        for keyword, child in chosen:
            for error in child.validate(validator, keyword, instance, schema):
                if error.rule is None and isinstance(error.validator, Unset):
                    error.rule = child
                yield error


class _Validators:
    """The classes of validators that a rule makes of others, where cfn-lint makes one for each call."""

    def __init__(self, rule: BaseJsonSchema):
        self._own = rule._get_validators()
        self._classes = WeakKeyDictionary[type, dict[frozenset[Any], type]]()

    def extended(
        self, validator: Any, schema: Any, context: Context, validators: Mapping[str, Any] | None = None
    ) -> Any:
        """Stands in for `BaseJsonSchema.extend_validator`."""
        classes = self._classes.setdefault(type(validator), {})
        key = frozenset((validators or {}).items())
        if key not in classes:
            classes[key] = validator.extend(validators={**self._own, **(validators or {})})
        return classes[key](
            schema=schema,
            function_filter=validator.function_filter,
            cfn=validator.cfn,
            context=context,
            resolver=RefResolver.from_schema(schema),
        )
