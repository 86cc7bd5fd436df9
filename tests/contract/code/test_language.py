"""Names and sentences use the terms of docs/glossary.md, and statements stay flat enough to read once."""

import argparse
import ast
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import language
import rule_pages
from language import PACKAGES, ROOT, Use
from podwright.operations.cli import COMMANDS, parser_of
from podwright.operations.command_help import parsers
from podwright.planning.rules.pages import titles

GLOSSARY = ROOT / "docs/glossary.md"
LONG = 15
LONGEST_TITLE = 66
WITHOUT = (
    "docs/decisions/",
    "tests/snapshot/",
    "CHANGELOG.md",
    "docs/glossary.md",
    "tests/contract/code/test_language.py",
    "tests/shared/language.py",
    "planning/monitoring/",
    "tests/unit/observability/alert_",
    "docs/measurements.md",
)
CONDITIONALS = (ast.IfExp,)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def listing(uses: list[Use]) -> str:
    return "\n" + "\n".join(map(str, uses))


@pytest.mark.parametrize("package", [*PACKAGES, "tests"])
def test_names_use_the_glossarys_terms(package: str) -> None:
    uses = [use for use in language.misnamed(ROOT, (package,)) if not use.file.startswith(WITHOUT)]
    assert uses == [], listing(uses)


