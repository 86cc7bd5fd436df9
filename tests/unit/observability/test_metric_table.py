"""The table of metrics: what it promises, the page that is made of it, and the price of its series."""

import re
from collections import Counter
from dataclasses import fields
from pathlib import Path

import pytest

from podwright.config.catalog.instance_types import catalog
from podwright.config.catalog.metrics import metrics
from podwright.planning.cost.series import Load, bill, series_rows
from podwright.planning.monitoring.alerts import alerts
from podwright.planning.monitoring.metrics_page import metrics_page
from podwright.planning.monitoring.recordings import recordings

ROOT = Path(__file__).parents[3]
H200 = catalog().find("ml.p5en.48xlarge")
NAME = re.compile(r"\b[a-zA-Z_][a-zA-Z0-9_]*(?=\{)")


def test_every_metric_has_a_meaning_and_labels_of_its_own() -> None:
    for metric in metrics().values():
        assert metric.says
        assert metric.sources
        assert "cluster_name" not in metric.labels, metric.name
        assert len(set(metric.labels)) == len(metric.labels), metric.name


def test_what_is_worked_out_reads_metrics_of_the_table_or_other_recordings() -> None:
    recorded = {item.name for item in recordings()}
    for item in (*recordings(), *alerts().values()):
        read = set(NAME.findall(re.sub(r"\b[a-z0-9_]+(?::[a-z0-9_]+)+", "", item.expression)))
        assert read <= metrics().keys(), item.name
        levels = set(re.findall(r"\b[a-z0-9_]+(?::[a-z0-9_]+)+(?=\{)", item.expression))
        assert levels <= recorded, item.name


def test_the_page_is_made_of_the_table(request: pytest.FixtureRequest) -> None:
    page = ROOT / "docs" / "metrics.md"
    if request.config.getoption("--update-snapshots"):
        page.write_text(metrics_page(), encoding="utf-8")
    assert page.read_text(encoding="utf-8") == metrics_page(), "bin/test --update-snapshots writes it"


def test_series_of_an_exporter_are_at_least_those_that_the_table_names() -> None:
    named, counted = Counter[tuple[str, str, str]](), Counter[tuple[str, str, str]]()
    for metric in metrics().values():
        named[metric.exporter, metric.level, metric.per] += metric.series
    for row in series_rows():
        counted[row.exporter, row.level, row.per] += row.series
    assert {key: count for key, count in named.items() if key in counted and count > counted[key]} == {}
    assert counted["dcgm", "basic", "gpu"] == named["dcgm", "basic", "gpu"]
    assert counted["dcgm", "advanced", "gpu"] == named["dcgm", "advanced", "gpu"]
    assert counted["efa", "advanced", "efa"] == named["efa", "advanced", "efa"]


def test_a_bill_goes_through_the_steps_of_the_price_list() -> None:
    assert H200
    # Nothing runs on it: 320 of the node, 16 of each of 192 CPUs, 36 of each of two interfaces, 27 of each of 8 GPUs,
    # 45 of what Kubernetes says of it, and 8 of ours; 5,000 of the API and 7 of ours in the cluster.
    one = bill(H200, 1, "basic", load=Load(*[0] * len(fields(Load))))
    assert (one.per_node, one.series) == (320 + 16 * 192 + 36 * 2 + 27 * 8 + 45 + 8, one.per_node + 5_007)
    samples = (one.series - 15) * 87_600 + 15 * 43_800
    retained = 150 * 24 / 730 * 1.5 / 2**30 * 0.03
    assert one.samples == samples
    assert one.usd == pytest.approx(samples / 1e7 * 0.90 + samples * retained)
    many = bill(H200, 1000, "basic")
    beyond = (many.samples - 252e9) / 1e7 * 0.16
    assert many.usd == pytest.approx(2e9 / 1e7 * 0.90 + 250e9 / 1e7 * 0.35 + beyond + many.samples * retained)


def test_what_makes_metrics_dear() -> None:
    assert H200
    basic, advanced = bill(H200, 1000, "basic"), bill(H200, 1000, "advanced")
    assert 1.0 < advanced.series / basic.series < 1.15
    assert bill(H200, 1000, "basic", scrape_seconds=60).samples == pytest.approx(basic.samples / 2, rel=0.01)
    assert sum(basic.by_basis.values()) == basic.per_node
