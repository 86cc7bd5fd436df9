"""An environment resolved: what follows from the file, and what a project has to bring."""

from pathlib import Path

import pytest

from podwright.config.loading.project import Project
from podwright.config.settings.environment import Environment
from podwright.operations.artifacts.resolved import resolved_in
from podwright.operations.artifacts.stand_ins import stand_ins
from podwright.planning.node.permissions import ScriptSource, node_permissions, volume_keys
from podwright.planning.resolved import resolve
from rule_pages import loaded

ROOT = Path(__file__).parents[2]
KEY = "arn:aws:kms:us-west-2:111122223333:key/01234567-89ab-cdef-0123-456789abcdef"


def environment(name: str) -> Environment:
    return Project.at(ROOT).load(name).environment


def test_everything_that_follows_is_there() -> None:
    prod = environment("prod")
    resolved = resolve(prod, charts=stand_ins(prod))
    assert resolved.tags == {"podwright:environment": "prod", **prod.tags}
    assert list(resolved.charts) == list(stand_ins(prod))
    assert resolved.quota_policy is not None
    assert set(resolved.quota_policy.teams) == set(prod.governance.teams)
    assert resolved.monitoring is not None
    assert resolved.monitoring.measured
    assert set(resolved.monitoring.prices) <= {kind for group in prod.groups.values() for kind in group.types}
    assert resolved.types.get("ml.p5.48xlarge").accelerator_count == 8


def test_what_is_not_there_follows_from_nothing() -> None:
    queues = environment("training-jobs-queue")
    resolved = resolve(queues, charts={})
    assert (resolved.quota_policy, dict(resolved.charts)) == (None, {})


def test_a_chart_that_nobody_brings_is_named() -> None:
    with pytest.raises(ValueError, match=r"environment prod installs .*, which charts= lacks"):
        resolve(environment("prod"), charts={})


def test_a_project_without_artifacts_can_be_shown_and_says_what_is_missing(tmp_path: Path) -> None:
    resolved = resolved_in(tmp_path, environment("prod"))
    assert "CHT001" in {finding.id for finding in resolved.missing}
    assert all(chart.archive.stand_in for chart in resolved.charts.values())


def test_the_sandbox_misses_nothing_and_may_have_another_account(tmp_path: Path) -> None:
    resolved = resolved_in(tmp_path, environment("prod"), account="000000000000", sandboxed=True)
    assert (resolved.missing, resolved.environment.account) == ((), "000000000000")


def test_nodes_may_what_their_groups_need() -> None:
    group = "instance_type: ml.g5.8xlarge, count: 1, lifecycle: {source: s3://acme-scripts/nodes/, on_create: run.sh}"
    actual = loaded(f"instance_groups: {{own: {{{group}, root_kms_key: '{KEY}'}}}}").environment
    permissions = node_permissions(actual.groups.values(), resolve(actual, charts=stand_ins(actual)).types)
    assert permissions is not None
    assert ScriptSource("acme-scripts", "nodes/") in permissions.script_sources
    assert KEY in volume_keys(actual.groups.values())
