"""Deploy an environment with one node of each instance group, and wait for the verdicts of these nodes.

A group on a training plan gets all its nodes, because they are paid for. A deployed group keeps its nodes. The verdicts
come from node set-up and, if the file enables benchmarks, from the benchmarks. Exit codes: 0 all nodes are healthy, 1 a
node is not.
"""

import argparse
import time
from typing import Any, Final

from ...config.errors import CommandError
from ...config.loading.load import LoadedEnvironment
from ...planning.delivery.canary import canary_counts
from ...planning.node.setup_record import SetupRecord
from ..arguments import account_for, as_time, load
from ..aws.account import Account
from ..aws.clusters import Node, cluster
from ..aws.clusters import nodes as cluster_nodes
from ..commands import deploy
from ..environments.checked import stop_on_errors
from ..gates.run import run_gate
from ..nodes.setup_records import setup_records
from ..output.console import write_answer, write_note
from ..output.moving import waiting_for
from ..output.tables import Block, new_table

_POLL_SECONDS: Final = 15.0
_POLL_IN_SANDBOX: Final = 0.3
_LOST: Final = ("Failure", "ShuttingDown")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright canary`: those of `deploy`, and how long to wait."""
    deploy.add_arguments(parser)
    parser.add_argument(
        "--wait",
        type=as_time,
        default=2700.0,
        metavar="TIME",
        help="wait for the nodes' verdicts, at most for this time (default: 45m)",
    )


def run(args: argparse.Namespace) -> int:
    """Deploy the canary nodes, wait, and print what each of them says."""
    loaded = load(args)
    stop_on_errors(loaded)
    environment = loaded.environment
    if not environment.has_cluster:
        raise CommandError(f"{environment.name} has no cluster, so there is no node to begin with", code=2)
    account = account_for(args, environment)
    # The counts that are deployed are kept: a canary of a cluster that is there would else take its nodes away.
    present = cluster(account, environment.cluster.name)
    deployed = {group.name: group.target for group in present.groups} if present else {}
    counts = canary_counts(environment, deployed)
    write_note(f"canary of {environment.name}: " + ", ".join(f"{count} × {name}" for name, count in counts.items()))
    if code := deploy.deploy(args, counts, quiet=True):
        return code
    account = account_for(args, environment)
    rows = _waited(loaded, account, counts, args.wait)
    gate = run_gate(loaded, account, args.project, "verdicts", args.wait / 60)
    measured = {check.about.split(" ")[0]: check.seen for check in gate.checks}
    for row in rows:
        row["benchmarks"] = measured.get(row["node"], "")
    problems = [f"{row['group']} {row['node']}: {row['why']}" for row in rows if not row["ok"]]
    if gate.verdict == "failed":
        problems.append(f"benchmarks: {gate.reason}")
    document = {
        "environment": environment.name,
        "verdict": "failed" if problems else "passed",
        "nodes": rows,
        "benchmarks": gate.verdict,
        "failed": problems,
        "next": _next(environment.name, bool(problems)),
    }
    write_answer(args.json, document, _lines(document))
    return int(bool(problems))


def _waited(
    loaded: LoadedEnvironment, account: Account, counts: dict[str, int], seconds: float
) -> list[dict[str, Any]]:
    """A row for each node, once all have a verdict, one is lost, or the time is up."""
    environment, end = loaded.environment, time.monotonic() + seconds
    waiting = waiting_for("what the nodes say of their set-up")
    while True:
        nodes = cluster_nodes(account, environment.cluster.name)
        own = [node for node in nodes if _writes(loaded, node.group)]
        records = setup_records(environment, account, own)
        rows = [_row(node, records.get(node.id), _writes(loaded, node.group)) for node in nodes]
        rows += [_absent(name, count) for name, count in counts.items() if count and not _has(nodes, name)]
        # One that is lost decides: the others could only confirm it, at the price of their instances.
        done = all(row["ok"] for row in rows) or any(row["final"] for row in rows)
        if done or time.monotonic() > end:
            return rows
        waiting.tick()
        time.sleep(_POLL_IN_SANDBOX if account.endpoint else _POLL_SECONDS)


def _writes(loaded: LoadedEnvironment, group: str) -> bool:
    """Whether nodes of the group run podwright's scripts, which write a verdict."""
    settings = loaded.environment.instance_groups.get(group)
    return settings is not None and settings.lifecycle is None


def _has(nodes: list[Node], group: str) -> bool:
    return any(node.group == group for node in nodes)


def _row(node: Node, record: SetupRecord | None, writes: bool) -> dict[str, Any]:
    """What there is to say of a node. `final`: waiting changes nothing about it."""
    verdict = record.verdict if record else "no verdict"
    steps = {**record.failed, **record.degraded} if record else {}
    lost = node.status in _LOST or (record is not None and record.verdict != "ready")
    ok = node.status == "Running" and (not writes or verdict == "ready")
    why = "; ".join(f"{step}: {saw}" for step, saw in steps.items()) or node.message or f"{node.status}, {verdict}"
    return {
        "group": node.group,
        "node": node.id,
        "type": node.type,
        "status": node.status,
        "setup": verdict if writes else "its own scripts",
        "steps": sorted(steps),
        "ok": ok,
        "final": lost,
        "why": "" if ok else why,
    }


def _absent(group: str, count: int) -> dict[str, Any]:
    missing = {"group": group, "node": "", "type": "", "status": "none", "setup": "no verdict", "steps": []}
    return {**missing, "ok": False, "final": False, "why": f"none of {count} nodes has come"}


def _next(name: str, has_problems: bool) -> str:
    if has_problems:
        return f"`podwright doctor {name}` looks for the cause; once it is fixed, `podwright canary {name}` again"
    return f"`podwright deploy {name}` brings all groups to the counts of the file"


def _lines(document: dict[str, Any]) -> list[Block]:
    """The answer for people."""
    rows = (
        (row["group"], row["node"], row["type"], row["status"], row["setup"], row["benchmarks"], row["why"])
        for row in document["nodes"]
    )
    names = ("group", "node", "type", "status", "set-up", "benchmarks", "")
    lines = [
        new_table("", names, rows, optional=("type",)),
        "",
        f"{document['verdict']}",
        *(f"  {text}" for text in document["failed"]),
    ]
    return [*lines, f"next: {document['next']}"]
