"""Jobs of a Slurm cluster, by its own commands on a login node, through a session that ends with them."""

import argparse
import base64
import getpass
import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from ...config.errors import CommandError
from ...config.loading.load import LoadedEnvironment
from ...config.settings.environment import Environment
from ..arguments import account_for
from ..aws.account import Account
from ..aws.session import NotConnected
from ..gates.slurm import CommandFailed, Slurm
from ..kubernetes.job_manifests import batch_scripts
from ..output.console import write_json, write_line, write_text
from .reach import command_for
from .step_times import STEP_LINES, PodLog, is_of, print_times, rank_times
from .table import queue_words, write_jobs

_ORDER: Final = ("login", "controller")
_SECONDS: Final = 60.0
# Number, name, account, user, state, partition, nodes, devices of a node, submitted, priority, reason, start.
FORMAT: Final = "%i|%j|%a|%u|%T|%P|%D|%b|%V|%Q|%r|%S"
"""What squeue is asked for, as `rows_of` reads it."""
_COLUMNS: Final = FORMAT.count("|") + 1
_STATES: Final = {
    "PENDING": "waiting",
    "REQUEUED": "preempted",
    "PREEMPTED": "preempted",
    "CONFIGURING": "starting",
    "RUNNING": "running",
    "COMPLETING": "running",
    "SUSPENDED": "paused",
    "COMPLETED": "succeeded",
}
# Source: Slurm documentation, resource limits and job reason codes, 2026-11.
_REASONS: Final = {
    "None": "",
    "Priority": "jobs of its partition with a higher priority wait",
    "Resources": "the nodes that it needs are not free yet",
    "AssocGrpGRES": "its account uses all GPUs that it may",
    "AssocGrpCpuLimit": "its account uses all processors that it may",
    "AssocGrpGRESMinutes": "its time limit does not fit into what is left of its team's budget of GPU-hours",
    "QOSGrpGRES": "its QOS uses all GPUs that it may",
    "QOSMaxGRESPerJob": "it asks for more GPUs than a job of its QOS may have, and never starts",
    "QOSMaxCpuPerJobLimit": "it asks for more processors than a job of its QOS may have, and never starts",
    "ReqNodeNotAvail": "nodes that it needs are drained or down",
    "BeginTime": "it was queued again, and starts in about two minutes",
}


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a login node."""

    account: Account
    environment: Environment
    seconds: float = _SECONDS

    @property
    def left(self) -> float:
        """How long an answer may take."""
        return self.seconds


def is_slurm(environment: Environment) -> bool:
    """Whether jobs of an environment are Slurm's."""
    return environment.cluster.orchestrator == "slurm"


def submit_batch(args: argparse.Namespace, loaded: LoadedEnvironment, name: str) -> int:
    """Hand a script to sbatch on a login node, as a user of the cluster; print it where a sandbox has no Slurm."""
    environment = loaded.environment
    script = batch_scripts(loaded, [name])[name]
    account = account_for(args, environment)
    following = [command_for(args, verb, environment.name, name) for verb in ("why", "logs")]
    user = _user(args, environment, environment.jobs[name].team)
    packed = base64.b64encode(script.encode()).decode()
    options = "--test-only" if args.dry_run else "--parsable"
    line = f"set -o pipefail; echo {packed} | base64 -d | runuser -l {shlex.quote(user)} -c 'sbatch {options}'"
    try:
        message = Slurm(Question(account, environment), _ORDER).run(line).strip()
    except NotConnected as simulated:
        if not account.endpoint:
            raise
        if args.json:
            write_json({"job": name, "simulated": True, "script": script, "next": []})
        else:
            write_text(script)
            write_line(f"Nothing runs: {simulated}. sbatch would get the script above.")
        return 0
    if args.json:
        number = None if args.dry_run else message.partition(";")[0]
        write_json({"job": name, "user": user, "dry_run": args.dry_run, "id": number, "next": following})
    elif args.dry_run:
        write_line(f"{message}\nSlurm would take it; nothing runs.")
    else:
        write_line(f"Job {message} of {user}")
        write_line(f"Where it stands:  {following[0]}\nIts log:          {following[1]}")
    return 0


