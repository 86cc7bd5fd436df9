"""Every environment passes CDK's CloudFormation validator, cdk-nag and cfn-lint, with what is accepted counted."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from synthesis import NAMES, ROOT, environment

# Rules of which single findings may be accepted, each on the construct that it is about. A new one wants a look.
ACCEPTED = {
    "AwsSolutions-IAM4",
    "AwsSolutions-IAM5",
    "AwsSolutions-L1",
    "AwsSolutions-S1",
    "AwsSolutions-VPC7",
    "E3644",
    "F3002",
}
# Types by region, a list that lags (podwright has a warning of its own); dependencies that the CDK writes twice.
LINT_IGNORES = ["E3644", "W3005"]
HERE = Path(__file__).parent


@pytest.fixture(scope="module", params=NAMES)
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The name of an environment and its validated assembly."""
    outdir = tmp_path_factory.mktemp(request.param) / "out"
    done = validated("validated_app.py", outdir, request.param)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return request.param, outdir


def validated(app: str, outdir: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "CDK_VALIDATION"}
    environment |= {"CDK_OUTDIR": str(outdir), "PYTHONPATH": str(ROOT / "tests")}
    command = [sys.executable, str(HERE / app), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)


def test_what_the_app_validates_with_finds_what_is_wrong(tmp_path: Path) -> None:
    validated("refused_app.py", tmp_path).check_returncode()
    [report] = json.loads((tmp_path / "validation-report.json").read_text())["pluginReports"]
    assert report["pluginName"] == "CloudFormation Validate"
    assert "NO_SUCH_USAGE" in json.dumps(report["violations"])


def test_validator_and_nag_find_nothing(report: tuple[str, Path]) -> None:
    name, outdir = report
    for plugin in json.loads((outdir / "validation-report.json").read_text())["pluginReports"]:
        assert plugin["conclusion"] == "success", (name, plugin["violations"])


def test_acknowledgements_are_narrow_and_counted(report: tuple[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    name, outdir = report
    reports = json.loads((outdir / "validation-report.json").read_text())["pluginReports"]
    accepted = [found for plugin in reports for found in plugin.get("suppressedViolations", [])]
    for found in accepted:
        # Stage, stack, construct: what is accepted for a whole stack hides what comes later.
        assert found["acknowledgedAt"].count("/") >= 2, found
        assert len(found["reason"]) >= 20, found
    counts = Counter(found["ruleName"].partition("[")[0] for found in accepted)
    assert set(counts) <= ACCEPTED, name
    with capsys.disabled():
        print(f"\n{name}: accepted {', '.join(f'{rule} {count}' for rule, count in sorted(counts.items()))}")


def test_cfn_lint_finds_nothing(report: tuple[str, Path]) -> None:
    name, outdir = report
    templates = sorted(str(file) for file in (outdir / f"assembly-{name}").glob("*.template.json"))
    region = environment(name).region
    command = [
        Path(sys.executable).with_name("cfn-lint"),
        "--regions",
        region,
        "--ignore-checks",
        *LINT_IGNORES,
        "--",
        *templates,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:]
