"""The JSON Schema of `node.json`, for whoever writes or reads one."""

from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from ...config.loading.schema import attribute_docstrings
from ...config.settings.base import Settings
from .facts import NodeFacts


class _WithoutTitles(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def node_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of `node.json`, published as docs/node.schema.json."""
    schema = NodeFacts.model_json_schema(schema_generator=_WithoutTitles)
    models = {model.__name__: model for model in Settings.__subclasses__()}
    parts = ((models[name], definition) for name, definition in schema["$defs"].items())
    for model, definition in ((NodeFacts, schema), *parts):
        for name, text in attribute_docstrings(model).items():
            definition["properties"][name]["description"] = text
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "podwright node.json"}
