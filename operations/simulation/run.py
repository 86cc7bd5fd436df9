"""One piece of work under one policy or several: from a trace to the figures of each."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...config.catalog.instance_types import environment_types
from ...config.settings.governance.teams import Engine
from ...planning.quota.policy import QuotaPolicy, environment_policy
from ...planning.simulation.assumptions import Assumptions
from ...planning.simulation.plan_windows import plan_windows
from ...planning.simulation.summary.figures import figures
from ...planning.simulation.summary.outcome import Outcome
from ...planning.simulation.traces.requested_work import Shape, requested, shapes
from ...planning.simulation.traces.trace import Trace, TraceProblem
from ...planning.simulation.traces.workloads import workload
from .document import Simulation
from .policies import Policy, dated_policy


class Submission(NamedTuple):
    """A Workload, and how long it runs undisturbed."""

    workload: dict[str, Any]
    team: str
    seconds: float
    startup: float | None = None
    """Seconds until its pods are ready; None as is assumed of all."""


Decide = Callable[[Policy, Sequence[Submission], Assumptions], Outcome]
"""Runs work under a policy, as Kueue would decide."""


def simulation(policies: Sequence[Policy], trace: Trace, decide: Decide, assumptions: Assumptions) -> Simulation:
    """The same work under each policy: a job that one of them could never run is left out under all."""
    known = [_known(policy) for policy in policies]
    works = [requested(trace, each.shapes, each.quotas.teams, each.quotas.priorities) for each in known]
    problems = sorted({problem for work in works for problem in work.problems})
    spoilt = {problem.line for problem in problems}
    outcomes, sentences = list[Outcome](), dict[str, None]()
    times = [job.submitted for job in trace.jobs] or [0.0]
    for undated, each, work in zip(policies, known, works, strict=True):
        types = environment_types(undated.environment.instance_types)
        policy = dated_policy(undated, types, min(times), max(times))
        jobs = [
            Submission(
                workload(item, each.engine, each.shapes, each.quotas.priorities),
                item.job.team,
                item.job.seconds,
                item.job.startup,
            )
            for item in work.jobs
            if item.job.line not in spoilt
        ]
        outcomes.append(decide(policy, jobs, assumptions))
        sentences |= dict.fromkeys((*work.assumptions, *policy.assumptions))
    sentences |= dict.fromkeys(assumptions.sentences())
    windows = [list(plan_windows(policy.environment)) for policy in policies]
    submitted = len(outcomes[0].jobs)
    return Simulation(
        [figures(outcome) for outcome in outcomes], trace.form, submitted, problems, list(sentences), windows
    )


def left_out(policy: Policy, trace: Trace) -> Sequence[TraceProblem]:
    """The rows of a trace that cannot run under a policy."""
    known = _known(policy)
    return requested(trace, known.shapes, known.quotas.teams, known.quotas.priorities).problems


class _Known(NamedTuple):
    """What is known of an environment."""

    shapes: dict[str, Shape]
    quotas: QuotaPolicy
    engine: Engine


def _known(policy: Policy) -> _Known:
    environment = policy.environment
    types = environment_types(environment.instance_types)
    return _Known(shapes(environment, types), environment_policy(environment, types), policy.engine)
