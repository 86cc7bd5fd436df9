"""Where work comes from: a file, the metrics of a workspace or of a Prometheus, or nowhere."""

import time
from pathlib import Path

from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ...planning.monitoring.recordings import filled
from ...planning.quota.team_names import team_namespace
from ...planning.simulation.traces.forms import read_trace
from ...planning.simulation.traces.measured import QUERIES, STEP_SECONDS, read_series
from ...planning.simulation.traces.trace import Trace, UnreadableTrace
from ..programs.prometheus import Prometheus, QueryError


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
