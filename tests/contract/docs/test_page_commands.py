"""Every command of the documentation is one that the player runs, or its page says why it is not run."""

import re
import subprocess
from collections import Counter
from functools import cache

import pytest

import page_commands
from page_commands import PROGRAMS, ROOT, File, Folder, Page, PageError, page

NAMES = page_commands.names()
FENCE = re.compile(r"^( *)```([\w-]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
COMMANDS = ("", "sh", "bash", "console")
SET = re.compile(r"^(?:\w+=\S* )*")


def source(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def program(command: str) -> str:
    return SET.sub("", command).split()[0]


@cache
def parsed() -> list[Page]:
    """Every page. A mark that the parser does not know is a PageError, with page and line."""
    return [page(name, source(name)) for name in NAMES]


def test_each_command_is_run_or_marked() -> None:
    """A program that nobody knows is in neither set."""
    unknown = [
        f"{each.name}:{item.line}: {item.text}"
        for each in parsed()
        for item in each.commands
        if program(item.text) not in PROGRAMS
    ]
    assert not unknown, "\n".join(("neither a program of PROGRAMS, nor in a fence `text`:", *unknown))


def silent(text: str) -> list[str]:
    """The fences of a page that begin with a program, in a language whose commands the parser does not see."""
    others = [block for _, language, block in FENCE.findall(text) if language not in COMMANDS]
    return [block for block in others if block.split()[:1] and block.split()[0] in PROGRAMS]


def test_no_command_stands_where_the_parser_sees_none() -> None:
    assert [f"{name}: {block}" for name in NAMES for block in silent(source(name))] == []
    assert silent(fenced(language="text")) != []
    assert silent(fenced()) == []


def complaint(commands: list[str]) -> str:
    """What bash says of the syntax of commands."""
    return subprocess.run(["bash", "-n"], input="\n".join(commands), capture_output=True, text=True).stderr


def test_the_shell_takes_each_command() -> None:
    texts = {each.name: [item.text for item in each.commands] for each in parsed() if each.commands}
    assert {name: text for name, commands in texts.items() if (text := complaint(commands))} == {}
    assert "unexpected EOF" in complaint(["podwright check", "podwright 'check"])


def test_there_are_commands_of_both_sets() -> None:
    every = [item for each in parsed() for item in each.commands]
    assert len(every) > 250
    assert {item.mark for item in every} >= {"", "account", "console", "other system"}


def test_a_project_is_one_that_pages_share() -> None:
    """A name that only one page has is misspelt, or needed by nobody."""
    shared = {(item.folder.name, each.name) for each in parsed() for item in each.commands}
    counts = Counter(project for project, _ in shared)
    assert [project for project, count in counts.items() if count == 1 and project not in NAMES] == []


def fenced(*comments: str, block: str = "podwright check a\npodwright deploy a\n", language: str = "") -> str:
    notes = "".join(f"<!-- {comment} -->\n" for comment in comments)
    return f"# Page\n\n{notes}```{language}\n{block}```\n"


def test_a_mark_is_about_the_whole_fence_or_about_what_begins_with_its_text() -> None:
    assert [item.mark for item in page("a", fenced("not run: account")).commands] == ["account", "account"]
    (check, deploy) = page("a", fenced("not run: purchase: podwright deploy")).commands
    assert (check.mark, deploy.mark, deploy.line) == ("", "purchase", 6)


def test_what_stands_before_a_fence_is_said_of_its_commands() -> None:
    text = fenced(
        "run in: the project b", "run first: podwright init .", "run with: a = echo b", "run exits: 1: podwright check"
    )
    read = page("a", text)
    check, deploy = read.commands
    assert (check.status, deploy.status, check.first) == (1, 0, ("podwright init .",))
    assert check.examples == {"a": "echo b"}
    assert deploy.folder == Folder("project", "b")


def test_lines_that_go_on_comments_and_transcripts() -> None:
    block = "# a comment\ncurl -X PUT \\\n     -d x\n\npodwright check   # why\n"
    assert [item.text for item in page("a", fenced(block=block)).commands] == [
        "curl -X PUT -d x",
        "podwright check   # why",
    ]
    assert [item.text for item in page("a", fenced(block="$ podwright check\nok\n", language="console")).commands] == [
        "podwright check"
    ]
    assert page("a", fenced(block="podwright check\n", language="text")).commands == ()
    assert page("a", fenced("run writes: b.yaml", block="c: 1\n", language="yaml")).parts == (
        File("b.yaml", 5, Folder("project", "a"), "c: 1\n"),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (fenced("not run: weather"), "'weather' is not a reason"),
        (fenced("not run"), "none of"),
        (fenced("run sometimes: x"), "none of"),
        (fenced("not run: account: podwright destroy"), "about no command"),
        (fenced("not run: account", "run exits: 1: podwright check"), "two comments"),
        (fenced("run with: NODE"), "TEXT = COMMAND"),
        (fenced("run in: b"), "the project NAME"),
        (fenced("run exits: x: podwright check"), "STATUS: TEXT"),
        (fenced() + "<!-- not run: account -->\n", "no fence"),
    ],
)
def test_a_comment_that_cannot_be_meant_is_refused(text: str, message: str) -> None:
    with pytest.raises(PageError, match=message):
        page("a.md", text)
