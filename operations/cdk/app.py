"""Running the app (`bin/app.py`) without the CDK CLI, for templates that nobody deploys."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ...config.loading.project import Project
from ..programs.node import use_bundled_node
from ..programs.process import followed

_LAST_LINES: Final = 12


def environment_context(project: Path, name: str) -> dict[str, str]:
    """What tells the app which environment a command line means by a name or a file, and which quotas are in force."""
    # The app runs in the project's folder, and a path on the command line is relative to the user's.
    return {"environment": name if name in Project.at(project).names else str(Path(name).resolve())} | now_context()


def now_context() -> dict[str, str]:
    """What tells the app the time, which it never looks at by itself: two syntheses of one moment are equal."""
    return {"at": datetime.now(UTC).isoformat(timespec="minutes")}


def synthesize(
    project: Path,
    context: Mapping[str, str],
    folder: Path,
    *,
    python: str = sys.executable,
    variables: Mapping[str, str] | None = None,
) -> str | None:
    """Write templates to a folder. Returns None, or the last lines that the app printed before it failed.

    Args:
        project: The project's folder.
        context: What the app is told besides what the project's cdk.json says.
        folder: Where the templates go.
        python: The Python that has podwright.
        variables: More variables of the process.
    """
    use_bundled_node()
    file = project / "cdk.json"
    flags = json.loads(file.read_text(encoding="utf-8")).get("context", {}) if file.is_file() else {}
    # As the CDK CLI tells an app what it wants.
    asked = {"CDK_OUTDIR": str(folder), "CDK_CONTEXT_JSON": json.dumps({**flags, **context})}
    done = followed(
        [python, "-P", "-m", "podwright.bin.app"],
        "synthesizing",
        cwd=project,
        env={**os.environ, **asked, **(variables or {})},
        stdin=subprocess.DEVNULL,
        errors="replace",
    )
    if not done.returncode:
        return None
    return "\n".join(f"    {line}" for line in done.stderr.strip().splitlines()[-_LAST_LINES:])
