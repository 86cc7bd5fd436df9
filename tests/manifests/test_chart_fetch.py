"""`podwright chart fetch`: a repository and a chart repository on loopback, the real Helm."""

import dataclasses
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from loopback import Call, Reply, serving
from podwright.config.catalog.charts import HYPERPOD_DEPENDENCIES, Chart, chart
from podwright.config.errors import CommandError, PodwrightError
from podwright.config.loading.artifacts import ChartArchive, chart_archive, chart_findings, read_artifacts
from podwright.operations.artifacts import charts
from podwright.operations.artifacts.charts import bring, fetch
from podwright.operations.programs.helm import helm, tool

DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata: {name: %s}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec: {containers: [{name: c, image: %s}]}
"""


class Upstream:
    """What the two servers hold: the repository's files, and the subchart that its chart takes from elsewhere."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, str] = {}
        self.subchart = "example.invalid/away:1"
        self.clock = 1
        self.version = "0.1.0"

    def archive(self) -> bytes:
        """The repository as GitHub packs it: everything below one folder, with the times of that moment."""
        self.clock += 1
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as packed:
            for name, text in self.files.items():
                entry = tarfile.TarInfo(f"repository-abc/{name}")
                entry.size, entry.mtime = len(text), self.clock
                packed.addfile(entry, io.BytesIO(text.encode()))
        return buffer.getvalue()

    def package(self) -> Path:
        """The subchart as Helm packs it."""
        source = self.folder / "away"
        (source / "templates").mkdir(parents=True, exist_ok=True)
        (source / "Chart.yaml").write_text("{apiVersion: v2, name: away, version: 1.2.3}")
        (source / "templates" / "a.yaml").write_text(DEPLOYMENT % ("away", self.subchart))
        os.utime(source / "Chart.yaml", (time.time(), time.time()))
        helm("package", str(source), "--destination", str(self.folder))
        return self.folder / "away-1.2.3.tgz"

    def answer(self, call: Call) -> Reply:
        if call.path == "/repository.tar.gz":
            return Reply(body=self.archive())
        if call.path == "/charts/index.yaml":
            entry = {"name": "away", "version": "1.2.3", "apiVersion": "v2", "urls": ["away-1.2.3.tgz"]}
            return Reply(body=json.dumps({"apiVersion": "v1", "entries": {"away": [entry]}}).encode())
        if call.path == "/charts/away-1.2.3.tgz":
            return Reply(body=self.package().read_bytes())
        return Reply(404)


@pytest.fixture
def upstream(tmp_path: Path) -> Iterator[tuple[Upstream, Chart]]:
    made = Upstream(tmp_path / "upstream")
    made.folder.mkdir()
    with serving(made.answer) as server:
        dependencies = [
            {"name": "away", "version": "1.2.3", "repository": f"{server.url}/charts"},
            {"name": "near", "version": "0.1.0", "repository": "file://charts/near"},
        ]
        top = {"apiVersion": "v2", "name": "top", "version": made.version, "dependencies": dependencies}
        made.files = {
            "README.md": "not part of the chart",
            "charts-of-others/x/Chart.yaml": "name: not-this",
            "charts/top/Chart.yaml": json.dumps(top),
            "charts/top/templates/a.yaml": DEPLOYMENT % ("top", "example.invalid/top:1"),
            "charts/top/charts/near/Chart.yaml": "{apiVersion: v2, name: near, version: 0.1.0}",
            "charts/top/charts/near/templates/a.yaml": DEPLOYMENT % ("near", "example.invalid/near:1"),
            "charts/top/charts/near-0.1.0.tgz": "an old package beside the folder",
            "charts/top/charts/away-1.0.0.tgz": "an old package of the other one",
        }
        expected = dataclasses.replace(
            chart(HYPERPOD_DEPENDENCIES), archive=f"{server.url}/repository.tar.gz", folder="charts/top", nested=()
        )
        yield made, expected


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    made.mkdir()
    return made


def test_a_chart_is_fetched_with_its_subcharts(upstream: tuple[Upstream, Chart], project: Path) -> None:
    _, expected = upstream
    archive = fetch(project, expected)
    with zipfile.ZipFile(archive.path) as packed:
        names = packed.namelist()
    assert names == [
        "Chart.yaml",
        "charts/away/Chart.yaml",
        "charts/away/templates/a.yaml",
        "charts/near/Chart.yaml",
        "charts/near/templates/a.yaml",
        "templates/a.yaml",
    ]
    locked = read_artifacts(project).charts[expected.name]
    assert locked.sha256 == hashlib.sha256(archive.path.read_bytes()).hexdigest() == archive.digest
    assert locked.images == ("example.invalid/away:1", "example.invalid/near:1", "example.invalid/top:1")
    assert (locked.revision, locked.repository) == (expected.revision, expected.repository)
    assert chart_archive(project, expected) == archive


