"""When a waiting job starts if nobody submits more: Kueue's decisions, simulated from the state of its cluster."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...config.errors import CommandError, InvalidValue
from ...config.settings.environment import Environment
from ...planning.jobs.plan import engine_of
from ...planning.simulation.assumptions import (
    AS_IN_THE_FILE,
    DEFAULT_SECONDS,
    NOBODY_ELSE,
    NODE_FAILURES_PER_HOUR,
    Assumptions,
)
from ...planning.simulation.snapshot import COMMAND, name_of, read_snapshot
from ...planning.simulation.summary.forecast import forecast
from ...planning.simulation.traces.workload_list import slice_before
from ..kubernetes.kubectl import Kubectl, Refused
from ..output.tables import Block
from ..simulation.decisions import ENGINES, remaining
from ..simulation.forecast_lines import forecast_lines
from ..simulation.policies import following_sentences
from .cluster_jobs import ClusterJob


class Expected(NamedTuple):
    """What the simulation says."""

    data: dict[str, Any]
    lines: Sequence[Block]


def expected_start(kubectl: Kubectl, environment: Environment, job: ClusterJob) -> Expected | None:
    """When a job starts, or grows, of which one Workload waits; None where Kueue does not decide about it, or in parts.

    Where the cluster does not show enough to whoever asks, or Kueue would refuse its policy, the answer says that.
    """
    if not kubectl.is_real or engine_of(environment) not in ENGINES or len(job.waiting) != 1:
        return None
    (workload,) = job.waiting
    if len(job.workloads) > 1 and not slice_before(workload):
        return None
    assumptions = Assumptions(failures_per_node_hour=NODE_FAILURES_PER_HOUR)
    try:
        snapshot = read_snapshot(kubectl.run(*COMMAND.split()[1:]), DEFAULT_SECONDS)
        outcome = remaining(snapshot, environment, name_of(workload), assumptions)
    except Refused as refused:
        return _unknown(f"it takes the nodes and the queues of all teams, and kubectl says: {refused}")
    except LookupError:
        return _unknown("it has just stopped waiting")
    except (CommandError, InvalidValue) as error:
        return _unknown(str(error))
    name = workload["metadata"]["name"] if slice_before(workload) else job.name
    result = forecast(outcome, workload["metadata"]["name"])._replace(job=name)
    dated = following_sentences(snapshot, environment, assumptions.check_seconds)
    sentences = [*snapshot.assumptions, NOBODY_ELSE, AS_IN_THE_FILE, *dated, *assumptions.sentences()]
    lines = [*forecast_lines(result), f"assumed: {'; '.join(sentences)}"]
    return Expected(result.document() | {"assumptions": sentences}, lines)


def _unknown(reason: str) -> Expected:
    return Expected({"unknown": reason}, [f"unknown: {reason}"])
