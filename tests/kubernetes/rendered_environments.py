"""What podwright renders of environments, and the namespaces that it expects."""

from typing import Any

from podwright.config.loading.project import Project
from podwright.config.settings.environment import Environment
from podwright.operations.kubernetes.filled import filled
from podwright.operations.kubernetes.job_manifests import job_manifests
from podwright.planning.helm.wanted_charts import wanted_charts
from podwright.planning.kubernetes.deployed_values import known_values, value_paths
from podwright.planning.quota.team_names import team_namespace
from synthesis import ROOT

_PROJECT = Project.at(ROOT)


def rendered_objects(settings: Environment) -> list[dict[str, Any]]:
    """What `podwright render` writes of an environment; a deployment applies the same (test_snapshots.py)."""
    paths, known = value_paths(settings), known_values(settings, "amazonaws.com")
    specified = {path: known.get(path, f"value-{index}") for index, path in enumerate(paths)}
    rendered, missing = filled(settings, specified, {})
    assert not missing
    return rendered


def rendered_jobs(name: str) -> list[dict[str, Any]]:
    """What `podwright render jobs` writes of an environment in `environments/`."""
    return [item for items in job_manifests(_PROJECT.load(name)).values() for item in items]


def namespaces_of_others(settings: Environment) -> list[dict[str, Any]]:
    """Those that something else makes: charts, the service with a team's quota, and who was there before."""
    governance = settings.governance
    names = {desired.chart.namespace for desired in wanted_charts(settings, {})}
    if governance.engine == "hyperpod":
        names |= {team_namespace("hyperpod", team) for team in governance.teams}
    if governance.engine == "yunikorn" and governance.yunikorn.existing:
        names.add(governance.yunikorn.existing)
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in sorted(names)]
