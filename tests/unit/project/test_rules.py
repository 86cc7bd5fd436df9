"""Every rule finds its failing case, passes its near miss, and is missed when it is taken away."""

import dataclasses
import re
from pathlib import Path

import pytest

from podwright.config.catalog.instance_types import catalog
from podwright.config.loading.load import environment_from
from podwright.planning.rules import RULES, findings
from podwright.planning.rules.framework.rule import rules_for
from podwright.planning.rules.pages import FOLDER, UnknownFinding, acceptable, explain, header, level, titles
from rule_pages import Case, base, cases, found_in

CASES = list(cases().values())
# Findings about a project, its artifacts or an account, which one file cannot show; the tests of those rooms make them.
WITHOUT_CASE = {"ENV004", "ENV005", "ENV006", "ENV007", "ENV008", "ENV009"}
WITHOUT_CASE |= {id for id in titles() if id.startswith(("ART", "CHG", "CHT", "PIP", "PRE"))}
ROOT = Path(__file__).parents[3]
INDEX = ROOT / "docs" / "rules.md"


def test_every_finding_has_a_case() -> None:
    assert set(cases()) == set(titles()) - WITHOUT_CASE
    assert len(RULES) >= 140


def test_nothing_is_found_in_the_base_of_all_examples() -> None:
    example = environment_from(base(), "example")
    assert findings(example.environment, example.source) == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_failing_case_is_found(case: Case) -> None:
    assert found_in(case, case.found) == {case.id} | case.others


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_near_miss_passes(case: Case) -> None:
    assert found_in(case, case.passes) == set()


@pytest.mark.parametrize("id", sorted(RULES))
def test_a_rule_that_is_taken_away_is_missed(id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RULES, id, dataclasses.replace(RULES[id], function=lambda *_: iter(())))
    rules_for.cache_clear()
    try:
        with pytest.raises(AssertionError):
            test_failing_case_is_found(cases()[id])
    finally:
        rules_for.cache_clear()


@pytest.mark.parametrize("id", titles())
def test_page_says_what_the_code_says(id: str, request: pytest.FixtureRequest) -> None:
    file = FOLDER / f"{id}.md"
    body = file.read_text(encoding="utf-8").partition("\n\n")[2].partition("\n\n")[2]
    if request.config.getoption("--update-snapshots"):
        file.write_text(f"{header(id)}\n{body}", encoding="utf-8")
    assert explain(id).startswith(f"{header(id)}\n")
    assert "**To fix it:**" in body


def test_no_page_is_left_over() -> None:
    assert {file.stem for file in FOLDER.glob("*.md")} == set(titles())


def test_every_id_in_the_code_has_a_page() -> None:
    folders = ("config", "planning", "operations", "sandbox", "stacks", "constructs", "cdk8s_charts", "bin")
    code = [file.read_text(encoding="utf-8") for folder in folders for file in (ROOT / folder).rglob("*.py")]
    # S3's name of an algorithm looks like one.
    assert set(re.findall(r'"([A-Z]{3}[0-9]{3})"', "\n".join(code))) - {"AES256"} <= set(titles())


def test_explain_knows_close_ids_and_lower_case() -> None:
    assert explain("net013") == explain("NET013")
    with pytest.raises(UnknownFinding, match="no finding NET999; close are NET0"):
        explain("NET999")
    with pytest.raises(UnknownFinding, match="ids look like"):
        explain("../../etc/passwd")


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.id)
def test_metadata(rule) -> None:
    assert re.fullmatch(r"[A-Z]{3}[0-9]{3}", rule.id)
    assert 15 < len(rule.title) < 90
    assert all(citation.url.startswith("https://") for citation in rule.sources)
    # What nobody can accept is an error: a warning that stops nothing needs no way around it.
    assert not rule.final or rule.level == "error"


def test_index_lists_every_finding(request: pytest.FixtureRequest) -> None:
    lines = []
    for id, title in titles().items():
        accepted = "yes" if acceptable(id) else "no"
        lines.append(f"| [{id}](../planning/rules/pages/{id}.md) | {level(id)} | {accepted} | {title} |")
    text = INDEX.read_text(encoding="utf-8")
    head, _, _ = text.partition("\n| Id |")
    table = "\n| Id | Level | Can be accepted | What is wrong |\n|---|---|---|---|\n" + "\n".join(lines) + "\n"
    if request.config.getoption("--update-snapshots"):
        INDEX.write_text(head + table, encoding="utf-8")
    assert INDEX.read_text(encoding="utf-8") == head + table


def test_rules_survive_types_without_any_number() -> None:
    """Facts of an environment may be odd; the rules still answer."""
    example = environment_from(base(), "example")
    zeros = dict.fromkeys(("vcpu", "threads_per_core", "memory_gib", "ipv4_per_eni", "network_cards"), 0)
    odd = example.environment.model_copy(update={"instance_types": {"ml.m5.4xlarge": zeros}})
    assert catalog(odd.instance_types).get("ml.m5.4xlarge").vcpu == 0
    assert "GRP042" in {item.id for item in findings(odd)}
