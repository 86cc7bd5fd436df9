"""Dashboards: every panel's query has an answer in a real Prometheus, in Grafana's JSON and in the preview."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard as GrafanaDashboard

from needs import require
from podwright.config.catalog.instance_types import catalog
from podwright.config.catalog.metrics import metrics
from podwright.config.loading.load import load_environment
from podwright.config.settings.environment import Environment
from podwright.config.settings.observability import Observability, Targets
from podwright.constructs.observability.cloudwatch_dashboards.widgets import panels as widgets
from podwright.operations.dashboards.answers import Series, Span, ask
from podwright.operations.dashboards.drawing import figure, text
from podwright.operations.dashboards.page import Drawn, html
from podwright.operations.dashboards.quantities import written
from podwright.operations.programs.prometheus import Prometheus, history, installed
from podwright.planning.monitoring.collected import collected, names_in
from podwright.planning.monitoring.dashboards import NAMES, dashboards
from podwright.planning.monitoring.dashboards.panel import UID_CHARACTERS, UNITS, WIDTH, Dashboard, Panel, uid
from podwright.planning.monitoring.grafana_json import grafana_json
from podwright.planning.monitoring.recordings import recording_groups, recordings
from podwright.planning.monitoring.synthetic.cluster import Node, SyntheticCluster, synthetic_cluster
from podwright.planning.monitoring.synthetic.faults import Fault, with_faults
from podwright.planning.monitoring.synthetic.metrics import history as made_up_metrics

END = 1_800_000_000.0
SPAN = Span(END, 2)
EVERYTHING = frozenset(metrics()) | {recording.name for recording in recordings()}
# Samples are as far apart as in the made-up history.
SETTINGS = Observability(metrics="advanced", scrape_seconds=300)


def environment(name: str) -> Environment:
    return load_environment(Path(__file__).parents[3] / "environments" / f"{name}.yaml").environment


def pages(cluster: str = "prod", settings: Observability = SETTINGS) -> tuple[Dashboard, ...]:
    return dashboards(settings, cluster=cluster, metrics=EVERYTHING)


def page(name: str, **more: object) -> Dashboard:
    return next(item for item in pages(**more) if item.name == name)


def panel(dashboard: str, title: str) -> Panel:
    return next(item for item in page(dashboard).panels if item.title == title)


def eks() -> SyntheticCluster:
    account = synthetic_cluster(environment("prod"), SPAN.start, END, step=300, nodes=2, devices=1)
    account.nodes.append(Node.numbered("trainium", 0, "ml.trn1.32xlarge", neuron=1))
    [gpu] = [node.name for node in account.nodes if node.gpus][:1]
    return replace(with_faults(account, Fault(kind="restart", node=gpu, start=SPAN.start + 3600)), cluster="prod")


@pytest.fixture(scope="module")
def server() -> Iterator[Prometheus]:
    require(installed(), "Prometheus and promtool: Debian's package prometheus")
    account = eks()
    slurm = replace(account, cluster="slurm", orchestrator="slurm", jobs=[])
    kueue = replace(account, cluster="kueue", jobs=[replace(job, engine="kueue") for job in account.jobs])
    asked = {
        name for one in pages() for item in one.panels for query in item.queries.values() for name in names_in(query)
    }
    asked |= {name for recording in recordings() for name in names_in(recording.expression)}
    groups = [group for name in ("prod", "kueue") for group in recording_groups(name, SETTINGS.scrape_seconds)]
    rules = [rule for group in groups for rule in group["rules"]]
    text = made_up_metrics(account, slurm, kueue, names=asked)
    with history(text, rules, start=SPAN.start, end=END, step=300) as running:
        yield running


@pytest.fixture(scope="module")
def answers(server: Prometheus) -> dict[str, list[list[Series]]]:
    """The answer to every panel; of Slurm's own from the cluster with Slurm."""
    return {
        one.name: [ask(server, item, one.choices, SPAN) for item in one.panels]
        for one in (*pages(), page("slurm", cluster="slurm"))
    }