def test_the_digest_is_the_same_on_every_machine(
    upstream: tuple[Upstream, Chart], project: Path, tmp_path: Path
) -> None:
    """Although every download has other times in it."""
    _, expected = upstream
    first = fetch(project, expected).digest
    other = tmp_path / "other"
    other.mkdir()
    assert fetch(other, expected).digest == first


def test_a_lost_archive_comes_back_as_it_was(upstream: tuple[Upstream, Chart], project: Path) -> None:
    _, expected = upstream
    archive = fetch(project, expected)
    before = (project / "artifacts.lock").read_bytes()
    archive.path.unlink()
    assert [finding.id for finding in chart_findings(project, expected)] == ["CHT003"]
    assert fetch(project, expected) == archive
    assert chart_findings(project, expected) == []
    assert (project / "artifacts.lock").read_bytes() == before


def test_an_archive_that_is_there_is_not_fetched_again(upstream: tuple[Upstream, Chart], project: Path) -> None:
    made, expected = upstream
    archive = fetch(project, expected)
    made.files = {}
    assert fetch(project, expected) == archive


def test_a_source_that_changed_under_its_commit_is_refused(upstream: tuple[Upstream, Chart], project: Path) -> None:
    made, expected = upstream
    archive = fetch(project, expected)
    archive.path.unlink()
    made.subchart = "example.invalid/away:2"
    with pytest.raises(CommandError, match="for the same commit"):
        fetch(project, expected)
    assert not archive.path.exists()
    assert fetch(project, expected, update=True).digest != archive.digest
    assert "example.invalid/away:2" in read_artifacts(project).charts[expected.name].images


def test_another_commit_needs_a_word(upstream: tuple[Upstream, Chart], project: Path) -> None:
    _, expected = upstream
    fetch(project, expected)
    newer = dataclasses.replace(expected, revision="f" * 40)
    with pytest.raises(CommandError, match=r"this podwright pins 0\.1\.0 at ffffffffffff"):
        fetch(project, newer)
    fetch(project, newer, update=True)
    assert read_artifacts(project).charts[expected.name].revision == "f" * 40


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"archive": "http://127.0.0.1:9/none.tar.gz"}, "cannot be downloaded"),
        ({"folder": "charts/none"}, "holds no chart at charts/none"),
        ({"version": "9.9.9"}, "has version 0.1.0, expected 9.9.9"),
    ],
    ids=["unreachable", "no chart", "version"],
)
def test_a_download_that_is_not_what_was_asked_for(
    upstream: tuple[Upstream, Chart], project: Path, change: dict[str, str], message: str
) -> None:
    _, expected = upstream
    with pytest.raises(CommandError, match=message):
        fetch(project, dataclasses.replace(expected, **change))
    assert not (project / "artifacts.lock").exists()


def test_a_path_that_leads_out_of_the_folder_is_left_out(
    upstream: tuple[Upstream, Chart], project: Path, tmp_path: Path
) -> None:
    made, expected = upstream
    made.files["charts/top/../../../escaped"] = "x"
    archive = fetch(project, expected)
    with zipfile.ZipFile(archive.path) as packed:
        assert [name for name in packed.namelist() if "escaped" in name] == []
    assert not list(tmp_path.rglob("escaped"))


def test_the_subcharts_of_a_subchart_are_fetched_where_that_is_wanted(
    upstream: tuple[Upstream, Chart], project: Path
) -> None:
    made, expected = upstream
    (away,) = [
        item for item in json.loads(made.files["charts/top/Chart.yaml"])["dependencies"] if item["name"] == "away"
    ]
    near = {"apiVersion": "v2", "name": "near", "version": "0.1.0", "dependencies": [away]}
    made.files["charts/top/charts/near/Chart.yaml"] = json.dumps(near)
    archive = fetch(project, dataclasses.replace(expected, nested=("near",)))
    with zipfile.ZipFile(archive.path) as packed:
        assert "charts/near/charts/away/Chart.yaml" in packed.namelist()


def test_a_release_is_taken_as_it_is_packed(upstream: tuple[Upstream, Chart], project: Path) -> None:
    made, expected = upstream
    address = expected.archive.replace("repository.tar.gz", "charts/away-1.2.3.tgz")
    released = dataclasses.replace(expected, name="away", archive=address, folder="", version="1.2.3", revision="1.2.3")
    archive = fetch(project, released)
    with zipfile.ZipFile(archive.path) as packed:
        assert packed.namelist() == ["Chart.yaml", "templates/a.yaml"]
    locked = read_artifacts(project).charts["away"]
    assert (locked.version, locked.revision, locked.images) == ("1.2.3", "1.2.3", ("example.invalid/away:1",))
    archive.path.unlink()
    made.subchart = "example.invalid/away:2"
    with pytest.raises(CommandError, match="for the same release"):
        fetch(project, released)


