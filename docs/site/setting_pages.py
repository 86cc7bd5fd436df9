"""The reference of settings, made of the models: a page for each part of an environment file, one for a project."""

import json
import re
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from podwright.config.loading.project import ProjectSettings
from podwright.config.loading.schema import attribute_docstrings, environment_schema
from podwright.config.settings.environment import Environment

Schema = dict[str, Any]
FOLDER = "reference/settings"


class Models:
    """The JSON Schema of one model and all below it, and the page on which each is described."""

    def __init__(self, model: type[BaseModel], required: Schema | None = None, page: str = "") -> None:
        self.schema: Schema = model.model_json_schema(by_alias=True)
        self.definitions: dict[str, Schema] = self.schema.get("$defs", {})
        # The published schema knows which required fields are filled in from others.
        self.required = required or self.schema
        # Others that happen to be loaded may have the same names.
        own = [item for item in _below(BaseModel) if item.__module__.startswith("podwright.config.")]
        self.classes = {item.__name__: item for item in own} | {model.__name__: model}
        self.name = model.__name__
        self.page: dict[str, str] = {}
        self.paths: dict[str, list[str]] = {}
        for field, schema in self.schema["properties"].items():
            self._place(schema, field, page or field)

    def _place(self, schema: Any, path: str, page: str, above: tuple[str, ...] = ()) -> None:
        """Give each model a page, that of the first field that leads to it, and note the paths at which it stands."""
        for name, steps in references(schema):
            if name in above:
                continue
            self.page.setdefault(name, page)
            found = self.paths.setdefault(name, [])
            here = path + steps
            if here not in found:
                found.append(here)
                for field, below in self.definitions[name].get("properties", {}).items():
                    self._place(below, f"{here}.{field}", page, (*above, name))

    def on(self, page: str) -> list[str]:
        """The models of a page, those nearest to the top of the file first."""
        return sorted(
            (name for name, place in self.page.items() if place == page), key=lambda name: self.paths[name][0]
        )

    def is_required(self, name: str, field: str) -> bool:
        """Whether a file has to say it."""
        schema = self.required if name == self.name else self.required["$defs"][name]
        return field in schema.get("required", ())


