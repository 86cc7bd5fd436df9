"""The workflows with which GitHub Actions promotes: the same steps as everywhere, in jobs with one role at a time."""

import json
import re
from collections.abc import Iterable, Sequence
from textwrap import indent
from typing import Final

from ...config.catalog.regions import region
from ...config.errors import InvalidFile
from ...config.loading.project import Project
from ...config.settings.environment import Environment
from ...planning.delivery.pipeline_steps import (
    EVIDENCE,
    INSTALL,
    ExecutionRole,
    Step,
    drift_steps,
    override_schedules,
    stages,
    steps,
)
from ...planning.delivery.promotable import promotable, source_of
from ...planning.delivery.promotion_roles import role_arn, role_name

PROMOTION: Final = ".github/workflows/podwright.yml"
DRIFT: Final = ".github/workflows/podwright-drift.yml"
# Commits behind the versions in the comments, as public lists of pinned actions name them, 2026-11.
_CHECKOUT: Final = "actions/checkout@08c6903cd8c0fde910a37f88322edcfb5dd907a8 # v5.0.0"
_PYTHON: Final = "actions/setup-python@e797f83bcb11b83ae66e0230d6156d7c80228e7c # v6.0.0"
_CACHE: Final = "actions/cache@0057852bfaa89a56745cba8c7296529d2fc39830 # v4.3.0"
_UPLOAD: Final = "actions/upload-artifact@ea165f8d65b6e75b540449e92b4886f43607fa02 # v4.6.2"
_CREDENTIALS: Final = "aws-actions/configure-aws-credentials@a03048d87541d1d9fcf2ecf528a4a65ba9bd7838 # v5.0.0"
_RUNNER: Final = "${{ vars.PODWRIGHT_RUNNER || 'ubuntu-24.04' }}"
# As long as a job may take: a deployment waits for nodes, and credentials have to last until its end.
_SESSION_SECONDS: Final = 21_600
_DAY_OF_MONTH: Final = re.compile(r"^[0-9,*?/-]+$")
_DAY_OF_WEEK: Final = re.compile(r"^([1-7,*?-]|SUN|MON|TUE|WED|THU|FRI|SAT)+$")
_DAYS: Final = {str(number): str(number - 1) for number in range(1, 8)}

_HEAD: Final = """\
# Written by `podwright init . --ci github` from podwright.yaml. Change that file, delete this one and write it again.
# Actions are pinned to commits; Dependabot raises commit and comment together (package-ecosystem: github-actions).
"""


def promotion_workflow(project: Project) -> str:
    """The text of the workflow that promotes.

    Looks run with a role that reads, for this branch alone. A deployment and its gates are one job in the GitHub
    environment of the same name, whose reviewers are asked once, after the looks. One promotion runs at a time and none
    is cancelled: the newest commit waits for the one under way.
    """
    _, source = source_of(project)
    environments = {loaded.environment.name: loaded.environment for loaded in promotable(project)}
    resolved_steps = steps(project.settings, project.names)
    jobs = [_job("build", _build(resolved_steps))]
    before: Sequence[str] = ("build",)
    for stage in stages(project.settings, project.names):
        of_stage = [step for step in resolved_steps if step.stage == stage.name]
        reads = [f"look-{name}" for name in stage.environments]
        for name in stage.environments:
            mine = [step for step in of_stage if step.environment == name]
            environment = environments[name]
            looking = _looking(project, environment, _execution_roles(mine, "read"), before)
            jobs.append(_job(f"look-{name}", f"if: github.event_name != 'pull_request'\n{looking}"))
            deploys = _execution_roles(mine, "deploy", "prove")
            jobs.append(_job(f"deploy-{name}", _deploy(project, environment, deploys, reads, stage.manual)))
        before = [f"deploy-{name}" for name in stage.environments]
    return f"""{_HEAD}name: podwright
on:
  push:
    branches: [{json.dumps(source.branch)}]
  pull_request:
  workflow_dispatch:
{_at_overrides(environments.values())}permissions:
  contents: read
concurrency:
  group: podwright-${{{{ github.event_name == 'pull_request' && github.ref || 'promotion' }}}}
  cancel-in-progress: false
jobs:
{"".join(jobs)}"""


def _at_overrides(environments: Iterable[Environment]) -> str:
    """When quotas of `governance.overrides` begin and end: each time the same commit is promoted with other quotas."""
    lines = [f"    - cron: {json.dumps(github_cron(each))}\n" for each in override_schedules(environments)]
    return f"  schedule:\n{''.join(lines)}" if lines else ""


