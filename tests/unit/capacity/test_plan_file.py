import stat
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from podwright.config.loading.load import load_environment
from podwright.config.loading.source import parse_source
from podwright.operations.capacity.plan_file import NotWritten, Values, edited, lines, write_plan

ARN = "arn:aws:sagemaker:us-west-2:111122223333:training-plan/prod-h200"
START, END = datetime(2027, 1, 4, 11, 30, tzinfo=UTC), datetime(2027, 2, 1, 11, 30, tzinfo=UTC)
VALUES = {"arn": ARN, "zone": "usw2-az3", "start": START, "end": END}
WINDOWS = {
    "windows": [
        {"start": START, "end": END, "count": 8, "zone": "usw2-az2"},
        {"start": END + timedelta(days=7), "end": END + timedelta(days=14), "count": 8, "zone": "usw2-az2"},
    ]
}
READ = {"arn": ARN, "zone": "usw2-az3", "start": "2027-01-04T11:30Z", "end": "2027-02-01T11:30Z"}
FILE = """\
# Production.
account: "111122223333"     # the platform team's
region:   us-west-2
network: {zones: [ usw2-az2,usw2-az3 ]}

training_plans:
    # Asked for in November.
    h200-q1:
        zone: usw2-az2   # where the file system is
        instance_type: ml.p5en.48xlarge
        count: 16
        days: 28
        start_after: 2027-01-04 # after the holidays
        max_upfront_usd: 900000
    # The next one.
    other: {zone: usw2-az2, arn: "arn:aws:sagemaker:us-west-2:111122223333:training-plan/other"}

instance_groups:
    system:   {instance_type: ml.m5.4xlarge, count: 2}
"""
PLAN = ("training_plans", "h200-q1")


def data(text: str, plan: str = "h200-q1"):
    return parse_source(text, "file").data["training_plans"][plan]


def test_only_lines_of_the_plan_change_and_comments_stay() -> None:
    before, after = FILE.splitlines(), edited(FILE, PLAN, VALUES).splitlines()
    assert [line for line in before if line not in after] == ["        zone: usw2-az2   # where the file system is"]
    assert [line for line in after if line not in before] == [
        f"        arn: {ARN}",
        "        start: 2027-01-04T11:30Z",
        "        end: 2027-02-01T11:30Z",
        "        zone: usw2-az3   # where the file system is",
    ]
    assert data("\n".join(after)) == data(FILE) | READ


@pytest.mark.parametrize(
    "plan",
    [
        "  h200-q1: {zone: usw2-az2, count: 16, days: 28}  # small",
        "  h200-q1: {\n    zone: usw2-az2,  # here\n    count: 16, # many\n    days: 28,\n  }",
        "  h200-q1: {zone: usw2-az2}",
        "  # für 😀 – and\n  h200-q1: {zone: usw2-az2, name: 'größer 😀'} # 中",
        "  h200-q1:\n    zone:\n    count: 16",
        "  h200-q1:\n    zone: 'usw2-az2'\n    arn: ~\n    end: \"2027-01-01\" # old\n",
        '  "h200-q1":\n      count: 16\n      zone: usw2-az2\n',
        "  h200-q1: &plan\n    zone: usw2-az2",
        "  h200-q1:\n    windows:\n    - {start: a}\n    # the second\n    - {start: c}\n    # behind\n    zone: x",
        "  h200-q1:\n    windows:\n      - start: a\n        end: b # last\n\n\n    zone: x",
        "  h200-q1:\n    windows: [{start: a}, {start: b}] # two\n    zone: x",
    ],
)
@pytest.mark.parametrize("values", [VALUES, VALUES | WINDOWS, WINDOWS], ids=["values", "both", "windows"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_every_way_to_write_a_plan_takes_the_values(plan: str, values: Values, newline: str) -> None:
    text = f"# top\nregion: us-west-2\ntraining_plans:\n  first: {{zone: y}}\n{plan}\n  last: {{zone: z}} # end\n"
    text = text.replace("\n", newline)
    changed = edited(text, PLAN, values)
    once = {"start": "2027-01-04T11:30Z", "end": "2027-02-01T11:30Z", "count": "8", "zone": "usw2-az2"}
    again = once | {"start": "2027-02-08T11:30Z", "end": "2027-02-15T11:30Z"}
    expected = (READ if "arn" in values else {}) | ({"windows": [once, again]} if "windows" in values else {})
    assert data(changed) == data(text) | expected
    assert changed.count("\n") == changed.count(newline)
    assert parse_source(changed, "file").data | {"training_plans": None} == {
        "region": "us-west-2",
        "training_plans": None,
    }
    retained = [line.partition("#")[2] for line in text.splitlines() if "#" in line]
    still = [line.partition("#")[2] for line in changed.splitlines() if "#" in line]
    assert still == [comment for comment in retained if comment in still]
    inside_old_windows = {" the second"} if "windows" in values else set()
    assert set(retained) - set(still) <= inside_old_windows
    assert edited(changed, PLAN, values) == changed
    assert not [line for line in changed.splitlines() if line != line.rstrip()]


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("region: x\n", "the file has no training_plans"),
        ("training_plans:\n  other: {zone: a}\n", "the file has no training_plans.h200-q1"),
        ("training_plans:\n  h200-q1: 5\n", "is not a mapping"),
        ("training_plans:\n  a: &a {zone: x}\n  h200-q1: *a\n", "training_plans.h200-q1 is an alias"),
        ("base: &b {h200-q1: {zone: x}}\ntraining_plans: *b\n", "training_plans is an alias"),
        ("z: &z usw2-az1\ntraining_plans:\n  h200-q1:\n    zone: *z\n", "training_plans.h200-q1.zone is an alias"),
    ],
)
def test_what_cannot_be_changed_in_place_is_refused(text: str, output: str) -> None:
    with pytest.raises(NotWritten, match=output):
        edited(text, PLAN, VALUES)


