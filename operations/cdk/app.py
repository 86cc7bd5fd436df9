"""Running the app (`bin/app.py`) without the CDK CLI, whose `cdk synth` would add one more process and nothing else."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from ...config.errors import CommandError
from ...config.loading.project import Project
from ...config.settings.environment import Environment
from ...planning.quota.overrides import override_moments
from ..programs.node import use_bundled_node
from ..programs.process import followed

_LAST_LINES: Final = 12
# The commands that `podwright init` and this repository write as `app` into a cdk.json, and nothing longer.
_OUR_APP: Final = re.compile(r"""^(bin/setup && )?("[^"]*"|[^\s"'|&;]+) (-P )?-m podwright\.bin\.app$""")
# As `podwright init` writes them, for a project without a cdk.json.
_DEFAULT_SETTINGS: Final = {"versionReporting": False, "assetMetadata": False}
_CORRECT: Final = "correct it, or restore it from version control"


def environment_context(
    project: Path, name: str, environment: Environment, at: datetime | None = None
) -> dict[str, str]:
    """Returns the context that selects one environment, and the date whose quotas apply.

    The date is the last one up to `at` (default: now) on which a dated quota of the environment begins or ends, so
    two syntheses between two such dates have the same context. Before the first of them there is no date.
    """
    now = at or datetime.now(UTC)
    passed = [date for date in override_moments(environment) if date <= now]
    # The app runs in the project's folder, and a path on the command line is relative to the user's.
    selected = name if name in Project.at(project).names else str(Path(name).resolve())
    return {"environment": selected} | ({"at": passed[-1].isoformat()} if passed else {})


def now_context() -> dict[str, str]:
    """Returns the context that tells the app the time, for a synthesis of several environments."""
    return {"at": datetime.now(UTC).isoformat(timespec="minutes")}


def runs_our_app(project: Path) -> bool:
    """True if `cdk synth` in the project would run `bin/app.py`, and neither another app nor a `build` command."""
    settings = cdk_settings(project)
    command = settings.get("app")
    return not settings.get("build") and (command is None or bool(_OUR_APP.fullmatch(str(command))))


def cdk_settings(project: Path) -> dict[str, Any]:
    """Returns the content of the project's cdk.json; the settings that `podwright init` writes if it has none.

    Raises:
        CommandError: the file, or the context in it, is not a JSON object.
    """
    settings = _json(project / "cdk.json", _DEFAULT_SETTINGS)
    if not isinstance(settings.get("context") or {}, dict):
        raise CommandError("context in cdk.json is not a JSON object", _CORRECT, 2)
    return settings


def app_context(project: Path, context: Mapping[str, str]) -> dict[str, Any]:
    """Returns the context that the CDK CLI would give to the app, without that of a `~/.cdk.json`.

    `context` overrides the keys that the CLI derives from settings (`contextFromSettings` in aws-cdk 2.1146.1). Those
    override cdk.json, which overrides cdk.context.json.
    """
    settings, retained = cdk_settings(project), _json(project / "cdk.context.json", {})
    own = {
        "aws:cdk:enable-path-metadata": settings.get("pathMetadata", True),
        "aws:cdk:enable-asset-metadata": settings.get("assetMetadata", True),
        "aws:cdk:version-reporting": settings.get("versionReporting", True),
        "aws:cdk:disable-asset-staging": not settings.get("staging", True),
    }
    on = {key: True for key, value in own.items() if value}
    # `refusals` reads the validation report. Without this flag the app fails with a traceback instead.
    on["@aws-cdk/core:failSynthOnValidationErrors"] = False
    return {**retained, **(settings.get("context") or {}), **on, **context}


def _json(file: Path, default: Mapping[str, Any]) -> dict[str, Any]:
    """The object in a JSON file; `default` without the file."""
    if not file.is_file():
        return dict(default)
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CommandError(f"{file.name} is not JSON: {error}", _CORRECT, 2) from None
    if not isinstance(content, dict):
        raise CommandError(f"{file.name} is not a JSON object", _CORRECT, 2)
    return content


def synthesize(
    project: Path,
    context: Mapping[str, str],
    folder: Path,
    *,
    python: str = sys.executable,
    variables: Mapping[str, str] | None = None,
    log: Path | None = None,
) -> str | None:
    """Write templates to a folder. Returns None, or the last lines that the app printed before it failed.

    Args:
        project: The project's folder.
        context: Context in addition to that of the project's cdk.json.
        folder: Where the templates go.
        python: The Python that has podwright.
        variables: More variables of the process.
        log: File to which the whole output is added.
    """
    use_bundled_node()
    asked = {"CDK_OUTDIR": str(folder), "CDK_CONTEXT_JSON": json.dumps(app_context(project, context))}
    done = followed(
        [python, "-P", "-m", "podwright.bin.app"],
        "synthesizing",
        cwd=project,
        env={**os.environ, **asked, **(variables or {})},
        stdin=subprocess.DEVNULL,
        errors="replace",
    )
    if log is not None:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a", encoding="utf-8") as file:
            file.write(done.stdout + done.stderr)
    if not done.returncode:
        return None
    return "\n".join(f"    {line}" for line in done.stderr.strip().splitlines()[-_LAST_LINES:])
