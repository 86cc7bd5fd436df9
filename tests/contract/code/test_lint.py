"""One test for each rule about sources: it finds something in its samples, and nothing in the checkout."""

import subprocess
import sys
from functools import cache

import pytest

import lint_arrows
import lint_dependencies
import lint_errors
import lint_late_imports
import lint_names
import lint_statements
from lint import RULES, findings
from sources import Source, sources

MODULES = (lint_arrows, lint_dependencies, lint_errors, lint_late_imports, lint_names, lint_statements)
"""Importing them registers their rules."""


@cache
def in_the_checkout() -> dict[str, list[str]]:
    """The findings of all rules, in one pass over the files."""
    return findings(sources(), RULES)


@pytest.mark.parametrize("name", RULES)
def test_nothing_is_found(name: str) -> None:
    lines = in_the_checkout()[name]
    rule = RULES[name].of_file or RULES[name].of_all
    assert not lines, "\n".join((f"{rule.__doc__}", *lines))


@pytest.mark.parametrize("name", RULES)
def test_samples_are_found(name: str) -> None:
    samples = RULES[name].samples
    assert any(sample.finding for sample in samples)
    for files, finding in samples:
        lines = findings([Source(path, text) for path, text in files.items()], {name: RULES[name]})[name]
        assert any(finding in line for line in lines) if finding else lines == [], (files, lines)


def test_each_module_has_rules() -> None:
    with_rules = {(rule.of_file or rule.of_all).__module__ for rule in RULES.values()}
    assert with_rules == {module.__name__ for module in MODULES}


def test_the_app_and_the_stacks_are_short() -> None:
    lines = {source.path: len(source.text.splitlines()) for source in sources("bin", "stacks") if source.is_python}
    assert lines["bin/app.py"] <= 60
    assert {path: count for path, count in lines.items() if path.startswith("stacks/") and count > 120} == {}


def test_the_command_line_starts_without_aws_libraries() -> None:
    heavy = "{'jsii', 'aws_cdk', 'cdk8s', 'boto3', 'botocore', 'moto', 'cfnlint', 'rich'}"
    program = f"import sys, podwright.operations.cli; print(sorted({heavy} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