def test_sentences_use_the_glossarys_terms() -> None:
    listed = subprocess.run(["git", "ls-files", "*.py", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    files = [ROOT / name for name in listed.stdout.splitlines() if not name.startswith(WITHOUT)]
    uses = list(language.misworded(ROOT, [file for file in files if file.is_file()]))
    assert uses == [], listing(uses)


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


@pytest.mark.parametrize("id", sorted(rule_pages.cases()))
def test_a_hint_says_what_to_do(id: str) -> None:
    """It begins with a verb, after the name of a condition or a quoted command at most."""
    case = rule_pages.cases()[id]
    hints = [item.hint for item in rule_pages.findings_in(case, case.found) if item.id == id]
    assert hints
    assert [hint for hint in hints if not begins_with_an_action(hint)] == []


def begins_with_an_action(hint: str) -> bool:
    return next(iter(re.findall(r"[a-z]+", hint.lower())), "") in language.ACTIONS


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
    assert odd_helps(help_texts()) == []
    assert len(help_texts()) > 500


def test_descriptions_of_commands_are_plain_sentences() -> None:
    odd = [
        f"{name}: “{match[0]}”; say {instead}"
        for name, parser in parsers("", parser_of())
        for pattern, instead in language.HELP.items()
        if (match := re.search(pattern, " ".join((parser.description or "").split())))
    ]
    assert odd == []


def test_what_does_not_scan_is_seen() -> None:
    odd = odd_helps([("run", "so many nodes"), ("run --x", "what it takes along."), ("run --y", "number of nodes")])
    assert [line.partition(":")[0] for line in odd] == ["run", "run", "run --x", "run --x", "run --x"]
    assert not begins_with_an_action("nothing, if that is good enough")
    assert begins_with_an_action("use one of these")


def test_a_forbidden_word_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    module = tmp_path / "config/a.py"
    module.write_text(
        '"""It goes on."""\n\n\nclass World:\n    def not_found(self, found):\n        self.in_place = 1\n'
    )
    named = [str(use) for use in language.misnamed(tmp_path, ("config",))]
    assert [text.partition(";")[0] for text in named] == [
        "config/a.py:4: the name World",
        "config/a.py:5: the name found",
    ]
    assert [use.line for use in language.misworded(tmp_path, [module])] == [1]


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


def depth(node: ast.AST, kinds: tuple[type[ast.AST], ...]) -> int:
    """How many of some kinds of expression lie inside one another."""
    parts = [part for part in ast.iter_child_nodes(node) if not isinstance(part, (ast.stmt, ast.Lambda))]
    return max((depth(part, kinds) for part in parts), default=0) + isinstance(node, kinds)


def nested(tree: ast.AST) -> list[int]:
    """The lines of statements that a reader has to take apart."""
    lines = []
    for statement in ast.walk(tree):
        if not isinstance(statement, ast.stmt) or isinstance(statement, ast.ClassDef):
            continue
        parts = [part for part in ast.iter_child_nodes(statement) if not isinstance(part, ast.stmt)]
        comprehensions = [part for top in parts for part in ast.walk(top) if isinstance(part, COMPREHENSIONS)]
        if (
            any(depth(part, kinds) > 1 for part in parts for kinds in (CONDITIONALS, COMPREHENSIONS))
            or any(len(part.generators) > 2 for part in comprehensions)
        ):  # fmt: skip
            lines.append(statement.lineno)
    return lines


@pytest.mark.parametrize("package", PACKAGES)
def test_statements_have_one_level_of_conditionals_and_comprehensions(package: str) -> None:
    deep = [
        f"{file.relative_to(ROOT)}:{line}"
        for file in language.modules(ROOT, (package,))
        for line in nested(ast.parse(file.read_text()))
    ]
    assert deep == [], "\n".join(deep)


def test_nesting_is_measured_by_statement() -> None:
    flat = "a = [x for y in z for x in y]\nb = [1 if x else 2 for x in y]\n"
    deep = "c = 1 if b else 2 if c else 3\nd = [[x for x in y] for y in z]\n"
    assert nested(ast.parse(flat + deep)) == [3, 4]


def undescribed(package: str) -> list[str]:
    """Functions of a package that are long and say nothing of themselves."""
    return [
        f"{file.relative_to(ROOT)}:{node.lineno} {node.name}"
        for file in language.modules(ROOT, (package,))
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and (node.end_lineno or 0) - node.lineno + 1 >= LONG
        and not ast.get_docstring(node)
    ]


@pytest.mark.parametrize("package", PACKAGES)
def test_long_functions_say_what_they_do(package: str) -> None:
    assert undescribed(package) == []


def sort_keys(tree: ast.AST) -> set[str]:
    """Names that a parameter `key` of a call gets, itself or within a lambda: what they return is only compared."""
    keys = [keyword.value for keyword in ast.walk(tree) if isinstance(keyword, ast.keyword) and keyword.arg == "key"]
    return {node.id for key in keys for node in ast.walk(key) if isinstance(node, ast.Name)}


def is_positional(node: ast.AST) -> bool:
    """Whether a type is a tuple of three values or more, which have a place and no name."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Tuple):
        return False
    return ast.unparse(node.value) == "tuple" and len(node.slice.elts) > 2


def positional(source: str) -> list[str]:
    """Functions that return such tuples, or collections of them, and that are no keys to sort by."""
    tree = ast.parse(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return sorted(
        node.name
        for node in functions
        if node.returns and any(map(is_positional, types_in(node.returns, tree))) and node.name not in sort_keys(tree)
    )


def types_in(annotation: ast.AST, tree: ast.Module) -> Iterator[ast.AST]:
    """The parts of a type, of one that stands between quotation marks, and of what the module calls by a name."""
    aliases = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(annotation):
        yield node
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from types_in(ast.parse(node.value, mode="eval"), tree)
        elif isinstance(node, ast.Name) and node.id in aliases:
            yield from ast.walk(aliases[node.id])


@pytest.mark.parametrize("package", PACKAGES)
def test_values_that_functions_return_together_have_names(package: str) -> None:
    named = {file.relative_to(ROOT): positional(file.read_text()) for file in language.modules(ROOT, (package,))}
    assert {file: functions for file, functions in named.items() if functions} == {}


def test_a_positional_tuple_is_seen() -> None:
    source = """
def rank(item) -> tuple[int, str, str]: ...
def pair() -> tuple[int, str]: ...
def any_length() -> tuple[int, ...]: ...
def three() -> list[tuple[int, str, str]]: ...
Named = list[tuple[int, str, str]]
def named() -> Named: ...
def quoted() -> "list[tuple[int, str, str]]": ...
def none() -> "None": sorted([], key=lambda item: rank(item))
"""
    assert positional(source) == ["named", "quoted", "three"]


def test_names_outside_the_glossary_can_be_counted() -> None:
    counted = language.counts(ROOT)
    assert Counter(counted.keys()) == Counter(PACKAGES)
    assert all(total > outside for total, outside, _ in counted.values())
