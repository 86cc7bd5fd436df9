"""What the next release deploys differently than the last one, environment by environment: no surprise is unwritten.

`released.json.xz` holds the templates of all environments as the last release made them. A difference that replaces,
removes, interrupts or rolls something has to be named in UPGRADING.md under "Unreleased" as `stack/LogicalId`. After a
release `bin/test tests/snapshot/test_release_differences.py --update-release` takes the present templates.
"""

import json
import lzma
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from podwright.operations.effects.changes import ResourceChange, changes, short
from podwright.operations.effects.templates import pairs
from podwright.operations.upgrade.other_version import is_noticed

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = ROOT / "tests/snapshot/templates"
RELEASED = ROOT / "tests/snapshot/released.json.xz"
NAMED = re.compile(r"`([A-Za-z0-9.-]+/[A-Z][A-Za-z0-9]+)`")
Templates = dict[str, dict[str, Any]]


def present() -> dict[str, Templates]:
    return {
        folder.name: {f"{folder.name}-{file.stem}": json.loads(file.read_text()) for file in sorted(folder.iterdir())}
        for folder in sorted(TEMPLATES.iterdir())
    }


@cache
def released() -> dict[str, Templates]:
    return json.loads(lzma.decompress(RELEASED.read_bytes()))


def unreleased() -> str:
    """What UPGRADING.md says of the next release."""
    text = (ROOT / "UPGRADING.md").read_text()
    assert text.count("\n## Unreleased\n") == 1
    return text.split("\n## Unreleased\n")[1].split("\n## ")[0]


def noticed(before: Mapping[str, Templates], after: Mapping[str, Templates]) -> Iterator[tuple[str, ResourceChange]]:
    """The changes that somebody has to know of, in environments that were there already."""
    for name in sorted(before.keys() & after.keys()):
        # Nested stacks go by their file here, so each is a stack of its own.
        for change in changes(pairs(before[name], after[name]), name):
            if is_noticed(change):
                yield name, change


def missing(text: str, actual: list[tuple[str, ResourceChange]]) -> list[str]:
    """What the text does not name."""
    named = set(NAMED.findall(text))
    return [
        f"{environment}: {name_of(environment, change)} ({change.type}, {change.effect.words})"
        for environment, change in actual
        if name_of(environment, change) not in named
    ]


def name_of(environment: str, change: ResourceChange) -> str:
    return f"{short(change.stack, environment)}/{change.logical_id}"


def test_what_upgrading_does_to_environments_is_written(pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("update_release"):
        text = json.dumps(present(), sort_keys=True, separators=(",", ":"))
        RELEASED.write_bytes(lzma.compress(text.encode(), preset=9))
        released.cache_clear()
    actual = list(noticed(released(), present()))
    assert missing(unreleased(), actual) == [], "describe these in UPGRADING.md under Unreleased, or take them back"
    stale = set(NAMED.findall(unreleased())) - {name_of(name, change) for name, change in actual}
    assert stale == set(), "UPGRADING.md names what does not change"


def edited(name: str, stack: str, edit: Any) -> dict[str, Templates]:
    after = {name: json.loads(json.dumps(released()[name]))}
    edit(after[name][f"{name}-{stack}"]["Resources"])
    return after


def of_type(resources: dict[str, Any], kind: str) -> str:
    return next(key for key, item in sorted(resources.items()) if item["Type"] == kind)


def test_a_renamed_file_system_is_noticed() -> None:
    def rename(resources: dict[str, Any]) -> None:
        resources["Renamed"] = resources.pop(of_type(resources, "AWS::FSx::FileSystem"))

    actual = list(noticed(released(), edited("prod", "storage", rename)))
    lost = [change for _, change in actual if change.type == "AWS::FSx::FileSystem"]
    assert [(change.action, change.stateful) for change in lost] == [("delete", True)]
    assert any("AWS::FSx::FileSystem" in line for line in missing("", actual))
    assert missing(f"`{name_of('prod', lost[0])}` moves", [("prod", lost[0])]) == []


def test_a_replaced_cluster_is_noticed_and_a_tag_is_not() -> None:
    def replace(resources: dict[str, Any]) -> None:
        resources[of_type(resources, "AWS::SageMaker::Cluster")]["Properties"]["ClusterName"] = "other"

    def tag(resources: dict[str, Any]) -> None:
        cluster = resources[of_type(resources, "AWS::SageMaker::Cluster")]["Properties"]
        cluster["Tags"] = [*cluster.get("Tags", []), {"Key": "new", "Value": "tag"}]

    def roll(resources: dict[str, Any]) -> None:
        cluster = resources[of_type(resources, "AWS::SageMaker::Cluster")]["Properties"]
        cluster["InstanceGroups"][0]["ImageReleaseVersion"] = "9.9.9"

    replaced = [change for _, change in noticed(released(), edited("prod", "cluster", replace))]
    assert ("AWS::SageMaker::Cluster", "replace") in [(change.type, change.action) for change in replaced]
    assert list(noticed(released(), edited("prod", "cluster", tag))) == []
    assert [change.action for _, change in noticed(released(), edited("prod", "cluster", roll))] == ["update"]
