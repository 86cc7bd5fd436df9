"""JSON objects: parts of them, merging a change into one, and holding equal text once."""

import sys
from typing import Any

JsonObject = dict[str, Any]


def picked(item: JsonObject, *keys: str) -> JsonObject:
    """Those of some keys that an object has, with their values."""
    return {key: item[key] for key in keys if key in item}


def without(item: JsonObject, *keys: str) -> JsonObject:
    """An object less some of its keys."""
    return {key: value for key, value in item.items() if key not in keys}


def tags_of(values: JsonObject) -> dict[str, str]:
    """The tags of a request, or of a resource's properties, by their keys."""
    return {tag["Key"]: tag["Value"] for tag in values.get("Tags") or []}


def merged(current: JsonObject, patch: JsonObject) -> JsonObject:
    """A JSON merge patch (RFC 7396). Lists are replaced, also for strategic patches, which the double does not know."""
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
    """A copy in which equal text is one object, for large documents that repeat few words."""
    match value:
        case str():
            return sys.intern(value)
        case list():
            return [with_shared_text(item) for item in value]
        case dict():
            return {sys.intern(key): with_shared_text(item) for key, item in value.items()}
    return value
