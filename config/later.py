"""A part of the file whose models are imported only when a file has it, because most files do not."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter
from pydantic_core import CoreSchema
from pydantic_core.core_schema import definitions_schema, no_info_plain_validator_function

Place = tuple[str, str]
"""A module of this room, such as `.jobs`, and a name in it."""


@cache
def _adapter(module: str, name: str) -> TypeAdapter[Any]:
    return TypeAdapter(getattr(import_module(module, __package__), name))


class Later:
    """Annotates a mapping, a model or a list whose type is `name` of a module of this room, such as `.jobs`.

    An empty mapping needs no import. With `model` it does: all fields of a model have their defaults, and in place of a
    list it is a mistake. Findings and the JSON Schema are the same as with the type itself.
    """

    def __init__(self, module: str, name: str, *, model: bool = False) -> None:
        self._place: Place = module, name
        self._model = model

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Validates with the type."""
        return no_info_plain_validator_function(self._validate)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """The schema of the type."""
        # Wrapped, a model is defined by its name beside the others; bare, it would stand where it is used.
        return handler(definitions_schema(_adapter(*self._place).core_schema, []))

    def _validate(self, value: Any) -> Any:
        empty = isinstance(value, Mapping) and not value and not self._model
        return {} if empty else _adapter(*self._place).validate_python(value)


class LaterByKind(Later):
    """Annotates a model of one of several kinds, of which only those that a file has are imported.

    `kinds` says where each is; `other` is the union of all, which speaks where none of them is given.
    """

    def __init__(self, kinds: Mapping[str, Place], other: Place) -> None:
        super().__init__(*other, model=True)
        self._kinds = kinds

    def _validate(self, value: Any) -> Any:
        kind = value.get("kind") if isinstance(value, Mapping) else None
        known = self._kinds.get(kind) if isinstance(kind, str) else None
        return _adapter(*known).validate_python(value) if known else super()._validate(value)