def drift_workflow(project: Project) -> str | None:
    """The text of the workflow that looks for drift on a schedule; None where `drift: {schedule: off}` says so."""
    settings, _ = source_of(project)
    if settings.drift.schedule == "off":
        return None
    environments = {loaded.environment.name: loaded.environment for loaded in promotable(project)}
    jobs = [
        _job(str(step.environment), _looking(project, environments[str(step.environment)], [step], ()))
        for step in drift_steps(project.settings, project.names)
    ]
    return f"""{_HEAD}name: podwright drift
on:
  schedule:
    - cron: {json.dumps(github_cron(settings.drift.schedule))}
  workflow_dispatch:
permissions:
  contents: read
jobs:
{"".join(jobs)}"""


def github_cron(expression: str) -> str:
    """EventBridge's cron in the five fields of GitHub, which count Sunday as 0 and know no years.

    Raises:
        InvalidFile: the expression says what GitHub cannot: a year, or the last or nth day.
    """
    fields = expression.removeprefix("cron(").removesuffix(")").split()
    known = len(fields) == 6 and fields[5] == "*" and _DAY_OF_MONTH.match(fields[2]) and _DAY_OF_WEEK.match(fields[4])
    if not known:
        message = f"pipeline.drift.schedule: GitHub Actions cannot run at {expression}"
        hint = "use six fields with * as the year, and neither L, W, # nor steps of days, such as cron(0 6 * * ? *)"
        raise InvalidFile.because("PIP006", message, hint, path="pipeline.drift.schedule")
    days = "".join(_DAYS.get(character, character) for character in fields[4])
    return " ".join("*" if field == "?" else field for field in (*fields[:4], days))


def _execution_roles(result: Iterable[Step], *roles: ExecutionRole) -> list[Step]:
    return [step for step in result if step.role in roles]


def _job(name: str, body: str) -> str:
    return f"  {name}:\n{indent(body, '    ')}"


def _build(result: Iterable[Step]) -> str:
    runs = "".join(_run(step) for step in result if step.stage is None)
    return f"""\
runs-on: {_RUNNER}
timeout-minutes: 60
steps:
{_prepared()}{runs}"""


def _looking(project: Project, environment: Environment, result: Sequence[Step], needs: Sequence[str]) -> str:
    waits = f"needs: [{', '.join(needs)}]\n" if needs else ""
    runs = _credentials(project, environment, "read", 3600) + "".join(map(_run, result))
    return f"""\
{waits}runs-on: {_RUNNER}
timeout-minutes: 60
permissions:
  contents: read
  id-token: write
steps:
{_prepared()}{runs}{_evidence(f"look-{environment.name}")}"""


def _deploy(
    project: Project, environment: Environment, result: Sequence[Step], needs: Sequence[str], manual: bool
) -> str:
    """The job that deploys an environment; `manual` where reviewers let it start."""
    reviewers = "  # with required reviewers, see docs/operator/pipeline.md" if manual else ""
    runs = "".join(_credentials(project, environment, step.role, _SESSION_SECONDS) + _run(step) for step in result)
    return f"""\
if: github.event_name != 'pull_request'
needs: [{", ".join(needs)}]
environment: {environment.name}{reviewers}
runs-on: {_RUNNER}
timeout-minutes: 360
permissions:
  contents: read
  id-token: write
steps:
{_prepared()}{runs}{_evidence(f"deploy-{environment.name}")}"""


def _prepared() -> str:
    """The first steps of every job: checkout, Python, and what requirements.txt and artifacts.lock pin."""
    return f"""\
  - uses: {_CHECKOUT}
    with:
      persist-credentials: false
  - uses: {_PYTHON}
    with:
      python-version: "3.12"
  - uses: {_CACHE}
    with:
      path: .podwright/artifacts
      key: podwright-${{{{ hashFiles('artifacts.lock') }}}}
  - name: Install what requirements.txt pins
    run: |
      {INSTALL}
  - name: Fetch what artifacts.lock names
    run: |
      podwright chart fetch
      podwright assets fetch
      podwright kernels build
      test -z "$(git status --porcelain -- artifacts.lock)" || {{ git diff -- artifacts.lock; exit 1; }}
"""


def _credentials(project: Project, environment: Environment, role: ExecutionRole, seconds: int) -> str:
    settings, _ = source_of(project)
    partition, name = region(environment.region).partition, role_name(settings.name, environment.name, role)
    arn = role_arn(partition, environment.account, environment.iam.role_path, name)
    return f"""\
  - uses: {_CREDENTIALS}
    with:
      role-to-assume: {arn}
      role-duration-seconds: {seconds}
      aws-region: {environment.region}
      unset-current-credentials: true
"""


def _run(step: Step) -> str:
    return f"  - name: {step.name}\n    run: |\n{indent(chr(10).join(step.commands), '      ')}\n"


def _evidence(name: str) -> str:
    return f"""\
  - uses: {_UPLOAD}
    if: always()
    with:
      name: {name}
      path: {EVIDENCE}
      if-no-files-found: ignore
      retention-days: 90
"""
