"""Every environment's templates, whole, as they were reviewed. They protect refactoring; intent is in tests/synth."""

import json
import re
from typing import Any

import pytest

from synthesis import NAMES, ROOT, synthesis

SNAPSHOTS = ROOT / "tests" / "snapshot" / "templates"
HASH = re.compile(r"\b[0-9a-f]{64}\b")


def masked(template: dict[str, Any]) -> str:
    """The template as text, with the hashes of assets masked: they change with every line of a handler."""
    return HASH.sub("<asset>", json.dumps(template, indent=1, sort_keys=True)) + "\n"


@pytest.mark.parametrize("name", NAMES)
def test_templates_are_as_reviewed(name: str, pytestconfig: pytest.Config) -> None:
    folder = SNAPSHOTS / name
    seen = {f"{stack}.json": masked(template) for stack, template in synthesis(name).templates.items()}
    if pytestconfig.getoption("update_snapshots"):
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        for file, text in seen.items():
            (folder / file).write_text(text)
    reviewed = {file.name: file.read_text() for file in folder.glob("*.json")}
    assert sorted(seen) == sorted(reviewed)
    for file, text in seen.items():
        assert text == reviewed[file], (
            f"{name}/{file} changed; look at the difference, then bin/test --update-snapshots"
        )


def test_no_snapshot_outlives_its_environment() -> None:
    assert {folder.name for folder in SNAPSHOTS.iterdir()} == set(NAMES)
