"""Whose jobs run on nodes that are to go."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...config.settings.environment import Environment
from ..aws.account import Account
from ..aws.clusters import Node
from ..aws.session import NotConnected
from ..gates.slurm import Slurm
from ..jobs.reach import read
from ..jobs.slurm_jobs import FORMAT, Question, is_slurm, rows_of
from ..kubernetes.in_vpc import kubectl_of
from ..nodes.members import slurm_names

_MARK: Final = "podwright-node "


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job that has pods or processes on nodes."""

    name: str
    team: str
    """Empty for a job of no team."""
    nodes: tuple[str, ...]
    """Instance ids of the nodes that were asked about."""
    size: int
    """Nodes that it runs on altogether."""

    def __str__(self) -> str:
        return f"{self.name} of {self.team or 'no team'}, on {len(self.nodes)} of its {self.size} nodes"


@dataclass(frozen=True, slots=True)
class Occupancy:
    """What runs on nodes, as far as whoever asks may see it."""

    jobs: tuple[RunningJob, ...] = ()
    hidden: tuple[str, ...] = ()
    """Namespaces of teams that may not be read: jobs of theirs may run there too."""


def occupancy(environment: Environment, account: Account, project: Path, nodes: Sequence[Node]) -> Occupancy:
    """The jobs on some nodes. Raises CommandError where neither Kubernetes nor Slurm tells."""
    if not nodes:
        return Occupancy()
    if is_slurm(environment):
        return Occupancy(tuple(_on_slurm(environment, account, nodes)))
    cluster = read(kubectl_of(project, environment, account), environment, None)
    ids = {node.id for node in nodes}
    jobs: list[RunningJob] = []
    for job in cluster.jobs:
        used = {pod.node for pod in job.pods if pod.node and pod.phase in ("Pending", "Running")}
        if used & ids:
            jobs.append(RunningJob(job.name, job.team, tuple(sorted(used & ids)), len(used)))
    return Occupancy(tuple(jobs), cluster.hidden)


def _on_slurm(environment: Environment, account: Account, nodes: Sequence[Node]) -> Iterator[RunningJob]:
    """The jobs that squeue lists on each node, asked in one session."""
    names = slurm_names(environment, account, nodes)
    # A node that has never joined is none of Slurm's, and squeue would fail for all of them.
    script = (
        f"for node in {shlex.join(names.values())}; do scontrol show node $node >/dev/null 2>&1 || continue; "
        f"echo {shlex.quote(_MARK)}$node; squeue --noheader --nodelist=$node --format={shlex.quote(FORMAT)}; done"
    )
    try:
        message = Slurm(Question(account, environment)).run(script)
    except NotConnected:
        # Nothing runs on nodes that only the sandbox plays.
        if not account.endpoint:
            raise
        return
    ids = {name: id for id, name in names.items()}
    matches: dict[str, RunningJob] = {}
    for part in message.split(_MARK)[1:]:
        name, _, lines = part.partition("\n")
        for line in lines.splitlines():
            for row in rows_of(line):
                known = matches.get(row["id"])
                on = (*(known.nodes if known else ()), ids[name.strip()])
                matches[row["id"]] = RunningJob(f"{row['name']} ({row['id']})", row["team"], on, row["nodes"])
    yield from matches.values()
