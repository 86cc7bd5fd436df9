"""Hours of teams and of the cluster, read from recording rules day by day."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ...planning.cost.showback import Hours
from ...planning.monitoring.recordings import INTERVAL_SECONDS, filled
from ..programs.prometheus import Prometheus

Days = tuple[Mapping[str, str], Sequence[float]]
"""The labels of a series, and its value of each day."""
DAY: Final = 86400
_PER_HOUR: Final = 3600 // INTERVAL_SECONDS
# Of each day at its end. Recorded sums of a day exist for most; the others are summed here in the same way.
_OF_TEAMS: Final = {
    "guaranteed": "team:quota_hours:sum1d{$cluster}",
    "in_quota": "team:in_quota_hours:sum1d{$cluster}",
    "borrowed": "team:over_quota_hours:sum1d{$cluster}",
    "lent": f"sum_over_time(team:lent:sum{{$cluster}}[1d]) / {_PER_HOUR}",
}
_OF_CLUSTER: Final = {
    "gpu_hours": f"sum_over_time(cluster:gpus:count{{$cluster}}[1d]) / {_PER_HOUR}",
    "allocated_hours": "sum(namespace:gpu_allocated_hours:sum1d{$cluster})",
    "idle_hours": "sum(namespace:gpu_idle_hours:sum1d{$cluster})",
    "instances_usd": f"sum_over_time(cluster:hourly_cost_usd:sum{{$cluster}}[1d]) / {_PER_HOUR}",
}
_PLAN_USD: Final = (
    "max by (plan) (podwright_plan_upfront_usd{$cluster}) / (max by (plan) "
    '(podwright_plan_instances{$cluster, state="total"}) * (max by (plan) '
    "(podwright_plan_end_timestamp_seconds{$cluster}) - max by (plan) "
    "(podwright_plan_start_timestamp_seconds{$cluster})) / 3600)"
)


@dataclass(frozen=True, slots=True)
class Measured:
    """What a span of days used."""

    hours: tuple[Hours, ...]
    idle: Mapping[str, float]
    """Idle hours by namespace, of what its jobs held."""
    cluster: Mapping[str, float | None]
    """Hours of the whole cluster and the price of its instances; None where nothing was measured."""
    plan_usd: Mapping[str, float]
    """What an instance-hour of each training plan cost, by its name in the file."""
    days_seen: int
    """Days of which anything was measured at all."""


def measured(server: Prometheus, cluster: str, end: float, days: int) -> Measured:
    """The `days` days until `end` (seconds since the epoch). Raises QueryError."""
    whole = {name: _days(server, query, cluster, end, days) for name, query in _OF_CLUSTER.items()}
    parts: dict[tuple[str, str, str], dict[str, float]] = {}
    for field, query in _OF_TEAMS.items():
        for labels, values in _days(server, query, cluster, end, days):
            key = labels["team"], labels["flavor"], labels["resource"]
            parts.setdefault(key, dict.fromkeys(_OF_TEAMS, 0.0))[field] += sum(values)
    idle: dict[str, float] = {}
    for labels, values in _days(server, "namespace:gpu_idle_hours:sum1d{$cluster}", cluster, end, days):
        idle[labels["namespace"]] = idle.get(labels["namespace"], 0.0) + sum(values)
    plans = server.instant(filled(_PLAN_USD, cluster=cluster, rate_seconds=300), end)
    return Measured(
        tuple(Hours(*key, **values) for key, values in sorted(parts.items())),
        idle,
        {name: _total(series) for name, series in whole.items()},
        {item["metric"]["plan"]: float(item["value"][1]) for item in plans},
        max((len(values) for _, values in whole["gpu_hours"]), default=0),
    )


def _total(series: Sequence[Days]) -> float | None:
    """The sum of all days of all series; None where nothing was measured."""
    return sum(sum(values) for _, values in series) if series else None


def _days(server: Prometheus, query: str, cluster: str, end: float, days: int) -> list[Days]:
    """Each series with its value at the end of each day."""
    text = filled(query, cluster=cluster, rate_seconds=300)
    series: list[Days] = []
    for item in server.range(text, end - (days - 1) * DAY, end, DAY):
        series.append((item["metric"], [float(value) for _, value in item["values"]]))
    return series
