"""Environments pass CDK's CloudFormation validator, cdk-nag and cfn-lint, with what is accepted counted.

They are the fewest that together have every property of every type of resource.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any, TypeVar

import pytest

from synthesis import NAMES, ROOT, environment, value_paths

# Rules of which single findings may be accepted, each on the construct that it is about. A new one wants a look.
ACCEPTED = {
    "AwsSolutions-IAM4",
    "AwsSolutions-IAM5",
    "AwsSolutions-L1",
    "AwsSolutions-S1",
    "AwsSolutions-VPC7",
    "E3644",
    "F3002",
    "F3006",
}
# Types by region, a list that lags (podwright has a warning of its own); dependencies that the CDK writes twice.
LINT_IGNORES = ["E3644", "W3005"]
HERE = Path(__file__).parent
SNAPSHOTS = ROOT / "tests/snapshot/templates"
Key = TypeVar("Key", str, Path)
PropertyPath = tuple[str, ...]
"""The type of a resource, the keys down to a value in its properties, and the type of the value."""


def cheapest_cover(paths: Mapping[Key, Set[PropertyPath]], sizes: Mapping[Key, int]) -> list[Key]:
    """Keys that together have every path: greedy by new paths per byte, then without the redundant ones."""
    every = set[PropertyPath]().union(*paths.values())
    missing, chosen = set(every), list[Key]()
    while missing:
        chosen.append(max(paths, key=lambda key: len(paths[key] & missing) / sizes[key]))
        missing -= paths[chosen[-1]]
    for key in sorted(chosen, key=lambda key: sizes[key], reverse=True):
        if every == set[PropertyPath]().union(*(paths[each] for each in chosen if each != key)):
            chosen.remove(key)
    return chosen


def property_paths(*files: Path) -> set[PropertyPath]:
    """The paths in the resources of templates. The names of node labels are values, so `*` replaces them."""
    paths = set[PropertyPath]()
    for file in files:
        for resource in json.loads(file.read_text()).get("Resources", {}).values():
            paths.add((resource["Type"],))
            for path in value_paths(resource.get("Properties", {}), (resource["Type"],)):
                inside = path.index("Labels") + 1 if "Labels" in path else len(path)
                paths.add((*path[:inside], "*", *path[inside + 1 :]) if inside < len(path) - 1 else path)
    return paths


def snapshots(name: str) -> list[Path]:
    return [*SNAPSHOTS.joinpath(name).glob("*.json")]


@pytest.fixture(scope="module")
def names() -> list[str]:
    """The environments to validate, chosen by their reviewed templates."""
    sizes = {name: sum(file.stat().st_size for file in snapshots(name)) for name in NAMES}
    return cheapest_cover({name: property_paths(*snapshots(name)) for name in NAMES}, sizes)


@pytest.fixture(scope="module")
def validated(names: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the validated assemblies, `refused` and `environments`."""
    folder = tmp_path_factory.mktemp("validated")
    run_script("validated_app.py", str(folder), *names)
    return folder


def run_script(script: str, *arguments: str) -> str:
    """Run a script of this folder, with validation; returns its output."""
    variables = {key: value for key, value in os.environ.items() if key != "CDK_VALIDATION"}
    variables |= {"PYTHONPATH": str(ROOT / "tests/shared")}
    command = [sys.executable, str(HERE / script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=variables, timeout=600)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def reports_of(assembly: Path) -> list[dict[str, Any]]:
    return json.loads((assembly / "validation-report.json").read_text())["pluginReports"]


@pytest.fixture(scope="module")
def reports(validated: Path) -> list[dict[str, Any]]:
    """What each validator says of the environments."""
    return reports_of(validated / "environments")


def test_what_the_app_validates_with_finds_what_is_wrong(validated: Path) -> None:
    [report] = reports_of(validated / "refused")
    assert report["pluginName"] == "CloudFormation Validate"
    assert "NO_SUCH_USAGE" in json.dumps(report["violations"])


def test_the_chosen_environments_have_every_property(names: list[str]) -> None:
    chosen = property_paths(*(file for name in names for file in snapshots(name)))
    assert chosen == property_paths(*(file for name in NAMES for file in snapshots(name)))
    assert len(names) < len(NAMES)


def test_validator_and_nag_find_nothing(reports: list[dict[str, Any]]) -> None:
    for plugin in reports:
        assert plugin["conclusion"] == "success", plugin["violations"]


def test_acknowledgements_are_narrow_and_counted(
    names: list[str], reports: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    accepted = [actual for plugin in reports for actual in plugin.get("suppressedViolations", [])]
    counts: dict[str, Counter[str]] = {name: Counter() for name in names}
    for actual in accepted:
        # Stage, stack, construct: what is accepted for a whole stack hides what comes later.
        assert actual["acknowledgedAt"].count("/") >= 2, actual
        assert len(actual["reason"]) >= 20, actual
        counts[actual["acknowledgedAt"].partition("/")[0]][actual["ruleName"].partition("[")[0]] += 1
    for name, rules in counts.items():
        # Network and storage alone have nothing that wants an acknowledgement.
        assert rules or not environment(name).has_cluster, f"{name}: nothing was looked at"
        assert set(rules) <= ACCEPTED, name
        with capsys.disabled():
            print(f"\n{name}: accepted {', '.join(f'{rule} {count}' for rule, count in sorted(rules.items()))}")


def templates(assembly: Path, name: str) -> list[Path]:
    actual = sorted((assembly / f"assembly-{name}").glob("*.template.json"))
    assert len(actual) >= 3, name
    return actual


def test_cfn_lint_finds_nothing(names: list[str], validated: Path) -> None:
    """The fewest templates with every property: a linter reports the same of all others."""
    regions = {file: environment(name).region for name in names for file in templates(validated / "environments", name)}
    paths = {file: property_paths(file) for file in regions}
    chosen = cheapest_cover(paths, {file: file.stat().st_size for file in regions})
    for region in {regions[file] for file in chosen}:
        assert cfn_lint(region, *(file for file in chosen if regions[file] == region)) == ""


def test_cfn_lint_finds_what_is_wrong(validated: Path) -> None:
    assert "NO_SUCH_USAGE" in cfn_lint("us-west-2", *(validated / "refused").glob("*.template.json"))


def cfn_lint(region: str, *files: Path) -> str:
    """Run upstream's program on templates; returns its findings."""
    command = [Path(sys.executable).with_name("cfn-lint"), "--regions", region, "--ignore-checks", *LINT_IGNORES]
    done = subprocess.run([*command, "--", *files], capture_output=True, text=True, timeout=600)
    assert not done.stderr, done.stderr[-3000:]
    return done.stdout
