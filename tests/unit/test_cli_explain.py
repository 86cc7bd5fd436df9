import json

import pytest

from podwright.operations import cli
from podwright.planning.rules import RULES


def test_prints_the_page_of_a_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", "net013"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("# NET013: ")
    assert "## Found" in printed
    assert "## Passes" in printed


def test_lists_every_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain"]) == 0
    listed = [line.split(maxsplit=2) for line in capsys.readouterr().out.splitlines()]
    assert {id for id, _, _ in listed} >= RULES.keys()
    assert all((level, title) == (RULES[id].level, RULES[id].title) for id, level, title in listed if id in RULES)


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["findings"]
    assert {"id": "YML001", "level": "error", "title": "Invalid YAML"} in listed


def test_an_unknown_id_is_2_and_names_close_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", "NTE013"]) == 2
    assert "there is no finding NTE013; close are " in capsys.readouterr().err
