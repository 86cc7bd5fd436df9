"""Tables of measurements say at which commit they were measured, and none is older than 200 commits of its folders."""

import subprocess
import sys
from pathlib import Path

import pytest

from needs import needs

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench"))

from measured_tables import (
    FOLDERS,
    MOST_COMMITS,
    PAGE,
    ROOT,
    Table,
    commits_since,
    has_changes,
    has_history,
    head,
    outside_tables,
    tables,
    with_table,
)

AGE = "`bin/bench --only status`, 3 runs, load 0.4 to 0.9, 2 cores, Python 3.11.7, 2026-11-27, at {}, took 24 s.\n"


def unnamed(page: str) -> list[str]:
    """Tables of a page's text that do not name their commit, or have no folders."""
    return [table.name for table in tables(page) if not table.is_empty and not (table.commit and table.name in FOLDERS)]


def outdated(page: str, root: Path, most: int = MOST_COMMITS) -> list[str]:
    """Tables of a page's text that are too old, each with what to do."""
    messages = []
    for table in tables(page):
        if not table.commit:
            continue
        folders = FOLDERS[table.name]
        behind = commits_since(table.commit, folders, root)
        if behind is None:
            messages.append(f"{table.name}: HEAD has no commit {table.commit}; measure it again at one that stays")
        elif behind > most:
            where = ", ".join(folders)
            messages.append(
                f"{table.name}: {behind} commits to {where} since {table.commit}; measure it again or delete it"
            )
    return messages


def test_every_table_names_its_commit() -> None:
    page = PAGE.read_text()
    assert unnamed(page) == []
    assert [line for line in outside_tables(page).splitlines() if line.startswith("|")] == [], "has no markers"


def test_every_table_has_a_place_and_its_folders_exist() -> None:
    assert {table.name for table in tables(PAGE.read_text())} == set(FOLDERS)
    assert [folder for folders in FOLDERS.values() for folder in folders if not (ROOT / folder).exists()] == []


@needs(has_history(), "a checkout with all its commits: git fetch --unshallow")
def test_no_table_is_old() -> None:
    assert outdated(PAGE.read_text(), ROOT) == []


def test_a_table_without_a_commit_is_named() -> None:
    page = "<!-- status -->\n| a |\n{}<!-- /status -->"
    assert unnamed(page.format(AGE.format("3f555c1a"))) == []
    assert unnamed(page.format("`bin/bench --only status`, 2026-11-27.\n")) == ["status"]
    assert unnamed(f"<!-- status -->\n{AGE.format('3f555c1a')}\n| a |\n<!-- /status -->") == ["status"], (
        "above the table"
    )
    assert unnamed("<!-- status -->\n<!-- /status -->") == []
    assert unnamed(f"<!-- other -->\n| a |\n{AGE.format('3f555c1a')}<!-- /other -->") == ["other"]


def test_a_table_is_put_between_its_markers() -> None:
    page = "a\n<!-- status -->\nold\n<!-- /status -->\nb\n<!-- site -->\n<!-- /site -->\n"
    page = with_table(page, "site", "new\n")
    assert list(tables(page)) == [Table("status", "old\n"), Table("site", "new\n")]
    with pytest.raises(ValueError, match="no markers for house"):
        with_table(page, "house", "")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with one commit to a folder that `status` measures."""
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    commit(tmp_path, "operations/live/reader.py")
    return tmp_path


def commit(root: Path, file: str) -> str:
    """Change a file and commit it."""
    (root / file).parent.mkdir(parents=True, exist_ok=True)
    with (root / file).open("a") as text:
        text.write("line\n")
    subprocess.run(["git", "add", "."], cwd=root, check=True)
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(["git", *identity, "commit", "--quiet", "-m", file], cwd=root, check=True)
    return head(root)


def test_a_table_ages_by_the_commits_of_its_folders(checkout: Path) -> None:
    page = f"<!-- status -->\n| a |\n{AGE.format(head(checkout))}<!-- /status -->"
    for file in ("operations/live/reader.py", "docs/user.md", "operations/aws/calls.py"):
        commit(checkout, file)
    assert outdated(page, checkout, most=2) == []
    (message,) = outdated(page, checkout, most=1)
    assert message.startswith("status: 2 commits to operations/live, operations/aws since ")
    (message,) = outdated(
        page.replace(head(checkout), "0" * 8).replace(page[page.index("at ") + 3 :][:8], "0" * 8), checkout
    )
    assert "HEAD has no commit 00000000" in message


def test_history_and_changes_are_seen(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    commit(checkout, "docs/user.md")
    assert has_history(checkout)
    shallow = tmp_path_factory.mktemp("shallow")
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", checkout.as_uri(), str(shallow)], check=True)
    assert not has_history(shallow)
    assert not has_history(tmp_path_factory.mktemp("unpacked archive"))
    assert not has_changes(("docs",), checkout)
    (checkout / "docs/user.md").write_text("another")
    assert has_changes(("docs",), checkout)
    assert not has_changes(("operations",), checkout)
