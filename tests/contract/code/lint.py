"""Rules about sources. All of them run in one pass over the files; `test_lint.py` has one test for each."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sources import Source


class At(NamedTuple):
    """A finding about a file."""

    line: int
    message: str


class Sample(NamedTuple):
    """Sources that a rule is tried on."""

    files: Mapping[str, str]
    """Texts by the paths that they would have."""
    finding: str | None
    """A part of the only finding; None where the rule finds nothing."""


@dataclass(frozen=True)
class Rule:
    """A rule with samples that prove that it finds something."""

    of_file: Callable[[Source], Iterable[At]] | None
    of_all: Callable[[list[Source]], Iterable[str]] | None
    samples: tuple[Sample, ...]


RULES: dict[str, Rule] = {}
"""Every rule by the name of its function, which is what a failed test says."""


def file_rule(*samples: Sample) -> Callable[[Callable[[Source], Iterable[At]]], Callable[[Source], Iterable[At]]]:
    """Register a rule that looks at one Python file or page at a time."""

    def register(function: Callable[[Source], Iterable[At]]) -> Callable[[Source], Iterable[At]]:
        RULES[function.__name__] = Rule(function, None, samples)
        return function

    return register


def tree_rule(
    *samples: Sample,
) -> Callable[[Callable[[list[Source]], Iterable[str]]], Callable[[list[Source]], Iterable[str]]]:
    """Register a rule that compares files; it may read their texts, imports and classes, and no syntax trees."""

    def register(function: Callable[[list[Source]], Iterable[str]]) -> Callable[[list[Source]], Iterable[str]]:
        RULES[function.__name__] = Rule(None, function, samples)
        return function

    return register


def findings(files: list[Source], rules: Mapping[str, Rule]) -> dict[str, list[str]]:
    """What each rule finds, as `file:line: message`."""
    actual: dict[str, list[str]] = {name: [] for name in rules}
    for source in files:
        for name, rule in rules.items():
            actual[name] += _about(source, rule)
        source.release()
    for name, rule in rules.items():
        actual[name] += rule.of_all(files) if rule.of_all else ()
    return actual


def _about(source: Source, rule: Rule) -> Iterator[str]:
    for at in sorted(rule.of_file(source)) if rule.of_file else ():
        yield f"{source.path}:{at.line}: {at.message}"
