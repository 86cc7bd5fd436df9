"""What a rule is, and the registry of all rules.

A rule is a generator over one settings model. It yields a Problem for each thing that is wrong with that model, with a
path relative to it, and knows nothing of files: `run.py` adds the place, the level and the acknowledgement.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Concatenate, Final, NamedTuple, TypeVar

from ....config.catalog.facts import Citation, cited
from ....config.catalog.instance_types import Catalog
from ....config.findings import Level, Path
from ....config.settings.base import Settings

ERROR: Final = Level.ERROR
WARNING: Final = Level.WARNING
INFO: Final = Level.INFO

Model = TypeVar("Model")


class Problem(NamedTuple):
    """One thing that is wrong with a settings model."""

    path: str | Path
    """Where, relative to the model: a field, a path of fields and keys, or `()` for the model itself."""
    message: str
    """What is there and what is allowed."""
    hint: str
    """What to do next."""


Problems = Iterator[Problem]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule with everything that its page says about it."""

    id: str
    """Area and number, such as NET003. Stable; never given to another rule."""
    level: Level
    title: str
    """What is wrong when the rule speaks."""
    on: type
    """What it looks at: a settings model, wherever one stands in an environment, or several environments at once."""
    source: str
    """Keys of `data/citations.csv` where the fact behind it can be read; empty for a decision of podwright's own."""
    final: bool
    """True when nobody can accept a finding of it: AWS refuses, or there is nothing that could be synthesized."""
    function: Callable[..., Problems]
    reads_types: bool
    """Whether the function takes the instance catalog as well."""
    dated: bool = False
    """Whether what it finds depends on the day, which its function takes as well. A synthesis has no clock, so only
    those who say a day hear it."""

    @property
    def of_project(self) -> bool:
        """Whether it looks at several environments beside one another, and not at the settings of one."""
        return not issubclass(self.on, Settings)

    @property
    def sources(self) -> tuple[Citation, ...]:
        """Where the fact behind it can be read."""
        return cited(self.source)

    def problems(self, settings: Settings, types: Catalog, today: date | None = None) -> Problems:
        """What this rule finds in `settings`, an instance of `on`."""
        if self.dated:
            return self.function(settings, today) if today else iter(())
        return self.function(settings, types) if self.reads_types else self.function(settings)


RULES: Final[dict[str, Rule]] = {}
"""Every rule by id."""


def rule(
    id: str, level: Level, *, on: type, source: str, final: bool = False, dated: bool = False
) -> Callable[[Callable[Concatenate[Model, ...], Problems]], Callable[Concatenate[Model, ...], Problems]]:
    """Register a function as a rule. Its first parameter is the model; a second one, if any, is the catalog.

    That of a `dated` rule is the day. The first line of its docstring is the rule's title, and says what is wrong when
    the rule speaks.
    """

    def register(function: Callable[Concatenate[Model, ...], Problems]) -> Callable[Concatenate[Model, ...], Problems]:
        if id in RULES:
            raise ValueError(f"two rules are called {id}")
        title = (function.__doc__ or "").partition("\n")[0].rstrip(".")
        reads_types = function.__code__.co_argcount == 2 and not dated
        RULES[id] = Rule(id, level, title, on, source, final, function, reads_types, dated)
        return function

    return register


@cache
def rules_for(model: type) -> tuple[Rule, ...]:
    """The rules that look at instances of `model`, in order of id."""
    return tuple(RULES[id] for id in sorted(RULES) if issubclass(model, RULES[id].on))


def nested(settings: Settings, path: Path = ()) -> Iterator[tuple[Path, Settings]]:
    """A model and every model inside it, each with its path as the file writes it."""
    yield path, settings
    for name, field in type(settings).model_fields.items():
        value, key = getattr(settings, name), field.alias or name
        if isinstance(value, Settings):
            yield from nested(value, (*path, key))
        elif isinstance(value, dict | tuple):
            for inner, item in value.items() if isinstance(value, dict) else enumerate(value):
                if isinstance(item, Settings):
                    yield from nested(item, (*path, key, inner))