def test_charts_of_all_environments_are_fetched_beside_each_other(
    upstream: tuple[Upstream, Chart], project: Path
) -> None:
    _, expected = upstream
    address = expected.archive.replace("repository.tar.gz", "charts/away-1.2.3.tgz")
    released = dataclasses.replace(expected, name="away", archive=address, folder="", version="1.2.3", revision="1.2.3")
    fetch(project, expected)
    fetch(project, released)
    assert set(read_artifacts(project).charts) == {"hyperpod-dependencies", "away"}
    assert chart_findings(project, expected) == chart_findings(project, released) == []


def test_a_release_in_a_registry_is_pulled_by_helm(
    upstream: tuple[Upstream, Chart], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, expected = upstream
    asked: list[tuple[str, ...]] = []

    def pull(*arguments: str) -> str:
        asked.append(arguments[:4])
        shutil.copy(made.package(), arguments[-1])
        return ""

    monkeypatch.setattr("podwright.operations.artifacts.charts.helm", pull)
    released = dataclasses.replace(
        expected, name="away", archive="oci://r.example/charts/away", folder="", version="1.2.3", revision="1.2.3"
    )
    archive = fetch(project, released)
    assert asked == [("pull", "oci://r.example/charts/away", "--version", "1.2.3")]
    with zipfile.ZipFile(archive.path) as packed:
        assert packed.namelist() == ["Chart.yaml", "templates/a.yaml"]


def test_the_command_fetches_what_the_environments_of_the_project_install(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[tuple[str, bool]] = []

    def note(root: Path, expected: Chart, *, update: bool) -> ChartArchive:
        asked.append((expected.name, update))
        return ChartArchive(expected.name, root / f"{expected.name}.zip", "0" * 64)

    monkeypatch.setattr(charts, "fetch", note)
    (project / "environments").mkdir()
    text = """account: "111122223333"
region: us-west-2
network: {zones: [usw2-az1, usw2-az2]}
instance_groups: {system: {instance_type: ml.m5.4xlarge, count: 2}}
"""
    (project / "environments" / "a.yaml").write_text(text)
    (project / "environments" / "b.yaml").write_text(text + "platform: {kuberay: {}}\n")
    arguments: Any = SimpleNamespace(project=project, action="fetch", source=None, update=True)
    assert charts.run(arguments) == 0
    assert asked == [("hyperpod-dependencies", True), ("kuberay-operator", True)]
    assert "kuberay-operator.zip" in capsys.readouterr().out
    slurm = "controller: {instance_type: ml.m5.4xlarge, count: 1}"
    for name in ("a", "b"):
        changed = (
            text.replace("system: {instance_type: ml.m5.4xlarge, count: 2}", slurm) + "cluster: {orchestrator: slurm}"
        )
        (project / "environments" / f"{name}.yaml").write_text(changed)
    with pytest.raises(CommandError, match="no environment of this project installs a chart"):
        charts.run(arguments)


def test_a_closed_network_takes_what_another_machine_fetched(
    upstream: tuple[Upstream, Chart], project: Path, tmp_path: Path
) -> None:
    made, expected = upstream
    fetched = fetch(project, expected)
    made.files = {}
    closed, source = tmp_path / "closed", fetched.path.parent
    closed.mkdir()
    with pytest.raises(CommandError, match="has no digest"):
        bring(closed, expected, source)
    shutil.copy(project / "artifacts.lock", closed)
    with pytest.raises(CommandError, match="is not there"):
        bring(closed, expected, tmp_path)
    archive = bring(closed, expected, source)
    assert archive.digest == fetched.digest
    assert chart_archive(closed, expected) == archive
    fetched.path.write_bytes(b"cut short")
    with pytest.raises(PodwrightError) as caught:
        bring(closed, expected, source)
    assert "its digest differs" in str(caught.value), "found before anything is copied"
    assert chart_archive(closed, expected) == archive


@pytest.mark.parametrize("name", ["helm", "kubectl"])
def test_a_machine_that_no_program_comes_for_is_told_where_it_is(name: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    version = subprocess.run(
        [tool(name), "version", *(["--client"] if name == "kubectl" else [])],
        capture_output=True,
        text=True,
        check=True,
    )
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(CommandError) as caught:
        tool(name)
    words = re.findall(r"v\d+\.\d+\.\d+|darwin.arm64", caught.value.hint)
    assert words[1:] in (["darwin-arm64"], ["darwin/arm64"])
    assert words[0] in version.stdout
