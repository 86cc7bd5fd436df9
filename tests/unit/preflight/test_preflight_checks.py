"""Each check of preflight finds what it is for, says how to fix it, and is quiet where nothing is wrong."""

from collections.abc import Iterator
from functools import cache

import pytest

import preflight_account_cases
import preflight_network_cases
import preflight_quota_cases
import preflight_storage_cases
from podwright.config.catalog.facts import table
from podwright.config.catalog.preflight_checks import preflight_checks
from podwright.operations.preflight.check import CHECKS, Outcome
from podwright.planning.rules.pages import explain
from preflight_account import ADOPTED, CLOSED, NEW, SLURM, PreflightAccount, examine, operations
from preflight_answers import ACCOUNT, DIGEST, REGION
from preflight_case import Case

KUEUE = ADOPTED.replace("governance: {", "governance: {engine: kueue, ")
BASES = {"new": NEW, "adopted": ADOPTED, "closed": CLOSED, "slurm": SLURM, "kueue": KUEUE}
MIRROR = f"""
mirrors:
  {ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com:
    docker.io/library/busybox:1.36: {DIGEST}
"""
CASES = [
    *preflight_account_cases.CASES,
    *preflight_network_cases.CASES,
    *preflight_quota_cases.CASES,
    *preflight_storage_cases.CASES,
]


@cache
def examined(case: Case) -> tuple[Outcome, PreflightAccount]:
    """What the case's check says, and the world that it was asked in."""
    preflight_account = PreflightAccount(case.changed)
    outcomes = examine(preflight_account, BASES[case.base], case.id, more=case.more, groups=case.groups, lock=MIRROR)
    return outcomes[0], preflight_account


@cache
def good(base: str) -> tuple[list[Outcome], PreflightAccount]:
    """What all checks say of an environment in a world where nothing is wrong."""
    preflight_account = PreflightAccount()
    return examine(preflight_account, BASES[base], groups=("apps",), lock=MIRROR), preflight_account


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.id} {case.says}")
def test_speaks_with_its_fix(case: Case) -> None:
    actual, _ = examined(case)
    assert actual.status == "found"
    fitting = [item for item in actual.findings if case.says in item.message and case.fix in item.hint]
    assert fitting, [f"{item.message} → {item.hint}" for item in actual.findings]
    assert {item.id for item in actual.findings} == {case.id}
    assert {item.level for item in actual.findings} == {preflight_checks()[case.id].level}


@pytest.mark.parametrize("base", BASES)
def test_is_quiet_where_nothing_is_wrong(base: str) -> None:
    actual, _ = good(base)
    assert [(item.id, item.message) for each in actual for item in each.findings] == []
    assert [(each.check.id, each.skipped) for each in actual if each.skipped] == []


def test_every_check_looks_at_something_in_a_good_world() -> None:
    """Else its silence there would prove nothing."""
    looked = {each.check.id for base in BASES for each in good(base)[0] if each.status == "ok"}
    # These are about a cluster that is there, and here it is not there yet.
    assert set(CHECKS) - looked == {"PRE068", "PRE071"}


def test_every_check_has_a_case_a_page_and_a_list_of_calls() -> None:
    assert set(CHECKS) == set(preflight_checks()) == {case.id for case in CASES}
    assert len(CHECKS) >= 20
    for id, about in preflight_checks().items():
        assert all(action in explain(id) for action in about.actions)
        assert about.sources


def calls() -> Iterator[tuple[str, str, str]]:
    """Check, service and operation of every call in all worlds, good and bad."""
    for preflight_account in (*(good(base)[1] for base in BASES), *(examined(case)[1] for case in CASES)):
        yield from (
            (id, service, operations(service)[operation].name) for id, service, operation in preflight_account.calls
        )


def test_only_reads() -> None:
    names = {(service, name) for _, service, name in calls()}
    assert len(names) > 30
    assert [name for _, name in names if not name.startswith(("Describe", "Get", "List", "Head", "Simulate"))] == []


def test_asks_for_what_its_page_names() -> None:
    """So whoever has the permissions of the page is never told that one is missing."""
    prefixes, renamed = (
        {"service-quotas": "servicequotas", "amp": "aps", "sso-admin": "sso"},
        {"HeadBucket": "ListBucket", "HeadObject": "ListBucket"},
    )
    stray = {
        (id, action)
        for id, service, name in calls()
        if (action := f"{prefixes.get(service, service)}:{renamed.get(name, name)}")
        not in preflight_checks()[id].actions
    }
    assert stray == set()


def test_actions_of_a_deployment_are_operations_of_their_services() -> None:
    permission_only = {"iam:PassRole", "lambda:InvokeFunction", "budgets:ModifyBudget", "budgets:ViewBudget"}
    actions = {row["action"] for row in table("deployment_actions")} - permission_only
    known = {
        service: {model.name for model in operations(service).values()} for service in {_service(a) for a in actions}
    }
    assert [action for action in actions if action.partition(":")[2] not in known[_service(action)]] == []


def _service(action: str) -> str:
    """The SDK's name of the service that an action is of."""
    prefix = action.partition(":")[0]
    return {"aps": "amp"}.get(prefix, prefix)
