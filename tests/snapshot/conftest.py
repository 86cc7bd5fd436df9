"""Comparing what is made now with the files that people reviewed."""

from collections.abc import Callable
from difflib import unified_diff
from itertools import islice
from pathlib import Path

import pytest

_LINES = 80
"""Of a difference; git shows all of it after an update."""


@pytest.fixture
def reviewed(pytestconfig: pytest.Config) -> Callable[[Path, str], None]:
    """Fails where a file is not that text; with --update-snapshots, writes it."""

    def compare(file: Path, text: str) -> None:
        if pytestconfig.getoption("update_snapshots"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        lines = unified_diff(before.splitlines(), text.splitlines(), "reviewed", "now", lineterm="")
        shown = "\n".join(islice(lines, _LINES)) if before != text else ""
        where = "/".join(file.parts[-2:])
        assert before == text, f"{where} changed; look at the difference, then bin/test --update-snapshots\n{shown}"

    return compare
