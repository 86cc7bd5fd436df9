"""Every metric that dashboards, recordings and alerts are made of, with what exports it (`data/metrics.csv`).

Each series also carries `cluster_name`, by which environments that share a workspace are told apart.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal, cast

from .facts import Citation, cited, table

Kind = Literal["gauge", "counter"]
Exporter = Literal[
    "dcgm",
    "neuron_monitor",
    "efa",
    "node",
    "cadvisor",
    "kube_state",
    "kubernetes_api",
    "collector",
    "kueue",
    "training_operator",
    "inference",
    "slurm",
    "podwright",
]
"""What measures it. `podwright` is a function of ours that asks SageMaker (`constructs/fleet_metrics`)."""
Basis = Literal["measured", "documented", "assumed"]
"""measured: counted on a run of the exporter. documented: read in its sources or manual. assumed: neither."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric."""

    name: str
    """As PromQL writes it; a histogram has its parts as rows of their own."""
    kind: Kind
    unit: str
    """Singular or plural words, such as bytes, ratio (0 to 1), percent (0 to 100) or boolean (0 or 1)."""
    labels: tuple[str, ...]
    """Labels by which its series differ, besides `cluster_name`."""
    exporter: Exporter
    level: Literal["basic", "advanced"]
    """The lowest level at which it is there."""
    per: str
    """What it has series for: a gpu, an efa device, a node, a queue …"""
    series: int
    """Series for each of these."""
    basis: Basis
    """How sure the number of series is."""
    sources: tuple[Citation, ...]
    says: str
    """What its value means."""


@cache
def metrics() -> Mapping[str, Metric]:
    """All metrics by name, in the order of the table."""
    return {
        row["name"]: Metric(
            row["name"],
            cast(Kind, row["kind"]),
            row["unit"],
            tuple(row["labels"].split()),
            cast(Exporter, row["exporter"]),
            "advanced" if row["level"] == "advanced" else "basic",
            row["per"],
            int(row["series"]),
            cast(Basis, row["basis"]),
            cited(row["source"]),
            row["says"],
        )
        for row in table("metrics")
    }
