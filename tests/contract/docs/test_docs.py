"""What the documentation says exists: pages, anchors, commands and options, findings, files, settings, and Python."""

import itertools
import re
import shlex
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from podwright.config.errors import InvalidFile
from podwright.config.findings import errors
from podwright.config.loading.load import environment_from
from podwright.config.loading.source import parse_source
from podwright.operations.artifacts.stand_ins import stand_in
from podwright.operations.cli import COMMANDS, main, parser_of
from podwright.planning.rules import findings
from podwright.planning.rules.pages import titles
from rule_pages import base

ROOT = Path(__file__).resolve().parents[3]
PAGES = [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]
FOLDERS = {entry.name for entry in ROOT.iterdir() if entry.is_dir() and not entry.name.startswith(".")}

FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`]+)`")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.+)$", re.MULTILINE)
PROGRAM = re.compile(r"^(?:\.venv/bin/|bin/)?(podwright|deploy)(?= |$)")
SHELL = re.compile(r"&&|#.*|> .*")  # what a shell takes away, or takes for two commands
FINDING = re.compile(r"\b[A-Z]{3}[0-9]{3}\b")


def shown(page: Path) -> str:
    return str(page.relative_to(ROOT))


def assert_none(items: Iterable[tuple[Path, str]]) -> None:
    """Fail with each finding as `page: text`."""
    lines = [f"{shown(page)}: {text}" for page, text in items]
    assert not lines, "\n".join(lines)


@cache
def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@cache
def prose(page: Path) -> str:
    """The page without its code blocks, and without line breaks inside paragraphs."""
    return re.sub(r"(?<!\n)\n(?! *[\n|#-])", " ", FENCE.sub("", text_of(page)))


def blocks(page: Path, language: str) -> list[str]:
    """The code blocks of a language, without their indentation."""
    actual = FENCE.findall(text_of(page))
    return [re.sub(rf"^{indent}", "", text, flags=re.MULTILINE) for indent, kind, text in actual if kind == language]


@cache
def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    slugs = [
        re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()).strip().replace(" ", "-")
        for heading in HEADING.findall(FENCE.sub("", text_of(page)))
    ]
    observed: Counter[str] = Counter()
    actual = set()
    for slug in slugs:
        actual.add(f"{slug}-{observed[slug]}" if observed[slug] else slug)
        observed[slug] += 1
    return actual


def commands(page: Path) -> Iterator[list[str]]:
    """Arguments of `podwright` wherever the page shows it: lines of blocks, and code in the text."""
    lines = [line for text in blocks(page, "") for line in text.splitlines()] + INLINE.findall(prose(page))
    for line in itertools.chain.from_iterable(SHELL.split(line) for line in lines):
        if match := PROGRAM.match(line.strip()):
            words = shlex.split(line.strip()[match.end() :])
            yield (["deploy", *words] if match[1] == "deploy" else words)


def paths(page: Path) -> Iterator[str]:
    """Files and folders of the repository that the page names in code, such as `config/settings/defaults.py`."""
    for text in INLINE.findall(prose(page)):
        if re.fullmatch(r"[a-z0-9_.]+(/[\w.-]+)+/?", text) and text.partition("/")[0] in FOLDERS:
            yield text


def dead_links(page: Path, text: str) -> list[str]:
    """Links of a page to files and anchors that do not exist."""
    dead = []
    for target in LINK.findall(FENCE.sub("", text)):
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        if not target.startswith(("https://", "http://")) and (
            not file.exists() or (anchor and anchor not in anchors(file))
        ):
            dead.append(target)
    return dead


def test_links_lead_somewhere() -> None:
    assert_none((page, target) for page in PAGES for target in dead_links(page, text_of(page)))
    odd = "[a](user.md) [b](none.md) [c](user.md#none) [d](#none) [e](https://example.com/)"
    assert dead_links(ROOT / "docs/cli.md", odd) == ["none.md", "user.md#none", "#none"]


def is_accepted(words: list[str]) -> bool:
    """Whether the real parser takes a command. `[…]` is left out, `a|b` is a, and a lone name needs to be a command."""
    provided = [word.partition("|")[0] for word in words if not word.startswith("[")]
    if provided[:1] in ([], ["COMMAND"]) or (len(provided) == 1 and provided[0] in {item.name for item in COMMANDS}):
        return True
    try:
        main(provided)
    except SystemExit as stop:
        return not stop.code
    return True


def test_commands_and_options_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podwright.operations.cli._run", lambda parsed: 0)
    # Parsers keep nothing of what they parse, and pages have hundreds of commands.
    monkeypatch.setattr("podwright.operations.cli.parser_of", cache(parser_of))
    pages_of: dict[tuple[str, ...], list[str]] = {}
    for page in PAGES:
        for words in commands(page):
            pages_of.setdefault(tuple(words), []).append(shown(page))
    refused = [f"{pages}: {shlex.join(words)}" for words, pages in pages_of.items() if not is_accepted([*words])]
    assert not refused, "\n".join(refused)
    assert is_accepted(["check", "dev", "--json"])
    assert not is_accepted(["check", "dev", "--jsn"])
    assert not is_accepted(["chek"])


