"""The words of this project: those that names and sentences do not use, each with the term to use instead.

    bin/bench --only language
    .venv/bin/python tests/bench/names.py CHECKOUT

print what docs/measurements.md says of names, for this checkout and for another one.
"""

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from sources import Source, read

PACKAGES = ("config", "planning", "constructs", "cdk8s_charts", "stacks", "operations", "sandbox", "lifecycle_scripts")

PARTS = {
    "mend": "fix",
    "mends": "fixes",
    "mended": "fixed",
    "sighting": "observation",
    "sightings": "observations",
    "world": "what it is: account, cluster, services",
    "worlds": "what they are: accounts, clusters, services",
    "room": "allocatable, capacity, width; folder",
    "rooms": "allocatable, capacity; folders",
    "face": "interface",
    "news": "events",
    "look": "observation, read, check",
    "looks": "observations, reads, checks",
    "unwell": "unhealthy",
    "hears": "is notified",
    "knobs": "controls",
    "heap": "memory, batch",
    "drawer": "module",
}
"""Words that are no part of a name. Tests' names are sentences and are not held to this."""

WHOLE = {
    "found": "what was found: findings, matches, cluster, result",
    "said": "message, output",
    "told": "messages, notices",
    "wanted": "desired, requested, expected",
    "given": "specified, provided",
    "there": "existing, current",
    "of": "what it is of: instance_type, resource, owner",
    "kept": "retained",
    "seen": "observed",
    "begun": "started",
    "gone": "deleted, removed",
    "moment": "timestamp",
    "place": "position, location, placement, zone",
    "places": "positions, locations, zones",
}
"""Words that say nothing as the name of a variable or parameter. As a part of a name they may be exact (`not_found`,
`in_place`), and some are keys of JSON that others read, so fields keep them."""

ALLOWED = {"look_up_subnets", "hugging_face"}
"""Names whose part means something else here."""

PHRASES = {
    r"\} is no (?!longer|more )[a-zA-Z]+": "is not a",
    r"\b(?:go|goes) on\b(?!ly)": "continue, resume, keep …ing",
    r"\bwent on\b": "continued",
    r"\bunwell\b": "unhealthy",
    r"\bsightings?\b": "observation",
    r"\bmend(?:s|ed|ing)?\b": "fix",
    r"\b(?:a|one|each|every|second|last) look at\b": "a check of, a read of",
    r"\bnews of\b": "events of",
    r"\b[Gg]ang admission\b": "gang scheduling",
    r"\bfor ever\b": "forever",
    r"\btake (?:it|them) away\b": "remove it",
}
"""What sentences do not say, in docstrings, comments, messages and documents."""


TITLES = {
    r"\b(?:no|some|any)body\b": "who: a team, a role, a user",
    r"\b(?:is|are) not there\b": "unknown, missing",
    r"\bin the way\b": "what it is: already exists, overlaps",
    r"\bgo(?:es)? with\b": "supports",
    r"\bof ours\b": "of podwright",
    r"\bwhat (?:it|they|teams) \w+ with\b": "its name",
    r"\bmasters?\b": "both settings",
    r"\b(?:says|waits for|belongs to) nothing\b": "empty, unused",
}
"""What titles of findings do not say beside those: a title names the setting and what is wrong with it."""

TITLE_SENTENCES = {
    r"^(?:An?|The) ": "the subject without an article",
    r"^(?:What|Whose|Who|How) ": "the setting that is wrong",
    r"\bwhich\b": "subject, verb, object: KAI does not support …",
    r"\bwhose\b": "with, without",
    r"\b(?:does|do|may|can|would) not take\b|\btakes?\b": "invalid, does not support, accepts",
    r"\bdoes not (?:have|know|offer)\b": "unknown, not offered, without",
    r"\byet\b|\bof its own\b|\bof your own\b|\bthe other way round\b": "leave it out",
    r"\bof (?:one|a) name\b": "with the same name",
    r"\bno way\b": "unreachable, without a route",
}
"""How titles of findings are not built."""

HELP = {
    **PHRASES,
    r"^(?:of|that|those|so|what|which|whose|whether) ": "a verb or the name of the thing",
    r"\bso (?:many|long|few)\b": "number of, this time",
    r"\b(?:made|make|makes) up\b": "simulate, generate",
    r"\blooks? at\b|\blooked at\b": "read, check",
    r"\b(?:takes?|take|taken) (?:it |them )?(?:away|along|on|over)\b": "delete, collect, assume, adopt",
    r"\bhands? (?:it|a job|over|on)\b|\bhanded\b": "submit, upload",
    r"\bwhatever\b|\bwhoever\b|\bwherever\b": "the thing itself",
    r"\bas well\b|, too\b": "also",
    r"\b(?:is|are|be) there\b": "exists",
    r"\bsays? of\b": "prints",
}
"""What help texts do not say: they begin with a verb or a noun, and name who does what."""

