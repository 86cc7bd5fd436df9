"""The operators that charts and add-ons bring, and the parts of the sandbox's control plane that an environment needs.

The sandbox builds its control plane from parts, each named after the upstream program. Most environments need a few of
them: Kubernetes, kwok, one engine and the operators of their kinds of jobs.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, get_args

from ...config.catalog.charts import HYPERPOD_DEPENDENCIES, KAI, KUEUE, YUNIKORN
from ...config.settings.environment import Environment
from ...config.settings.governance.task_governance import ADDON
from ...config.settings.platform import KUBEFLOW_TRAINER, KUBERAY, LEADER_WORKER_SET, TRAINING_OPERATOR
from ..kubernetes.addons import installed_addons
from .wanted_charts import wanted_charts

Operator = Literal[
    "kueue",
    "training-operator",
    "mpi-operator",
    "kuberay",
    "jobset",
    "trainer",
    "lws",
    "hyperpod-training-operator",
    "yunikorn",
]
OPERATORS: Final[tuple[Operator, ...]] = get_args(Operator)

BASE_PARTS: Final = ("etcd", "kubernetes", "kwok")
"""Parts that every control plane needs."""

NODE_PARTS: Final = ("kubelet", "coredns")
"""Parts that the real nodes of a cluster need, on Linux. Without them the cluster has simulated nodes only."""

BUNDLED: Final[tuple[Operator, ...]] = ("hyperpod-training-operator",)
"""Operators that podwright itself contains, so that no part is built for them."""

BY_OWNER: Final[dict[str, tuple[Operator, ...]]] = {
    ADDON: ("kueue",),
    KUEUE: ("kueue",),
    YUNIKORN: ("yunikorn",),
    HYPERPOD_DEPENDENCIES: ("training-operator", "mpi-operator"),
    KUBERAY: ("kuberay",),
    KUBEFLOW_TRAINER: ("jobset", "trainer"),
    LEADER_WORKER_SET: ("lws",),
    TRAINING_OPERATOR: ("hyperpod-training-operator",),
}
"""Operators by the add-on or chart that brings them, in the order in which they start."""

_SWITCHES: Final[dict[Operator, str]] = {"training-operator": "trainingOperators", "mpi-operator": "mpi-operator"}
"""Values of HyperPod's chart that turn an operator off."""

_MPI: Final[Operator] = "mpi-operator"
"""Brought by HyperPod's chart by default, and used by few environments."""

_MPI_KINDS: Final = frozenset({"mpi", "nccl_test"})
"""Kinds of jobs that the MPI operator runs."""


def is_optional(operator: Operator) -> bool:
    """Return True if a cluster starts without this operator where its part is not installed."""
    return operator == _MPI


def enabled_operators(owner: str, values: Mapping[str, Any] | None = None) -> dict[Operator, bool]:
    """Return the operators of an add-on or chart, and whether its values turn each on."""
    stated = values or {}
    return {name: stated.get(_SWITCHES.get(name, ""), {}).get("enabled", True) for name in BY_OWNER.get(owner, ())}


def control_plane_parts(environment: Environment) -> tuple[str, ...]:
    """Return the names of the control plane's parts that an environment's cluster needs; none without Kubernetes."""
    if environment.cluster.orchestrator != "eks":
        return ()
    return tuple(dict.fromkeys((*BASE_PARTS, *_needed(environment))))


def _needed(environment: Environment) -> Iterator[str]:
    """Yield the parts behind an environment's charts and add-ons, some of them twice."""
    owners = {item.chart.name: item.values for item in wanted_charts(environment)}
    for owner, values in {**dict.fromkeys(installed_addons(environment)), **owners}.items():
        if owner == KAI:
            yield KAI
        for name, enabled in enabled_operators(owner, values).items():
            if enabled and name not in BUNDLED and (not is_optional(name) or _runs_mpi(environment)):
                yield name


def _runs_mpi(environment: Environment) -> bool:
    """Return True if a job or a gate of the environment is one of the MPI operator's."""
    tested = environment.gates is not None and environment.gates.nccl.image is not None
    return tested or any(job.kind in _MPI_KINDS for job in environment.jobs.values())
