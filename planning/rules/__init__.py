"""Rules: what an environment must be, beyond what its types can say. Importing a module registers its rules."""

from .capacity import capacity, capacity_choices, plans, ultraservers, zones  # noqa: F401
from .cluster import cluster, karpenter, orchestrator, platform, restricted, slurm, system, upgrades  # noqa: F401
from .engines import kai, kueue, task_governance, yunikorn  # noqa: F401
from .environment import environment, gates, template  # noqa: F401
from .framework.rule import RULES, Problem, Rule
from .groups import benchmarks, groups, lifecycle, nodes, software, updates  # noqa: F401
from .jobs import job_endpoints, job_pods, job_quotas, jobs, launchers, recipes  # noqa: F401
from .network import addresses, network  # noqa: F401
from .observability import alerts, budget, dashboards, observability  # noqa: F401
from .pages import explain
from .project import links, project  # noqa: F401
from .quota import budgets, isolation, overrides, partitions, quotas, sharing, teams  # noqa: F401
from .run import check, findings
from .storage import lustre, storage  # noqa: F401

__all__ = ["RULES", "Problem", "Rule", "check", "explain", "findings"]
