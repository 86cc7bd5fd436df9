"""Where work comes from: a file, the metrics of a workspace or of a Prometheus, or nowhere."""

import time
from pathlib import Path
from typing import Final

from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ...config.settings.observability import Observability
from ...planning.monitoring.recordings import filled
from ...planning.quota.team_names import team_namespace
from ...planning.simulation.traces.forms import read_trace
from ...planning.simulation.traces.measured import MOST_DAYS, QUERIES, STEP_SECONDS, read_series
from ...planning.simulation.traces.trace import Trace, UnreadableTrace
from ..aws.account import account_of
from ..dashboards.sources import workspace
from ..programs.prometheus import Prometheus, QueryError

_OWN_METRICS: Final = "metrics"


def trace_of(where: str, environment: Environment, project: Path, days: float) -> Trace:
    """Work that was.

    Args:
        where: A file, `metrics` for the environment's own workspace, or the address of a Prometheus.
        environment: Whose work it is.
        project: Folder of its project.
        days: How much of metrics to read.

    Raises:
        CommandError: it cannot be read, or is no trace.
    """
    if not 0 < days <= MOST_DAYS:
        raise CommandError(f"--days is {days:g}; it is more than 0 and at most {MOST_DAYS}", code=2)
    if where == _OWN_METRICS:
        account = account_of(environment, project, sandbox=False)
        server = workspace(environment, environment.observability or Observability(), account)
        return trace_of_metrics(environment, days, server)
    if where.startswith(("http://", "https://")):
        return trace_of_metrics(environment, days, Prometheus(where.rstrip("/")))
    return trace_of_file(Path(where), environment)


def trace_of_file(file: Path, environment: Environment) -> Trace:
    """The trace in a file. Raises CommandError, which names the line, for what is none."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        message = error.strerror if isinstance(error, OSError) else "it is not text"
        raise CommandError(
            f"{file} cannot be read: {message}", "docs/user/simulation.md shows what is read", 2
        ) from None
    try:
        return read_trace(text, namespaces(environment))
    except UnreadableTrace as error:
        raise CommandError(f"{file}:{error.line}: {error}", error.hint, 2) from None


def trace_of_metrics(environment: Environment, days: float, server: Prometheus) -> Trace:
    """The jobs that metrics of the last days show. Raises CommandError."""
    end = time.time() // STEP_SECONDS * STEP_SECONDS
    try:
        series = {
            name: server.range(
                filled(query, cluster=environment.cluster.name, rate_seconds=300), end - days * 86400, end, STEP_SECONDS
            )
            for name, query in QUERIES.items()
        }
        return read_series(series, namespaces(environment), end)
    except UnreadableTrace as error:
        raise CommandError(f"{server.url}: {error}", error.hint, 1) from None
    # What answers may be no Prometheus.
    except (QueryError, OSError, ValueError, LookupError) as error:
        raise CommandError(
            f"the metrics cannot be read: {error}", f"see whether a Prometheus answers at {server.url}", 1
        ) from None


def namespaces(environment: Environment) -> dict[str, str]:
    """Teams by their namespace."""
    engine = environment.governance.engine
    return {team_namespace(engine, team): team for team in environment.governance.teams} if engine else {}
