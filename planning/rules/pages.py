"""The pages that `podwright explain` prints: one for every id that a finding can have.

A page begins with facts that are also in the code; a test holds the two together. Its two examples are the rule's own
test: pieces of an environment file, laid over `pages/base.yaml`, of which the first is found and the second passes.
Examples of rules on projects hold a piece for each of several environments, by name.
"""

import difflib
from pathlib import Path
from typing import Final

from ...config.catalog.preflight_checks import preflight_checks
from ...config.errors import UnknownName
from ...config.findings import Level, listed
from ..delivery.effects import reasons
from .framework.acknowledgements import NOT_FOUND
from .framework.rule import RULES

FOLDER: Final = Path(__file__).parent / "pages"
BEFORE_RULES: Final = {
    "YML001": "Invalid YAML",
    "YML002": "Duplicate key",
    "YML003": "Unsupported YAML tag",
    "YML004": "Key that is not plain text",
    "YML005": "Merge of a value that is not a mapping",
    "ENV001": "Unknown setting",
    "ENV002": "Missing setting",
    "ENV003": "Invalid value",
    "ENV004": "Unreadable project file",
    "ENV005": "Project names an unknown environment",
    "ENV006": "Unknown environment",
    "ENV007": "Environment name differs from its file name",
    "ENV008": "Invalid extends",
    "ENV009": "Files extend each other in a loop",
    "ENV012": "Unused acknowledgement",
    "PIP001": "Stage with an unknown environment",
    "PIP002": "Environment in two pipeline stages",
    "PIP003": "Pipeline stages in a different order than the environments",
    "PIP004": "Pipeline without a source",
    "PIP005": "CodePipeline without account or region",
    "PIP006": "Invalid GitHub Actions schedule",
    "CHT001": "Chart without a digest in artifacts.lock",
    "CHT002": "Chart version differs from artifacts.lock",
    "CHT003": "Chart not fetched",
    "CHT004": "Chart does not match its digest",
    "CHT005": "Damaged artifacts.lock",
    "CHT006": "Image that a closed network cannot pull",
    "CHT007": "Instance type without HyperPod's health monitoring agent",
    "ART001": "Node software archive without a digest in artifacts.lock",
    "ART002": "Node software archive not fetched",
    "ART003": "Node software archive does not match its digest",
    "ART004": "Benchmark gate without benchmark programs",
}
"""Findings that no rule makes but readers of files do: id → title. They stop a command, and nobody can accept them."""


class UnknownFinding(UnknownName):
    """An id that no finding has; the text says which are close."""


def explain(id: str) -> str:
    """The page of a finding in Markdown. Raises UnknownFinding, which carries the closest ids."""
    file = FOLDER / f"{id.upper()}.md"
    if id.upper() not in titles():
        close = difflib.get_close_matches(id.upper(), titles(), 3, 0.6)
        raise UnknownFinding(
            f"there is no finding {id}; close are {listed(close, 'and')}"
            if close
            else f"there is no finding {id}; ids look like NET013"
        )
    return file.read_text(encoding="utf-8")


def titles() -> dict[str, str]:
    """Every id that a finding can have, with its title, in order."""
    rules, checks, changes = RULES.values(), preflight_checks().values(), reasons().values()
    return dict(sorted((BEFORE_RULES | {item.id: item.title for item in (*rules, *checks, *changes)}).items()))


def level(id: str) -> Level:
    """How bad findings of that id are."""
    if id in RULES:
        return RULES[id].level
    if id in preflight_checks():
        return preflight_checks()[id].level
    if id in reasons():
        return reasons()[id].level
    return Level.WARNING if id in (NOT_FOUND, "CHT007") else Level.ERROR


def acceptable(id: str) -> bool:
    """Whether an environment may accept findings of that id."""
    return id in preflight_checks() or (id in RULES and not RULES[id].final)


def header(id: str) -> str:
    """What the page of a finding begins with."""
    accepted = "can be accepted with a reason" if acceptable(id) else "cannot be accepted"
    if id in reasons():
        accepted = "can be approved for one change set, under `approved_changes`"
    lines = [f"# {id}: {titles()[id]}", "", f"- Level: {level(id)}; {accepted}."]
    if id in RULES:
        rule = RULES[id]
        sources = [f"{citation}, <{citation.url}>" for citation in rule.sources] or ["a decision of podwright"]
        lines += [f"- Looks at: `{rule.on.__name__}`.", *(f"- Source: {source}." for source in sources)]
    if id in preflight_checks():
        check = preflight_checks()[id]
        lines.append(f"- Asks the account: {listed((f'`{action}`' for action in check.actions), 'and')}.")
        lines += [f"- Source: {citation}, <{citation.url}>." for citation in check.sources]
    if id in reasons():
        lines += [f"- Source: {citation}, <{citation.url}>." for citation in reasons()[id].sources]
    return "\n".join(lines) + "\n"
