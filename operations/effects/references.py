"""What refers to what in templates: Ref, Fn::GetAtt and Fn::Sub within a stack, Fn::ImportValue between stacks."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from .compare import is_intrinsic
from .templates import Pair

# `${!Literal}` stands for itself, which the pattern passes by: a logical id has letters and digits only.
_SUBSTITUTED: Final = re.compile(r"\$\{([A-Za-z0-9]+)(?:\.([A-Za-z0-9.]+))?\}")


@dataclass(frozen=True, slots=True)
class Target:
    """A resource that a property refers to."""

    stack: str
    logical_id: str
    attribute: str | None
    """None for Ref."""
    path: str = ""
    """Of the property, as people read it."""
    pattern: str = ""
    """Of the property, as tables know it."""
    export: str = ""
    """Name of the export that leads there, from another stack."""


Exports: TypeAlias = Mapping[str, Target]


def exports(pairs: Sequence[Pair], *, old: bool = False) -> dict[str, Target]:
    """What each exported name leads to, in the new templates or in the old ones."""
    targets: dict[str, Target] = {}
    for pair in pairs:
        template = (pair.old if old else pair.new) or {}
        for output in template.get("Outputs", {}).values():
            name = output.get("Export", {}).get("Name")
            for target in references(output.get("Value"), pair.name, {}):
                if isinstance(name, str):
                    targets[name] = target
    return targets


def references(value: Any, stack: str, specified: Exports, path: str = "", pattern: str = "") -> list[Target]:
    """Every resource that a value refers to, with the place from where."""
    return list(_references(value, stack, specified, path, pattern))


def _references(value: Any, stack: str, specified: Exports, path: str, pattern: str) -> Iterator[Target]:
    if is_intrinsic(value):
        ((word, argument),) = value.items()
        yield from _intrinsic(word, argument, stack, specified, path, pattern)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            location = f"{path}.{key}" if path else key, f"{pattern}/{key}" if pattern else key
            yield from _references(item, stack, specified, *location)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            # By the group's name, as lists of groups are read by name and not by position.
            name = item.get("InstanceGroupName", index) if isinstance(item, Mapping) else index
            yield from _references(item, stack, specified, f"{path}[{name}]", f"{pattern}/*")


def _intrinsic(word: str, argument: Any, stack: str, specified: Exports, path: str, pattern: str) -> Iterator[Target]:
    """The targets of one function; the import of a name that no template exports has no stack and no logical id."""
    match word, argument:
        case "Ref", str():
            yield Target(stack, argument, None, path, pattern)
        case "Fn::GetAtt", [str() as logical_id, str() as attribute]:
            yield Target(stack, logical_id, attribute, path, pattern)
        case "Fn::GetAtt", str():
            logical_id, _, attribute = argument.partition(".")
            yield Target(stack, logical_id, attribute, path, pattern)
        case "Fn::ImportValue", str():
            if target := specified.get(argument):
                yield Target(target.stack, target.logical_id, target.attribute, path, pattern, argument)
            else:
                yield Target("", "", None, path, pattern, argument)
        case "Fn::Sub", _:
            text, values = argument if isinstance(argument, list) else (argument, {})
            for match in _SUBSTITUTED.finditer(text):
                # Names of the function's own second argument are no resources.
                if match[1] not in values:
                    yield Target(stack, match[1], match[2], path, pattern)
            for item in values.values():
                yield from _nested(item, stack, specified, path, pattern)
        case _:
            yield from _nested(argument, stack, specified, path, pattern)


def _nested(value: Any, stack: str, specified: Exports, path: str, pattern: str) -> Iterator[Target]:
    """What the arguments of another function refer to; all of it belongs to the property around the function."""
    for target in _references(value, stack, specified, "", ""):
        yield Target(target.stack, target.logical_id, target.attribute, path, pattern, target.export)