def test_every_panel_gets_data_from_a_real_prometheus(answers: dict[str, list[list[Series]]]) -> None:
    empty = [
        f"{one.name}: {item.title}"
        for one in pages()
        for item, series in zip(one.panels, answers[one.name], strict=True)
        if not series and not item.may_be_empty
    ]
    assert not empty
    assert sum(len(series) for value in answers.values() for series in value) > 200


def test_what_is_recorded_lies_at_the_same_moments_each_time() -> None:
    """What lies within the last second of two hours promtool loses: it must not be chance whether something does."""
    require(installed(), "Prometheus and promtool: Debian's package prometheus")
    values = [f"m 1 {timestamp}\n" for timestamp in (END - 600, END - 300, END)]
    metrics = "".join(["# TYPE m gauge\n", *values, "# EOF\n"])
    rules = [{"record": "first", "expr": "m"}, {"record": "second", "expr": "first"}]
    timestamps = set()
    for _ in range(2):
        with history(metrics, rules, start=SPAN.start, end=END, step=300) as running:
            [first], [second] = (running.instant(f"timestamp({name})", END) for name in ("first", "second"))
            timestamps.add((first["value"][1], second["value"][1]))
    assert len(timestamps) == 1


@pytest.mark.parametrize("title", ["Used now", "Used", "GPUs held", "Use of what is held", "Pods that run"])
def test_teams_are_found_in_namespaces_of_every_engine(server: Prometheus, title: str) -> None:
    """Task governance calls them hyperpod-ns-TEAM, the other engines team-TEAM; queues are called as the team is."""
    teams = set(environment("prod").governance.teams)
    for cluster in ("prod", "kueue"):
        one = page("teams", cluster=cluster)
        panels = [item for item in one.panels if item.title == title]
        names = {series.name for item in panels for series in ask(server, item, one.choices, SPAN)}
        assert names, cluster
        assert names <= teams, cluster


def test_what_shows_only_trouble_may_be_empty() -> None:
    """A table of what is above zero has no rows while all is well, and says `none` in place of `no data`."""
    tables = [item for one in pages() for item in one.panels if item.kind == "table"]
    trouble = [item for item in tables if all(query.endswith("> 0") for query in item.queries.values())]
    assert len(trouble) > 5
    assert [item.title for item in trouble if not item.may_be_empty] == []


def test_what_may_be_empty_is_not_empty_for_a_wrong_query(server: Prometheus) -> None:
    """Such a panel hides a query that never answers, so each is asked without its last comparison."""
    silent = []
    for one in pages():
        for item in (item for item in one.panels if item.may_be_empty):
            bare = {legend: re.sub(r" > 0\b", " >= 0", query) for legend, query in item.queries.items()}
            if not ask(server, replace(item, queries=bare), one.choices, SPAN):
                silent.append(item.title)
    # These have no samples while all is well, whatever they are compared with.
    assert set(silent) <= {"Nodes with trouble", "Faults on nodes", "Busy without computing", "GPUs held and idle",
                           "Why containers wait", "Why containers ended", "Nodes that did not pass",
                           "Held and idle", "GPU hours held and idle", "Held and idle within a day",
                           "Nodes started within a day"}  # fmt: skip


def test_every_query_names_only_metrics_of_the_table_and_recordings() -> None:
    for one in pages():
        for item in one.panels:
            for query in item.queries.values():
                assert names_in(query) <= EVERYTHING, f"{one.name}: {item.title}"
                assert 'cluster_name="prod"' in query
                assert "$cluster" not in query
                assert "$rate" not in query
        assert {choice.metric for choice in one.choices} | set(one.needs) <= EVERYTHING


