"""cdk.json has every feature flag that aws-cdk-lib recommends, but for the ones decided otherwise."""

import json
import os
import shlex
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import aws_cdk
import pytest

from podwright.operations.programs.node import cdk_command
from podwright.stacks.feature_flags import FEATURE_FLAGS

ROOT = Path(__file__).resolve().parents[2]
CDK = json.loads((ROOT / "cdk.json").read_text())

OTHERWISE = {
    # Brings a custom resource with a Node handler; our VPC has no rules in its default group to begin with.
    "@aws-cdk/aws-ec2:restrictDefaultSecurityGroup": False,
    # "weak" reads a stack output when the consumer deploys: the producer may then be deleted or change under a running
    # cluster. An export in use refuses that.
    "@aws-cdk/core:defaultCrossStackReferences": "strong",
    # Widens the usage data that goes to AWS.
    "@aws-cdk/core:enableAdditionalMetadataCollection": False,
}
OURS = {"cli-telemetry": False}


@pytest.fixture(scope="module")
def recommended() -> dict[str, Any]:
    """The flags that `cdk init` would write with the installed aws-cdk-lib."""
    library = next((Path(aws_cdk.__file__).parent / "_jsii").glob("aws-cdk-lib@*.jsii.tgz"))
    with tarfile.open(library) as opened:
        content = opened.extractfile("package/recommended-feature-flags.json")
        assert content
        return json.load(content)


def test_flags_are_the_recommended_ones(recommended: dict[str, Any]) -> None:
    assert CDK["context"] == recommended | OTHERWISE | OURS


def test_each_exception_is_one(recommended: dict[str, Any]) -> None:
    assert [flag for flag, value in OTHERWISE.items() if recommended.get(flag, value) == value] == []


def test_an_app_without_the_cli_has_the_same_flags() -> None:
    assert {name: FEATURE_FLAGS[name] for name in CDK["context"]} == CDK["context"]
    app = aws_cdk.App(context=FEATURE_FLAGS)
    assert app.node.try_get_context("@aws-cdk/core:validateAgainstDefaultRules") is True


APP = """
import os
from podwright.operations.programs.node import use_bundled_node
use_bundled_node()
import aws_cdk
from aws_cdk import aws_s3, aws_lambda
from podwright.stacks.feature_flags import FEATURE_FLAGS
app = aws_cdk.App(context=FEATURE_FLAGS)
stack = aws_cdk.Stack(app, "S")
aws_s3.Bucket(stack, "Data")
code = aws_lambda.Code.from_asset(".", exclude=["cdk*", "*.py"])
aws_lambda.Function(stack, "Run", code=code, handler="i.f", runtime=aws_lambda.Runtime.PYTHON_3_13)
app.synth()
"""


def test_templates_do_not_depend_on_who_synthesizes(tmp_path: Path) -> None:
    """The CLI adds usage data, paths and asset hints to templates, unless cdk.json says otherwise."""
    (tmp_path / "asset").touch()
    (tmp_path / "app.py").write_text(APP)
    app = [sys.executable, "-P", str(tmp_path / "app.py")]
    (tmp_path / "cdk.json").write_text(json.dumps(CDK | {"app": shlex.join(app)}))
    environment = os.environ | {"CDK_OUTDIR": str(tmp_path / "cdk.direct")}
    subprocess.run(app, env=environment, cwd=tmp_path, check=True, capture_output=True)
    result = subprocess.run(cdk_command("synth", "--quiet"), cwd=tmp_path, check=True, capture_output=True, text=True)
    assert result.stderr == ""
    direct = (tmp_path / "cdk.direct/S.template.json").read_bytes()
    assert direct == (tmp_path / "cdk.out/S.template.json").read_bytes()
    assert b'"aws:cdk:path": "S/Data/Resource"' in direct


def test_the_app_needs_no_activated_environment() -> None:
    assert CDK["app"] == "bin/setup && .venv/bin/python -P -m podwright.bin.app"