def test_the_file_is_replaced_at_once_and_keeps_its_mode_its_mark_and_its_link(tmp_path: Path) -> None:
    real, link = tmp_path / "prod.yaml", tmp_path / "link.yaml"
    real.write_bytes(b"\xef\xbb\xbf" + FILE.replace("\n", "\r\n").encode())
    real.chmod(0o640)
    link.symlink_to(real)
    inode = real.stat().st_ino
    write_plan(link, "h200-q1", VALUES)
    assert link.is_symlink()
    assert real.stat().st_ino != inode
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert real.read_bytes().startswith(b"\xef\xbb\xbf# Production.\r\n")
    plan = load_environment(real).environment.training_plans["h200-q1"]
    assert (plan.arn, plan.zone, plan.start, plan.end) == (ARN, "usw2-az3", START, END)
    assert {entry.name for entry in tmp_path.iterdir()} == {"prod.yaml", "link.yaml"}


@pytest.mark.parametrize(
    ("text", "values", "output"),
    [
        (FILE.replace("h200-q1:", "h200-q1: &p"), VALUES, None),
        (FILE.replace("h200-q1:", "h200-q1: &p") + "  # x\n", VALUES, None),
        (
            FILE.replace("h200-q1:", "h200-q1: &p").replace("other: {", "other: {<<: *p, "),
            {"end": END},
            "shares its settings",
        ),
        (FILE, {"zone": "us-west-2a"}, "zone"),
        (FILE.replace("region:", "regio:"), VALUES, "regio is not"),
        (FILE + "region: us-east-1\n", VALUES, "region"),
    ],
    ids=["anchor", "comment", "merged", "invalid value", "invalid file", "key twice"],
)
def test_a_change_that_says_anything_else_is_not_written(
    tmp_path: Path, text: str, values: Values, output: str | None
) -> None:
    file = tmp_path / "prod.yaml"
    file.write_text(text)
    if output is None:
        write_plan(file, "h200-q1", values)
        return
    with pytest.raises(NotWritten, match=output):
        write_plan(file, "h200-q1", values)
    assert file.read_text() == text
    assert [entry.name for entry in tmp_path.iterdir()] == ["prod.yaml"]


def test_a_file_that_cannot_be_replaced_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "prod.yaml"
    with pytest.raises(NotWritten, match=r"prod\.yaml: No such file"):
        write_plan(file, "h200-q1", VALUES)
    file.write_text(FILE)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(NotWritten, match="No space left"):
        write_plan(file, "h200-q1", VALUES)
    assert file.read_text() == FILE
    assert [entry.name for entry in tmp_path.iterdir()] == ["prod.yaml"]


def test_lines_for_people_are_yaml_of_the_same_values() -> None:
    text = "training_plans:\n  h200-q1:\n" + lines(VALUES | WINDOWS, 4)
    assert data(text) | {"windows": None} == READ | {"windows": None}
    assert len(data(text)["windows"]) == 2


def test_times_are_written_in_utc() -> None:
    local = datetime(2027, 1, 4, 12, 30, 5, tzinfo=timezone(timedelta(hours=1)))
    assert lines({"start": local}) == "start: 2027-01-04T11:30:05Z"
    assert lines({"note": "a: b", "digits": "0123"}) == 'note: "a: b"\ndigits: "0123"'
