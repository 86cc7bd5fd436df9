"""What doctor knows, as `knowledge.toml` holds it: causes, how they show, what fixes them, and what is noise."""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

from .classes import CLASSES
from .evidence import Kind

_FILE: Final = Path(__file__).with_name("knowledge.toml")
SYMPTOM: Final = 1
"""Rank of what is a mere symptom."""
EXACT: Final = 4
"""Rank of an exact cause."""


@dataclass(frozen=True, slots=True)
class Citation:
    """Where a pattern was seen."""

    text: str
    url: str
    date: str


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause of trouble."""

    id: str
    class_name: str
    title: str
    pattern: re.Pattern[str]
    fix: str
    sources: tuple[Citation, ...]
    kinds: frozenset[str]
    """The kinds of signals that it may be seen in; all where it is empty."""
    rank: int
    """5: a state that explains messages; 4: an exact cause; 3: a consequence that causes more; 2: a general cause;
    1: a mere symptom."""
    running: bool
    """Whether it matters in the log of a pod that runs as if nothing were wrong."""

    def may_show_in(self, kind: Kind, running: bool) -> bool:
        """Whether signals of that kind, or of a pod that runs as if nothing were wrong, can be signs of it."""
        own = kind in self.kinds if self.kinds or kind == "state" else True
        return own and (self.running or not running)


@dataclass(frozen=True, slots=True)
class Knowledge:
    """All that doctor knows."""

    causes: tuple[Cause, ...]
    noise: re.Pattern[str]
    """What looks like trouble and means nothing by itself."""


@lru_cache(maxsize=1 << 16)
def shown_by(text: str, kind: Kind, running: bool) -> Cause | None:
    """The most exact cause that a text shows; of equals, the one that stands first. None for noise, too.

    Nodes that fail write the same lines, so answers are kept.
    """
    if knowledge().noise.search(text):
        return None
    return next((cause for cause in _candidates(kind, running) if cause.pattern.search(text)), None)


@cache
def _candidates(kind: Kind, running: bool) -> tuple[Cause, ...]:
    """The causes that may show in such a signal, the most exact first."""
    causes = [cause for cause in knowledge().causes if cause.may_show_in(kind, running)]
    return tuple(sorted(causes, key=lambda cause: -cause.rank))


@cache
def knowledge() -> Knowledge:
    """The shipped knowledge.

    Raises:
        ValueError: a cause is of no known class, or cites no known source.
    """
    data = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    sources = {key: Citation(**value) for key, value in data["sources"].items()}
    causes = tuple(_cause(entry, sources) for entry in data["cause"])
    noise = [expression for entry in data["noise"] for expression in entry["match"]]
    return Knowledge(causes, _any(noise))


def _cause(entry: dict[str, Any], sources: dict[str, Citation]) -> Cause:
    """A cause from its entry. Raises ValueError where its class or a source does not exist."""
    if entry["class"] not in CLASSES:
        raise ValueError(f"cause {entry['id']} is of class {entry['class']}, which is not in classes.py")
    if missing := [key for key in entry["source"] if key not in sources]:
        raise ValueError(f"cause {entry['id']} cites {', '.join(missing)}, which is no source")
    return Cause(
        id=entry["id"],
        class_name=entry["class"],
        title=entry["title"],
        pattern=_any(entry["match"]),
        fix=entry["fix"],
        sources=tuple(sources[key] for key in entry["source"]),
        kinds=frozenset(entry.get("in", ())),
        rank=entry.get("rank", EXACT),
        running=entry.get("running", False),
    )


def _any(expressions: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{expression})" for expression in expressions), re.IGNORECASE)
