"""Environments pass CDK's CloudFormation validator, cdk-nag and cfn-lint, with what is accepted counted.

They are the fewest that together have every property of every type of resource.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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


def of_every_property() -> Iterator[str]:
    """Environments, by their reviewed templates, until each property of each type of resource has been seen."""
    properties = {name: set(properties_of(name)) for name in NAMES}
    missing = set().union(*properties.values())
    while missing:
        name = max(properties, key=lambda name: (len(properties[name] & missing), -len(properties[name])))
        yield name
        missing -= properties[name]


def properties_of(name: str) -> Iterator[tuple[str, ...]]:
    """The types of an environment's resources, with the path of each value in their properties."""
    for file in SNAPSHOTS.joinpath(name).glob("*.json"):
        for provided in json.loads(file.read_text()).get("Resources", {}).values():
            yield from value_paths(provided.get("Properties", {}), (provided["Type"],))
            yield (provided["Type"],)


@pytest.fixture(scope="module")
def names() -> list[str]:
    """The environments to validate."""
    return [*of_every_property()]


@pytest.fixture(scope="module")
def assembly(names: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The validated assembly of these environments."""
    outdir = tmp_path_factory.mktemp("validated") / "out"
    done = validated("validated_app.py", outdir, *names)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return outdir


@pytest.fixture(scope="module")
def reports(assembly: Path) -> list[dict[str, Any]]:
    """What each validator says."""
    return json.loads((assembly / "validation-report.json").read_text())["pluginReports"]


def validated(app: str, outdir: Path, *names: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "CDK_VALIDATION"}
    environment |= {"CDK_OUTDIR": str(outdir), "PYTHONPATH": str(ROOT / "tests/shared")}
    return subprocess.run(
        [sys.executable, str(HERE / app), *names], capture_output=True, text=True, env=environment, timeout=600
    )


def test_what_the_app_validates_with_finds_what_is_wrong(tmp_path: Path) -> None:
    validated("refused_app.py", tmp_path).check_returncode()
    [report] = json.loads((tmp_path / "validation-report.json").read_text())["pluginReports"]
    assert report["pluginName"] == "CloudFormation Validate"
    assert "NO_SUCH_USAGE" in json.dumps(report["violations"])


def test_the_chosen_environments_have_every_property(names: list[str]) -> None:
    chosen = {position for name in names for position in properties_of(name)}
    assert chosen == {position for name in NAMES for position in properties_of(name)}
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


@pytest.fixture(scope="module")
def telling(names: list[str], assembly: Path) -> dict[str, list[Path]]:
    """By region the templates with a property that no longer one has: a linter says the same of the others again."""
    observed: set[tuple[str, ...]] = set()
    chosen: dict[str, list[Path]] = {}
    sized = [(file.stat().st_size, name, file) for name in names for file in templates(assembly, name)]
    for _, name, file in sorted(sized, reverse=True):
        resources = json.loads(file.read_text())["Resources"].values()
        shown = {
            location
            for provided in resources
            for location in value_paths(provided.get("Properties", {}), (provided["Type"],))
        }
        if shown - observed:
            chosen.setdefault(environment(name).region, []).append(file)
            observed |= shown
    return chosen


def templates(assembly: Path, name: str) -> list[Path]:
    actual = sorted((assembly / f"assembly-{name}").glob("*.template.json"))
    assert len(actual) >= 3, name
    return actual


def test_cfn_lint_finds_nothing(telling: dict[str, list[Path]]) -> None:
    for region, files in telling.items():
        command = [Path(sys.executable).with_name("cfn-lint"), "--regions", region]
        command += ["--ignore-checks", *LINT_IGNORES, "--", *files]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout[-3000:]