def test_every_panel_says_what_it_shows() -> None:
    for item in (item for one in pages() for item in one.panels):
        assert item.unit in UNITS, item.title
        assert item.says.endswith((".", "?")), item.title
        assert 0 < item.width <= WIDTH, item.title
        assert set(item.words) <= set(item.steps), item.title
        assert bool(item.words) == (item.kind == "states"), item.title


def test_titles_are_told_apart_within_a_row() -> None:
    for one in pages():
        assert len({item.title for item in one.panels}) == len(one.panels), one.name
        for row in one.rows:
            assert row.panels, row.title


def test_every_subject_is_shown() -> None:
    assert [one.name for one in pages()] == list(NAMES)
    assert {"Allocated now", "Used now"} <= {item.title for item in page("teams").rows[0].panels}


@pytest.mark.parametrize(
    ("changes", "deleted", "existing"),
    [
        pytest.param({"metrics": "basic"}, {"EFA errors", "Slowed down"}, {"Hottest", "Borrowed"}, id="basic"),
        pytest.param({"metrics": "advanced"}, {"Use of NeuronCores"}, {"EFA errors", "Slowed down"}, id="advanced"),
        pytest.param({"levels": {"accelerated": "off"}}, {"Hottest"}, {"CPU"}, id="no GPUs measured"),
        pytest.param({"levels": {"task_governance": "off"}}, {"Borrowed"}, {"Hottest"}, id="no governance measured"),
    ],
)
def test_an_environment_sees_the_panels_that_it_has_metrics_for(
    changes: dict[str, object], deleted: set[str], existing: set[str]
) -> None:
    settings = Observability.model_validate(changes)
    observed = environment("prod").model_copy(update={"observability": settings})
    resolved_dashboards = dashboards(settings, cluster="c", metrics=collected(observed, catalog()))
    titles = {item.title for one in resolved_dashboards for item in one.panels}
    assert not deleted & titles
    assert existing <= titles


def test_slurm_has_a_dashboard_of_its_own_and_none_of_pods() -> None:
    observed = environment("slurm-classic").model_copy(update={"observability": Observability(metrics="advanced")})
    names = {one.name for one in dashboards(SETTINGS, cluster="c", metrics=collected(observed, catalog()))}
    assert "slurm" in names
    assert not names & {"tasks", "teams", "elastic"}


@pytest.mark.parametrize("engine", ["kai", "yunikorn", "kueue", "hyperpod"])
def test_teams_and_priorities_show_what_is_collected_with_each_engine(engine: str) -> None:
    """KAI's and YuniKorn's pods name their class; Kueue has a quota and counts by class what it decides."""
    base = environment("three-projects")
    governance = base.governance.model_copy(update={"engine": engine})
    observed = base.model_copy(update={"observability": SETTINGS, "governance": governance})
    resolved_dashboards = dashboards(SETTINGS, cluster="c", metrics=collected(observed, catalog()))
    rows = {one.name: [row.title for row in one.rows] for one in resolved_dashboards}
    choices = {one.name: [choice.metric for choice in one.choices] for one in resolved_dashboards}
    if engine in ("kai", "yunikorn"):
        assert rows["teams"] == ["What pods of teams hold"]
        assert rows["priorities"] == ["Pods"]
        assert choices["teams"] == ["team:pods_running:sum"]
    else:
        assert "What pods of teams hold" not in rows["teams"]
        assert rows["priorities"] == ["Jobs that Kueue decides about", "Queues, whatever the class"]
        assert choices["teams"] == ["team:quota:sum"]
        assert choices["priorities"] == ["priority_class:admissions:increase1h"]


def test_without_an_engine_there_are_neither_teams_nor_priorities() -> None:
    base = environment("three-projects")
    governance = base.governance.model_copy(update={"engine": None})
    observed = base.model_copy(update={"observability": SETTINGS, "governance": governance})
    names = {one.name for one in dashboards(SETTINGS, cluster="c", metrics=collected(observed, catalog()))}
    assert not names & {"teams", "priorities"}


