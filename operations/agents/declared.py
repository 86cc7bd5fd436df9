"""How a tool is declared: its title, its twin on the command line, the form of its answer, and what it may touch."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Final, TypeVar

from mcp.server.mcpserver.tools import Tool
from mcp_types import ToolAnnotations
from pydantic import Field

_KEPT: Final = "about"
_SHORT: Final = {"environment": "string", "region": "string", "account": "string", "simulated": "boolean"}

Method = TypeVar("Method", bound=Callable[..., Any])
EnvironmentName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,62}$")]
Word = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,252}$")]
"""A name that no command takes for an option."""
Count = Annotated[int, Field(ge=1, le=10_000)]


@dataclass(frozen=True, slots=True)
class About:
    """What a server says of a tool beside its name, its arguments and its description."""

    title: str
    twin: str
    """The command that does the same, as a person types it."""
    answer: tuple[str, ...] | str = ()
    """The keys of its answer that are always there; `array` or `string` for an answer without keys."""
    asks_aws: bool = False
    """Whether it looks at an account or a cluster."""
    changes: str = ""
    """What it changes, `file` or `aws`; nothing where it is empty."""
    destructive: bool = False
    more: dict[str, Any] = field(default_factory=dict)
    """Schemas of what its reply holds beside where it is from."""
    offered: bool = True
    """Whether it is there without `--allow-changes`."""

    def annotations(self) -> ToolAnnotations:
        """The hints for clients. Nothing relies on them: what a tool may do is decided by the tool."""
        return ToolAnnotations(
            read_only_hint=not self.changes,
            destructive_hint=self.destructive,
            # A plan, and an edit, is made once; the second time there is none of that id.
            idempotent_hint=not self.changes,
            open_world_hint=self.asks_aws,
        )

    def output_schema(self) -> dict[str, Any]:
        """What a reply holds that is no error."""
        properties: dict[str, Any] = {name: {"type": [kind, "null"]} for name, kind in _SHORT.items()}
        properties["command"] = {"type": "string"}
        if self.answer:
            properties["exit_code"] = {"type": "integer"}
            properties["answer"] = self._answer_schema()
            properties["resource"] = {"type": "string"}
        required = [name for name in properties if name != "resource"]
        return {"type": "object", "properties": properties | self.more, "required": required}

    def _answer_schema(self) -> dict[str, Any]:
        if isinstance(self.answer, str):
            return {"type": [self.answer, "null"]}
        return {"type": ["object", "null"], "required": list(self.answer)}


def tool(about: About) -> Callable[[Method], Method]:
    """Declare a method to be a tool of that name; its docstring tells models what it is for."""

    def mark(method: Method) -> Method:
        setattr(method, _KEPT, about)
        return method

    return mark


def tools_of(holder: object) -> Iterator[tuple[Tool, About]]:
    """The tools among the methods of an object, each with what was declared."""
    for made, about in _declared(type(holder)):
        yield made.model_copy(update={"fn": getattr(holder, made.name)}), about


@cache
def _declared(kind: type) -> list[tuple[Tool, About]]:
    """The tools of a class. Their schemas take a fifth of a second to make, and each session has the same."""
    declared = []
    # Signatures are those of methods that are bound, to an object that is not initialized.
    holder = object.__new__(kind)
    for name in vars(kind):
        method = getattr(holder, name)
        about: About | None = getattr(method, _KEPT, None)
        if about is not None:
            made = Tool.from_function(
                method,
                name=name,
                title=about.title,
                description=" ".join((method.__doc__ or "").split()),
                annotations=about.annotations(),
                structured_output=False,
            )
            _make_strict(made)
            made.fn_metadata.output_schema = about.output_schema()
            declared.append((made, about))
    return declared


def _make_strict(made: Tool) -> None:
    """Have the tool refuse arguments that it does not know: a model that invents one means something by it."""
    model = made.fn_metadata.arg_model
    model.model_config["extra"] = "forbid"
    model.model_rebuild(force=True)
    schema = model.model_json_schema(by_alias=True)
    # Titles of pydantic's repeat the names; they are a tenth of what a list of tools takes.
    for each in (schema, *schema["properties"].values()):
        each.pop("title", None)
    made.parameters = schema
