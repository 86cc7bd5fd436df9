"""What files may say under `governance`, what is filled in, and how it is printed again."""

from pathlib import Path
from typing import Any

import pytest

from podwright.config.errors import InvalidFile
from podwright.config.settings.environment import Environment
from podwright.config.settings.governance.teams import Amount, Governance
from podwright.operations import cli
from rule_pages import loaded

ROOT = Path(__file__).parents[3]


def environment(governance: str, more: str = "") -> Environment:
    return loaded(f"governance: {governance}\n{more}").environment


SLURM = "cluster: {orchestrator: slurm, eks: null, slurm: {accounting: {}}}"


@pytest.mark.parametrize(
    ("governance", "more", "engine"),
    [
        ("{teams: {research: {}}}", "", "hyperpod"),
        ("{priorities: {training: 70}}", "", "hyperpod"),
        ("{teams: {research: {}}, engine: kai}", "", "kai"),
        ("{fair_share: false}", "", None),
        ("{teams: {research: {}}}", SLURM, None),
    ],
)
def test_who_keeps_the_quotas(governance: str, more: str, engine: str | None) -> None:
    assert environment(governance, more).governance.engine == engine


@pytest.mark.parametrize(
    ("written", "amount"),
    [
        ("2", Amount(instances=2)),
        ("{accelerators: 8, vcpu: 10.5}", Amount(accelerators=8, vcpu=10.5)),
        ("{mig: {mig-1g.18gb: 4}}", Amount(mig={"mig-1g.18gb": 4})),
    ],
)
def test_amounts_of_a_quota(written: str, amount: Amount) -> None:
    team = environment(f"{{teams: {{research: {{quota: {{h200: {written}}}, borrow_limits: {{h200: {written}}}}}}}}}")
    assert team.governance.teams["research"].quota == {"h200": amount}
    assert team.governance.teams["research"].borrow_limits == {"h200": amount}


@pytest.mark.parametrize(
    ("team", "message"),
    [
        ("{quota: {h200: many}}", "is 'many'; allowed: a number of instances, or amounts such as {accelerators: 8}"),
        ("{quota: {h200: [2]}}", "is a list; allowed: a number of instances"),
        ("{quota: {h200: {accelerator: 8}}}", "accelerator is not a known setting"),
        ("{quota: {h200: -1}}", "0 or more"),
        ("{quota: {h200: {mig: {1g.18gb: 1}}}}", "a profile of MIG, such as mig-1g.18gb"),
        ("{quota: {p5.48xlarge: 1}}", "an instance group or a type, such as h200"),
        ("{quota: {h200: {vcpu: nan}}}", "a finite number"),
        ("{borrow_limit_percent: 501}", "500 or less"),
    ],
)
def test_amounts_that_are_none(team: str, message: str) -> None:
    with pytest.raises(InvalidFile) as refused:
        environment(f"{{teams: {{research: {team}}}}}")
    assert any(message in finding.message for finding in refused.value.findings), refused.value.findings


def test_eleven_priority_classes_are_too_many() -> None:
    with pytest.raises(InvalidFile):
        environment(f"{{priorities: {{{', '.join(f'class-{number}: {number}' for number in range(11))}}}}}")


def test_amounts_are_printed_as_they_are_written() -> None:
    quota: dict[str, Any] = {"h200": 2, "p5": {"accelerators": 8}}
    dumped = Governance.model_validate({"teams": {"a": {"quota": quota}}}).model_dump(
        mode="json", exclude_defaults=True
    )
    assert dumped["teams"]["a"]["quota"] == {"h200": 2, "p5": {"accelerators": 8}}


def test_settings_of_other_engines_are_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["show", "three-projects", "--project", str(ROOT)]) == 0
    printed = capsys.readouterr().out
    assert "  kai:" in printed
    assert "  kueue:" not in printed
    assert "        h100: 0\n" in printed
