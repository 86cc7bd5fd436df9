"""The pipeline passes cdk-nag and cfn-lint; what is accepted is narrow and has its reason."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from synthesis import ROOT

HERE = Path(__file__).parent
ACCEPTED = {"AwsSolutions-IAM5", "AwsSolutions-S1"}
# Dependencies that the CDK writes twice.
LINT_IGNORES = ["W3005"]


@pytest.fixture(scope="module")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    outdir = tmp_path_factory.mktemp("promoted") / "out"
    # cfn-lint reads the same schemas as the CDK's validator, which would take three times as long.
    variables = {**os.environ, "CDK_OUTDIR": str(outdir), "PYTHONPATH": str(ROOT / "tests/shared")}
    command = [sys.executable, str(HERE / "validated_pipeline.py")]
    done = subprocess.run(command, capture_output=True, text=True, env=variables, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return outdir


def test_validator_and_nag_find_nothing_that_nobody_accepted(assembly: Path) -> None:
    reports: list[dict[str, Any]] = json.loads((assembly / "validation-report.json").read_text())["pluginReports"]
    assert [plugin["pluginName"] for plugin in reports] == ["AwsSolutions"]
    assert len(reports[0]["suppressedViolations"]) > 50, "nothing was looked at"
    for plugin in reports:
        assert plugin["conclusion"] == "success", plugin["violations"]
        for actual in plugin.get("suppressedViolations", []):
            assert actual["acknowledgedAt"].count("/") >= 2, actual
            assert len(actual["reason"]) >= 20, actual
            assert actual["ruleName"].partition("[")[0] in ACCEPTED, actual


def test_cfn_lint_finds_nothing(assembly: Path) -> None:
    files = [assembly / "pipeline.template.json", *assembly.glob("assembly-github-dev/*.template.json")]
    assert len(files) == 2
    command = [Path(sys.executable).with_name("cfn-lint"), "--regions", "us-west-2"]
    command += ["--ignore-checks", *LINT_IGNORES, "--", *files]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:]
