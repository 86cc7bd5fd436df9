"""Dashboards as CloudWatch reads them.

Source: CloudWatch API Reference, "Dashboard body structure and syntax", 2026-11.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ....planning.monitoring.dashboards.panel import UNITS, WIDTH, Choice, Dashboard, Panel, filled

_VIEWS: Final = {
    "lines": {"view": "timeSeries", "stacked": False},
    "stacked": {"view": "timeSeries", "stacked": True},
    "states": {"view": "timeSeries", "stacked": False},
    "bars": {"view": "bar"},
    "number": {"view": "singleValue"},
    "table": {"view": "table"},
}
_PERIOD: Final = 300


def panels(page: Dashboard, function: str, region: str) -> list[dict[str, Any]]:
    """The widgets of one dashboard, whose queries `function` answers."""
    drawn: list[dict[str, Any]] = [_text(page.says, 0)]
    top = 2
    for row in page.rows:
        drawn.append(_text(f"## {row.title}", top, 1))
        top += 1
        left, tallest = 0, 0
        for panel in row.panels:
            if left + panel.width > WIDTH:
                left, top, tallest = 0, top + tallest, 0
            drawn.append(_panel(panel, page.choices, function, region) | {"x": left, "y": top})
            left, tallest = left + panel.width, max(tallest, panel.height)
        top += tallest
    return drawn


def _panel(panel: Panel, choices: Sequence[Choice], function: str, region: str) -> dict[str, Any]:
    """A panel as a widget whose values the function answers."""
    unit = UNITS[panel.unit]
    # In metric math a string stands in single quotes, and no query of ours has any.
    expressions = [
        f"LAMBDA('{function}', '{filled(query, tuple(choices), '$__range')}', '{legend}', {unit.factor:.17g})"
        for legend, query in panel.queries.items()
    ]
    properties: dict[str, Any] = {
        "title": panel.title,
        "region": region,
        "period": _PERIOD,
        "metrics": [[{"expression": text, "id": f"q{index}"}] for index, text in enumerate(expressions)],
        "yAxis": {"left": {"min": 0, "label": unit.suffix, "showUnits": False}},
        **_VIEWS[panel.kind],
    }
    if panel.most is not None:
        properties["yAxis"]["left"]["max"] = panel.most * unit.factor
    if panel.kind == "lines" and panel.steps:
        marks = [{"value": value * unit.factor, "label": panel.title} for value in panel.steps if value]
        properties["annotations"] = {"horizontal": marks}
    return {"type": "metric", "width": panel.width, "height": panel.height, "properties": properties}


def of_services(
    region: str, *, lustre: Mapping[str, str], workspace: str | None, log_group: str | None
) -> list[dict[str, Any]]:
    """The widgets of what AWS measures by itself: file systems, the workspace, and logs of nodes.

    Args:
        region: Region of them all.
        lustre: Ids of Lustre file systems by what people call them.
        workspace: Id of the workspace of Prometheus.
        log_group: The cluster's log group.
    """
    results = [*_file_systems(region, lustre)]
    if workspace is not None:
        search = f"SEARCH('Namespace=\"AWS/Prometheus\" \"{workspace}\"', 'Sum', {_PERIOD})"
        results.append(_metrics("Prometheus: samples refused, rules failed", region, [[{"expression": search}]]))
    if log_group is not None:
        health = "like /SagemakerHealthMonitoringAgent/ and HealthMonitoringAgentDetectionEvent = 'HealthEvent'"
        results.append(_logs("Faults that the health agents found", region, log_group, health))
        failed = "like /LifecycleConfig/ and @message like /(?i)(error|failed|traceback)/"
        results.append(_logs("Errors of lifecycle scripts", region, log_group, failed))
    return [widget | {"x": index % 2 * 12, "y": index // 2 * 7} for index, widget in enumerate(results)]


def _file_systems(region: str, lustre: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    operations = {"read": "DataReadOperations", "written": "DataWriteOperations", "metadata": "MetadataOperations"}
    for name, identifier in lustre.items():
        available_width = [_fsx(identifier, "FreeDataStorageCapacity", label="bytes")]
        yield _metrics(f"{name}: room that is left", region, available_width)
        traffic = _rates(identifier, {"read": "DataReadBytes", "written": "DataWriteBytes"})
        yield _metrics(f"{name}: bytes a second", region, traffic)
        yield _metrics(f"{name}: operations a second", region, _rates(identifier, operations))


def _fsx(identifier: str, metric: str, **more: Any) -> list[Any]:
    """Source: FSx for Lustre User Guide, "Monitoring with Amazon CloudWatch", 2026-11: Sum adds up all servers."""
    return ["AWS/FSx", metric, "FileSystemId", identifier, {"stat": "Sum", **more}]


def _rates(identifier: str, metrics: Mapping[str, str]) -> list[list[Any]]:
    counted = [_fsx(identifier, name, id=f"m{index}", visible=False) for index, name in enumerate(metrics.values())]
    rates = [
        [{"expression": f"m{index} / PERIOD(m{index})", "label": text, "id": f"e{index}"}]
        for index, text in enumerate(metrics)
    ]
    return [*counted, *rates]


def _metrics(title: str, region: str, metrics: list[list[Any]]) -> dict[str, Any]:
    properties = {"title": title, "region": region, "period": _PERIOD, "view": "timeSeries", "metrics": metrics}
    return {"type": "metric", "width": 12, "height": 7, "properties": properties}


def _logs(title: str, region: str, group: str, streams: str) -> dict[str, Any]:
    query = (
        f"SOURCE '{group}' | fields @timestamp, @logStream, @message | filter @logStream {streams} "
        "| sort @timestamp desc | limit 50"
    )
    return {
        "type": "log",
        "width": 12,
        "height": 7,
        "properties": {"title": title, "region": region, "view": "table", "query": query},
    }


def _text(markdown: str, top: int, height: int = 2) -> dict[str, Any]:
    return {
        "type": "text",
        "x": 0,
        "y": top,
        "width": WIDTH,
        "height": height,
        "properties": {"markdown": markdown, "background": "transparent"},
    }
