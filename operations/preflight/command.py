"""Check the account before a deployment. All checks run at once, only read, and take less than ten seconds.

Preflight finds what no file shows: low quotas, zones without the instance type, training plans that do not fit, subnets
without free addresses, missing permissions. It skips checks that your credentials or your network do not allow, and
prints the reason.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence

from ...config.catalog.preflight_checks import preflight_checks
from ...config.findings import counted, errors
from ..arguments import account_for, add_environment, as_time, load
from ..output.console import write_findings, write_json, write_line
from ..output.moving import under_way
from ..output.tables import Table, new_table, severity
from .check import Outcome
from .inquiry import SANDBOX_SECONDS, SECONDS, findings_of, preflight


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright preflight`."""
    add_environment(parser)
    parser.add_argument("--json", action="store_true", help="print checks and findings as JSON")
    parser.add_argument("--strict", action="store_true", help="also exit with 1 if a check was skipped")
    parser.add_argument(
        "--policy", action="store_true", help="print an IAM policy with the permissions of all checks, and exit"
    )
    parser.add_argument(
        "--timeout",
        type=as_time,
        metavar="TIME",
        help=f"skip checks without an answer after this time (default: {SECONDS:g}s; sandbox: {SANDBOX_SECONDS:g}s)",
    )


def run(args: argparse.Namespace) -> int:
    """Returns 1 when a check finds an error that nobody accepted, or with --strict when one was skipped; else 0."""
    if args.policy:
        actions = sorted({action for check in preflight_checks().values() for action in check.actions})
        write_json({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": actions, "Resource": "*"}]})
        return 0
    loaded = load(args)
    account = account_for(args, loaded.environment)
    under_way("looking at the account")
    started = time.monotonic()
    outcomes = preflight(loaded, account, args.project, seconds=args.timeout)
    took = time.monotonic() - started
    findings = findings_of(outcomes)
    code = 1 if errors(findings) or (args.strict and any(outcome.skipped for outcome in outcomes)) else 0
    if args.json:
        write_json(
            {
                "environment": loaded.environment.name,
                "account": account.id,
                "region": account.region,
                "ok": code == 0,
                "seconds": round(took, 2),
                "checks": [outcome.to_json() for outcome in outcomes],
                "findings": [finding.to_json() for finding in findings],
            }
        )
        return code
    write_line(f"{loaded.environment.name} → {account}")
    write_line(_table(outcomes))
    if findings:
        write_line()
        write_findings(findings, sys.stdout)
    write_line(f"\n{summary(outcomes)}, in {took:.1f} s{f' ({counted(findings)})' if findings else ''}")
    return code


def _table(outcomes: Sequence[Outcome]) -> Table:
    """A row for each check that concerns the environment."""
    rows = (
        (
            severity(_word(outcome)),
            outcome.check.id,
            outcome.check.subject,
            "; ".join(outcome.skipped or (() if outcome.findings else outcome.notes)),
        )
        for outcome in outcomes
        if outcome.status != "not_needed"
    )
    return new_table("", (), rows, indent=2)


def _word(outcome: Outcome) -> str:
    if outcome.findings:
        levels = [str(finding.level) for finding in outcome.findings if finding.acknowledged is None]
        if "error" in levels:
            return "error"
        return "warning" if levels else "accepted"
    return "SKIP" if outcome.status == "skipped" else "ok"


def summary(outcomes: Sequence[Outcome]) -> str:
    """How many checks there were, and what came of them: `45 checks: 20 ok, 1 with findings, 3 skipped`."""
    counts: Counter[str] = Counter(outcome.status for outcome in outcomes)
    words = {"ok": "ok", "found": "with findings", "skipped": "skipped", "not_needed": "not needed"}
    shown = ", ".join(f"{counts[status]} {word}" for status, word in words.items() if counts[status])
    return f"{len(outcomes)} check{'s' if len(outcomes) != 1 else ''}: {shown}"
