"""Instance types that the health agent of a fetched chart lacks, on a synthetic chart."""

import hashlib
from pathlib import Path

import pytest

from podwright.config.catalog.charts import HYPERPOD_DEPENDENCIES, chart
from podwright.config.loading.artifacts import Artifacts, LockedChart, archive_file, pack, write_artifacts
from podwright.config.loading.load import environment_from
from podwright.config.loading.source import parse_source
from podwright.planning.helm.chart_types import chart_type_findings

CHART = chart(HYPERPOD_DEPENDENCIES)
FILE = """
name: test
account: "111122223333"
region: us-west-2
network: {zones: [usw2-az2, usw2-az3]}
instance_groups:
  system: {instance_type: ml.m5.4xlarge, count: 2}
  b300: {instance_type: ml.p6-b300.48xlarge, count: 2, zone: usw2-az2}
  h200: {instance_type: ml.p5en.48xlarge, count: 2, zone: usw2-az2}
"""


def fetched(root: Path, types: str) -> None:
    """A chart that was fetched into the project, whose agent runs on `types`."""
    folder = root / "chart"
    agent = folder / "charts" / "health-monitoring-agent" / "templates"
    agent.mkdir(parents=True)
    (folder / "Chart.yaml").write_text("name: synthetic\n")
    (agent / "daemonset.yaml").write_text(f"kind: DaemonSet\nspec: {{values: [{types}]}}\n")
    # Another part's list is not the agent's.
    (folder / "values.yaml").write_text("nvidia-device-plugin: {types: [ml.p6-b300.48xlarge]}\n")
    content = pack(folder)
    digest = hashlib.sha256(content).hexdigest()
    entry = {"version": CHART.version, "repository": CHART.repository, "revision": CHART.revision, "sha256": digest}
    write_artifacts(root, Artifacts(charts={CHART.name: LockedChart.model_validate(entry)}))
    file = archive_file(root, CHART, digest)
    file.parent.mkdir(parents=True)
    file.write_bytes(content)


def findings(root: Path) -> list[tuple[str, str, str, int]]:
    source = parse_source(FILE, "test.yaml")
    environment = environment_from(source, "test").environment
    return [
        (finding.id, finding.level, finding.path, finding.place.line if finding.place else 0)
        for finding in chart_type_findings(root, environment, source)
    ]


def test_a_type_that_the_agent_lacks_is_a_warning_at_its_group(tmp_path: Path) -> None:
    fetched(tmp_path, "ml.p5en.48xlarge, ml.p5.48xlarge")
    assert findings(tmp_path) == [("CHT007", "warning", "instance_groups.b300", 8)]


@pytest.mark.parametrize("types", ["ml.p5en.48xlarge, ml.p6-b300.48xlarge", ""], ids=["all", "no list"])
def test_a_chart_that_lists_all_of_them_or_nothing_is_silent(tmp_path: Path, types: str) -> None:
    fetched(tmp_path, types)
    assert findings(tmp_path) == []


def test_without_a_fetched_chart_nothing_is_said(tmp_path: Path) -> None:
    assert findings(tmp_path) == []
