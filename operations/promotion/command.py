"""Promote the project's files from environment to environment, in the order of `podwright.yaml`.

For each environment the command runs check, diff, deployment and gates, before the next environment begins. The steps
are those of `podwright pipeline`, run on this machine. The command skips steps that passed for the same files, stops at
a failed step, and resumes after an interruption.
"""

import argparse
import getpass
import json
import sys
import time
from typing import Any, Final
from urllib.parse import urlsplit

from ...config.errors import CommandError
from ...config.loading.project import Project
from ...planning.delivery.pipeline_steps import Step, steps
from ..aws.account import is_sandboxed, sandbox_shell, shell_account
from ..cdk.deployment import bootstrap, cdk_for
from ..cdk.progress import Progress
from ..output.console import write_line, write_note, write_text
from ..output.tables import new_table
from ..preflight.stand_ins import make_stand_ins
from .content import check_committed, content_of
from .locks import only_promotion
from .record import Bucket, Folder, Record, Store
from .run import Promotion, StepFailed, advice, chosen_steps

STATE: Final = ".podwright/promotion"
"""Where the record lies unless it is kept in S3, in the folder of the project."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright promote`."""
    parser.add_argument(
        "--from", dest="first", metavar="ENV", help="first environment; earlier ones must have passed for these files"
    )
    parser.add_argument("--to", dest="last", metavar="ENV", help="last environment")
    parser.add_argument(
        "--approve", metavar="STAGE", action="append", default=[], help="approve a waiting stage; may be repeated"
    )
    parser.add_argument("--again", action="store_true", help="repeat steps that passed for the same files")
    parser.add_argument("--dry-run", action="store_true", help="show the steps and their state, and change nothing")
    parser.add_argument("--record", metavar="s3://…", help="keep the record in S3, for CI jobs without a shared disk")
    parser.add_argument(
        "--profile",
        metavar="ENV=NAME",
        action="append",
        default=[],
        help="AWS profile for the commands of an environment; may be repeated",
    )
    parser.add_argument("--uncommitted", action="store_true", help="promote files with uncommitted changes to AWS")
    parser.add_argument("--sandbox", action="store_true", help="use the sandbox instead of the accounts in the files")
    parser.add_argument("--json", action="store_true", help="print each event as a line of JSON")


def run(args: argparse.Namespace) -> int:
    """Returns 0 when all has passed, 1 when a step failed or waits for a person."""
    project = Project.at(args.project)
    ordered, content = steps(project.settings, project.names), content_of(project)
    promotion = Promotion(
        args.project,
        ordered,
        chosen_steps(project, ordered, args.first, args.last),
        content,
        lambda: content_of(Project.at(args.project)),
        Record(_store(args)),
        _tell_json if args.json else _tell,
        (lambda line: None) if args.json else (lambda line: write_note(f"    {line}")),
        getpass.getuser(),
        lambda environment: _prepare_sandbox(args, project, environment),
        args.sandbox,
        _profiles(args, project),
    )
    if args.dry_run:
        return _plan(promotion, args.json)
    # After --plan, which changes nothing: whoever plans may still be editing.
    if not args.uncommitted:
        check_committed(project, content, args.sandbox)
    promotion.tell("promotion", content=content.shared, commit=content.commit, steps=sorted(promotion.chosen))
    waiting = "commands of an earlier promotion that was killed are still at work; waiting for their end"
    with only_promotion(args.project / STATE, lambda: promotion.tell("waiting", what=waiting)) as lock:
        # Only under the lock: another run could be about to read what is forgotten here.
        if args.again:
            promotion.forget()
        return _promote(promotion, args, lock)


def _promote(promotion: Promotion, args: argparse.Namespace, lock: int) -> int:
    """Run what was chosen and say how it ended; returns the exit code."""
    started = time.monotonic()
    try:
        done = promotion.run(lambda step: _approver(step, args, promotion), lock)
    except StepFailed as failed:
        message = advice(promotion, failed)
        promotion.tell(
            "failed",
            step=failed.step.name,
            code=failed.entry.code,
            last=failed.last if args.json else [],
            evidence=list(failed.entry.evidence),
            advice=message,
        )
        return 1
    except KeyboardInterrupt:
        promotion.tell("interrupted", advice=["run the same command again: it resumes from here"])
        raise
    if done:
        promotion.tell("done", seconds=round(time.monotonic() - started, 1))
    return 0 if done else 1


