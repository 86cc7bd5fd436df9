"""What a promotion carries from stage to stage: the files of the project, and podwright's own.

Two digests say whether two stages get the same. One is of all that environments share; the other, for each environment,
is of that and of its own settings, with every default and every file that it extends. So an edit of one environment
leaves the proof of the others standing, and an edit of anything else does not.
"""

import hashlib
import json
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Final

from ...config.errors import CommandError
from ...config.loading.project import Project
from ...planning.delivery.pipeline_steps import ASSEMBLY, EVIDENCE
from ...planning.quota.overrides import with_overrides
from ..aws.account import is_sandboxed
from ..effects.quota_effect import TRACES

_PACKAGES: Final = ("bin", "cdk8s_charts", "config", "constructs", "lifecycle_scripts", "operations", "stacks")
_WRITTEN: Final = (EVIDENCE, ASSEMBLY, ".podwright")
"""Folders that steps themselves write to."""
_NOT_CONTENT: Final = (*_WRITTEN, TRACES, "environments", "node_modules", "__pycache__")


@dataclass(frozen=True, slots=True)
class Content:
    """The files as they are now."""

    shared: str
    """Digest of what all environments have in common."""
    environments: Mapping[str, str]
    """Digest of what each environment is made from."""
    commit: str | None
    """The commit that is checked out; None where there is no git."""
    uncommitted: tuple[str, ...]
    """Files of the project that differ from it."""

    def of(self, environment: str | None) -> str:
        """What a step of that environment, or of none, is about."""
        return self.environments[environment] if environment else _digest(sorted(self.environments.items()))


def content_of(project: Project) -> Content:
    """Read the project's files.

    Raises:
        InvalidFile: an environment cannot be read.
    """
    root = project.root
    shared = _digest([("podwright", _own()), *((str(file), _of_file(root / file)) for file in _files(root))])
    settings = {loaded.environment.name: loaded.environment for loaded in project.load_all()}
    # With other quotas in force a step proves something else.
    now = datetime.now(UTC)
    environments = {
        name: _digest([shared, with_overrides(item, now).model_dump_json()]) for name, item in settings.items()
    }
    commit = _git(root, "rev-parse", "--verify", "-q", "HEAD")
    changed = _git(root, "status", "--porcelain", "-z", "--no-renames", "--", ".") if commit else None
    files = [Path(line[3:]) for line in (changed or "").split("\0") if line]
    return Content(
        shared,
        environments,
        commit.strip() if commit else None,
        tuple(str(file) for file in files if file.parts[0] not in _WRITTEN),
    )


def check_committed(project: Project, content: Content, sandbox: bool) -> None:
    """Raise CommandError for files that would go to AWS and that nobody could go back to."""
    to_aws = any(not is_sandboxed(loaded.environment, sandbox) for loaded in project.load_all())
    if to_aws and content.uncommitted:
        shown = ", ".join(content.uncommitted[:3]) + (", …" if len(content.uncommitted) > 3 else "")
        hint = "commit them, so that you can return to the promoted state; --uncommitted promotes them anyway"
        raise CommandError(f"{len(content.uncommitted)} files differ from the commit: {shown}", hint)


def _files(root: Path) -> Iterator[Path]:
    """The project's files but those of environments, relative to it: all that git does not ignore, or all."""
    listed = _git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    result: Iterable[Path] = (
        (Path(name) for name in listed.split("\0") if name)
        if listed is not None
        else (file.relative_to(root) for file in root.rglob("*"))
    )
    for file in sorted(set(result)):
        hidden = listed is None and any(part.startswith(".") for part in file.parts)
        if not hidden and not set(file.parts) & set(_NOT_CONTENT) and (root / file).is_file():
            yield file


@cache
def _own() -> str:
    """Digest of the podwright that runs: its files, and the CDK's version."""
    package = Path(__file__).parents[2]
    files = sorted(file for folder in _PACKAGES for file in (package / folder).rglob("*") if file.is_file())
    known = [(str(file.relative_to(package)), _of_file(file)) for file in files if "__pycache__" not in file.parts]
    return _digest([version("aws-cdk-lib"), *known])


def _of_file(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:32]


def _git(root: Path, *arguments: str) -> str | None:
    """What git says about the folder; None without git or outside a repository."""
    try:
        done = subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return None if done.returncode else done.stdout
