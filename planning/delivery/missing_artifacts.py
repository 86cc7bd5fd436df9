"""What a project has to fetch or build before an environment can be deployed from it."""

from pathlib import Path

from ...config.catalog.instance_types import environment_types
from ...config.findings import Finding
from ...config.loading.artifacts import chart_findings, read_artifacts
from ...config.settings.environment import Environment
from ..helm.mirrors import mirror_findings
from ..helm.wanted_charts import wanted_charts
from ..node.archives import archive_findings, environment_archives
from ..node.kernels import program_findings


def missing_artifacts(root: Path, environment: Environment) -> list[Finding]:
    """What of `artifacts.lock` and its archives is missing in the project in `root`; nothing when all is there.

    Raises:
        InvalidFile: `artifacts.lock` is damaged.
    """
    groups, types = environment.instance_groups.values(), environment_types(environment.instance_types)
    return [
        *(finding for desired in wanted_charts(environment) for finding in chart_findings(root, desired.chart)),
        *mirror_findings(environment, read_artifacts(root)),
        *archive_findings(root, environment_archives(environment)),
        *program_findings(root, environment.cluster.benchmarks, groups, types),
    ]
