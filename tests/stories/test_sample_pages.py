"""Runs the commands of a sample of the documentation's pages. `bin/bench --only pages` runs those of all pages."""

from collections import Counter
from pathlib import Path

import page_commands
from page_player import play

# They calculate, read an account, search its training plans, and buy capacity for a deployment.
SAMPLE = (
    "docs/operator/capacity.md",
    "docs/operator/preflight.md",
    "docs/operator/sandbox-capacity.md",
    "docs/user/sizing.md",
)


def test_commands_do_what_their_pages_say(tmp_path: Path) -> None:
    pages = [page for page in page_commands.pages() if page.name in SAMPLE]
    outcomes = list(play(pages, tmp_path, kubernetes="store"))
    assert [str(outcome) for outcome in outcomes if not outcome.right] == []
    run = Counter(outcome.page for outcome in outcomes)
    assert run == {page.name: sum(not item.mark for item in page.commands) for page in pages}
    assert run.keys() == set(SAMPLE)


def test_a_command_that_ends_otherwise_is_told(tmp_path: Path) -> None:
    """Its cases include an HTTP error, a failing preparation, and commands that continue in the same shell."""
    text = """
<!-- run in: an empty folder -->
<!-- run first: cd absent -->
```
podwright check
```

<!-- run exits: 2: podwright check -->
<!-- run with: NAME = echo absent -->
```
podwright check NAME
mkdir a && cd a && export B=c
test "$(basename "$PWD") $B" = "a c"
curl --silent "$AWS_ENDPOINT_URL"
```
"""
    first, second, *others = play([page_commands.page("a.md", text)], tmp_path)
    assert (first.status, second.status, second.typed) == (None, 2, "podwright check absent")
    assert [outcome.right for outcome in (first, second, *others)] == [False, True, True, True, False]
    assert "No such file" in str(first)
    assert list(tmp_path.iterdir()) == []