_VERBS = """
accept add adopt allow ask buy call change check choose connect copy correct count create decide deploy did do draw
enable exchange export extend fix follow give have hold indent install keep label leave let list look lower make merge
mix mount move name open pin place point provision put raise read remove rename repair replace revoke run say scale
set shorten show split spread start stop submit switch take tell turn uninstall update upgrade use wait write
"""
ACTIONS = frozenset(_VERBS.split())
"""Words that a hint begins with: what to do next. `did you mean …?` proposes it."""


_ANY_PHRASE = re.compile("|".join(f"(?:{phrase})" for phrase in PHRASES))


class Use(NamedTuple):
    """A word that is not used, and where."""

    line: int
    text: str
    instead: str

    def __str__(self) -> str:
        return f"{self.text}; say {self.instead}"


@cache
def words(name: str) -> tuple[str, ...]:
    """The words of an identifier."""
    return tuple(word for word in re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower().split("_") if word)


class Definition(NamedTuple):
    """A name that a module defines."""

    name: str
    line: int
    is_parameter: bool
    is_variable: bool
    """True for a name that is assigned, in a function or outside."""


def definitions(source: Source) -> Iterator[Definition]:
    """The names that a module defines."""
    for node in source.nodes(ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef):
        yield Definition(node.name, node.lineno, False, False)
    for node in source.nodes(ast.arg):
        yield Definition(node.arg, node.lineno, True, False)
    for node in source.nodes(ast.Name):
        if isinstance(node.ctx, ast.Store):
            yield Definition(node.id, node.lineno, False, True)
    for node in source.nodes(ast.Attribute):
        if isinstance(node.ctx, ast.Store):
            yield Definition(node.attr, node.lineno, False, False)


def _in_function(source: Source, line: int) -> bool:
    functions = source.nodes(ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    return any(node.lineno <= line <= (node.end_lineno or 0) for node in functions)


@cache
def _part(name: str) -> str | None:
    """The replacement of the first forbidden word of a name."""
    return next(filter(None, map(PARTS.get, words(name))), None)


def misnamed(source: Source) -> Iterator[Use]:
    """Names with a word that is not used."""
    for name, line, is_parameter, is_variable in definitions(source):
        instead = _part(name)
        if name in WHOLE and (is_parameter or (is_variable and _in_function(source, line))):
            instead = WHOLE[name]
        if instead and not name.startswith("test_") and name.strip("_").lower() not in ALLOWED:
            yield Use(line, f"the name {name}", instead)


def sentences(source: Source) -> Iterator[tuple[int, str]]:
    """The lines of a page outside code, or of the strings and comments of a module, with their numbers."""
    if source.is_python:
        for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
            if token.type in (tokenize.STRING, tokenize.COMMENT):
                yield from enumerate(token.string.splitlines(), token.start[0])
        return
    fenced = False
    for number, line in enumerate(source.text.splitlines(), 1):
        fenced ^= line.lstrip().startswith("```")
        if not fenced:
            yield number, re.sub(r"`[^`]*`", "", line)


def misworded(source: Source) -> Iterator[Use]:
    """Sentences with a phrase that is not used."""
    # Tokenizing takes much longer than a search, and most modules have none of the phrases.
    if source.is_python and not _ANY_PHRASE.search(source.text):
        return
    for number, line in sentences(source):
        for phrase, instead in PHRASES.items():
            for match in re.finditer(phrase, line):
                yield Use(number, f"“{match[0]}”", instead)


def counts(root: Path) -> dict[str, tuple[int, ...]]:
    """For each package of a checkout: its distinct names, those outside the glossary, and how often it defines them."""
    result: dict[str, tuple[int, ...]] = {}
    for folder in PACKAGES:
        files = [file for file in (root / folder).rglob("*.py") if "__pycache__" not in file.parts]
        defined, uses = set[str](), Counter[str]()
        for source in read(root, files):
            defined |= {each.name for each in definitions(source)}
            uses.update(use.text for use in misnamed(source))
        if defined:
            result[folder] = len(defined), len(uses), sum(uses.values())
    return result
