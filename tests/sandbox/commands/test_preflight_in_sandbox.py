"""Preflight against the sandbox, with real clients: it runs to its end and sees what is there."""

import os
from pathlib import Path

import pytest

from podwright.config.catalog.sandbox_account import SANDBOX_ACCOUNT
from podwright.config.loading.load import load_environment
from podwright.operations.aws.account import Account
from podwright.operations.aws.sandbox_server import Running
from podwright.operations.preflight.check import CHECKS, Outcome
from podwright.operations.preflight.inquiry import preflight

FILE = f"""
account: "{SANDBOX_ACCOUNT}"
region: us-west-2
network: {{zones: [usw2-az1, usw2-az2]}}
storage: {{lustre: {{}}}}
instance_groups:
  system: {{instance_type: ml.m5.4xlarge, count: 2}}
  trn2: {{instance_type: ml.trn2.48xlarge, count: 2, zone: usw2-az1}}
"""


@pytest.fixture(scope="module")
def outcomes(sandbox: Running, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """What preflight says of an environment that is not deployed."""
    project = tmp_path_factory.mktemp("project")
    (project / "before.yaml").write_text(FILE)
    account = Account(SANDBOX_ACCOUNT, "us-west-2", sandbox.endpoint, dict(os.environ))
    loaded = load_environment(Path(project / "before.yaml"))
    return {outcome.check.id: outcome for outcome in preflight(loaded, account, project, seconds=120)}


def test_runs_every_check(outcomes: dict[str, Outcome]) -> None:
    assert set(outcomes) == set(CHECKS)
    assert [
        item.skipped for item in outcomes.values() if any("does not know" in reason for reason in item.skipped)
    ] == []


def test_sees_zones_and_what_they_offer(outcomes: dict[str, Outcome]) -> None:
    assert len(outcomes["PRE011"].notes) == 2
    message = outcomes["PRE012"].findings[0].message
    assert "EC2 does not offer ml.trn2.48xlarge in usw2-az1" in message
    assert "no zone of us-west-2; price lists show it in" in message


def test_sees_that_nothing_is_deployed(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["PRE002"].notes == ("no stacks",)
    assert outcomes["PRE055"].status == outcomes["PRE066"].status == "ok"
    assert outcomes["PRE013"].notes == ("fsx-lustre",)


def test_is_answered_by_every_service(outcomes: dict[str, Outcome]) -> None:
    """What only a bootstrapped account has is left out: another test may have made it, or not."""
    skipped = {id: item.skipped for id, item in outcomes.items() if item.skipped and id != "PRE004"}
    assert skipped == {}
    assert {"PRE003", "PRE006", "PRE010", "PRE030", "PRE031", "PRE060", "PRE062"} <= {
        id for id, item in outcomes.items() if item.status in ("ok", "found")
    }
