"""Corrupting templates: each property of each resource in turn, in every way that its provider schema forbids."""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import regex

from podwright.sandbox.cloudformation import schemas
from podwright.sandbox.cloudformation.evaluate import KNOWN_AFTER_APPLY

UNKNOWN = "PodwrightUnknown"
WRONG = "podwright wrong\t"
Path = tuple[str | int, ...]
_REMOVED = object()


@dataclass(frozen=True)
class Corruption:
    """One thing wrong with one resource, and the word or the place that the failure has to name."""

    resource_type: str
    region: str
    path: Path
    kind: str
    names: str
    root: dict[str, Any]
    """The properties before the corruption."""
    changed: Path
    """Where another value is set, or removed."""
    value: Any = _REMOVED

    @property
    def properties(self) -> dict[str, Any]:
        """The corrupted properties, a new copy each time: most corruptions are repetitions and never copied."""
        return (
            _without(self.root, self.changed) if self.value is _REMOVED else _with(self.root, self.changed, self.value)
        )

    def __str__(self) -> str:
        return f"{self.resource_type} #/{'/'.join(map(str, self.path))} {self.kind} {self.names}"


def corruptions(resource_type: str, properties: dict[str, Any], region: str) -> Iterator[Corruption]:
    """Every corruption of one resource's resolved properties.

    Values that only a deployment knows keep their place: they are corrupted by type, not by content.
    """
    schema = schemas.find(resource_type, region)
    assert schema is not None, resource_type
    yield from _object(resource_type, schema, properties, (), "", properties)


def _object(
    kind: str, schema: schemas.ResourceSchema, root: dict[str, Any], path: Path, pointer: str, value: dict[str, Any]
) -> Iterator[Corruption]:
    definition = schema.definition(pointer) if pointer else schema.document
    if definition.get("additionalProperties") is False and "patternProperties" not in definition:
        yield Corruption(kind, schema.region, path, "unknown", UNKNOWN, root, (*path, UNKNOWN), "x")
    for name in definition.get("required", []):
        if name in value:
            yield Corruption(kind, schema.region, path, "required", name, root, (*path, name))
    for name, item in value.items():
        if name in definition.get("properties", {}):
            below = f"{pointer}/{name}".strip("/")
            yield from _value(kind, schema, root, (*path, name), below, item)


def _value(
    kind: str, schema: schemas.ResourceSchema, root: dict[str, Any], path: Path, pointer: str, value: Any
) -> Iterator[Corruption]:
    definition = schema.definition(pointer)
    types = definition.get("type", [])
    types = {types} if isinstance(types, str) else set(types)
    wrong = _of_wrong_type(types)
    if wrong is not None:
        yield Corruption(kind, schema.region, path, "type", str(path[-1]), root, path, wrong)
    if isinstance(value, dict):
        yield from _object(kind, schema, root, path, pointer, value)
    elif isinstance(value, list):
        for index, item in enumerate(value[:1]):
            yield from _value(kind, schema, root, (*path, index), f"{pointer}/*", item)
    elif KNOWN_AFTER_APPLY not in str(value):
        yield from _scalar(kind, schema, definition, root, path)


def _scalar(
    kind: str, schema: schemas.ResourceSchema, definition: dict[str, Any], root: dict[str, Any], path: Path
) -> Iterator[Corruption]:
    name = str(path[-1])
    if "enum" in definition or "enumCaseInsensitive" in definition:
        yield Corruption(kind, schema.region, path, "enum", name, root, path, WRONG)
    if "pattern" in definition and not regex.search(definition["pattern"], WRONG):
        yield Corruption(kind, schema.region, path, "pattern", name, root, path, WRONG)
    if "maxLength" in definition and definition["maxLength"] < 10_000:
        yield Corruption(kind, schema.region, path, "maxLength", name, root, path, "a" * (definition["maxLength"] + 1))
    if definition.get("minLength"):
        yield Corruption(kind, schema.region, path, "minLength", name, root, path, "")
    if "minimum" in definition:
        yield Corruption(kind, schema.region, path, "minimum", name, root, path, definition["minimum"] - 1)
    if "maximum" in definition:
        yield Corruption(kind, schema.region, path, "maximum", name, root, path, definition["maximum"] + 1)


def _of_wrong_type(types: set[str]) -> Any:
    """A value that no conversion of CloudFormation's turns into one of the types, or None if there is none."""
    if not types or {"object", "string"} <= types:
        return None
    if "object" in types or "array" in types:
        return "podwright"
    return {"Podwright": "wrong"}


def _with(root: dict[str, Any], path: Path, value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(root)
    _parent(changed, path)[path[-1]] = value
    return changed


def _without(root: dict[str, Any], path: Path) -> dict[str, Any]:
    changed = copy.deepcopy(root)
    del _parent(changed, path)[path[-1]]
    return changed


def _parent(root: Any, path: Path) -> Any:
    for name in path[:-1]:
        root = root[name]
    return root


def distinct(actual: Iterator[Corruption]) -> Iterator[Corruption]:
    """Each corruption once for a resource type and a place in its schema, whatever the resource."""
    observed = set[tuple[str, str, str, str]]()
    for item in actual:
        location = "/".join("*" if isinstance(part, int) else part for part in item.path)
        if (key := (item.resource_type, location, item.kind, item.names)) not in observed:
            observed.add(key)
            yield item
