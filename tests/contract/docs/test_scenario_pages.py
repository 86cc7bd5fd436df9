"""The pages of scenarios: every environment of a scenario has one, and the commands that only read do what they say."""

import re
from pathlib import Path

import pytest

from podwright.operations.cli import main

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "docs/scenarios"
PAGES = sorted(file for file in FOLDER.glob("*.md") if file.stem != "index")
# These look at files and at no account.
READS = ("check", "quotas", "cost", "size", "render jobs", "drill kinds")
# The stages of a project and the sandbox belong to no scenario.
OTHERS = {"dev", "staging", "prod", "sandbox"}


def commands(page: Path) -> list[str]:
    """The commands in the page's blocks that only read."""
    blocks = re.findall(r"^```\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [line for line in lines if line.removeprefix("podwright ").startswith(READS) and "--help" not in line]


def test_commands_that_read_do(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    failed = []
    for page, line in [(each, line) for each in PAGES for line in commands(each)]:
        if code := main(line.split()[1:]):
            failed.append(f"{page.name}: {line} ended with {code}: {capsys.readouterr()}")
        capsys.readouterr()
    assert not failed, "\n".join(failed)


def test_there_is_something_to_run() -> None:
    assert sum(len(commands(page)) for page in PAGES) > 15


def test_every_scenario_has_a_page_that_the_index_leads_to() -> None:
    named = {file.stem for file in (ROOT / "environments").glob("*.yaml")} - OTHERS
    linked = {
        name
        for page in PAGES
        for name in re.findall(r"\(\.\./\.\./environments/([\w-]+)\.yaml\)", page.read_text(encoding="utf-8"))
    }
    assert named - linked == set()
    index = (FOLDER / "index.md").read_text(encoding="utf-8")
    assert {page.name for page in PAGES} == set(re.findall(r"\]\(([\w-]+\.md)\)", index))
