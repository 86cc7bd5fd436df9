"""Every rule finds its failing case, passes its near miss, and is missed when it is taken away."""

import dataclasses
import re
from functools import cache
from pathlib import Path

import pytest

import language
from podwright.config.catalog.instance_types import catalog
from podwright.config.findings import Finding
from podwright.config.loading.load import environment_from
from podwright.planning.rules import RULES, findings
from podwright.planning.rules.framework.rule import rules_for
from podwright.planning.rules.pages import FOLDER, UnknownFinding, acceptable, explain, header, level, titles
from rule_pages import base, cases, findings_in, found_in
from sources import modules

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


@cache
def in_failing_cases() -> dict[str, list[Finding]]:
    """The findings about each example of a wrong file."""
    return {case.id: findings_in(case, case.found) for case in CASES}


def test_failing_cases_are_found() -> None:
    observed = {id: {item.id for item in items} for id, items in in_failing_cases().items()}
    expected = {case.id: {case.id} | case.others for case in CASES}
    assert {id: (ids, expected[id]) for id, ids in observed.items() if ids != expected[id]} == {}


def test_near_misses_pass() -> None:
    observed = {case.id: found_in(case, case.passes) for case in CASES}
    assert {id: ids for id, ids in observed.items() if ids} == {}


def test_rules_that_are_taken_away_are_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each finding comes from the function of its own rule: without these functions, none of their ids is found."""
    for id, rule in RULES.items():
        monkeypatch.setitem(RULES, id, dataclasses.replace(rule, function=lambda *_: iter(())))
    rules_for.cache_clear()
    try:
        observed = {case.id: found_in(case, case.found) & RULES.keys() for case in CASES}
    finally:
        rules_for.cache_clear()
    assert {id: ids for id, ids in observed.items() if ids} == {}


def begins_with_an_action(hint: str) -> bool:
    """Whether a hint begins with a verb, after the name of a condition or a quoted command at most."""
    return next(iter(re.findall(r"[a-z]+", hint.lower())), "") in language.ACTIONS


def test_hints_say_what_to_do() -> None:
    hints = {id: [item.hint for item in items if item.id == id] for id, items in in_failing_cases().items()}
    assert [id for id, texts in hints.items() if not texts] == []
    odd = [f"{id}: {hint}" for id, texts in hints.items() for hint in texts if not begins_with_an_action(hint)]
    assert not odd, "\n".join(odd)
    assert not begins_with_an_action("nothing, if that is good enough")
    assert begins_with_an_action("use one of these")


def test_pages_say_what_the_code_says(request: pytest.FixtureRequest) -> None:
    odd = []
    for id in titles():
        file = FOLDER / f"{id}.md"
        body = file.read_text(encoding="utf-8").partition("\n\n")[2].partition("\n\n")[2]
        if request.config.getoption("--update-snapshots"):
            file.write_text(f"{header(id)}\n{body}", encoding="utf-8")
        if not explain(id).startswith(f"{header(id)}\n"):
            odd.append(f"{id}: the page does not begin with what the code says; run with --update-snapshots")
        if "**To fix it:**" not in body:
            odd.append(f"{id}: the page does not say **To fix it:**")
    assert not odd, "\n".join(odd)


def test_no_page_is_left_over() -> None:
    assert {file.stem for file in FOLDER.glob("*.md")} == set(titles())


def test_every_id_in_the_code_has_a_page() -> None:
    folders = ("config", "planning", "operations", "sandbox", "stacks", "constructs", "cdk8s_charts", "bin")
    named = {id for source in modules(*folders) for id in re.findall(r'"([A-Z]{3}[0-9]{3})"', source.text)}
    # S3's name of an algorithm looks like one.
    assert named - {"AES256"} <= set(titles())


def test_explain_knows_close_ids_and_lower_case() -> None:
    assert explain("net013") == explain("NET013")
    with pytest.raises(UnknownFinding, match="no finding NET999; close are NET0"):
        explain("NET999")
    with pytest.raises(UnknownFinding, match="ids look like"):
        explain("../../etc/passwd")


def test_metadata() -> None:
    odd = []
    for rule in RULES.values():
        sourced = all(citation.url.startswith("https://") for citation in rule.sources)
        if not re.fullmatch(r"[A-Z]{3}[0-9]{3}", rule.id) or not 15 < len(rule.title) < 90 or not sourced:
            odd.append(f"{rule.id}: {rule.title}, {rule.sources}")
        if rule.final and rule.level != "error":
            # A finding that cannot be acknowledged is an error: a warning stops nothing.
            odd.append(f"{rule.id}: it is final and of level {rule.level}")
    assert not odd, "\n".join(odd)


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
