"""Prove that a deployed environment works: nodes, bandwidth, quotas, jobs, metrics.

Without names the command runs all gates that apply, in order. It stops after a failed gate, unless you add
--keep-going. Each gate writes a file of evidence. The command deletes the jobs of a gate, also after Ctrl-C; after a
kill, the next run deletes them.

Exit codes: 0 all gates passed, 1 a gate failed or its evidence was not saved, 2 the command line is invalid.
"""

import argparse
import signal
from collections.abc import Collection
from typing import Any, Final, cast

from ...config.catalog.instance_types import environment_types
from ...config.errors import CommandError
from ...config.loading.load import LoadedEnvironment
from ...planning.delivery.gate_evidence import Evidence
from ...planning.delivery.gate_table import gate_table, settings_of, why_not
from ..arguments import account_for, add_name, add_sandbox, as_time, load
from ..environments.checked import stop_on_errors
from ..output.console import write_answer, write_json, write_line, write_note
from ..output.tables import new_table, severity, styled
from .evidence import Keeper, summary
from .run import gate_names, run_gate

_SIGNS: Final = {"passed": "passed", "failed": "FAILED", "skipped": "skipped"}
_MOST_CHECKS: Final = 12
_LONGEST_SECONDS: Final = 24 * 3600


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright gate`."""
    add_name(parser, required=False)
    parser.add_argument("more", nargs="*", metavar="GATE", help=f"gates to run: {', '.join(gate_table())}")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument(
        "--list", action="store_true", help="list the gates, whether they apply, and their time limits"
    )
    instead.add_argument(
        "--last", action="store_true", help="print the evidence of the last run of each gate, and run none"
    )
    parser.add_argument("--timeout", type=as_time, metavar="TIME", help="time that each gate may take, such as 20m")
    parser.add_argument(
        "--evidence", metavar="PLACE", help="s3://BUCKET/PREFIX or a folder (default: the environment's own bucket)"
    )
    parser.add_argument("--keep-going", action="store_true", help="continue after a failed gate")
    add_sandbox(parser)
    parser.add_argument("--json", action="store_true", help="print the evidence of all gates as JSON")


def run(args: argparse.Namespace) -> int:
    """Run the gates."""
    loaded = load(args)
    names = gate_names(args.more)
    if args.timeout is not None and not 0 < args.timeout <= _LONGEST_SECONDS:
        raise CommandError(
            f"--timeout is {args.timeout:g} s; allowed: above 0 and at most 24h", "use a time such as 20m", 2
        )
    if args.list:
        return _list(loaded, args.json)
    environment = loaded.environment
    if args.last:
        keeper = Keeper(environment, account_for(args, environment), args.project, args.evidence)
        return _last(environment.name, keeper, names, args.json)
    stop_on_errors(loaded)
    if not environment.has_cluster:
        raise CommandError(f"{environment.name} has no cluster, so no gate applies", code=2)
    # Whoever cancels a build ends its processes so, and the jobs of a gate have to go all the same.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    account = account_for(args, environment)
    keeper = Keeper(environment, account, args.project, args.evidence)
    write_note(f"gates of {environment.name} → {account}")
    done, failed = list[Any](), False
    for name in names:
        evidence = run_gate(loaded, account, args.project, name, args.timeout and args.timeout / 60)
        path = keeper.keep(evidence)
        done.append(summary(evidence, path))
        failed = failed or evidence.verdict == "failed"
        if not args.json:
            _write(evidence, path)
        if failed and not args.keep_going:
            break
    if args.json:
        write_json(done)
    elif rest := names[len(done) :]:
        write_line(f"not run: {', '.join(rest)}")
    return int(failed)


def _last(environment: str, keeper: Keeper, names: Collection[str], as_json: bool) -> int:
    """What gates said last, as it is kept. Raises CommandError where nothing is."""
    runs = [each for each in keeper.latest() if each[0].gate in names]
    if not runs:
        raise CommandError(
            f"no gate of {environment} has left evidence there", f"`podwright gate {environment}` runs them"
        )
    if as_json:
        write_json([summary(*each) for each in runs])
    else:
        for evidence, path in runs:
            _write(evidence, path)
            write_line(f"         run at {evidence.begun:%Y-%m-%d %H:%M} UTC")
    return int(any(evidence.verdict == "failed" for evidence, _ in runs))


def _write(evidence: Evidence, path: str) -> None:
    """One gate for people."""
    sign = _SIGNS[evidence.verdict]
    blanks = " " * (8 - len(sign))
    write_line(styled(severity(sign), f"{blanks} {evidence.gate:<9} {evidence.reason}"))
    if evidence.verdict == "failed":
        bad = [check for check in evidence.checks if not check.ok]
        rows = [(check.about, f"wanted {check.wanted}", f"seen {check.seen}") for check in bad[:_MOST_CHECKS]]
        if rows:
            write_line(new_table("", (), rows, indent=9))
        if len(bad) > _MOST_CHECKS:
            write_line(f"         and {len(bad) - _MOST_CHECKS} more in the evidence")
        write_line(f"         → {evidence.next_step}")
    write_line(f"         evidence: {path}" + (" (simulated)" if evidence.simulated else ""))


def _list(loaded: LoadedEnvironment, as_json: bool) -> int:
    """The gates of an environment, without looking at anything."""
    environment, types = loaded.environment, environment_types(loaded.environment.instance_types)
    settings = settings_of(environment)
    rows = [
        {
            "gate": gate.name,
            "title": gate.title,
            "minutes": settings.timeouts.get(gate.name, gate.minutes),
            "skipped": why_not(environment, types, gate.name),
        }
        for gate in gate_table().values()
    ]
    shown = (
        (row["gate"], str(row["minutes"]), row["title"], row["skipped"] and f"skipped: {row['skipped']}")
        for row in cast(list[Any], rows)
    )
    write_answer(as_json, rows, [new_table("", ("gate", "minutes", "what", ""), shown, right=(1,))])
    return 0
