"""Records of test files: what is written, what is over its budget, and the order in which shards take files."""

from pathlib import Path

import pytest

import records
from records import Record
from worklist import Worklist


def test_what_is_written_is_read(tmp_path: Path) -> None:
    written = {"tests/b.py": Record(12.3, 4, 1), "tests/a.py": Record(0.1, 2)}
    records.write(written, tmp_path / "durations.csv")
    assert (tmp_path / "durations.csv").read_text() == (
        "file,cpu_seconds,tests,skipped\ntests/a.py,0.1,2,0\ntests/b.py,12.3,4,1\n"
    )
    assert records.read(tmp_path / "durations.csv") == written
    assert records.read(tmp_path / "none.csv") == {}


def test_a_new_recording_changes_only_what_changed() -> None:
    recorded = {
        "near": Record(10.0, 1), "short": Record(0.2, 1), "slower": Record(10.0, 1), "other": Record(3.0, 1),
        "deleted": Record(1.0, 1),
    }  # fmt: skip
    measured = {"near": Record(12.0, 2), "short": Record(0.6, 1), "slower": Record(13.0, 1), "new": Record(4.0, 3)}
    assert records.merged(recorded, measured, ["near", "short", "slower", "other", "new"]) == {
        "near": Record(10.0, 2), "short": Record(0.2, 1), "slower": Record(13.0, 1), "other": Record(3.0, 1),
        "new": Record(4.0, 3),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("record", "seconds", "over"),
    [(20, 39, False), (20, 41, True), (1, 10, False), (1, 12, True), (6, 15, False), (6, 17, True)],
)
def test_a_file_may_take_twice_its_record_or_ten_seconds_more(record: float, seconds: float, over: bool) -> None:
    same = {f"same-{number}": Record(5, 1) for number in range(9)}
    messages = records.over_budget({**same, "file": Record(record, 1)}, {**same, "file": Record(seconds, 1)})
    assert [*messages] == ["file"] * over


def test_a_machine_that_takes_longer_for_all_files_is_allowed_for() -> None:
    recorded = {f"file-{number}": Record(20, 1) for number in range(9)}
    slow = {file: Record(36, 1) for file in recorded}
    assert records.inflation(recorded, slow) == 1.8
    assert records.over_budget(recorded, {**slow, "file-1": Record(70, 1)}) == {}
    (message,) = records.over_budget(recorded, {**slow, "file-1": Record(90, 1)}).values()
    assert message.startswith("file-1: 50.0 CPU seconds are more than 2 times its record of 20.0 (90.0 measured")
    assert message.endswith("bin/test --record file-1")


def test_a_machine_that_is_faster_lowers_no_budget() -> None:
    recorded = {f"file-{number}": Record(20, 1) for number in range(9)}
    fast = {file: Record(10, 1) for file in recorded}
    assert records.over_budget(recorded, {**fast, "file-1": Record(30, 1)}) == {}


def test_a_suite_that_takes_thrice_as_long_is_over_its_budget() -> None:
    recorded = {f"file-{number}": Record(20, 1) for number in range(3)}
    assert len(records.over_budget(recorded, {file: Record(90, 1) for file in recorded})) == 3


def test_a_record_with_skipped_tests_binds_no_run_that_skips_fewer() -> None:
    assert records.over_budget({"file": Record(1, 4, skipped=3)}, {"file": Record(60, 4)}) == {}
    assert records.over_budget({"file": Record(1, 4, skipped=3)}, {"file": Record(60, 4, skipped=3)}) != {}


def test_a_file_without_a_record_counts_as_the_median() -> None:
    recorded = {"a": Record(1, 1), "b": Record(5, 1), "c": Record(90, 1)}
    assert records.expected_seconds(recorded, "new") == 5
    assert records.over_budget(recorded, {"new": Record(500, 1)}) == {}


def taken(files: dict[str, float], *shards: int) -> list[str | None]:
    worklist = Worklist([*files], {file: Record(seconds, 1) for file, seconds in files.items()})
    return [worklist.take(shard) for shard in shards]


def test_shards_take_the_longest_file_first() -> None:
    assert taken({"a": 1, "b": 9, "c": 5}, 0, 1, 0, 1) == ["b", "c", "a", None]


def test_the_story_of_three_clusters_is_the_first_file_of_a_shard() -> None:
    files = {"tests/unit/a": 900, "tests/stories/test_shared_platform.py": 5}
    assert taken(files, 0, 1) == ["tests/stories/test_shared_platform.py", "tests/unit/a"]


def test_files_on_one_control_plane_stay_on_one_shard() -> None:
    files = {"tests/kubernetes/a": 10, "tests/kubernetes/b": 20, "tests/unit/c": 25, "tests/unit/d": 3}
    assert taken(files, 0, 1, 1, 1, 0, 0) == [
        "tests/kubernetes/b", "tests/unit/c", "tests/unit/d", None, "tests/kubernetes/a", None,
    ]  # fmt: skip


def test_a_long_rest_of_a_group_is_worth_a_second_control_plane() -> None:
    files = {f"tests/kubernetes/{name}": 40 for name in "abc"}
    assert taken(files, 0, 1, 1) == ["tests/kubernetes/c", "tests/kubernetes/b", "tests/kubernetes/a"]
