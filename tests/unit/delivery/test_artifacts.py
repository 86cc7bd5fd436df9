"""artifacts.lock, and which archives pass."""

import hashlib
import os
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

from podwright.config.catalog.charts import HYPERPOD_DEPENDENCIES, chart
from podwright.config.errors import InvalidFile
from podwright.config.loading.artifacts import (
    Artifacts,
    LockedChart,
    archive_file,
    chart_archive,
    chart_findings,
    newer_writer,
    pack,
    read_artifacts,
    stand_in_archive,
    write_artifacts,
)

CHART = chart(HYPERPOD_DEPENDENCIES)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "chart"
    (made / "templates").mkdir(parents=True)
    (made / "Chart.yaml").write_text("name: mine\n")
    (made / "templates" / "a.yaml").write_text("kind: A\n")
    return made


def locked(root: Path, content: bytes, **changed: str) -> Artifacts:
    digest = hashlib.sha256(content).hexdigest()
    entry = {"version": CHART.version, "repository": CHART.repository, "revision": CHART.revision, "sha256": digest}
    artifacts = Artifacts(charts={CHART.name: LockedChart.model_validate(entry | changed)})
    write_artifacts(root, artifacts)
    return artifacts


def kept(root: Path, content: bytes) -> Path:
    file = archive_file(root, CHART, hashlib.sha256(content).hexdigest())
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    return file


def ids(root: Path) -> list[str]:
    return [finding.id for finding in chart_findings(root, CHART)]


def test_a_pack_depends_on_names_and_contents_alone(folder: Path, tmp_path: Path) -> None:
    first = pack(folder)
    again = tmp_path / "elsewhere"
    (again / "templates").mkdir(parents=True)
    (again / "templates" / "a.yaml").write_text("kind: A\n")
    (again / "Chart.yaml").write_text("name: mine\n")
    (again / "Chart.yaml").chmod(0o600)
    os.utime(again / "Chart.yaml", (1, 1))
    assert pack(again) == first
    (again / "Chart.yaml").write_text("name: other\n")
    assert pack(again) != first


def test_a_pack_has_the_chart_at_its_top(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(pack(folder))
    with zipfile.ZipFile(tmp_path / "a.zip") as packed:
        assert packed.namelist() == ["Chart.yaml", "templates/a.yaml"]


def test_a_lock_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert read_artifacts(tmp_path) == Artifacts()
    artifacts = locked(tmp_path, b"zip").model_copy(
        update={"mirrors": {"r.example": {"nvcr.io/a/b:1": "sha256:" + "0" * 64}}}
    )
    write_artifacts(tmp_path, artifacts)
    assert read_artifacts(tmp_path) == artifacts.model_copy(update={"podwright": version("podwright")})
    before = (tmp_path / "artifacts.lock").read_bytes()
    write_artifacts(tmp_path, read_artifacts(tmp_path))
    assert (tmp_path / "artifacts.lock").read_bytes() == before


def test_a_lock_of_a_newer_podwright_is_noticed(tmp_path: Path) -> None:
    locked(tmp_path, b"zip")
    assert newer_writer(tmp_path) is None
    file = tmp_path / "artifacts.lock"
    later = file.read_text().replace(f'"podwright": "{version("podwright")}"', '"podwright": "99.10.0"')
    file.write_text(later)
    assert newer_writer(tmp_path) == ("99.10.0", version("podwright"))
    file.write_text(later.replace('"charts"', '"pots": {}, "charts"'))
    with pytest.raises(InvalidFile) as raised:
        read_artifacts(tmp_path)
    assert raised.value.findings[0].hint.startswith("podwright 99.10.0 wrote it")


def test_a_chart_that_is_locked_and_there_passes(tmp_path: Path) -> None:
    locked(tmp_path, b"zip")
    file = kept(tmp_path, b"zip")
    assert ids(tmp_path) == []
    archive = chart_archive(tmp_path, CHART)
    assert (archive.path, archive.stand_in) == (file, False)
    assert archive.digest == hashlib.sha256(b"zip").hexdigest()


def test_what_is_missing_or_different_is_found(tmp_path: Path) -> None:
    assert ids(tmp_path) == ["CHT001"]
    locked(tmp_path, b"zip", revision="0" * 40)
    assert ids(tmp_path) == ["CHT002"]
    locked(tmp_path, b"zip", version="9.9.9")
    assert ids(tmp_path) == ["CHT002"]
    locked(tmp_path, b"zip")
    assert ids(tmp_path) == ["CHT003"]
    file = kept(tmp_path, b"zip")
    file.write_bytes(b"tampered")
    assert ids(tmp_path) == ["CHT004"]
    with pytest.raises(InvalidFile, match="has the digest"):
        chart_archive(tmp_path, CHART)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{\n"charts": {\n"hyperpod-dependencies": {\n"sha256": "abc"}}}', 4),
        ('{\n"chart": {}}', 2),
        ('{\n"mirrors": {\n"r": {\n"image": "latest"}}}', 4),
    ],
    ids=["digest", "key", "mirror"],
)
def test_a_damaged_lock_is_a_finding_at_its_line(tmp_path: Path, text: str, line: int) -> None:
    (tmp_path / "artifacts.lock").write_text(text)
    with pytest.raises(InvalidFile) as caught:
        read_artifacts(tmp_path)
    assert {finding.id for finding in caught.value.findings} == {"CHT005"}
    assert line in [finding.place.line for finding in caught.value.findings if finding.place]


def test_a_stand_in_says_that_it_is_one(folder: Path) -> None:
    archive = stand_in_archive(CHART.name, folder)
    assert archive.stand_in
    assert archive.digest == hashlib.sha256(pack(folder)).hexdigest()


def test_we_ship_no_digest() -> None:
    """Versions and addresses are ours; what they hold is for the user's own download to say."""
    data = (Path(__file__).parents[3] / "config/catalog/data/charts.json").read_text()
    assert "sha256" not in data
    assert CHART.revision in CHART.archive
