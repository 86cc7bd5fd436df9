"""`podwright.context.json`: what was once asked of an account, kept so that every synthesis is the same.

It is to podwright what `cdk.context.json` is to the CDK: `podwright preflight` writes it, people commit it, and nothing
asks the account while templates are made.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

from pydantic import StringConstraints, ValidationError

from ..errors import InvalidFile
from ..findings import Finding, Level, dotted
from ..settings.base import Settings, ZoneId
from .source import Source, read_source

CONTEXT: Final = "podwright.context.json"
"""Name of the file at the root of a project."""

LookupKey = Annotated[str, StringConstraints(pattern=r"^account=[0-9]{12}:region=[a-z0-9-]+$")]


class Lookups(Settings):
    """What the file holds."""

    endpoint_zones: dict[LookupKey, dict[str, tuple[ZoneId, ...]]] = {}
    """By account and region: zone ids in which each endpoint service is offered, by its name without the prefix."""


def lookup_key(account: str, region: str) -> str:
    """Under which answers of an account in a region stand."""
    return f"account={account}:region={region}"


def read_lookups(root: Path) -> Lookups:
    """What the project in `root` has asked so far; nothing without the file. Raises InvalidFile for a damaged one."""
    file = root / CONTEXT
    if not file.exists():
        return Lookups()
    source = read_source(file, CONTEXT)
    try:
        return Lookups.model_validate(source.data or {})
    except ValidationError as error:
        raise InvalidFile([_damaged(source, each["loc"], each["msg"]) for each in error.errors()]) from None


def _damaged(source: Source, path: tuple[str | int, ...], message: str) -> Finding:
    hint = f"restore {CONTEXT} from version control, or delete it: `podwright preflight` writes it again"
    message = f"{CONTEXT}: {dotted(path)}: {message.lower()}"
    return Finding("ENV004", Level.ERROR, dotted(path), message, hint, source.position(path))


def keep_endpoint_zones(root: Path, key: str, zones: Mapping[str, tuple[str, ...]]) -> None:
    """Write the answer for an account and region beside those of others; the file stays as it is where it says so."""
    retained = read_lookups(root)
    answers = {**retained.endpoint_zones, key: {**retained.endpoint_zones.get(key, {}), **zones}}
    if zones and answers != retained.endpoint_zones:
        content = Lookups(endpoint_zones=answers).model_dump(mode="json")
        (root / CONTEXT).write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")
