"""How many series a cluster has, and what they cost a month: by exporter, with how sure each number is.

The price is that of writing and keeping samples. Queries are not in it: what they read depends on who looks, and on the
rules, which read few series that they have recorded themselves.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, cast

from ...config.catalog.facts import Citation, cited, table
from ...config.catalog.instance_type import InstanceType
from ...config.catalog.metrics import Basis, Exporter
from ...config.catalog.prices import HOURS_PER_MONTH
from ...config.settings.observability import Level

BYTES_PER_SAMPLE: Final = 1.5
"""Of one to two, as the price list says."""
OWN_SECONDS: Final = 60
"""Between two samples of what podwright measures itself."""
_OF_CLUSTER: Final = frozenset({"cluster", "group", "kernel_of_group", "queue", "quota", "job", "plan"})


@dataclass(frozen=True, slots=True)
class SeriesRow:
    """So many series for each of something."""

    exporter: Exporter
    level: Level
    per: str
    series: int
    basis: Basis
    sources: tuple[Citation, ...]
    what: str


@dataclass(frozen=True, slots=True)
class Load:
    """What is on a node, and in a cluster, beside what the instance type says. All of it is assumed."""

    pods: int = 20
    """Pods on a node, system pods among them. Each has an interface."""
    containers: int = 30
    """Containers in them."""
    disks: int = 10
    """Disks of a node."""
    mounts: int = 8
    """File systems that node_exporter counts."""
    targets: int = 4
    """Exporters of a node that are scraped."""
    kernels: int = 15
    """Kernels of a benchmark."""
    groups: int = 4
    queues: int = 20
    quotas: int = 40
    """Queues by flavor and resource."""
    jobs: int = 50
    plans: int = 2


@dataclass(frozen=True, slots=True)
class Bill:
    """Series of a cluster, and what they cost."""

    per_node: int
    series: int
    samples: float
    """A month of 730 hours."""
    usd: float
    """A month, after the retention has once gone by."""
    by_basis: Mapping[Basis, int]
    """Series of a node by how sure their number is."""


@cache
def series_rows() -> tuple[SeriesRow, ...]:
    """The whole table."""
    return tuple(
        SeriesRow(
            cast(Exporter, row["exporter"]),
            "advanced" if row["level"] == "advanced" else "basic",
            row["per"],
            int(row["series"]),
            cast(Basis, row["basis"]),
            cited(row["source"]),
            row["what"],
        )
        for row in table("metric_series")
    )


def bill(
    instance: InstanceType,
    nodes: int,
    level: Level,
    *,
    scrape_seconds: int = 30,
    retention_days: int = 150,
    load: Load | None = None,
) -> Bill:
    """What a cluster of so many nodes of one type costs to measure.

    Args:
        instance: The type.
        nodes: How many.
        level: basic or advanced.
        scrape_seconds: Between two samples of an exporter's series.
        retention_days: How long samples are kept.
        load: What runs there.
    """
    node, cluster, own = 0, 0, 0
    by_basis: dict[Basis, int] = {}
    for row, count in _counted(instance, load or Load(), level):
        if row.per in _OF_CLUSTER:
            cluster += count
        else:
            node += count
            by_basis[row.basis] = by_basis.get(row.basis, 0) + count
        if row.exporter == "podwright":
            # Own series are written once a minute, whatever the exporters' interval is.
            own += count * (1 if row.per in _OF_CLUSTER else nodes)
    series = node * nodes + cluster
    seconds = HOURS_PER_MONTH * 3600
    samples = (series - own) * seconds / scrape_seconds + own * seconds / OWN_SECONDS
    # Once the retention has gone by, each day as much is deleted as is added.
    months = retention_days * 24 / HOURS_PER_MONTH
    stored = samples * months * BYTES_PER_SAMPLE / 2**30
    # The price of samples is per ten million.
    return Bill(node, series, samples, _price("samples", samples / 1e7, 1e7) + _price("storage", stored, 1), by_basis)


def _counted(instance: InstanceType, load: Load, level: Level) -> Iterator[tuple[SeriesRow, int]]:
    """Each row that the level has with its series: of one node, or of the cluster."""
    gpus = instance.accelerator_count if instance.accelerator_vendor == "nvidia" else 0
    kernels = load.kernels if instance.accelerator_count else 0
    counts = {
        "node": 1,
        "cpu": instance.vcpu,
        # The node's own, the loopback, and one for each pod; cards that carry EFA alone have none.
        "interface": 2 + load.pods,
        "disk": load.disks,
        "mount": load.mounts,
        "gpu": gpus,
        "efa": instance.efa_interfaces,
        "neuron_core": instance.neuron_cores,
        "neuron_device": instance.accelerator_count if instance.neuron_cores else 0,
        "pod": load.pods,
        "container": load.containers,
        "target": load.targets,
        "kernel": kernels,
        "kernel_of_group": kernels * load.groups,
        "cluster": 1,
        "group": load.groups,
        "queue": load.queues,
        "quota": load.quotas,
        "job": load.jobs,
        "plan": load.plans,
    }
    for row in series_rows():
        if level == "advanced" or row.level == "basic":
            yield row, row.series * counts[row.per]


def _price(item: str, amount: float, unit: float) -> float:
    """US dollars for an amount, step by step: each price holds for what is above its threshold."""
    steps = [(float(row["from"]) / unit, float(row["usd"])) for row in table("metric_prices") if row["item"] == item]
    # Each step ends where the next begins, and the last one never.
    ends = [start for start, _ in steps[1:]] + [float("inf")]
    return sum(usd * max(0.0, min(amount, end) - start) for (start, usd), end in zip(steps, ends, strict=True))
