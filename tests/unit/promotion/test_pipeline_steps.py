"""`pipeline:` of podwright.yaml, and the steps that it becomes."""

from pathlib import Path

import pytest

from podwright.config.catalog.images import Image, ecr_registry
from podwright.config.catalog.instance_types import environment_types
from podwright.config.errors import InvalidFile
from podwright.config.loading.project import Project
from podwright.config.settings.benchmarks import benchmark_policy
from podwright.operations import cli
from podwright.planning.delivery.gate_table import nccl_image, why_not
from podwright.planning.delivery.pipeline_steps import Step, drift_steps, steps

ROOT = Path(__file__).resolve().parents[3]


def project(folder: Path, text: str, names: tuple[str, ...] = ("dev", "prod", "staging")) -> Project:
    """A project whose environments are those of this repository."""
    (folder / "environments").mkdir(exist_ok=True)
    for name in names:
        (folder / f"environments/{name}.yaml").write_text((ROOT / f"environments/{name}.yaml").read_text())
    (folder / "podwright.yaml").write_text(text)
    return Project.at(folder)


def listed(actual: Project) -> dict[str, Step]:
    result = {step.name: step for step in steps(actual.settings, actual.names)}
    assert len(result) == len(steps(actual.settings, actual.names))
    return result


STAGES = """
environments: [dev, staging, prod]
pipeline:
  tests: [pytest tests]
  stages:
    - environments: dev
    - {environments: [staging, prod], manual: true, gates: [cluster, canary]}
"""


def test_each_environment_is_a_stage_without_a_word(tmp_path: Path) -> None:
    resolved_steps = listed(project(tmp_path, "environments: [dev, staging]\n"))
    assert list(resolved_steps) == [
        "check",
        "synth",
        *(f"{name}.{kind}" for name in ("dev", "staging") for kind in ("preflight", "effects", "deploy", "gate")),
    ]
    assert resolved_steps["staging.preflight"].needs == ("dev.gate",)
    assert resolved_steps["dev.gate"].commands == ("podwright gate dev --evidence evidence/dev",)


def test_without_a_file_every_environment_is_promoted(tmp_path: Path) -> None:
    resolved_project = project(tmp_path, "")
    assert [
        step.stage for step in steps(resolved_project.settings, resolved_project.names) if step.kind == "deploy"
    ] == ["dev", "prod", "staging"]


def test_environments_of_a_stage_go_side_by_side_behind_one_approval(tmp_path: Path) -> None:
    resolved_steps = listed(project(tmp_path, STAGES))
    assert resolved_steps["tests"].commands == ("pytest tests",)
    assert resolved_steps["synth"].needs == ("tests",)
    observed = ("staging.preflight", "staging.effects", "prod.preflight", "prod.effects")
    assert {resolved_steps[name].needs for name in observed} == {("dev.gate",)}
    approval = resolved_steps["staging-prod.approval"]
    assert (approval.needs, approval.role, approval.commands) == (observed, "person", ())
    assert resolved_steps["staging.deploy"].needs == resolved_steps["prod.deploy"].needs == ("staging-prod.approval",)
    assert resolved_steps["prod.gate"].commands == ("podwright gate prod cluster canary --evidence evidence/prod",)


def test_every_step_comes_after_those_that_it_needs(tmp_path: Path) -> None:
    earlier: set[str] = set()
    for step in listed(project(tmp_path, STAGES)).values():
        assert set(step.needs) <= earlier
        earlier.add(step.name)


def test_only_its_kind_decides_what_a_step_may_do(tmp_path: Path) -> None:
    resolved_project = project(tmp_path, STAGES)
    locations = {
        step.kind: step.role
        for step in (
            *listed(resolved_project).values(),
            *drift_steps(resolved_project.settings, resolved_project.names),
        )
    }
    assert locations == {
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


def refused(folder: Path, pipeline: str, names: str = "[dev, staging, prod]") -> list[str]:
    text = f"environments: {names}\npipeline:\n{pipeline}"
    with pytest.raises(InvalidFile) as caught:
        project(folder, text)
    return [f"{finding.place} {finding.id} {finding.message}" for finding in caught.value.findings]


@pytest.mark.parametrize(
    ("pipeline", "expected"),
    [
        (
            "  stages: [{environments: [dev, qa]}]",
            "podwright.yaml:3 PIP001 stage 1 deploys 'qa', which environments/ lacks",
        ),
        (
            "  stages:\n  - environments: dev\n  - environments: [dev]",
            "podwright.yaml:5 PIP002 'dev' is deployed by two stages or twice by one",
        ),
        (
            "  stages: [{environments: [dev, dev]}]",
            "podwright.yaml:3 PIP002 'dev' is deployed by two stages or twice by one",
        ),
        (
            "  stages:\n  - environments: prod\n  - environments: staging",
            "podwright.yaml:5 PIP003 stage 2 deploys 'staging' after 'prod'; `environments:` says the opposite",
        ),
    ],
)
def test_an_order_that_cannot_be_is_refused_at_its_line(tmp_path: Path, pipeline: str, expected: str) -> None:
    assert refused(tmp_path, pipeline) == [expected]


@pytest.mark.parametrize(
    ("pipeline", "word"),
    [
        ("  source: {repository: acme/x, bucket: acme-x, key: x.zip}", "exactly one of repository, codecommit, bucket"),
        ("  source: {bucket: acme-x}", "bucket and key go together"),
        ("  source: {codecommit: clüsters}", "source.codecommit"),
        (
            "  source: {codecommit: x, connection: arn:aws:codeconnections:us-west-2:111122223333:connection/"
            "0e3a1b2c-1111-2222-3333-444455556666}",
            "connection goes with repository",
        ),
        ("  drift: {schedule: daily}", "drift.schedule"),
        ("  notify: [oncall]", "notify"),
        ("  stages: [{environments: []}]", "stages.0.environments"),
        ("  stagse: []", "stagse"),
        ("  tests: pytest", "tests"),
    ],
)
def test_a_value_that_cannot_be_is_refused(tmp_path: Path, pipeline: str, word: str) -> None:
    [actual] = refused(tmp_path, pipeline)
    assert "podwright.yaml:3 ENV004" in actual
    assert word in actual


def test_every_command_finds_a_wrong_pipeline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InvalidFile):
        project(tmp_path, "pipeline: {stages: [{environments: [qa]}]}")
    assert cli.main(["check", "--project", str(tmp_path)]) == 2
    assert "PIP001" in capsys.readouterr().err


def test_prod_follows_a_stage_that_measures_nodes_and_their_network() -> None:
    """Promotion claims that what reaches prod has proved its speed, so an environment before it has to ask for that."""
    ours = Project.at(ROOT)
    names = [step.environment for step in steps(ours.settings, ours.names) if step.environment]
    assert names.index("staging") < names.index("prod")
    staging, prod = (ours.load(name).environment for name in ("staging", "prod"))
    types = environment_types(staging.instance_types)
    assert benchmark_policy(staging.instance_groups["h200"], types) == "gate"
    assert (why_not(staging, types, "verdicts"), why_not(staging, types, "nccl")) == ("", "")
    # It is what prod is made of, and the network lets nothing in that is not in the account's registry.
    assert staging.instance_groups["h200"].types == prod.instance_groups["h200"].types
    assert Image.parse(nccl_image(staging)).registry == ecr_registry(staging.account, staging.region)
