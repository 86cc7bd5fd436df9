"""A strategic merge patch of a job object, as YAML text: a file's own scalars have no types, and a patch needs them."""

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import yaml
from pydantic import AfterValidator, StringConstraints


def patch_of(text: str) -> dict[str, Any]:
    """What a patch says.

    Raises:
        ValueError: it is no YAML, or no mapping.
    """
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text)):
            raise ValueError("YAML without aliases: a patch says what it means where it means it")
        patch = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"YAML; this is none: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise ValueError("YAML of fewer levels") from None
    if not isinstance(patch, dict) or not patch:
        raise ValueError("a mapping as YAML text: `|` at the end of this line, and `name: value` in the next ones")
    return patch


def _checked(text: str) -> str:
    patch_of(text)
    return text


Patch = Annotated[str, StringConstraints(max_length=65536), AfterValidator(_checked)]


class PatchField(NamedTuple):
    """A field that a patch names."""

    path: str
    """As Kubernetes writes it."""
    name: str
    value: Any


def fields(patch: Any, path: str = "") -> Iterator[PatchField]:
    """Every field that a patch names, each before those inside it."""
    if isinstance(patch, dict):
        for name, value in patch.items():
            inner = f"{path}.{name}" if path else str(name)
            yield PatchField(inner, str(name), value)
            yield from fields(value, inner)
    elif isinstance(patch, list):
        for number, item in enumerate(patch):
            yield from fields(item, f"{path}[{number}]")