def test_what_an_environment_does_not_have_is_not_shown() -> None:
    observed = environment("prod").model_copy(update={"observability": SETTINGS, "training_plans": {}})
    resolved_dashboards = dashboards(SETTINGS, cluster="c", metrics=collected(observed, catalog()))
    titles = {item.title for one in resolved_dashboards for item in one.panels}
    assert not {"Days left", "Plans"} & titles
    assert "Wanted and there" in titles


def test_without_metrics_nothing_is_shown() -> None:
    observed = environment("prod").model_copy(update={"observability": Observability(metrics="off")})
    assert collected(observed, catalog()) == frozenset()
    assert dashboards(SETTINGS, cluster="c", metrics=()) == ()


def test_the_targets_of_the_environment_are_drawn() -> None:
    settings = Observability(targets=Targets(goodput_percent=80))
    [row, *_] = page("goodput", settings=settings).rows
    assert row.panels[0].steps[0.8] == "green"


def test_grafana_reads_what_is_written() -> None:
    for one in pages():
        written_json = json.loads(grafana_json(one, environment="prod", source="prod-metrics"))
        read = json.loads(json.dumps(GrafanaDashboard.from_json(written_json), cls=JSONEncoder))
        assert read == written_json, one.name
        drawn = [item for item in written_json["panels"] if item["type"] != "row"]
        assert [item["title"] for item in drawn] == [item.title for item in one.panels]
        assert len({item["id"] for item in drawn}) == len(drawn)
        for shown, meant in zip(drawn, one.panels, strict=True):
            assert [target["expr"] for target in shown["targets"]] == list(meant.queries.values())
            assert shown["datasource"]["uid"] == "prod-metrics"
            assert shown["gridPos"]["x"] + shown["gridPos"]["w"] <= WIDTH
        assert written_json["uid"] == f"prod-{one.name}"
        assert written_json["editable"] is False


def test_panels_do_not_lie_upon_each_other() -> None:
    for one in pages():
        taken: set[tuple[int, int]] = set()
        for item in json.loads(grafana_json(one, environment="prod", source="s"))["panels"]:
            location = item["gridPos"]
            cells = {(x, y) for x in range(location["x"], location["x"] + location["w"])
                     for y in range(location["y"], location["y"] + location["h"])}  # fmt: skip
            assert not taken & cells, f"{one.name}: {item['title']}"
            taken |= cells


def test_a_dashboard_for_any_grafana_lets_its_reader_choose_the_source() -> None:
    exported = json.loads(grafana_json(page("cluster"), environment="prod", source=None))
    assert exported["panels"][1]["datasource"] == {"type": "prometheus", "uid": "${source}"}
    assert exported["templating"]["list"][0]["type"] == "datasource"


def test_uids_are_short_and_no_other_environments() -> None:
    long = ["a" * 31 + letter for letter in "bc"]
    actual = {uid(name, "benchmarks") for name in (*long, "prod")}
    assert len(actual) == 3
    assert all(len(item) <= UID_CHARACTERS for item in actual)
    assert "prod-benchmarks" in actual


