"""Two syntheses are byte-equal: no clock, no randomness, no set order, no folder name in the output."""

import json
import os
import subprocess
import sys
from pathlib import Path

from synthesis import FEATURE_FLAGS, ROOT


def assembly(outdir: Path, seed: str) -> dict[str, bytes]:
    subprocess.run(
        [sys.executable, str(ROOT / "bin" / "app.py")],
        cwd=ROOT,
        check=True,
        env=os.environ
        | {
            "CDK_OUTDIR": str(outdir),
            "CDK_CONTEXT_JSON": json.dumps({**FEATURE_FLAGS, "environment": "sandbox", "chart": "stand-in"}),
            "PYTHONHASHSEED": seed,
        },
    )
    return {str(file.relative_to(outdir)): file.read_bytes() for file in sorted(outdir.rglob("*")) if file.is_file()}


def test_two_syntheses_are_byte_equal(tmp_path: Path) -> None:
    first, second = assembly(tmp_path / "one", "1"), assembly(tmp_path / "elsewhere" / "two", "2")
    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == []


def test_what_is_imported_while_node_is_busy_asks_it_for_nothing() -> None:
    """Two threads that ask at a time would get each other's answers."""
    script = """
from importlib import import_module
from pathlib import Path
from podwright.bin.app import NODE_MODULES, loaded_cdk, loaded_there, validator
from podwright.config.loading.project import Project
from jsii._kernel.providers.process import ProcessProvider

environments = [loaded.environment for loaded in Project.at(Path()).load_all()]
loaded_there.result(), validator.result()

def refuse(self):
    raise AssertionError("an import asked Node")

ProcessProvider._process = property(refuse)
from podwright.stacks.stage import import_parts
for environment in environments:
    import_parts(environment)
"""
    variables = os.environ | {"CDK_VALIDATION": "false"}
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, env=variables)
