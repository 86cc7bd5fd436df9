"""What a promotion does, step by step: the one list that CodePipeline, GitHub Actions and `podwright promote` follow.

A step is finished when all of its commands have returned 0. Each is a command line that a person can run too, in the
folder of the project. What a step leaves for others to read lies in `evidence/ENV/`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal

from ...config.loading.project import ProjectSettings
from ...config.settings.environment import Environment
from ...config.settings.pipeline import PipelineStage
from ..quota.overrides import override_moments

Kind = Literal["check", "tests", "synth", "preflight", "effects", "approval", "deploy", "gate", "drift"]
ExecutionRole = Literal["project", "read", "person", "deploy", "prove"]
"""What a step needs: the files alone; to read the environment's account; a person; to deploy there; to run jobs there.

The last four, but for a person, are the permissions of a role in the environment's account.
"""

EVIDENCE: Final = "evidence"
"""Folder of the project in which steps leave what they found, by environment."""
ASSEMBLY: Final = "cdk.out"
"""Folder of the project in which the step `synth` leaves the templates of all environments. CodePipeline
deploys these; elsewhere `podwright deploy` synthesizes once more, and two syntheses of one commit are byte-equal.
"""
INSTALL: Final = (
    "python -m pip install --quiet --disable-pip-version-check --requirement requirements.txt "
    '$(test ! -f constraints.txt || echo "--constraint constraints.txt")'
)
"""How a build installs what the project pins; `constraints.txt`, where there is one, pins what those need in turn."""
EXECUTION_ROLES: Final[dict[Kind, ExecutionRole]] = {
    "check": "project",
    "tests": "project",
    "synth": "project",
    "preflight": "read",
    "effects": "read",
    "approval": "person",
    "deploy": "deploy",
    "gate": "prove",
    "drift": "read",
}


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a promotion."""

    name: str
    """Unique: the kind, after the environment's (or, of an approval, the stage's) name and a dot where it has one."""
    kind: Kind
    environment: str | None
    """Name of the environment that it is about; None for all."""
    commands: tuple[str, ...]
    """Command lines, in their order; none for an approval."""
    needs: tuple[str, ...]
    """Names of the steps that have to have passed; they come earlier in the list."""
    role: ExecutionRole
    """What the step needs to run."""
    stage: str | None = None
    """Name of the stage that it belongs to; None before the first."""


def stages(settings: ProjectSettings, environments: Sequence[str]) -> tuple[PipelineStage, ...]:
    """The stages of promotion: those of `pipeline:`, or each environment by itself.

    Args:
        settings: What `podwright.yaml` says.
        environments: The names of all environments, in the order of promotion.
    """
    if settings.pipeline and settings.pipeline.stages:
        return settings.pipeline.stages
    return tuple(PipelineStage(environments=(name,)) for name in settings.environments or environments)


def steps(settings: ProjectSettings, environments: Sequence[str]) -> tuple[Step, ...]:
    """All steps of a promotion, each after those that it needs.

    Within a stage every environment is looked at before the first is deployed, and a person who has to approve sees
    the effects on all of them. A stage begins when every environment of the one before has passed its gates.

    Args:
        settings: What `podwright.yaml` says.
        environments: The names of all environments, in the order of promotion.
    """
    result = list(_before(settings))
    passed = (result[-1].name,)
    for stage in stages(settings, environments):
        reads = [step for name in stage.environments for step in _drift_checks(stage, name, passed)]
        observed = tuple(step.name for step in reads)
        approval = [_step("approval", stage.name, None, (), observed, stage.name)] if stage.manual else []
        agreed = (approval[0].name,) if approval else observed
        deploys = [
            # Without the preflight: the same stage has run it a moment before.
            _step("deploy", name, name, (f"podwright deploy {name} --yes --no-preflight",), agreed, stage.name)
            for name in stage.environments
        ]
        gates = [_gate(stage, deploy) for deploy in deploys]
        result += [*reads, *approval, *deploys, *gates]
        passed = tuple(step.name for step in gates)
    return tuple(result)


def drift_steps(settings: ProjectSettings, environments: Sequence[str]) -> tuple[Step, ...]:
    """The steps of the scheduled check for drift, one for each environment that is promoted."""
    return tuple(
        _step("drift", name, name, (f"podwright drift {name}",), (), None)
        for stage in stages(settings, environments)
        for name in stage.environments
    )


def override_schedules(environments: Iterable[Environment]) -> list[str]:
    """When quotas of environments change, as EventBridge's cron in UTC: the promotion runs again, with the new ones.

    Without a year, as GitHub knows none: a year later the promotion finds nothing to change.
    """
    moments = {at for environment in environments for at in override_moments(environment)}
    # A minute later where seconds are left: nothing is in force before its time.
    minutes = sorted({(at + timedelta(seconds=59)).replace(second=0) for at in moments})
    return [f"cron({at.minute} {at.hour} {at.day} {at.month} ? *)" for at in minutes]


def _before(settings: ProjectSettings) -> Iterator[Step]:
    """What needs no account, and so comes before the first stage."""
    yield _step("check", None, None, ("podwright check",), (), None)
    last = "check"
    if settings.pipeline and settings.pipeline.tests:
        yield _step("tests", None, None, settings.pipeline.tests, (last,), None)
        last = "tests"
    yield _step("synth", None, None, ("podwright pipeline synth",), (last,), None)


def _drift_checks(stage: PipelineStage, name: str, passed: tuple[str, ...]) -> Iterator[Step]:
    effects = f"podwright diff {name} --out {EVIDENCE}/{name}/effects.json --require-approval"
    yield _step("preflight", name, name, (f"podwright preflight {name}",), passed, stage.name)
    # --require-approval: the step fails where somebody has to agree, instead of asking.
    yield _step("effects", name, name, (effects,), passed, stage.name)


def _gate(stage: PipelineStage, deploy: Step) -> Step:
    command = " ".join(
        ("podwright gate", str(deploy.environment), *stage.gates, f"--evidence {EVIDENCE}/{deploy.environment}")
    )
    return _step("gate", deploy.environment, deploy.environment, (command,), (deploy.name,), stage.name)


def _step(
    kind: Kind,
    owner: str | None,
    environment: str | None,
    commands: tuple[str, ...],
    needs: tuple[str, ...],
    stage: str | None,
) -> Step:
    name = f"{owner}.{kind}" if owner else kind
    return Step(name, kind, environment, commands, needs, EXECUTION_ROLES[kind], stage)
