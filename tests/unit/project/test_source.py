"""Reading YAML: scalars as written, a place for every value, and a finding for whatever cannot be read."""

from pathlib import Path

import pytest

from podwright.config.errors import InvalidFile
from podwright.config.findings import Finding
from podwright.config.loading.source import parse_source, read_source
from waiting import counted


def data(text: str) -> object:
    return parse_source(text, "file.yaml").data


def refused(text: str) -> Finding:
    """The one finding about a text that cannot be read."""
    with pytest.raises(InvalidFile) as caught:
        parse_source(text, "file.yaml")
    (finding,) = caught.value.findings
    return finding


@pytest.mark.parametrize(
    "scalar",
    [
        "off",
        "no",
        "yes",
        "on",
        "true",
        "False",
        "1.30",
        "1.0",
        "012345670123",
        "0o17",
        "0x1F",
        "1_000",
        "12:30:45",
        "2026-01-02",
        "2026-01-02T03:04:05Z",
        ".inf",
        ".nan",
        "1e3",
        "+5",
        "=",
        "nulls",
        "'null'",
        '"~"',
        "us-west-2",
        "10.0.0.0/16",
    ],
)
def test_scalars_stay_as_written(scalar: str) -> None:
    assert data(f"key: {scalar}") == {"key": scalar.strip("'\"")}


@pytest.mark.parametrize("scalar", ["", "~", "null", "Null", "NULL"])
def test_only_nothing_is_absent(scalar: str) -> None:
    assert data(f"key: {scalar}") == {"key": None}


@pytest.mark.parametrize("key", ["on", "1.30", "012", "true", "2026-01-02"])
def test_keys_stay_as_written(key: str) -> None:
    assert data(f"{key}: x") == {key: "x"}


def test_what_stands_around_a_file_does_not_matter() -> None:
    assert data("\ufeffkey: x\r\nother: é # comment\r\n") == {"key": "x", "other": "é"}
    assert data("%YAML 1.1\n---\nkey: off\n...\n") == {"key": "off"}
    assert data("# nothing\n") is None


def test_places_are_those_of_the_keys() -> None:
    source = parse_source("a:\n  b:\n    - x\n    - {c: 1}\n", "f.yaml")
    assert str(source.position(("a", "b"))) == "f.yaml:2"
    assert source.position(("a", "b", 1, "c")).line == 4
    assert source.position(("a", "b", 1, "c")).column == 8


def test_what_is_not_in_the_file_stands_at_what_encloses_it() -> None:
    source = parse_source("a:\n  b: 1\n", "f.yaml")
    assert source.position(("a", "absent", "deeper")).line == 1
    assert source.position(("elsewhere",)).line == 1


def test_merge_keys_give_way_to_own_keys_and_to_earlier_merges() -> None:
    text = "x: &x {a: 1, b: 1}\ny: &y {b: 2, c: 2}\nz: {<<: [*x, *y], c: 3}\n"
    assert data(text)["z"] == {"a": "1", "b": "1", "c": "3"}  # pyrefly: ignore[bad-index]


def test_a_merged_value_stands_where_it_was_written() -> None:
    source = parse_source("x: &x\n  a: 1\nz:\n  <<: *x\n", "f.yaml")
    assert source.position(("z", "a")).line == 2


def test_quoted_merge_key_is_a_key() -> None:
    assert data('"<<": x') == {"<<": "x"}


@pytest.mark.parametrize(
    ("text", "id", "line", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", "YML002", 3, "'a' is listed twice"),
        ("a: {b: 1, c: {d: 1, d: 2}}", "YML002", 1, "'d' is listed twice"),
        ("a: !Ref x", "YML003", 1, "!Ref"),
        ("a: !!python/object/apply:os.system [id]", "YML003", 1, "python/object"),
        ("a: !!binary aGk=", "YML003", 1, "binary"),
        ("a: !!set {x, y}", "YML003", 1, "set"),
        ("? [a]\n: x", "YML004", 1, "not plain text"),
        ("a: {<<: 1}", "YML005", 1, "not a mapping"),
        ("a: &a [x]\nb: {<<: *a}", "YML005", 1, "not a mapping"),
        ("a: 1\n\tb: 2", "YML001", 2, "cannot be read"),
        ("a: [1,\nb: 2", "YML001", 2, "parsing a flow sequence, which begins at line 1"),
        ("a: @b", "YML001", 1, "found character '@'"),
        ("a: *nowhere", "YML001", 1, "undefined alias"),
        ("a: &x 1\nb: &x 2\n", "YML001", 2, "anchor 'x' is given twice"),
        ("a: 1\n---\nb: 2\n", "YML001", 3, "second YAML document"),
        ("x: 1\na: \x00", "YML001", 2, "U+0000"),
        ("%YAML 1.3\n---\na: 1", "YML001", 1, "incompatible"),
        ("a: &a [*a]", "YML001", 1, "more than 40 levels"),
        ("a: &a {<<: *a}", "YML001", 1, "more than 40 levels"),
        ("\n".join(" " * depth + "a:" for depth in range(60)), "YML001", 41, "more than 40 levels"),
    ],
)
def test_what_cannot_be_read_is_a_finding(text: str, id: str, line: int, words: str) -> None:
    finding = refused(text)
    assert (finding.id, finding.level) == (id, "error")
    assert str(finding.place) == f"file.yaml:{line}"
    assert words in finding.message
    assert finding.hint


def test_all_repeated_keys_are_found_together() -> None:
    with pytest.raises(InvalidFile) as caught:
        parse_source("a: 1\na: 2\nb: !X 1\n", "f.yaml")
    assert [finding.id for finding in caught.value.findings] == ["YML002", "YML003"]


@pytest.mark.parametrize(
    "bomb",
    [
        "a: &a [x,x,x,x,x,x,x,x,x]\n"
        + "".join(
            f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n"
            for before, name in zip("abcdefg", "bcdefgh", strict=True)
        ),
        "a: &a {k: x}\n" + "".join(f"m{n}: {{l: *a, r: {{<<: *a}}}}\n" for n in range(30_000)),
        "[" * 20_000,
        "{a: " * 20_000,
    ],
    ids=["lists of lists", "merges", "open brackets", "open braces"],
)
def test_bombs_are_defused(bomb: str) -> None:
    """A reader that expands aliases makes some five million values of the first one."""
    finding, calls = counted(lambda: refused(bomb[:60_000]))
    assert finding.id == "YML001"
    assert calls < 1_000_000


def test_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="cannot be read: No such file"):
        read_source(tmp_path / "absent.yaml")


def test_folder_instead_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="cannot be read: Is a directory"):
        read_source(tmp_path)


def test_file_that_is_not_utf_8(tmp_path: Path) -> None:
    file = tmp_path / "latin.yaml"
    file.write_bytes(b"a: 1\nb: caf\xe9\n")
    with pytest.raises(InvalidFile) as caught:
        read_source(file, "environments/latin.yaml")
    assert str(caught.value.findings[0].place) == "environments/latin.yaml:2"
    assert "not UTF-8 at byte 11" in caught.value.findings[0].message


def test_file_that_is_too_large(tmp_path: Path) -> None:
    file = tmp_path / "large.yaml"
    file.write_text("a: " + "x" * 1_000_000)
    with pytest.raises(InvalidFile, match="more than 1,000,000"):
        read_source(file)
