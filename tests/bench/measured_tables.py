"""The tables of docs/measurements.md: which folders each measures, and the commit at which it was measured.

A table is between `<!-- NAME -->` and `<!-- /NAME -->`. The line below it names the command, the day and the commit.
"""

import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs" / "measurements.md"
MOST_COMMITS: Final = 200
"""Commits to its folders after which a table has to be measured again, or to go."""

_APP: Final = ("bin", "stacks", "constructs", "cdk8s_charts", "planning", "config")
_PRODUCT: Final = (*_APP, "operations", "sandbox", "lifecycle_scripts")
_CONTROL_PLANE: Final = ("sandbox/control_plane", "sandbox/kubernetes")
_SIMULATION: Final = ("planning/simulation", "operations/simulation")
FOLDERS: Final[Mapping[str, tuple[str, ...]]] = {
    "synthesis": _APP,
    "house": _PRODUCT,
    "commands": ("operations/cli.py", "operations/commands", "planning/rules", "config"),
    "looks": (*_APP, "operations/cdk", "operations/commands", "operations/effects", "operations/agents"),
    "silences": ("operations", "sandbox"),
    "mutations": ("config", "planning/rules"),
    "mutants": _PRODUCT,
    "judged-calls": ("constructs", "sandbox"),
    "control-plane-parts": _CONTROL_PLANE,
    "definitions": _CONTROL_PLANE,
    "control-plane-starts": _CONTROL_PLANE,
    "control-plane": _CONTROL_PLANE,
    "admission": (*_CONTROL_PLANE, "cdk8s_charts", "planning/quota"),
    "conformance": _SIMULATION,
    "kueue": _SIMULATION,
    "simulation": _SIMULATION,
    "forecast": _SIMULATION,
    "boot": ("lifecycle_scripts",),
    "killed": ("lifecycle_scripts",),
    "preflight": ("operations/preflight", "operations/aws"),
    "handlers": ("constructs",),
    "lambda-sdk": ("constructs",),
    "purchases": ("planning/purchase", "operations/capacity"),
    "rendering": ("planning/quota", "planning/jobs", "cdk8s_charts", "operations/jobs"),
    "report": ("operations/report", "planning"),
    "site": ("docs",),
    "status": ("operations/live", "operations/aws"),
    "agents-start": ("operations/agents",),
    "agents": ("operations/agents", "operations/live", "operations/effects"),
    "series": ("planning/cost", "planning/monitoring"),
    "doctor": ("operations/doctor", "tests/doctor"),
    "effects": ("operations/effects", "planning/delivery"),
    "language": _PRODUCT,
    "suite": ("tests",),
    "story": ("tests/stories", "sandbox"),
    "test-files": ("tests",),
    "promotion": ("operations/promotion", "operations/gates", "operations/cdk"),
    "memory": ("sandbox",),
    "pages": ("docs",),
    "recoveries": ("sandbox/training_operator", "sandbox/nodes", "docs/examples/elastic"),
}
"""Folders and files that decide about the figures of a table, by its name."""

_BLOCK: Final = re.compile(r"<!-- ([a-z-]+) -->\n(.*?)<!-- /\1 -->", re.DOTALL)
_AGE: Final = re.compile(r"^`[^`]+`, [^\n]*?\b\d{4}-\d\d-\d\d, at ([0-9a-f]{8})\b", re.MULTILINE)
_ROW: Final = re.compile(r"^\|", re.MULTILINE)


@dataclass(frozen=True)
class Table:
    """A table of the page."""

    name: str
    text: str
    """Everything between its markers."""

    @property
    def is_empty(self) -> bool:
        """True if the page has a place for the table and no measurement."""
        return not self.text.strip()

    @property
    def commit(self) -> str:
        """The commit at which it was measured; empty if no line below it names one."""
        rows = [match.start() for match in _ROW.finditer(self.text)]
        match = _AGE.search(self.text, rows[-1] if rows else 0)
        return match[1] if match else ""


def tables(page: str) -> Iterator[Table]:
    """The tables of the page's text, in its order."""
    return (Table(match[1], match[2]) for match in _BLOCK.finditer(page))


def outside_tables(page: str) -> str:
    """The page's text without its tables."""
    return _BLOCK.sub("", page)


def with_table(page: str, name: str, text: str) -> str:
    """The page with another text between the markers of `name`. Raises ValueError when the page has none."""
    if name not in {table.name for table in tables(page)}:
        raise ValueError(f"docs/measurements.md has no markers for {name}")
    return _BLOCK.sub(lambda match: f"<!-- {name} -->\n{text}<!-- /{name} -->" if match[1] == name else match[0], page)


def commits_since(commit: str, folders: tuple[str, ...], root: Path = ROOT) -> int | None:
    """Commits to `folders` since a commit; None if the history does not have that commit before HEAD."""
    if _git(root, "merge-base", "--is-ancestor", commit, "HEAD").returncode:
        return None
    return int(_git(root, "rev-list", "--count", f"{commit}..HEAD", "--", *folders).stdout)


def head(root: Path = ROOT) -> str:
    """The commit that is checked out, in eight digits."""
    return _git(root, "rev-parse", "HEAD").stdout[:8]


def has_changes(folders: tuple[str, ...], root: Path = ROOT) -> bool:
    """True if files of `folders` differ from the commit that is checked out."""
    return bool(_git(root, "status", "--porcelain", "--", *folders).stdout.strip())


def has_history(root: Path = ROOT) -> bool:
    """True if this is a checkout with all its commits."""
    done = _git(root, "rev-parse", "--is-shallow-repository")
    return done.returncode == 0 and done.stdout.strip() == "false"


def _git(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True)
