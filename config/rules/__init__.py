"""Rules: what an environment must and should be, beyond what its types can say. One module per subject."""

from . import (  # noqa: F401  importing a module registers its rules
    addresses,
    alerts,
    benchmarks,
    budget,
    capacity,
    capacity_choices,
    cluster,
    dashboards,
    environment,
    groups,
    isolation,
    job_quotas,
    jobs,
    kai,
    kueue,
    lifecycle,
    lustre,
    network,
    nodes,
    observability,
    orchestrator,
    partitions,
    plans,
    platform,
    quotas,
    sharing,
    slurm,
    software,
    storage,
    system,
    task_governance,
    teams,
    template,
    ultraservers,
    updates,
    upgrades,
    yunikorn,
    zones,
)
from .pages import explain
from .rule import RULES, Problem, Rule
from .run import Refused, check, findings

__all__ = ["RULES", "Problem", "Refused", "Rule", "check", "explain", "findings"]