def _store(args: argparse.Namespace) -> Store:
    if args.record is None:
        return Folder(args.project / STATE)
    location = urlsplit(args.record)
    if location.scheme != "s3" or not location.netloc:
        raise CommandError(f"--record {args.record} is not a place in S3", "give s3://BUCKET or s3://BUCKET/PREFIX", 2)
    prefix = location.path.strip("/")
    account = sandbox_shell(args.project) if args.sandbox else shell_account()
    return Bucket(account, location.netloc, f"{prefix}/" if prefix else "")


def _profiles(args: argparse.Namespace, project: Project) -> dict[str, str]:
    profiles = dict[str, str]()
    for specified in args.profile:
        environment, _, name = specified.partition("=")
        if not name or environment not in project.names:
            raise CommandError(
                f"--profile {specified} does not name an environment and a profile", "such as --profile dev=acme-dev", 2
            )
        profiles[environment] = name
    return profiles


def _prepare_sandbox(args: argparse.Namespace, project: Project, environment: str) -> None:
    """Make in an account of the sandbox what `preflight` expects. In AWS somebody does so once."""
    loaded = project.load(environment)
    if is_sandboxed(loaded.environment, args.sandbox):
        where = argparse.Namespace(project=args.project, environment=environment, sandbox=args.sandbox)
        cdk = cdk_for(where, loaded)
        bootstrap(cdk, Progress(), desired=True)
        make_stand_ins(loaded.environment, cdk.account)


def _approver(step: Step, args: argparse.Namespace, promotion: Promotion) -> str | None:
    """Who approves a stage: the one who names it on the command line, or says yes to it at a terminal."""
    stage = step.stage or ""
    if stage in args.approve:
        return promotion.by
    # Nobody is there to be asked: the step waits, and the exit code says so.
    if args.json or not sys.stdin.isatty():
        return None
    for file in promotion.to_read(step):
        write_note(f"    {file}")
    answer = input(f"Approve {stage}, after reading what would change there? [y/N] ")
    return promotion.by if answer.strip().lower() in ("y", "yes") else None


def _plan(promotion: Promotion, as_json: bool) -> int:
    """Print the steps and what has become of them for these files."""
    rows = []
    for step in promotion.steps:
        entry = promotion.state(step)
        ahead = "to do" if step.name in promotion.chosen else "not chosen"
        state = entry.state if entry else ahead
        rows.append((step.name, state, " && ".join(step.commands) or "a person approves"))
        if as_json:
            item = {"step": step.name, "state": state, "needs": step.needs, "commands": step.commands}
            write_text(json.dumps({"event": "plan", **item}))
    if not as_json:
        write_line(new_table("", ("step", "state", "command"), rows))
    return 0


def _tell_json(event: str, **values: Any) -> None:
    """What happens, as a line of JSON."""
    write_text(json.dumps({"event": event, "time": round(time.time(), 1), **values}))


def _tell(event: str, **values: Any) -> None:
    """What happens, for people."""
    match event:
        case "promotion":
            commit = f"commit {values['commit'][:12]}" if values["commit"] else "no commit"
            write_note(f"promoting {commit}, content {values['content'][:12]}")
        case "done":
            write_note(f"promoted in {values['seconds']:.0f} s")
        case "waiting" if "step" in values:
            stage = values["step"].rpartition(".")[0]
            write_note(f"  {values['step']:<24} waits for a person")
            for file in values["evidence"]:
                write_note(f"    {file}")
            write_note(f"    → read what would change, then `podwright promote --approve {stage}`")
        case "waiting" | "interrupted":
            write_note(f"  {values.get('what') or values['advice'][0]}")
        case _:
            seconds = f" in {values['seconds']:.0f} s" if "seconds" in values else ""
            when = f" {values['passed']}" if values.get("passed") else ""
            by = f" by {values['by']}" if "by" in values else ""
            word = "passed before" if event == "skipped" else event
            write_note(f"  {values['step']:<24} {word}{when}{seconds}{by}")
            if event == "failed":
                for file in values["evidence"]:
                    write_note(f"    evidence: {file}")
                for sentence in values["advice"]:
                    write_note(f"    → {sentence}")
