"""The pipeline's templates, whole, as they were reviewed; and those of environments, which it leaves as they are."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from promotion_account import Promotion, promotion
from promotion_project import CONNECTION, GITHUB
from synthesis import ROOT

HASH = re.compile(r"\b[0-9a-f]{64}\b")
SNAPSHOTS = ROOT / "tests/snapshot/pipeline"
ASSEMBLIES: dict[str, dict[str, str]] = {"plain": {}, "promoted": {"pipeline": "true"}}


def masked(template: dict[str, Any]) -> str:
    """The template as text, with the hashes of assets masked, as in the snapshots of environments."""
    return HASH.sub("<asset>", json.dumps(template, indent=1, sort_keys=True)) + "\n"


@pytest.mark.parametrize(
    ("name", "pattern", "github"),
    [
        ("pipeline", "pipeline.template.json", False),
        ("support", "cross-region-stack-*.template.json", False),
        ("access", "assembly-podwright-prod/*.template.json", False),
        ("access-github", "assembly-podwright-dev/*.template.json", True),
    ],
)
def test_templates_are_as_reviewed(
    name: str, pattern: str, github: bool, reviewed: Callable[[Path, str], None]
) -> None:
    actual: Promotion = promotion(GITHUB) if github else promotion()
    reviewed(SNAPSHOTS / f"{name}.json", masked(actual.template(pattern)))


def test_an_environment_is_the_same_with_and_without_a_pipeline(tmp_path: Path) -> None:
    """The real app: a pipeline deploys what `podwright deploy` has deployed, and the other way round."""
    name = "training-jobs-queue"
    (tmp_path / "environments").mkdir()
    (tmp_path / f"environments/{name}.yaml").write_text((ROOT / f"environments/{name}.yaml").read_text())
    source = f'{{repository: acme/clusters, connection: "{CONNECTION}"}}'
    pipeline = f'{{account: "012345678901", region: us-west-2, source: {source}}}'
    (tmp_path / "podwright.yaml").write_text(f"environments: [{name}]\npipeline: {pipeline}\n")
    plain, promoted = (_assembly(tmp_path, folder, context) for folder, context in ASSEMBLIES.items())
    manifest = json.loads((promoted / f"assembly-{name}/manifest.json").read_text())["artifacts"]
    stacks = [item["properties"] for item in manifest.values() if item["type"] == "aws:cloudformation:stack"]
    assert stacks
    for stack in stacks:
        file = f"assembly-{name}/{stack['templateFile']}"
        assert (promoted / file).read_text() == (plain / file).read_text()
    templates = [file.read_text() for file in (plain / f"assembly-{name}").glob("*.template.json")]
    assert any("podwright-boundary" in text for text in templates)
    assert HASH.search((promoted / "pipeline.template.json").read_text()) is not None


def _assembly(project: Path, folder: str, context: dict[str, str]) -> Path:
    messages = {**context, "project": str(project)}
    variables = {**os.environ, "CDK_OUTDIR": str(project / folder), "CDK_CONTEXT_JSON": json.dumps(messages)}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "podwright.bin.app"], capture_output=True, text=True, env=variables, cwd=project
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return project / folder
