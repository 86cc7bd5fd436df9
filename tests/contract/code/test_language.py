"""Titles, hints and help texts are plain phrases, and docs/glossary.md is of the code. lint_names.py has the names."""

import argparse
import re
from collections import Counter
from pathlib import Path

import language
from podwright.operations.cli import COMMANDS, parser_of
from podwright.operations.command_help import parsers
from podwright.planning.rules.pages import titles
from sources import ROOT

GLOSSARY = ROOT / "docs/glossary.md"
LONGEST_TITLE = 66


def test_titles_of_findings_name_what_is_wrong() -> None:
    odd = [
        f"{id}: {title}; say {instead}"
        for id, title in titles().items()
        for pattern, instead in {**language.PHRASES, **language.TITLES, **language.TITLE_SENTENCES}.items()
        if re.search(pattern, title)
    ]
    assert odd == [], "\n".join(odd)


def test_titles_of_findings_are_short_and_different() -> None:
    assert {id: title for id, title in titles().items() if len(title) > LONGEST_TITLE or title.endswith(".")} == {}
    assert [title for title, count in Counter(titles().values()).items() if count > 1] == []


def help_texts() -> list[tuple[str, str]]:
    """Every line of help of the command line, with the command and the option that it is of."""
    texts = [(command.name, command.help) for command in COMMANDS]
    for name, parser in parsers("", parser_of()):
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                texts += [(f"{name} {choice.dest}", choice.help or "") for choice in action._choices_actions]
            elif not isinstance(action, argparse._HelpAction):
                texts.append((f"{name} {(action.option_strings or [action.dest])[0]}".strip(), action.help or ""))
    return texts


def odd_helps(texts: list[tuple[str, str]]) -> list[str]:
    """What of lines of help is no plain phrase: a verb or a noun, without an article or a full stop."""
    return [
        f"{about}: {text!r}; say {instead}"
        for about, text in texts
        for pattern, instead in {**language.HELP, r"^$|\.$|^(?:An?|The) ": "a phrase"}.items()
        if re.search(pattern, text.partition(" (default")[0])
    ]


def test_help_texts_are_plain_phrases() -> None:
    odd = odd_helps(help_texts())
    assert not odd, "\n".join(odd)
    assert len(help_texts()) > 500


def test_descriptions_of_commands_are_plain_sentences() -> None:
    odd = [
        f"{name}: “{match[0]}”; say {instead}"
        for name, parser in parsers("", parser_of())
        for pattern, instead in language.HELP.items()
        if (match := re.search(pattern, " ".join((parser.description or "").split())))
    ]
    assert not odd, "\n".join(odd)


def test_odd_help_texts_are_found() -> None:
    odd = odd_helps([("run", "so many nodes"), ("run --x", "what it takes along."), ("run --y", "number of nodes")])
    assert [line.partition(":")[0] for line in odd] == ["run", "run", "run --x", "run --x", "run --x"]


def terms() -> list[list[str]]:
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in GLOSSARY.read_text().splitlines()
        if line.startswith("| ") and not line.startswith(("| Term", "| Not"))
    ]


def test_the_glossary_says_where_each_term_is() -> None:
    wheres = {where.strip("`") for _, _, where in terms() if where.startswith("`")}
    assert [where for where in sorted(wheres) if not (ROOT / where).is_dir()] == []
    assert sum(1 for _, _, where in terms() if where.startswith("`")) >= 80


def test_the_glossary_has_each_forbidden_word() -> None:
    text = GLOSSARY.read_text().partition("## Words that we do not use")[2]
    known = set(re.findall(r"[a-z]+", text))
    plain = {"mends", "mended", "sightings", "worlds", "rooms", "looks", "hears", "knobs", "heap", "drawer", "places"}
    assert sorted((set(language.PARTS) | set(language.WHOLE)) - known - plain) == []


def test_names_outside_the_glossary_can_be_counted(tmp_path: Path) -> None:
    """`bin/bench --only language` prints the counts of a checkout."""
    (tmp_path / "config").mkdir()
    (tmp_path / "config/a.py").write_text("class World: ...\nclass World: ...\nunwell = right = 1\n")
    assert language.counts(tmp_path) == {"config": (3, 2, 3)}
