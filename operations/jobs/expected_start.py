"""When a waiting job starts if nobody submits more: Kueue's decisions, simulated from the state of its cluster."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...config.catalog.instance_types import environment_types
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
from ...planning.simulation.snapshot import COMMAND, Snapshot, comes_at, name_of, read_snapshot
from ...planning.simulation.summary.forecast import Forecast
from ...planning.simulation.traces.workload_list import slice_before
from ..kubernetes.kubectl import Kubectl, Refused
from ..output.tables import Block
from ..simulation.decisions import ENGINES, forecast_from, remaining
from ..simulation.forecast_lines import forecast_lines
from ..simulation.policies import following_sentences, following_states
from .cluster_jobs import Cluster, ClusterJob
from .conditions import refuses


class Expected(NamedTuple):
    """What the simulation says."""

    data: dict[str, Any]
    lines: Sequence[Block]


def expected_start(kubectl: Kubectl, environment: Environment, cluster: Cluster, job: ClusterJob) -> Expected | None:
    """When a job starts, or grows, of which one Workload waits; None where Kueue does not decide about it, or in parts.

    Where the cluster does not show enough to whoever asks, Kueue would refuse its policy, or Kueue itself has just
    decided otherwise, the answer says that.
    """
    if not kubectl.is_real or engine_of(environment) not in ENGINES or len(job.waiting) != 1:
        return None
    (workload,) = job.waiting
    if len(job.workloads) > 1 and not slice_before(workload):
        return None
    name = workload["metadata"]["name"]
    assumptions = Assumptions(failures_per_node_hour=NODE_FAILURES_PER_HOUR)
    try:
        snapshot = read_snapshot(kubectl.run(*COMMAND.split()[1:]), DEFAULT_SECONDS)
        result = forecast_from(
            snapshot, name, lambda state: remaining(state, environment, name_of(workload), assumptions)
        )
    except Refused as refused:
        return _unknown(f"it takes the nodes and the queues of all teams, and kubectl says: {refused}")
    except LookupError:
        return _unknown("it has just stopped waiting")
    except (CommandError, InvalidValue) as error:
        return _unknown(str(error))
    if refuses(workload) and _starts_before_a_change(result, snapshot, environment, workload):
        return _unknown("the simulation would start it at once, and Kueue has just refused that")
    names = {name_of(item): each.name for each in cluster.jobs for item in each.workloads}
    result = result._replace(
        job=name if slice_before(workload) else job.name,
        unknown_ends=tuple(dict.fromkeys(names.get(each, each) for each in result.unknown_ends)),
    )
    dated = following_sentences(snapshot, environment, assumptions.check_seconds)
    sentences = [*snapshot.assumptions, NOBODY_ELSE, AS_IN_THE_FILE, *dated, *assumptions.sentences()]
    lines = [*forecast_lines(result), f"assumed: {'; '.join(sentences)}"]
    return Expected(result.document() | {"assumptions": sentences}, lines)


def _starts_before_a_change(
    result: Forecast, snapshot: Snapshot, environment: Environment, workload: Mapping[str, Any]
) -> bool:
    """Whether a job would start although nothing ends, changes or is tried again before that."""
    if result.starts_in is None or comes_at(workload, snapshot.taken) > snapshot.taken:
        return False
    _, *later = following_states(snapshot, environment, environment_types(environment.instance_types))
    return result.starts_in < min([snapshot.first_end, *(state.time - snapshot.taken for state in later)])


def _unknown(reason: str) -> Expected:
    return Expected({"unknown": reason}, [f"unknown: {reason}"])
