"""Dashboards as Grafana reads them: JSON that Grafana Labs' own models write."""

import json
from collections.abc import Mapping
from typing import Any, Final

from grafana_foundation_sdk.builders import bargauge, stat, statetimeline, table, timeseries
from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.builders import prometheus as prometheus_builders
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common, dashboard, prometheus

from .dashboards.panel import UNITS, Choice, Colour, Dashboard, Panel, uid

SOURCE_VARIABLE: Final = "source"
"""What a dashboard for anybody's Grafana calls the data source that its reader chooses."""
FIRING: Final = 'ALERTS{alertstate="firing", severity="critical"}'
"""Critical alerts, which every dashboard marks in time. Prometheus writes this series for each alert that fires."""
_TYPE: Final = "prometheus"
_NAMED: Final = {"grey": "#8e8e8e"}


def data_source_uid(environment: str) -> str:
    """The uid of the data source of an environment's metrics."""
    return uid(environment, "metrics")


def tag(environment: str) -> str:
    """What marks the dashboards that podwright delivered of an environment."""
    return f"podwright:{environment}"


def grafana_json(page: Dashboard, *, environment: str, source: str | None) -> str:
    """A dashboard as JSON with sorted keys, so that equal dashboards are equal text.

    Args:
        page: The dashboard.
        environment: Name of the environment, for title, address and links.
        source: Uid of its data source; without one, its reader chooses a data source.
    """
    return json.dumps(_dashboard(page, environment, source), cls=JSONEncoder, indent=1, sort_keys=True) + "\n"


def _dashboard(page: Dashboard, environment: str, source: str | None) -> dashboard.Dashboard:
    """A page for Grafana, with its data source and links."""
    # Without a source each dashboard asks for one, so that it works in any Grafana.
    asked = dashboard.DataSourceRef(type_val=_TYPE, uid=source or f"${{{SOURCE_VARIABLE}}}")
    alerts = builders.AnnotationQuery().name("Critical alerts").datasource(asked).enable(True).icon_color("red")
    links = builders.DashboardLink(environment).type(dashboard.DashboardLinkType.DASHBOARDS).tags([tag(environment)])
    built = (
        builders.Dashboard(f"{page.title} · {environment}")
        .uid(uid(environment, page.name))
        .description(page.says)
        .tags(["podwright", tag(environment)])
        # Changes by hand would be lost with the next deployment.
        .readonly()
        # A line at the same moment in all panels.
        .tooltip(dashboard.DashboardCursorSync.CROSSHAIR)
        .time(f"now-{page.hours}h", "now")
        .refresh("1m")
        .timezone("browser")
        .annotation(alerts.expr(FIRING))
        .link(links.as_dropdown(True).keep_time(True))
    )
    if source is None:
        built.with_variable(builders.DatasourceVariable(SOURCE_VARIABLE).label("Metrics").type(_TYPE))
    # Variables before panels, which name them.
    for choice in page.choices:
        built.with_variable(_choice(choice, asked))
    number = 0
    for row in page.rows:
        built.with_row(builders.Row(row.title))
        for panel in row.panels:
            number += 1
            built.with_panel(_panel(panel, number, asked))
    return built.build()


def _choice(choice: Choice, source: dashboard.DataSourceRef) -> builders.QueryVariable:
    """A variable above the dashboard: several values of a label, all at first."""
    every = dashboard.VariableOption(selected=True, text="All", value="$__all")
    return (
        builders.QueryVariable(choice.name)
        .label(choice.label)
        .datasource(source)
        .query({"query": f"label_values({choice.metric}, {choice.label})", "refId": choice.name})
        .refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED)
        # h200-2 before h200-10.
        .sort(dashboard.VariableSort.NATURAL_ASC)
        .multi(True)
        .include_all(True)
        # Prometheus takes a pattern; Grafana's own "all" would list thousands of values.
        .all_value(".*")
        .current(every)
    )