def _below(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for child in model.__subclasses__():
        yield child
        yield from _below(child)


def references(schema: Any, steps: str = "") -> Iterator[tuple[str, str]]:
    """Each model that a schema names, with what stands between: `[]` for a list, `.NAME` for names of your own."""
    if isinstance(schema, list):
        for item in schema:
            yield from references(item, steps)
    elif isinstance(schema, dict):
        if "$ref" in schema:
            yield schema["$ref"].rpartition("/")[2], steps
        for key, value in schema.items():
            if key in ("anyOf", "oneOf", "allOf"):
                yield from references(value, steps)
            elif key in ("items", "prefixItems"):
                yield from references(value, f"{steps}[]")
            elif key == "patternProperties":
                yield from references(list(value.values()), f"{steps}.NAME")
            elif key == "additionalProperties":
                yield from references(value, f"{steps}.NAME")


def anchor(name: str) -> str:
    """The anchor of a model on its page, whose title may have the same name."""
    return f"model-{name.lower()}"


def type_text(schema: Schema, models: Models, page: str) -> str:
    """What a value may be, in words, with links to models."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        place = "" if models.page[name] == page else f"{models.page[name]}.md"
        return f"[{name}]({place}#{anchor(name)})"
    options = schema.get("anyOf") or schema.get("oneOf")
    if options:
        texts = [type_text(item, models, page) for item in options if item.get("type") != "null"]
        return " or ".join(dict.fromkeys(texts))
    if "const" in schema or "enum" in schema:
        return ", ".join(f"`{_shown(value)}`" for value in schema.get("enum", [schema.get("const")]))
    match schema.get("type"):
        case "array":
            items = schema.get("items") or {"anyOf": schema.get("prefixItems", [{}])}
            many = f", at most {schema['maxItems']}" if "maxItems" in schema else ""
            return f"list of {type_text(items, models, page)}{many}"
        case "object":
            values = list(schema.get("patternProperties", {}).values()) or [schema.get("additionalProperties")]
            inner = [type_text(value, models, page) for value in values if isinstance(value, dict)]
            return f"`NAME:` {' or '.join(dict.fromkeys(inner))}" if inner else "mapping"
        case "integer" | "number" as kind:
            return f"{'whole number' if kind == 'integer' else 'number'}{_bounds(schema)}"
        case "boolean":
            return "`true`, `false`"
        case "string":
            return f"text{_form(schema)}"
    return "any value"


def _bounds(schema: Schema) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    parts = [
        f"{word} {value:g}"
        for word, value in (("from", low), ("above", above), ("to", high), ("below", below))
        if value is not None
    ]
    return f" {' '.join(parts)}" if parts else ""


def _form(schema: Schema) -> str:
    parts = [f"like `{schema['pattern']}`"] if len(schema.get("pattern", "")) in range(1, 60) else []
    if "maxLength" in schema:
        parts.append(f"at most {schema['maxLength']} characters")
    return f" {', '.join(parts)}" if parts else ""


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def default_text(schema: Schema, required: bool, description: str) -> str:
    """The default in a cell."""
    if required:
        return "**required**"
    if "Default:" in description:
        return "see there"
    default = schema.get("default")
    if default is None or default in ({}, []):
        return "–"
    return "its own" if isinstance(default, dict) else f"`{_shown(default)}`"


def _cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join(text.split()))


def table(name: str, schema: Schema, models: Models, page: str, only: tuple[str, ...] = ()) -> str:
    """The fields of a model as a table."""
    described = attribute_docstrings(models.classes[name])
    rows = ["| Setting | Value | Default | Meaning |", "|---|---|---|---|"]
    for field, item in schema["properties"].items():
        if only and field not in only:
            continue
        text = described.get(field) or described[_attribute(models.classes[name], field)]
        default = default_text(item, models.is_required(name, field), text)
        rows.append(f"| `{field}` | {_cell(type_text(item, models, page))} | {default} | {_cell(text)} |")
    return "\n".join(rows)


def _attribute(model: type[BaseModel], alias: str) -> str:
    return next(name for name, field in model.model_fields.items() if field.alias == alias)


def _section(name: str, models: Models, page: str) -> str:
    schema = models.definitions[name]
    if "properties" not in schema:
        return f"## {name} {{ #{anchor(name)} }}\n\n{type_text(schema, models, page)}\n"
    where = ", ".join(f"`{path}`" for path in models.paths[name][:4])
    more = ", and elsewhere" if len(models.paths[name]) > 4 else ""
    text = " ".join((schema.get("description") or "").split("\n\n")[0].split())
    return f"## {name} {{ #{anchor(name)} }}\n\n{text}\n\nAt {where}{more}.\n\n{table(name, schema, models, page)}\n"


def pages() -> dict[str, str]:
    """The text of every page by its path."""
    published = environment_schema()
    models = Models(Environment, published)
    # Read before there is a model: it says which files make up the one that the model is of.
    extends = f"| `extends` | text, list of text | – | {_cell(published['properties']['extends']['description'])} |"
    head, rule, *rows = table("Environment", models.schema, models, "").split("\n")
    project = Models(ProjectSettings, page="project")
    written = sorted(set(models.page.values()), key=list(models.schema["properties"]).index)
    found = {
        f"{FOLDER}/index.md": "\n".join(
            (
                "# Settings of an environment file",
                "",
                "Made of the models that read the file, so every setting is here with every value it may have. "
                "What the decisions mean is in [writing environments](../../user.md); "
                "`podwright show ENV` prints each value of a file, defaults marked.",
                "",
                "[The JSON Schema](../../environment.schema.json) says the same to editors.",
                "",
                "\n".join((head, rule, extends, *rows)),
                "",
            )
        )
    }
    for page in written:
        head = f"# `{page}`\n\n{table('Environment', models.schema, models, page, (page,))}\n"
        found[f"{FOLDER}/{page}.md"] = "\n".join((head, *(_section(name, models, page) for name in models.on(page))))
    parts = [_section(name, project, "project") for name in project.on("project")]
    found["reference/project.md"] = "\n".join(
        (
            "# Settings of a project",
            "",
            "A project may have a `podwright.yaml` beside its `environments/`. Without one, podwright takes the "
            "environments by name.",
            "",
            table("ProjectSettings", project.schema, project, "project"),
            "",
            *parts,
        )
    )
    return found
