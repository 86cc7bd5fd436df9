"""The JSON Schema of environment files, for editors. It accepts what the loader accepts.

YAML tools read `1.34` as a number and `off` as text or false, while the loader keeps scalars as written. So a number or
boolean may be text here, and text may be a number or boolean wherever its pattern allows one.
"""

import ast
import inspect
import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from ..settings.base import Settings
from ..settings.environment import Environment
from .source import EXTENDS

Schema = dict[str, Any]
_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"

# Of each group of fields at least one is given.
_ANY_OF: Final = {"Environment": ("instance_groups", "restricted_instance_groups", "training_job_queues")}
# Of each group of fields exactly one is given. The rules say so too, with a better sentence.
_ONE_OF: Final = {"InstanceGroup": ("instance_type", "instance_types"), "Lifecycle": ("on_create", "on_init_complete")}
_EXTENDS: Final = {
    "description": "Files whose settings this one takes over and lays its own upon, by paths relative to this file. "
    "A file that has it is checked by the schema of parts, `podwright schema --part`.",
    "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
}
_NUMBERS_AS_WRITTEN: Final = ("1", "12", "1.34", "1.340", "123456789012")
_BOOLEANS_AS_WRITTEN: Final = "^([Tt]rue|TRUE|[Ff]alse|FALSE|[Yy]es|YES|[Nn]o|NO|[Oo]n|ON|[Oo]ff|OFF)$"


@cache
def environment_schema(*, part: bool = False) -> Schema:
    """Return the JSON Schema (draft 2020-12) of an environment file, with the docstring of every field.

    It is made once for each value of `part`; callers do not change it.

    Args:
        part: True for a file that others extend or that extends others: it requires nothing, and null removes a value.
    """
    schema = Environment.model_json_schema(by_alias=True)
    definitions: dict[str, Schema] = schema.pop("$defs")
    models = {model.__name__: model for model in _subclasses(Settings)}
    for name, definition in definitions.items():
        _describe(definition, models[name])
    _describe(schema, Environment)
    schema = {"$schema": _DRAFT, **schema, "$defs": definitions}
    whole: Schema = _as_written(schema) | {"title": "podwright environment"}
    whole["properties"] = {EXTENDS: _EXTENDS} | whole["properties"]
    return _part(whole) | {"title": "part of a podwright environment"} if part else whole


class _WithoutTitles(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def published_schema(model: type[BaseModel], title: str) -> Schema:
    """The JSON Schema (draft 2020-12) of what podwright writes itself, with the docstring of every field."""
    schema = model.model_json_schema(schema_generator=_WithoutTitles)
    models = {item.__name__: item for item in _subclasses(Settings)}
    for name, definition in {model.__name__: schema, **schema["$defs"]}.items():
        for field, text in attribute_docstrings(models[name]).items():
            definition["properties"][field]["description"] = text
    return {"$schema": _DRAFT, **schema, "title": title}


def attribute_docstrings(model: type[BaseModel]) -> dict[str, str]:
    """The docstrings below the fields of `model` and its bases, on one line each.

    They are read from the source: a class keeps no trace of them, and having pydantic collect them costs every import.
    """
    results: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if not issubclass(base, BaseModel) or base is BaseModel:
            continue
        for field, text in pairwise(_classes(inspect.getfile(base))[base.__name__].body):
            match field, text:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(doc))):
                    results[name] = inspect.cleandoc(doc).replace("\n", " ")
    return results


@cache
def _classes(file: str) -> dict[str, ast.ClassDef]:
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def _subclasses(model: type[BaseModel]) -> list[type[BaseModel]]:
    return [nested for child in model.__subclasses__() for nested in (child, *_subclasses(child))]


def _describe(schema: Schema, model: type[BaseModel]) -> None:
    """Complete a model's schema: docstrings of fields, fields with derived defaults, alternatives."""
    docstrings = attribute_docstrings(model)
    required = []
    for name, field in model.model_fields.items():
        schema["properties"][field.alias or name]["description"] = docstrings[name]
        # A required field whose docstring names a default is completed before validation (`defaults.py`).
        if field.is_required() and "Default:" not in docstrings[name]:
            required.append(field.alias or name)
    schema.pop("required", None)
    if required:
        schema["required"] = required
    if model.__name__ in _ANY_OF:
        schema["anyOf"] = [{"required": [name]} for name in _ANY_OF[model.__name__]]
    if model.__name__ in _ONE_OF:
        schema["oneOf"] = [{"required": [name]} for name in _ONE_OF[model.__name__]]


def _keyword(key: str, value: Any) -> Any:
    """The value of a keyword: names of properties and values of an enum are not schemas themselves."""
    if key in ("enum", "default"):
        return value
    if key in ("properties", "$defs"):
        return {name: _as_written(item) for name, item in value.items()}
    return _as_written(value)


def _as_written(schema: Any) -> Any:
    """`schema` without pydantic's titles and its empty defaults, and with every scalar in all forms of YAML."""
    if isinstance(schema, list):
        return [_as_written(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {key: _keyword(key, value) for key, value in schema.items() if key != "title"}
    if schema.get("default", 0) in (None, {}, []) or isinstance(schema.get("default"), dict):
        del schema["default"]
    if "patternProperties" in schema:
        schema["additionalProperties"] = False
    if "const" in schema:
        schema["enum"] = [schema.pop("const")]
    match schema:
        case {"enum": values}:
            schema.pop("type", None)
            schema["enum"] = [*values, *(number for value in values for number in _other_forms(value))]
        case {"type": "string"}:
            pattern = str(schema.get("pattern", ""))
            numbers = any(re.search(pattern, number) for number in _NUMBERS_AS_WRITTEN)
            schema["type"] = ["string", *(["number"] * numbers), *(["boolean"] * bool(re.search(pattern, "true")))]
            schema["type"] = schema["type"] if len(schema["type"]) > 1 else "string"
        case {"type": "integer" | "number" as kind}:
            schema |= {"type": [kind, "string"], "pattern": "^[0-9]+$" if kind == "integer" else "^[0-9.]+$"}
        case {"type": "boolean"}:
            schema |= {"type": ["boolean", "string"], "pattern": _BOOLEANS_AS_WRITTEN}
    return schema


def _part(schema: Any) -> Any:
    """`schema` without what it requires, and with null for every setting."""
    if isinstance(schema, list):
        return [_part(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result: Schema = {}
    for key, value in schema.items():
        if key in ("properties", "patternProperties"):
            result[key] = {name: _or_null(_part(item)) for name, item in value.items()}
        elif key == "$defs":
            result[key] = {name: _part(item) for name, item in value.items()}
        elif key in ("anyOf", "oneOf"):
            # Alternatives that differ in nothing but what they require say nothing about a part.
            branches = [_part(item) for item in value]
            result |= {"anyOf": branches} if all(branches) else {}
        elif key not in ("required", "minProperties"):
            result[key] = value if key in ("enum", "default") else _part(value)
    return result


def _or_null(schema: Schema) -> Schema:
    described = {"description": schema["description"]} if "description" in schema else {}
    return {**described, "anyOf": [{key: schema[key] for key in schema if key not in described}, {"type": "null"}]}


def _other_forms(value: Any) -> list[Any]:
    """An allowed text that YAML tools read as a number, as that number; and the other way round."""
    if isinstance(value, int):
        return [str(value)]
    return [float(value)] if re.fullmatch(r"[0-9]+\.[0-9]+", value) else []
