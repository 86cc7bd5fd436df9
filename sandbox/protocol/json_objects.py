"""Functions for JSON objects: selection of keys, merge patches, and sharing of equal strings."""

import sys
from typing import Any

JsonObject = dict[str, Any]


def picked(item: JsonObject, *keys: str) -> JsonObject:
    """Return the given keys of an object that exist, with their values."""
    return {key: item[key] for key in keys if key in item}


def without(item: JsonObject, *keys: str) -> JsonObject:
    """Return an object without the given keys."""
    return {key: value for key, value in item.items() if key not in keys}


def tags_of(values: JsonObject) -> dict[str, str]:
    """Return the tags of a request or of a resource's properties, by key."""
    return {tag["Key"]: tag["Value"] for tag in values.get("Tags") or []}


def merged(current: JsonObject, patch: JsonObject) -> JsonObject:
    """Apply a JSON merge patch (RFC 7396). Strategic patches are applied the same way, so lists are replaced."""
    result = dict(current)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merged(result[key], value)
        else:
            result[key] = value
    return result


def with_shared_text(value: Any) -> Any:
    """Return a copy in which equal strings are one object, for large documents."""
    match value:
        case str():
            return sys.intern(value)
        case list():
            return [with_shared_text(item) for item in value]
        case dict():
            return {sys.intern(key): with_shared_text(item) for key, item in value.items()}
    return value
