"""The pages that `podwright explain` prints: one for every id that a finding can have.

A page begins with facts that are also in the code; a test holds the two together. Its two examples are the rule's own
test: pieces of an environment file, laid over `pages/base.yaml`, of which the first is found and the second passes.
"""

import difflib
from pathlib import Path
from typing import Final

from .rule import RULES, Rule, listed

FOLDER: Final = Path(__file__).parent / "pages"
BEFORE_RULES: Final = {
    "YML001": "A file that is not readable YAML",
    "YML002": "A key that stands twice in one mapping",
    "YML003": "A tag that YAML files of podwright do not have",
    "YML004": "A key that is not plain text",
    "YML005": "A merge of something that is no mapping",
    "ENV001": "A setting that podwright does not know",
    "ENV002": "A setting that is missing",
    "ENV003": "A value that a setting does not take",
    "ENV004": "A project file that cannot be read",
    "ENV005": "A project that names an environment it does not have",
    "ENV006": "An environment that is not there",
    "ENV007": "An environment whose name is not its file's",
    "ENV012": "An acknowledgement that fits no finding",
    "CHT001": "A chart without a digest in artifacts.lock",
    "CHT002": "A chart of another version in artifacts.lock",
    "CHT003": "A chart that was not fetched",
    "CHT004": "A chart that differs from its digest",
    "CHT005": "A damaged artifacts.lock",
    "CHT006": "An image that a closed network cannot pull",
}
"""Findings that no rule makes but readers of files do: id → title. They stop a command, and nobody can accept them."""


class UnknownFinding(LookupError):
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
    return dict(sorted((BEFORE_RULES | {rule.id: rule.title for rule in RULES.values()}).items()))


def header(id: str) -> str:
    """What the page of a finding begins with."""
    if id in BEFORE_RULES:
        level = "warning" if id == "ENV012" else "error; nobody can accept it"
        return f"# {id}: {BEFORE_RULES[id]}\n\n- Level: {level}.\n"
    rule = RULES[id]
    lines = [f"# {id}: {rule.title}", "", f"- Level: {_level(rule)}.", f"- Looks at: `{rule.on.__name__}`."]
    lines += [f"- Source: {citation}, <{citation.url}>." for citation in rule.sources] or [
        "- Source: a decision of podwright."
    ]
    return "\n".join(lines) + "\n"


def _level(rule: Rule) -> str:
    return f"{rule.level}; {'nobody can accept it' if rule.final else 'can be accepted with a reason'}"
