"""The handler for types that no API backend of the sandbox knows: it records what was asked for.

Its physical id and attributes follow the provider schema, so that references work; nothing else happens.
"""

import hashlib
import re
from typing import Any

from .. import schemas
from .base import Outcome, Request


class Recorded:
    """Keeps a resource as a record with plausible identifiers. `moto` does not see it and no API shows it."""

    def create(self, request: Request) -> Outcome:
        """Make up the read-only properties and take the physical id from the primary identifier."""
        made = attributes_of(request)
        schema = schemas.find(request.resource_type, request.region)
        parts = [
            made.get(path) or _at(request.properties, path) or request.name()
            for path in (schema.primary_identifier if schema else [])
        ]
        return Outcome("|".join(map(str, parts)) or request.name(), made)

    def update(self, request: Request) -> Outcome:
        """Keep the identity; attributes that copy a property follow it."""
        return Outcome(request.physical_id, request.attributes)

    def delete(self, request: Request) -> None:
        """Forget the record."""


def attributes_of(request: Request) -> dict[str, Any]:
    """A plausible value for every read-only property of the request's type, keyed as `Fn::GetAtt` names it."""
    schema = schemas.find(request.resource_type, request.region)
    if schema is None:
        return {}
    token = hashlib.sha256(f"{request.stack_id}/{request.logical_id}/{request.name()}".encode()).hexdigest()
    return {
        path.replace("/", "."): _value(request, path, schema.definition(path), token)
        for path in schema.read_only
        if "*" not in path
    }


def _at(properties: dict[str, Any], path: str) -> Any:
    values = schemas.values_at(properties, path)
    return values[0] if values else None


def _value(request: Request, path: str, definition: dict[str, Any], token: str) -> Any:
    """A value of the form that the schema asks for, for attributes of types that are only recorded."""
    name = path.split("/")[-1]
    _, service, kind = request.resource_type.split("::")
    kinds = definition.get("type", "string")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if "enum" in definition:
        return definition["enum"][0]
    if "boolean" in kinds:
        return False
    if "integer" in kinds or "number" in kinds:
        return definition.get("minimum", 1)
    if "array" in kinds:
        return []
    if "object" in kinds and "string" not in kinds:
        return {}
    slug = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", kind).lower()
    if name.endswith("Arn"):
        own = request.properties.get("Name") or request.properties.get(f"{kind}Name") or token[:12]
        return request.arn(service.lower(), f"{slug}/{own}")
    if definition.get("format") == "date-time" or name.endswith("Time"):
        return "2026-01-01T00:00:00Z"
    if name.endswith(("Endpoint", "Url")):
        return f"https://{token[:12]}.{service.lower()}.{request.region}.amazonaws.com"
    return f"{slug}-{token[:17]}" if name.endswith("Id") else token[:12]
