"""The manifests of an environment's jobs, for people who read them and for a cluster that takes them."""

import io
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final

from ruamel.yaml import YAML

from ...cdk8s_charts.jobs.recipe import script
from ...cdk8s_charts.jobs.render import KINDS, render
from ...config.catalog.instance_types import environment_types
from ...config.errors import CommandError
from ...config.findings import Finding, Level, dotted, errors
from ...config.loading.load import LoadedEnvironment
from ...planning.jobs.batch_script import batch_script
from ...planning.jobs.origins import field_of
from ...planning.jobs.plan import JobPlan, Planner
from ...planning.rules import findings
from ..output.console import write_findings

Manifest = dict[str, Any]
_REJECTED: Final = "ENV003"
# A field in what Kubernetes says of a manifest: `spec.replicaSpecs[0].name: Required value`, `unknown field "spec.x"`.
_FIELD: Final = re.compile(r"\b((?:spec|metadata)(?:\.[A-Za-z][\w/-]*|\[\d+\])+)")


def job_manifests(loaded: LoadedEnvironment, names: Sequence[str] = ()) -> dict[str, list[Manifest]]:
    """The manifests of the jobs called `names`, of all when there are none, by job. Recipes have none (`recipes`).

    Raises:
        CommandError: no such job, or one that rules refuse; their findings are printed.
    """
    return {name: render(plan) for name, plan in planned_jobs(loaded, names).items() if plan.job.kind in KINDS}


def recipes(loaded: LoadedEnvironment, names: Sequence[str] = ()) -> dict[str, str]:
    """The shell scripts that start the launcher of recipes, by job. Raises CommandError as `job_manifests` does."""
    return {name: script(plan) for name, plan in planned_jobs(loaded, names).items() if plan.job.kind == "recipe"}


def batch_scripts(loaded: LoadedEnvironment, names: Sequence[str] = ()) -> dict[str, str]:
    """The scripts of Slurm's jobs, by job. Raises CommandError as `job_manifests` does."""
    environment = loaded.environment
    types = environment_types(environment.instance_types)
    return {name: batch_script(environment, name, types) for name in _checked(loaded, names, batch=True)}


def planned_jobs(loaded: LoadedEnvironment, names: Sequence[str] = ()) -> dict[str, JobPlan]:
    """The plans of the jobs called `names`, of all when there are none, by job.

    Raises:
        CommandError: no such job, or one that rules refuse; their findings are printed.
    """
    environment = loaded.environment
    planner = Planner(environment, environment_types(environment.instance_types))
    return {name: planner.plan(name) for name in _checked(loaded, names, batch=False)}


def _checked(loaded: LoadedEnvironment, names: Sequence[str], *, batch: bool) -> list[str]:
    """Which of the jobs called `names`, of all when there are none, are Slurm's, or Kubernetes'. Raises as above."""
    environment = loaded.environment
    unknown = [name for name in names if name not in environment.jobs]
    if unknown:
        known = ", ".join(environment.jobs) or "none"
        raise CommandError(f"{environment.name} has no job {unknown[0]}", f"known: {known}", 2)
    desired = tuple(names) or tuple(environment.jobs)
    refused = [
        finding
        for finding in errors(findings(environment, loaded.source))
        # A finding about jobs as a whole concerns each of them.
        if finding.path == "jobs" or _is_of_job(finding.path, desired)
    ]
    if refused:
        write_findings(refused, sys.stderr)
        raise CommandError(f"{len(refused)} errors in the jobs that are meant", "fix them first")
    return [name for name in desired if (environment.jobs[name].kind == "sbatch") == batch]


def _is_of_job(path: str, names: Sequence[str]) -> bool:
    """Whether a field is that of a job, or within it."""
    return any(f"{path}.".startswith((f"jobs.{name}.", f"jobs.{name}[")) for name in names)


def yaml_text(manifests: Iterable[Manifest]) -> str:
    """Manifests as documents of one YAML file."""
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    # Kubernetes' own order (apiVersion, kind, metadata, spec) is the one that people read.
    yaml.sort_base_mapping_type_on_output = False
    yaml.width = 120
    # Requests and limits are one value, and readers want to see both.
    yaml.representer.ignore_aliases = lambda _: True
    text = io.StringIO()
    yaml.dump_all(manifests, text)
    return text.getvalue()


def rejection(loaded: LoadedEnvironment, name: str, message: str) -> list[Finding]:
    """What a cluster says against a job, each at the setting that the rejected field comes from."""
    job = loaded.environment.jobs[name]
    results = []
    for line in message.splitlines():
        # A message may name a field twice.
        for location in dict.fromkeys(_FIELD.findall(line)):
            path = field_of(name, job, location)
            results.append(
                Finding(
                    _REJECTED,
                    Level.ERROR,
                    dotted(path),
                    f"{dotted(path)} became {location}, which the cluster refuses: {line.strip(' *')}",
                    "correct the setting; if it is right, the operator on the cluster is older than podwright knows",
                    loaded.source.position(path),
                )
            )
    return results
