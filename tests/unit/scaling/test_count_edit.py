"""The number of nodes as a change of the environment's own file: what changes, what stays, and what it refuses."""

from pathlib import Path

import pytest

from podwright.config.errors import CommandError
from podwright.config.loading.project import Project
from podwright.operations.scaling.count_edit import count_edit

HEAD = """\
# yaml-language-server: $schema=../docs/environment.schema.json
account: "123456789012"   # ours
region: us-west-2
network: {zones: [usw2-az1, usw2-az2]}
"""
SYSTEM = "  system: {instance_type: ml.m5.4xlarge, count: 2}\n"
G5 = """\
  # A10G
  g5:
    instance_type: ml.g5.12xlarge
    count: 4   # as of today
    zone: usw2-az2
"""
SHARED = f"instance_groups:\n{SYSTEM}{G5}"


def edited(folder: Path, text: str, *, shared: str = "", count: int = 8) -> tuple[str, int]:
    """The file after the change, and the count that it then means; the shared file has to stay as it is."""
    (folder / "environments/shared").mkdir(parents=True)
    (folder / "environments/shared/groups.yaml").write_text(shared)
    file = folder / "environments/dev.yaml"
    file.write_text(text)
    edit = count_edit(file, Project.at(folder).load("dev"), "g5", count)
    assert file.read_text() == text, "nothing is written yet"
    edit.write()
    assert (folder / "environments/shared/groups.yaml").read_text() == shared
    means = Project.at(folder).load("dev").environment.groups["g5"].count
    assert means == edit.loaded.environment.groups["g5"].count
    return file.read_text(), means


def test_only_the_number_changes(tmp_path: Path) -> None:
    text, count = edited(tmp_path, HEAD + SHARED)
    assert count == 8
    assert text == (HEAD + SHARED).replace("count: 4   # as", "count: 8   # as")


def test_a_group_of_one_line(tmp_path: Path) -> None:
    line = "  g5: {instance_type: ml.g5.12xlarge, zone: usw2-az2, count: 4}  # A10G\n"
    text, _ = edited(tmp_path, f"{HEAD}instance_groups:\n{SYSTEM}{line}")
    assert line.replace("count: 4", "count: 8") in text


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ("", "instance_groups:\n  g5: {count: 8}\n"),
        (f"instance_groups:\n{SYSTEM}", f"instance_groups:\n  g5: {{count: 8}}\n{SYSTEM}"),
        ("instance_groups:\n  g5:\n    threads_per_core: 1\n", "  g5:\n    count: 8\n    threads_per_core: 1\n"),
        ("instance_groups:\n  g5: {count: 5}\n", "instance_groups:\n  g5: {count: 8}\n"),
    ],
    ids=["no groups of its own", "other groups of its own", "the group in part", "a count of its own"],
)
def test_a_group_of_a_shared_file_gets_a_count_of_its_own(tmp_path: Path, own: str, expected: str) -> None:
    text, count = edited(tmp_path, f"extends: shared/groups.yaml\n{HEAD}{own}", shared=SHARED)
    assert count == 8
    assert expected in text
    # What is added stands before what is there, and every line that was there still is.
    assert set(f"{HEAD}{own}".splitlines()) - set(text.splitlines()) <= {"  g5: {count: 5}"}


@pytest.mark.parametrize(
    "groups",
    [
        f"instance_groups:\n{SYSTEM}  g5: &g5 {{instance_type: ml.g5.12xlarge, count: 4, zone: usw2-az2}}\n  g6: *g5\n",
        f"instance_groups:\n{SYSTEM}  g4: &g4 {{instance_type: ml.g5.12xlarge, count: 4, zone: usw2-az2}}\n  g5: *g4\n",
        "instance_groups:\n"
        "  system: {instance_type: ml.m5.4xlarge, count: &many 4}\n"
        "  g5: {instance_type: ml.g5.12xlarge, count: *many, zone: usw2-az2}\n",
    ],
    ids=["an anchor", "an alias", "an alias as count"],
)
def test_what_is_shared_in_the_file_is_changed_by_hand(tmp_path: Path, groups: str) -> None:
    with pytest.raises(CommandError) as refused:
        edited(tmp_path, HEAD + groups)
    assert str(refused.value).startswith("environments/dev.yaml:")
    assert "g5: {count: 8}" in str(refused.value.hint)


def test_a_file_that_somebody_changes_meanwhile_stays_as_they_left_it(tmp_path: Path) -> None:
    (tmp_path / "environments").mkdir()
    file = tmp_path / "environments/dev.yaml"
    file.write_text(HEAD + SHARED)
    edit = count_edit(file, Project.at(tmp_path).load("dev"), "g5", 8)
    file.write_text(HEAD + SHARED + "# mine\n")
    with pytest.raises(Exception, match="has changed since it was read"):
        edit.write()
    assert file.read_text().endswith("# mine\n")
