"""Findings: what is wrong or worth knowing, where it stands, and what to do next."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any, TextIO

Path = tuple[str | int, ...]


class Level(StrEnum):
    """How bad a finding is. Only errors stop a deployment."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Place:
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
    place: Place | None = None
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
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def errors(findings: Iterable[Finding]) -> list[Finding]:
    """The findings that stop a deployment: errors that nobody accepted."""
    return [finding for finding in findings if finding.level is Level.ERROR and finding.acknowledged is None]


_COLOURS = {"error": "1;31", "warning": "1;33", "info": "36", "accepted": "2"}


def write_findings(findings: Iterable[Finding], stream: TextIO, colour: bool = False) -> None:
    """Print findings, the worst first and each with what to do next, and how many there are of each level."""
    ranked = sorted((_rank(finding), finding.place.file if finding.place else "",
                     finding.place.line if finding.place else 0, index, finding)
                    for index, finding in enumerate(findings))
    counts: dict[str, int] = {}
    for *_, finding in ranked:
        accepted = finding.acknowledged is not None
        level = "accepted" if accepted else str(finding.level)
        counts[level] = counts.get(level, 0) + 1
        shown = f"\x1b[{_COLOURS[level]}m{level}\x1b[0m" if colour else level
        message = finding.message if finding.path in finding.message else f"{finding.path}: {finding.message}"
        print(*filter(None, (str(finding.place or ""), finding.id, shown, message)), sep="  ", file=stream)
        print(f"    {'accepted because' if accepted else '→'} {finding.acknowledged or finding.hint}", file=stream)
    if counts:
        print(", ".join(f"{count} {level}{'s' if count > 1 and level in ('error', 'warning') else ''}"
                        for level, count in counts.items()), file=stream)


def _rank(finding: Finding) -> int:
    return len(Level) if finding.acknowledged is not None else list(Level).index(finding.level)


class InvalidFile(Exception):
    """A file that cannot be read as what it should be. Carries every finding about it."""

    def __init__(self, findings: list[Finding]) -> None:
        super().__init__("; ".join(f"{finding.place or ''} {finding.message}".strip() for finding in findings))
        self.findings = findings