def test_every_command_is_documented() -> None:
    described = HEADING.findall(text_of(ROOT / "docs/cli.md"))
    assert [item.name for item in COMMANDS if not any(f"`podwright {item.name}" in line for line in described)] == []


def test_findings_exist() -> None:
    named = ((page, id) for page in PAGES for id in FINDING.findall(text_of(page)))
    assert_none(item for item in named if item[1] not in titles())


def test_files_exist() -> None:
    made = re.compile(r"/(NAME|ID|NNNN|ENV|prod)|^environments/(sandbox|environment)|^tests/snapshot/templates/")
    named = ((page, path) for page in PAGES for path in paths(page) if not made.search(path))
    assert_none(item for item in named if not (ROOT / item[1]).exists())


def test_pieces_of_environment_files_pass_their_checks() -> None:
    """Each piece takes the place of the same sections of the environment that the pages of rules start from."""
    wrong = []
    for page, text in [(each, text) for each in PAGES for text in blocks(each, "yaml")]:
        source, piece = base(), parse_source(text, "piece").data or {}
        try:
            loaded = environment_from(replace(source, data=source.data | piece), "example")
            refused = errors(findings(loaded.environment, loaded.source))
        except InvalidFile as error:
            refused = list(error.findings)
        wrong += [(page, f"{item.id} {item.message} in\n{text}") for item in refused]
    assert_none(wrong)


@pytest.mark.parametrize("number", range(len(blocks(ROOT / "docs/user.md", "python"))))
def test_python_of_the_user_guide_runs(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podwright.planning.helm.wanted_charts.chart_archive", lambda root, chart: stand_in(chart))
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {}
    exec(compile(blocks(ROOT / "docs/user.md", "python")[number], f"docs/user.md, Python {number + 1}", "exec"), names)
    assert (Path(names["app"].outdir) / "manifest.json").is_file()
    shutil.rmtree(names["app"].outdir)


def test_decisions_have_one_form_and_no_gap() -> None:
    files = sorted((ROOT / "docs/decisions").glob("*.md"))
    assert [file.name[:4] for file in files] == [f"{number:04}" for number in range(1, len(files) + 1)]
    for number, file in enumerate(files, start=1):
        text = file.read_text(encoding="utf-8")
        assert text.startswith(f"# {number}. "), file.name
        parts = re.findall(r"^\*\*(\w+)\.\*\*", text, re.MULTILINE)
        assert parts == ["Decision", "Why", "Consequences"], file.name


def test_nothing_of_a_machine_is_in_the_pages() -> None:
    folders = {ROOT, Path.home(), Path(tempfile.gettempdir())} - {Path("/")}
    paths = "|".join(re.escape(f"{folder}/") for folder in folders)
    private = re.compile(paths + r"|\b(?!(?:111122223333|123456789012|012345678901|012345670123)\b)\d{12}\b")
    # What containers write below their own /tmp is no folder of ours.
    pages = [page for page in PAGES if page.name != "job-objects.md"]
    actual = {shown(page): private.findall(text_of(page)) for page in pages}
    assert {page: texts for page, texts in actual.items() if texts} == {}


def paragraphs(page: Path, words: str) -> list[str]:
    """The paragraphs of a page that say a text."""
    return [text for text in prose(page).splitlines() if re.search(words, text)]


def test_no_page_offers_an_ultraserver_that_hyperpod_does_not_take() -> None:
    """SageMaker's API has no instance type trn2u.48xlarge (config/catalog/data/ultraservers.csv says so)."""
    named = [(page, text) for page in PAGES for text in paragraphs(page, "(Trn2|Trainium2) UltraServer")]
    refused = re.compile(r"HyperPod does not take|HyperPod takes no|not\*?\*? taken by HyperPod")
    assert named
    assert_none(item for item in named if not refused.search(item[1]))


def test_a_training_job_comes_into_a_queue_by_batch() -> None:
    """SageMaker's CreateTrainingJob takes no queue: it is the payload of Batch's SubmitServiceJob."""
    words = "CreateTrainingJob.*queue|queue.*CreateTrainingJob"
    named = [(page, text) for page in PAGES for text in paragraphs(page, words)]
    assert named
    assert_none(item for item in named if "SubmitServiceJob" not in item[1])


def test_examples_destroy_their_process_group() -> None:
    """Otherwise a rank may abort when it ends, and its job starts again."""
    files = [*ROOT.glob("environments/**/*.yaml"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("docs/**/*.py")]
    created = {file: text for file in files if "init_process_group(" in (text := file.read_text(encoding="utf-8"))}
    assert len(created) >= 3
    assert [file for file, text in created.items() if "destroy_process_group(" not in text] == []
