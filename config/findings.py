"""Findings: what is wrong or worth knowing, where it stands, and what to do next."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple, TextIO

Path = tuple[str | int, ...]


class Level(StrEnum):
    """How bad a finding is. Only errors stop a deployment."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class SourcePosition:
    """A place in a file, counted from 1."""

    file: str
    line: int
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. The same form serves the file's syntax, rules, preflight, cdk-nag and CloudFormation validation."""

    id: str
    """Stable id, such as NET003; `podwright explain ID` prints its page."""
    level: Level
    path: str
    """Path of the field, such as instance_groups.h200.zone."""
    message: str
    """One sentence with the value received and what is allowed."""
    hint: str
    """What to do next."""
    place: SourcePosition | None = None
    acknowledged: str | None = None
    """Reason for which the file accepts this finding."""

    def to_json(self) -> dict[str, Any]:
        """The finding as plain data, in the form that `--json` prints."""
        return asdict(self)

    def accepted(self, reason: str) -> "Finding":
        """The same finding, accepted with a reason. It no longer stops anything."""
        return replace(self, acknowledged=reason)


def dotted(path: Iterable[str | int]) -> str:
    """A path as people write it: `instance_groups.h200.labels`, `acknowledge[0].rule`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def errors(findings: Iterable[Finding]) -> list[Finding]:
    """The findings that stop a deployment: errors that nobody accepted."""
    return [finding for finding in findings if finding.level is Level.ERROR and finding.acknowledged is None]


# In the order in which findings are printed.
_LEVELS = ("accepted", "info", "warning", "error")


class FindingLines(NamedTuple):
    """A finding as people read it."""

    level: str
    """`error`, `warning`, `info` or `accepted`."""
    line: str
    """Where it is, its id, its level, and what it says."""
    advice: str
    """What to do next, or why it is accepted."""


def described(findings: Iterable[Finding]) -> Iterator[FindingLines]:
    """Findings as people read them, the worst last."""
    for finding in sorted(findings, key=_rank):
        level = _level(finding)
        message = finding.message if finding.path in finding.message else f"{finding.path}: {finding.message}"
        advice = f"→ {finding.hint}" if finding.acknowledged is None else f"accepted because {finding.acknowledged}"
        line = "  ".join(filter(None, (str(finding.place or ""), finding.id, level, message)))
        yield FindingLines(level, line, f"    {advice}")


def write_findings(findings: Iterable[Finding], stream: TextIO) -> None:
    """Print findings, the worst last and each with what to do next."""
    for _, *lines in described(findings):
        print(*lines, sep="\n", file=stream)


def counted(findings: Iterable[Finding]) -> str:
    """How many findings there are of each level: `1 error, 2 warnings, 1 accepted`."""
    counts = Counter(map(_level, findings))
    return ", ".join(
        f"{counts[level]} {level}{'s' if counts[level] > 1 and level in ('error', 'warning') else ''}"
        for level in reversed(_LEVELS)
        if counts[level]
    )


def _level(finding: Finding) -> str:
    return str(finding.level) if finding.acknowledged is None else "accepted"


def _rank(finding: Finding) -> tuple[int, str, int]:
    position = finding.place or SourcePosition("", 0)
    return _LEVELS.index(_level(finding)), position.file, position.line


def listed(values: Iterable[object], word: str = "or") -> str:
    """Values in a sentence: `a`, `a or b`, `a, b or c`."""
    *most, last = [str(value) for value in values] or ["none"]
    return f"{', '.join(most)} {word} {last}" if most else last
