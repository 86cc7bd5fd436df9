"""`podwright simulate ENV --defragment`: which jobs of a cluster to move so that a whole topology domain is free."""

import argparse
from collections.abc import Iterator, Sequence
from typing import Any, Final

from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ...planning.jobs.topology import LABELS
from ...planning.simulation.answers.defragment import Freed, Move, Stuck, defragment
from ...planning.simulation.kueue.work import Placement
from ...planning.simulation.snapshot import Snapshot
from ..output.console import write_answer
from ..output.tables import Block, new_table
from .decisions import current_policy
from .forecast_lines import assumption_lines

NETWORK: Final = LABELS["network_layer_3"]
"""The level whose domains are freed unless another is named: nodes behind one switch."""
_SHOWN: Final = 5
_ASSUMED: Final = (
    "a job that moves stops and starts again with all of its pods, on its flavor; work that no queue admitted stays "
    "where it is and is not seen",
)


def answer(args: argparse.Namespace, environment: Environment, snapshot: Snapshot) -> int:
    """Print what it takes to free each domain of a level. Returns 1 where none can be free. Raises CommandError."""
    policy = current_policy(snapshot, environment)
    results = list(defragment(policy, args.defragment))
    if not results:
        levels = sorted({level for topology in policy.topologies.values() for level in topology})
        raise CommandError(
            f"no nodes have domains of {args.defragment}",
            f"--defragment names a level: {', '.join(levels) or 'none'}",
            2,
        )
    freed = [each for each in results if isinstance(each, Freed)]
    stuck = [each for each in results if isinstance(each, Stuck)]
    document = {
        "level": args.defragment,
        "domains": list(map(_plain, freed)),
        "stuck": [
            {"flavor": each.flavor, "domain": list(each.domain), "job": _name(each), "reason": each.reason}
            for each in stuck
        ],
        "assumptions": list(_ASSUMED),
    }
    write_answer(args.json, document, [*_lines(args.defragment, freed, stuck), "", *assumption_lines(_ASSUMED)])
    return 0 if freed else 1


def _plain(freed: Freed) -> dict[str, Any]:
    moves = [
        {
            "job": f"{move.work.namespace}/{move.work.name}",
            "pods": move.pods,
            "from": _nodes(move.before),
            "to": _nodes(move.after),
        }
        for move in freed.moves
    ]
    parts = {"flavor": freed.flavor, "domain": list(freed.domain), "nodes": freed.nodes}
    return parts | {"pods": freed.pods, "moves": moves}


def _nodes(placements: Sequence[Placement]) -> list[str]:
    return list(dict.fromkeys(placement.domain[-1] for placement in placements))


def _name(stuck: Stuck) -> str:
    return f"{stuck.work.namespace}/{stuck.work.name}"


def _lines(level: str, freed: Sequence[Freed], stuck: Sequence[Stuck]) -> Iterator[Block]:
    """The domains that take the fewest pods, with whom to move where; then those that cannot be free."""
    free = [each for each in freed if not each.moves]
    if free:
        yield f"Free already: {len(free)} of {len(freed) + len(stuck)} domains of {level}"
        yield from (f"  {each.domain[-1]} of {each.flavor}: {each.nodes} nodes" for each in free[:_SHOWN])
    occupied = [each for each in freed if each.moves]
    for each in occupied[:_SHOWN]:
        jobs, pods = len(each.moves), each.pods
        what = f"{_counted(jobs, 'job')} with {_counted(pods, 'pod')}"
        yield f"To free {each.domain[-1]} of {each.flavor} ({each.nodes} nodes) move {what}:"
        yield new_table("", (), map(_cells, each.moves), indent=2)
    for each in stuck[:_SHOWN]:
        yield f"{each.domain[-1]} of {each.flavor} cannot be free: {_name(each)} finds no other place ({each.reason})"
    if not freed:
        yield f"No domain of {level} can be free: too little is left elsewhere"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _cells(move: Move) -> list[str]:
    """A row for people: the job, where it is, and where it would be."""
    before, after = (", ".join(_nodes(each)) for each in (move.before, move.after))
    return [f"{move.work.namespace}/{move.work.name}", f"from {before}", f"to {after}"]
