"""What a check is, what it is given, and how all of them run at once."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

from ...config.catalog.instance_types import Catalog
from ...config.catalog.preflight_checks import PreflightCheck, preflight_checks
from ...config.findings import Finding, dotted
from ...config.loading.source import Source
from ...config.settings.environment import Environment
from ...planning.rules.framework.acknowledgements import accepted_by
from ...planning.rules.framework.rule import Problem
from ..aws.calls import Reader
from ..aws.questions import ask_all
from ..aws.unseen import Unseen, code_of
from .quota_codes import Codes


@dataclass(frozen=True, slots=True)
class Skip:
    """Why a check could not look at something."""

    reason: str


@dataclass(frozen=True, slots=True)
class Note:
    """Something that a check saw and that is right, such as `usw2-az2 is us-west-2b`."""

    text: str


Answers = Iterator[Problem | Skip | Note]


@dataclass(frozen=True, slots=True)
class Ask:
    """What a check looks at: the environment, and the account that it is to be deployed to."""

    environment: Environment
    account: str
    """Id of the account; the sandbox's stands for the one in the file."""
    types: Catalog
    """The instance catalog as the environment knows it."""
    aws: Reader
    project: Path
    """Folder of the project; `artifacts.lock` lies in it."""
    now: datetime
    api_groups: Callable[[dict[str, Any]], list[str]]
    """API groups that an EKS cluster serves, as DescribeCluster gives the cluster; raises Unseen."""
    quota_codes: Codes
    """Codes of quotas that earlier runs saw."""
    endpoint_zones: dict[str, tuple[str, ...]]
    """Zone ids in which endpoint services are offered; a check adds what this run sees."""
    seen_codes: Codes
    """Codes that this run sees; checks add to them."""


Status = Literal["ok", "found", "skipped", "not_needed"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one check."""

    check: PreflightCheck
    status: Status
    """found: it has findings. not_needed: the environment has nothing that the check looks at."""
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    skipped: tuple[str, ...]
    """Why it could not look at everything."""
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """The outcome as plain data; its findings are printed apart."""
        return {
            "id": self.check.id,
            "subject": self.check.subject,
            "title": self.check.title,
            "status": self.status,
            "notes": list(self.notes),
            "skipped": list(self.skipped),
            "seconds": round(self.seconds, 3),
        }


Check = Callable[[Ask], Answers]
CHECKS: Final[dict[str, Check]] = {}
"""Every check by id."""


def check(id: str) -> Callable[[Check], Check]:
    """Register a function as the check of that id; `preflight.csv` of the catalog has level, title and calls."""

    def register(function: Check) -> Check:
        if id in CHECKS:
            raise ValueError(f"two checks are called {id}")
        CHECKS[id] = function
        return function

    return register


def run_checks(ask: Ask, source: Source | None, seconds: float, left_out: Iterable[str] = ()) -> list[Outcome]:
    """Run every check at once, each in a thread of its own, and return what came of them in order of id.

    After `seconds` the checks that still wait for an answer are skipped; they are left behind and end with the process.
    Findings that the environment acknowledges carry the reason.

    Raises:
        Exception: a check broke; the error names it.
    """
    desired = [id for id in sorted(CHECKS) if id not in set(left_out)]
    outcomes = ask_all({id: partial(_outcome, id, ask, source) for id in desired}, seconds=seconds)
    hint = f"`podwright preflight --timeout {max(30, 3 * seconds):g}s` waits longer"
    return [
        Outcome(preflight_checks()[id], "skipped", (), (), (f"{outcome.why}; {hint}",), seconds)
        if isinstance(outcome, Unseen)
        else outcome
        for id, outcome in outcomes.items()
    ]


def _outcome(id: str, ask: Ask, source: Source | None) -> Outcome:
    """Run a check. Findings have their position where there is a `source`, and the environment's acknowledgement."""
    about, started = preflight_checks()[id], time.monotonic()
    findings: list[Finding] = []
    notes: list[str] = []
    skipped: list[str] = []
    for answer in _answers(CHECKS[id], ask):
        match answer:
            case Skip(reason):
                skipped.append(reason)
            case Note(text):
                notes.append(text)
            case Problem():
                path = (answer.path,) if isinstance(answer.path, str) else answer.path
                location = source.position(path) if source else None
                finding = Finding(about.id, about.level, dotted(path), answer.message, answer.hint, location)
                findings.append(accepted_by(finding, ask.environment.acknowledge))
    status: Status = "ok" if notes else "not_needed"
    if findings or skipped:
        status = "found" if findings else "skipped"
    # Two groups that ask the same and get no answer need one reason.
    reasons = tuple(dict.fromkeys(skipped))
    return Outcome(about, status, tuple(findings), tuple(notes), reasons, time.monotonic() - started)


def _answers(function: Check, ask: Ask) -> Answers:
    """The check's answers; what AWS does not answer, or refuses for an unforeseen reason, ends it with a Skip."""
    from botocore.exceptions import ClientError

    try:
        yield from function(ask)
    except Unseen as error:
        yield Skip(str(error))
    except ClientError as error:
        yield Skip(f"an answer that this check does not know ({code_of(error)}): {error}")
