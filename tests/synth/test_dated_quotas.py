"""What a deployment has of quotas that are others for a time: exactly those that are in force at its moment."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cloudformation_cdk import write_assembly
from podwright.config.loading.project import Project
from podwright.operations.cdk.app import synthesize
from podwright.operations.effects.changes import changes as resource_changes
from podwright.operations.effects.quota_effect import DEPLOYED, effect_lines, quota_effect
from podwright.operations.effects.templates import pairs, synthesized
from podwright.operations.simulation.decisions import decide
from podwright.operations.simulation.document import document
from podwright.planning.simulation.traces.forms import read_trace
from screens import text_of

WORK = """\
team,submitted,duration,job,pods,accelerators,group
research,0,2h,first,3,8,h200
product,10,2h,second,3,8,h200
"""
PROD = """
account: "111122223333"
region: us-west-2
network: {zones: [usw2-az2, usw2-az3]}
cluster: {eks: {admins: ["arn:aws:iam::111122223333:role/MlPlatform"]}}
storage: {lustre: {zone: usw2-az2}}
instance_groups:
  system: {instance_type: ml.m5.4xlarge, count: 2, zone: usw2-az2}
  h200: {instance_type: ml.p5en.48xlarge, count: 4, zone: usw2-az2}
governance:
  engine: ENGINE
  teams: {research: {quota: {h200: 3}}, product: {quota: {h200: 1}}}
  overrides:
    paper:
      begin: 2027-01-04T08:00Z
      end: 2027-02-01
      teams: {research: {quota: {h200: 1}}, product: {quota: {h200: 3}}}
"""


def templates(root: Path, at: str, write: Callable[..., str | None]) -> dict[str, Any]:
    """Resources of all templates by file and logical id, as they are written for a date."""
    folder = root / f"out-{at[:10]}"
    context = {"environment": "prod", "chart": "stand-in", "at": at}
    assert write(root, context, folder) is None
    return {
        f"{file.name}/{name}": resource
        for file in sorted(folder.rglob("*.template.json"))
        for name, resource in json.loads(file.read_text())["Resources"].items()
    }


@pytest.mark.parametrize("engine", ["hyperpod", "kueue"])
def test_a_deployment_has_the_quotas_that_are_in_force_at_its_moment(engine: str, tmp_path: Path) -> None:
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments/prod.yaml").write_text(PROD.replace("ENGINE", engine))
    # The app itself gets the date once; in this process a synthesis takes a third as long.
    writers: dict[str, Callable[..., str | None]] = {
        "2027-01-04": write_assembly,
        "2027-01-05": write_assembly,
        "2027-02-01": write_assembly,
    }
    if engine == "hyperpod":
        writers["2027-01-05"] = synthesize
    before, during, after = (templates(tmp_path, f"{day}T07:59+00:00", write) for day, write in writers.items())
    assert before.keys() == during.keys() == after.keys()
    changed = {name for name, resource in during.items() if resource != before[name]}
    assert changed
    assert all("governance" in name for name in changed)
    assert {name for name in changed if before[name] != after[name]} == set(), "2027-02-01 07:59 is after its end"
    assemblies = [synthesized(tmp_path / f"out-{day}", "prod") for day in ("2027-01-05", "2027-01-04")]
    # Back from the override to the file's own quotas: `during` is what is deployed then.
    changes = resource_changes(pairs(*assemblies), "prod")
    loaded = Project.at(tmp_path).load("prod").environment
    result = quota_effect(loaded, changes, read_trace(WORK, {}), decide)
    assert result is not None
    assert [figures.outcome.name for figures in result.figures] == [DEPLOYED, "prod"]
    guaranteed = [{team: sum(held.values()) for team, held in each.outcome.quotas.items()} for each in result.figures]
    assert guaranteed == [{"research": 8, "product": 24}, {"research": 24, "product": 8}]
    waits = [{team.team: team.waits.most for team in each.teams} for each in result.figures]
    # A job of three nodes starts at once where its team is guaranteed them, and takes them back from who borrows.
    assert waits[0]["product"] < 60 < waits[0]["research"]
    assert waits[1]["research"] < 60 < waits[1]["product"]
    assert any("→" in line and "research" in line for line in text_of(effect_lines(document(result))).splitlines())
    same = resource_changes(pairs(assemblies[0], assemblies[0]), "prod")
    assert quota_effect(loaded, same, read_trace(WORK, {}), decide) is None
    if engine == "hyperpod":
        counts = {
            resource["Properties"]["ComputeQuotaTarget"]["TeamName"]: resource["Properties"]["ComputeQuotaConfig"][
                "ComputeQuotaResources"
            ][0]["Count"]
            for resource in during.values()
            if resource["Type"] == "AWS::SageMaker::ComputeQuota"
        }
        assert counts == {"research": 1, "product": 3}
