"""A part of the file whose models are imported only when a file has it, because most files do not."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter
from pydantic_core import CoreSchema
from pydantic_core.core_schema import no_info_plain_validator_function


@cache
def _adapter(module: str, name: str) -> TypeAdapter[Any]:
    return TypeAdapter(getattr(import_module(module, __package__), name))


class Later:
    """Annotates a mapping or a model whose type is `name` of a module of this room, such as `.jobs`.

    An empty mapping needs no import, but an empty model does: all of its fields have their defaults. Findings and the
    JSON Schema are the same as with the type itself.
    """

    def __init__(self, module: str, name: str, *, model: bool = False) -> None:
        self._place = module, name
        self._model = model

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Validates with the type."""
        return no_info_plain_validator_function(self._validate)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """The schema of the type."""
        return handler(_adapter(*self._place).core_schema)

    def _validate(self, value: Any) -> Any:
        empty = isinstance(value, Mapping) and not value and not self._model
        return {} if empty else _adapter(*self._place).validate_python(value)
