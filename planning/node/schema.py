"""The JSON Schema of `node.json`, for whoever writes or reads one."""

from typing import Any

from ...config.loading.schema import published_schema
from .facts import NodeFacts


def node_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of `node.json`, published as docs/node.schema.json."""
    return published_schema(NodeFacts, "podwright node.json")
