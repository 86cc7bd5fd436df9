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