def _user(args: argparse.Namespace, environment: Environment, team: str | None) -> str:
    """The user of the cluster who submits. Raises CommandError where nobody says which."""
    known = environment.governance.teams[team].users if team else tuple(environment.users)
    for name in (args.user, getpass.getuser()):
        if name in known:
            return name
    if args.user is None and len(known) == 1:
        return known[0]
    names = ", ".join(known) or "none"
    who = f"{args.user} is" if args.user else "say as which user with --user; you are"
    raise CommandError(f"{who} none of {team or environment.name}'s users", f"known: {names}", 2)


def queue(args: argparse.Namespace, environment: Environment, *, ended: bool = False) -> list[dict[str, Any]]:
    """The jobs as `podwright jobs` prints them."""
    options = f"--noheader --format={shlex.quote(FORMAT)}" + (" --states=all" if ended else "")
    return rows_of(slurm_of(args, environment).run(f"squeue {options}"))


def slurm_of(args: argparse.Namespace, environment: Environment) -> Slurm:
    """Commands on a login node. Raises CommandError where none runs."""
    return Slurm(Question(account_for(args, environment), environment), _ORDER)


def rows_of(message: str) -> list[dict[str, Any]]:
    """What squeue prints, as rows of `podwright jobs`."""
    lines = [line.split("|") for line in message.splitlines() if line.count("|") == _COLUMNS - 1]
    rows = [_row(*line) for line in lines]
    for partition in {row["queue"] for row in rows}:
        waiting = [row for row in rows if row["queue"] == partition and row["state"] == "waiting"]
        # sorted() keeps the order of those with equal priority, and squeue has the older one first.
        for number, row in enumerate(sorted(waiting, key=lambda row: -row["priority"]), 1):
            row["position"] = [number, len(waiting)]
    return rows


def _row(*cells: str) -> dict[str, Any]:
    """A line of squeue, with state and reason in podwright's words."""
    number, name, account, user, state, partition, nodes, devices, submitted, priority, reason, start = cells
    each = devices.rpartition(":")[2] if "gpu" in devices else "0"
    known = _STATES.get(state, "failed")
    return {
        "id": number,
        "name": name,
        "kind": "sbatch",
        "team": account.removesuffix("_borrow"),
        "account": account,
        "user": user,
        "state": known,
        "queue": partition,
        "priority": int(priority) if priority.isdigit() else 0,
        "nodes": int(nodes) if nodes.isdigit() else 0,
        "accelerators": int(nodes) * int(each) if nodes.isdigit() and each.isdigit() else 0,
        # Nodes of HyperPod keep their clocks in UTC.
        "created": datetime.fromisoformat(submitted).replace(tzinfo=UTC).isoformat() if "T" in submitted else None,
        "reason": state.lower() if known == "failed" else _REASONS.get(reason, reason),
        "slurm_reason": reason,
        "expected_start": start if "T" in start else None,
        "position": None,
        "preempted_by": "",
    }


def list_jobs(args: argparse.Namespace, environment: Environment) -> int:
    """Print the queue."""
    rows = [row for row in queue(args, environment, ended=args.all) if args.team in (None, row["team"])]
    if args.json:
        write_json({"environment": environment.name, "jobs": rows, "not_readable": []})
    elif rows:
        write_jobs(rows, f"Jobs of {environment.name}", datetime.now(UTC))
    else:
        write_line(f"No jobs wait or run on {environment.name}.")
    return 0