def _panel(panel: Panel, number: int, source: dashboard.DataSourceRef) -> Builder[dashboard.Panel]:
    """A panel for Grafana: its kind, unit, size and queries."""
    made = {"lines": _lines, "stacked": _stacked, "bars": _bars, "number": _number, "states": _states, "table": _table}
    drawn = made[panel.kind](panel)
    now = panel.kind in ("bars", "number", "table")
    drawn.id(number).title(panel.title).description(panel.says).datasource(source)
    drawn.span(panel.width).height(panel.height)
    drawn.no_value("none" if panel.may_be_empty else "no data")
    # States are words and have no unit.
    if panel.kind != "states":
        drawn.unit(UNITS[panel.unit].grafana).min(0)
    if panel.most is not None:
        drawn.max(panel.most)
    if panel.steps:
        drawn.thresholds(_thresholds(panel.steps))
    elif panel.kind in ("bars", "number"):
        drawn.thresholds(_thresholds({0: "blue"}))
    # Grafana names the queries of a panel by letters.
    for letter, (legend, expression) in zip("ABCDEFGH", panel.queries.items(), strict=False):
        drawn.with_target(_target(expression, legend, letter, now=now, as_table=panel.kind == "table"))
    return drawn


def _target(expression: str, legend: str, letter: str, *, now: bool, as_table: bool) -> prometheus_builders.Dataquery:
    asked = prometheus_builders.Dataquery().ref_id(letter).expr(expression).legend_format(legend)
    asked.editor_mode(prometheus.QueryEditorMode.CODE)
    asked.format(prometheus.PromQueryFormat.TABLE if as_table else prometheus.PromQueryFormat.TIME_SERIES)
    return asked.instant() if now else asked.range()


def _over_time() -> timeseries.Panel:
    legend = common_builders.VizLegendOptions().show_legend(True).calcs(["lastNotNull"])
    legend.display_mode(common.LegendDisplayMode.LIST).placement(common.LegendPlacement.BOTTOM)
    tooltip = common_builders.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI)
    return timeseries.Panel().legend(legend).tooltip(tooltip.sort(common.SortOrder.DESCENDING))


def _lines(panel: Panel) -> timeseries.Panel:
    drawn = _over_time().line_width(1).fill_opacity(0).show_points(common.VisibilityMode.AUTO)
    if panel.steps:
        dashed = common.GraphThresholdsStyleMode.DASHED
        drawn.thresholds_style(common_builders.GraphThresholdsStyleConfig().mode(dashed))
    return drawn


def _stacked(_: Panel) -> timeseries.Panel:
    drawn = _over_time().line_width(0).fill_opacity(70).show_points(common.VisibilityMode.NEVER)
    return drawn.stacking(common_builders.StackingConfig().mode(common.StackingMode.NORMAL).group("A"))


def _last() -> common_builders.ReduceDataOptions:
    return common_builders.ReduceDataOptions().calcs(["lastNotNull"]).values(False)


def _bars(_: Panel) -> bargauge.Panel:
    drawn = bargauge.Panel().orientation(common.VizOrientation.HORIZONTAL).reduce_options(_last())
    return drawn.display_mode(common.BarGaugeDisplayMode.BASIC)


def _number(_: Panel) -> stat.Panel:
    drawn = stat.Panel().reduce_options(_last()).graph_mode(common.BigValueGraphMode.NONE)
    return drawn.color_mode(common.BigValueColorMode.VALUE)


def _states(panel: Panel) -> statetimeline.Panel:
    results = {
        f"{value:g}": dashboard.ValueMappingResult(text=word, color=_colour(panel.steps[value]), index=index)
        for index, (value, word) in enumerate(panel.words.items())
    }
    drawn = statetimeline.Panel().show_value(common.VisibilityMode.NEVER).merge_values(True).row_height(0.85)
    return drawn.mappings([dashboard.ValueMap(results)])


def _table(panel: Panel) -> table.Panel:
    """One row for each set of labels; every query is a column, called as its legend says."""
    single = len(panel.queries) == 1
    columns = {
        "Value" if single else f"Value #{letter}": column
        for letter, column in zip("ABCDEFGH", panel.queries, strict=False)
    }
    drawn = table.Panel().with_transformation(dashboard.DataTransformerConfig(id_val="merge", options={}))
    organize: dict[str, Any] = {"excludeByName": {"Time": True}, "renameByName": columns}
    return drawn.with_transformation(dashboard.DataTransformerConfig(id_val="organize", options=organize))


def _thresholds(steps: Mapping[float, Colour]) -> builders.ThresholdsConfig:
    """Grafana's first step has no value, since it begins at minus infinity."""
    ordered = sorted(steps.items())
    marks = [dashboard.Threshold(value, _colour(colour)) for value, colour in ordered]
    if ordered[0][0] <= 0:
        marks[0].value = None
    else:
        marks.insert(0, dashboard.Threshold(None, "text"))
    return builders.ThresholdsConfig().mode(dashboard.ThresholdsMode.ABSOLUTE).steps(marks)


def _colour(colour: Colour) -> str:
    return _NAMED.get(colour, colour)
