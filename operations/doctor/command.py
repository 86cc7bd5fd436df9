"""Diagnose a cluster: what is wrong, why, and what to do.

ENV is an environment, or a bundle that `podwright collect` wrote: a folder or a .tar.gz. A bundle needs no account. The
command changes nothing. It names what it cannot read, and continues.

Exit codes: 0 nothing is wrong, 1 something is wrong, 2 the command line or the bundle is invalid.
"""

import argparse
from pathlib import Path
from typing import Final

from ..arguments import add_environment, open_target
from ..output.console import write_answer, write_note
from .bundle import INDEX, SOURCES, Bundle
from .collect import collect
from .diagnose import Diagnosis, Finding, diagnose
from .evidence import Signal

_SHOWN_EVIDENCE: Final = 3
_SHOWN_SUBJECTS: Final = 6
_SHOWN_TEXT: Final = 400


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright doctor`."""
    add_environment(parser)
    parser.add_argument(
        "--no-runner", action="store_true", help="do not use the runner inside the VPC for a private Kubernetes API"
    )
    parser.add_argument("--json", action="store_true", help="print the diagnosis as JSON")


def run(args: argparse.Namespace) -> int:
    """Print the diagnosis."""
    diagnosis = diagnose(_bundle(args))
    write_answer(args.json, diagnosis.to_json(), lines(diagnosis))
    return int(diagnosis.verdict != "well")


def _bundle(args: argparse.Namespace) -> Bundle:
    path = Path(args.environment or "")
    if args.environment and (path.name.endswith((".tar.gz", ".tgz")) or (path / INDEX).is_file()):
        return Bundle.read(path)
    environment, account = open_target(args)
    write_note(f"looking at {environment.cluster.name} in {account}")
    return collect(environment, account, args.project, runner=not args.no_runner)


def lines(diagnosis: Diagnosis) -> list[str]:
    """The diagnosis for people."""
    index = diagnosis.bundle.index
    messages = [f"{index.cluster}, {index.taken:%Y-%m-%d %H:%M} UTC: {_headline(diagnosis)}"]
    for number, finding in enumerate(diagnosis.findings, 1):
        messages += ["", *_finding(number, finding)]
    if diagnosis.unexplained:
        messages += ["", "Not explained:" if diagnosis.findings else "What is wrong, without a known cause:"]
        messages += [line for signal in diagnosis.unexplained for line in _signal("  ", signal)]
    if diagnosis.bundle.unseen:
        messages += ["", "Not seen:"]
        for source, reason in diagnosis.bundle.unseen.items():
            messages.append(f"  {SOURCES[source].about if source in SOURCES else source}: {reason}")
    return messages


def _headline(diagnosis: Diagnosis) -> str:
    if diagnosis.verdict == "well":
        observed = ", in the sources that could be read" if diagnosis.bundle.unseen else ""
        return f"nothing is wrong{observed}"
    if diagnosis.verdict == "unknown":
        return "unknown: something is wrong, and nothing that doctor knows explains it"
    count = len(diagnosis.findings)
    return f"{count} cause{'s' if count > 1 else ''} of trouble"


def _finding(number: int, finding: Finding) -> list[str]:
    cause, subjects = finding.cause, finding.subjects
    shown = ", ".join(subjects[:_SHOWN_SUBJECTS])
    more = f" and {len(subjects) - _SHOWN_SUBJECTS} more" if len(subjects) > _SHOWN_SUBJECTS else ""
    messages = [f"{number}. {cause.title} ({cause.class_name})", f"   concerns  {shown}{more}"]
    for signal in finding.evidence[:_SHOWN_EVIDENCE]:
        messages += _signal("   seen      ", signal)
    if len(finding.evidence) > _SHOWN_EVIDENCE:
        messages.append(f"             and {len(finding.evidence) - _SHOWN_EVIDENCE} times more (--json has all)")
    messages.append(f"   to fix    {cause.fix}")
    for source in cause.sources:
        messages.append(f"   source    {source.text}, {source.date}: {source.url}")
    return messages


def _signal(head: str, signal: Signal) -> list[str]:
    text = " ".join(signal.text.split())
    cut = text if len(text) <= _SHOWN_TEXT else f"{text[:_SHOWN_TEXT]}…"
    time = f"{signal.time:%H:%M} " if signal.time else ""
    return [f"{head}{time}{cut}", f"{' ' * len(head)}({signal.place})"]
