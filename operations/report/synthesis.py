"""Synthesizing an environment without an account: the CDK app as a process of its own."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from ...config.errors import CommandError
from ...config.loading.load import LoadedEnvironment
from ...config.loading.project import Project
from ..programs.node import use_bundled_node
from .assembly import Assembly, read_assembly

_LAST_LINES: Final = 12


def synthesized(project: Path, name: str, loaded: LoadedEnvironment) -> Assembly:
    """The templates of an environment, made in a folder that is gone afterwards.

    Args:
        project: The project's folder.
        name: The environment as the command line has it: a name, or a file.
        loaded: The environment.

    Raises:
        CommandError: the app failed; with its last words.
    """
    file = project / "cdk.json"
    context = json.loads(file.read_text(encoding="utf-8")).get("context", {}) if file.is_file() else {}
    context["environment"] = name if name in Project.at(project).names else str(Path(name).resolve())
    # A report needs no chart, so it needs none fetched: templates hold of them a digest that it does not show.
    context["chart"] = "stand-in"
    use_bundled_node()
    with tempfile.TemporaryDirectory(prefix="podwright-report-") as folder:
        variables = {
            "CDK_OUTDIR": folder,
            "CDK_CONTEXT_JSON": json.dumps(context),
            # Looks at resources that the deployment looks at again, and takes two seconds.
            "CDK_VALIDATION": "false",
        }
        done = subprocess.run(
            [sys.executable, "-P", "-m", "podwright.bin.app"],
            cwd=project,
            env=os.environ | variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
        )
        if done.returncode:
            last = "\n".join(f"    {line}" for line in done.stderr.strip().splitlines()[-_LAST_LINES:])
            raise CommandError(
                f"{loaded.environment.name} cannot be synthesized:\n{last}", "`cdk synth` shows the whole output"
            )
        return read_assembly(Path(folder), loaded.environment.name)
