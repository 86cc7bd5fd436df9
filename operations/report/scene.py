"""What a report is made of: the environment, its templates, and what was asked for besides."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from ...config.findings import Finding
from ...config.loading.load import LoadedEnvironment
from ...config.settings.environment import Environment
from ...planning.node.benchmark_results import BenchmarkResults
from ..simulation.document import Simulation
from .assembly import Assembly

Data = dict[str, Any]


@dataclass(frozen=True)
class Scene:
    """One environment, looked at on one day."""

    loaded: LoadedEnvironment
    findings: Sequence[Finding]
    """What the rules say of it."""
    assembly: Assembly
    day: date
    """The day that prices and support dates are of."""
    live: Data | None = None
    """One observation at the cluster; None unless it was asked for."""
    windows: Mapping[str, list[Data]] = field(default_factory=dict)
    """The parts of training plans as SageMaker has them."""
    benchmarks: Sequence[BenchmarkResults] = ()
    """What nodes measured."""
    changes: Data | None = None
    """What `podwright diff ENV --json` said; None unless it was asked."""

    work: Simulation | None = None
    """Work under the quotas of the file; None unless it was asked for."""

    @property
    def environment(self) -> Environment:
        """The environment."""
        return self.loaded.environment