class Parsed(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.places: list[str] = []
        self.pages: list[str] = []
        self.panels = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        provided = dict(attrs)
        if tag == "main":
            self.pages.append(provided["data-page"] or "")
        if provided.get("class") == "figure":
            self.places.append(provided["id"] or "")
        self.panels += tag == "section"


def test_the_preview_draws_every_panel_into_one_file(answers: dict[str, list[list[Series]]]) -> None:
    drawn = [Drawn(one, answers[one.name]) for one in pages()]
    made = html("Title </script>", "Made up", drawn, SPAN)
    parsed = Parsed(made)
    assert parsed.pages == list(NAMES)
    assert parsed.panels == sum(len(one.panels) for one in pages())
    [data] = re.findall(r"<script>const figures = (.*?);\n// Lines", made, re.DOTALL)
    figures = json.loads(data.replace("<\\/", "</"))
    assert set(parsed.places) == set(figures)
    assert all(item["data"] for item in figures.values())
    assert "<title>Title &lt;/script&gt;</title>" in made
    assert not re.search(r"(src|href)=.https?://", made.partition("<script>")[0])


def series(*values: float | None, name: str = "one", query: str = "q") -> Series:
    points = [(SPAN.start + SPAN.step * at, value) for at, value in enumerate(values) if value is not None]
    return Series(query, name, {"team": name}, tuple(points))


def test_a_line_ends_where_its_series_does() -> None:
    drawn = figure(panel("cluster", "Hottest"), [series(60, None, 70)], SPAN)
    assert drawn
    assert list(drawn["data"][0]["y"][:4]) == [60, None, 70, None]


def test_bars_have_the_colour_of_the_step_they_reached() -> None:
    drawn = text(panel("storage", "Full"), [series(0.1, name="b"), series(0.9, name="a")]).bars
    assert [(bar.name, bar.value, bar.percent, bar.colour) for bar in drawn] == [
        ("a", "90 %", 90, "#c2302a"),
        ("b", "10 %", 10, "#2f7d4f"),
    ]


def test_lines_are_named_below_them_unless_they_are_many() -> None:
    hottest = panel("cluster", "Hottest")
    named = text(hottest, [series(60, name="a"), series(70, name="b")]).names
    drawn = figure(hottest, [series(60, name="a"), series(70, name="b")], SPAN)
    assert drawn
    assert [name.name for name in named] == [line["name"] for line in drawn["data"]]
    assert [name.colour for name in named] == list(drawn["layout"]["colorway"][:2])
    assert text(hottest, [series(60, name=str(number)) for number in range(9)]).names == []


def test_a_table_has_a_row_for_labels_and_a_column_for_each_query() -> None:
    actual = text(panel("teams", "Guarantees"), [series(4, query="guaranteed"), series(6, query="held")]).table
    assert actual
    assert (actual.labels, actual.columns) == (["team"], ["guaranteed", "held"])
    assert [(row.labels, row.cells) for row in actual.rows] == [(("one",), ["4", "6"])]


def test_no_label_becomes_markup() -> None:
    one = page("teams")
    answers = [
        [series(4, name="<script>alert(1)</script>")] if item.title == "Guarantees" else [] for item in one.panels
    ]
    made = html("Title", "Made up", [Drawn(one, answers)], SPAN)
    assert "<td>&lt;script&gt;alert(1)&lt;/script&gt;</td>" in made
    assert "<script>alert(1)" not in made


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [(0.934, "fraction", "93.4 %"), (3 * 1024**3, "bytes", "3 GiB"), (2.5e6, "bytes/s", "2.38 MiB/s"),
     (5400, "seconds", "90 min"), (0, "count", "0"), (1234567, "USD", "1,234,567 USD")],
)  # fmt: skip
def test_numbers_read_well(value: float, unit: str, expected: str) -> None:
    assert written(value, unit) == expected


def test_cloudwatch_gets_every_panel_and_can_parse_its_expressions() -> None:
    for one in pages():
        items = [item for item in widgets(one, "function", "us-west-2") if item["type"] == "metric"]
        assert [item["properties"]["title"] for item in items] == [item.title for item in one.panels]
        for widget in items:
            assert widget["x"] + widget["width"] <= WIDTH
            # CloudWatch takes 1, 5, 10, 30 or a multiple of 60 seconds.
            assert widget["properties"]["period"] % 60 == 0
            for [metric] in widget["properties"]["metrics"]:
                expression = metric["expression"]
                # Name, query and legend in quotes, and nothing that would end them.
                assert re.fullmatch(r"LAMBDA\('function', '[^']+', '[^']*', [0-9.e+-]+\)", expression), expression
                assert len(expression) <= 2048