def _jobs_called(args: argparse.Namespace, environment: Environment, *, ended: bool) -> list[dict[str, Any]]:
    """The jobs of a name or number. Raises CommandError where there is none."""
    rows = queue(args, environment, ended=ended)
    matches = [row for row in rows if args.job in (row["name"], row["id"]) and args.team in (None, row["team"])]
    if not matches:
        hint = f"`podwright jobs {environment.name} --all` lists those that Slurm remembers"
        raise CommandError(f"Slurm of {environment.name} has no job {args.job}", hint)
    return matches


def stop_jobs(args: argparse.Namespace, environment: Environment) -> int:
    """Cancel a job by its number, or all of a name."""
    matches = _jobs_called(args, environment, ended=False)
    numbers = [row["id"] for row in matches]
    slurm_of(args, environment).run(f"scancel {shlex.join(numbers)}")
    again = command_for(args, "submit", environment.name, args.job) if args.job in environment.jobs else None
    if args.json:
        write_json({"job": args.job, "deleted": numbers, "next": again})
        return 0
    write_line(f"Stopped {args.job}: {', '.join(numbers)}." + (f"\nTo start it again: {again}" if again else ""))
    return 0


def explain(args: argparse.Namespace, environment: Environment) -> int:
    """Say why a job waits, by what Slurm says."""
    matches = _jobs_called(args, environment, ended=True)
    if args.json:
        write_json(matches)
        return 0
    for row in matches:
        for text in _explained(row):
            write_line(text)
    write_line(f"\nIts log: {command_for(args, 'logs', environment.name, args.job)}")
    return 0


def _explained(row: dict[str, Any]) -> Iterator[str]:
    yield f"{row['name']} ({row['id']}) of {row['account']} is {row['state']}" + (
        f": {row['reason']}" * bool(row["reason"])
    )
    yield f"  {row['accelerators']} GPUs in partition {row['queue']}, priority {row['priority']}, of {row['user']}"
    if row["position"]:
        yield f"  {queue_words(row['position'])} that wait in the partition (Slurm says {row['slurm_reason']})"
    if row["state"] == "waiting" and row["expected_start"]:
        yield f"  Slurm expects it to start at {row['expected_start']}"


def print_log(args: argparse.Namespace, environment: Environment) -> int:
    """Print the output of the newest job of a name: its end, what comes, or what its ranks say of step times."""
    if args.previous:
        raise CommandError("on Slurm a job has one output, and nothing before it", "leave --previous out", 2)
    number = _jobs_called(args, environment, ended=True)[-1]["id"]
    slurm, lines = slurm_of(args, environment), STEP_LINES if args.slowest else args.lines
    find = f"f=$(scontrol show job {shlex.quote(number)} | sed -n 's/^ *StdOut=//p')"
    if args.follow and not args.slowest:
        return _follow(args, slurm, number, find)
    output = slurm.run(f'{find}; tail -n {lines} "$f"').splitlines()
    if args.slowest:
        # One file for all nodes: a line is of the rank that it names.
        return print_times(args, args.job, rank_times([PodLog(f"job {number}", "its nodes", 0, output)]))
    output = [line for line in output if is_of(line, args.rank, 0)]
    if args.json:
        write_json({"job": args.job, "id": number, "rank": args.rank, "lines": output})
    else:
        write_text("\n".join(output))
    return 0


def _follow(args: argparse.Namespace, slurm: Slurm, number: str, find: str) -> int:
    """Print what comes until the job has ended. The file need not be there yet."""

    def write(line: str) -> None:
        if is_of(line, args.rank, 0):
            write_text(json.dumps({"id": number, "line": line}) if args.json else line)

    queued = f"squeue --noheader --jobs={shlex.quote(number)} 2>/dev/null | grep -q ."
    script = (
        f'{find}; tail -n {args.lines} -F "$f" 2>/dev/null & t=$!; while {queued}; do sleep 2; done; sleep 2; kill $t'
    )
    try:
        slurm.stream(script, write)
    except CommandFailed as failed:
        raise CommandError(f"the output of {args.job} ({number}) is not followed: {failed}") from None
    return 0
