"""Rules on work that clusters of a project share: a manager of MultiKueue beside the environments of its workers."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from ....config.catalog.software_matrix import number
from ....config.findings import Path, listed
from ....config.settings.environment import Environment
from ...quota.links import Link, is_private, links, overlap, shared_work, worker_of
from ...quota.policy import environment_policy
from ..framework.rule import ERROR, INFO, WARNING, Problem, Problems, rule
from .project import ProjectView

_HERE: Final = ("governance", "kueue", "multikueue")
# Job's managedBy, by which a manager leaves it to a worker, is on from here. Source: Kueue documentation, MultiKueue.
_JOBS_SINCE: Final = (1, 32)


class _Ends(NamedTuple):
    """A link with both of its environments."""

    link: Link
    manager: Environment
    worker: Environment


def _pairs(view: ProjectView) -> Iterator[_Ends]:
    """Every link of which both ends are in the project."""
    for link in links(view.environments):
        if worker := worker_of(link, view.environments):
            yield _Ends(link, view.environments[link.manager], worker)


def _at(link: Link, *path: str) -> Path:
    return (link.manager, *_HERE, "workers", link.name, *path)


@rule("PRJ010", ERROR, on=ProjectView, source="kueue-multikueue", final=True)
def worker_of_the_project(view: ProjectView) -> Problems:
    """Worker with an unknown or unsuitable environment."""
    for link in links(view.environments):
        name = link.worker.environment
        if name is None or worker_of(link, view.environments):
            continue
        if name in view.environments:
            why = "which is the manager itself" if name == link.manager else "which is no worker of MultiKueue"
            hint = f"set engine kueue and `multikueue: {{role: worker}}` in {name}"
        else:
            why = "which the project does not have"
            workers = [
                other
                for other, item in view.environments.items()
                if (own := shared_work(item)) and own.role == "worker"
            ]
            hint = f"name {listed(workers)}, or remove environment for a worker of another project"
        yield Problem(_at(link, "environment"), f"{link.name} is environment {name}, {why}", hint)


@rule("PRJ011", ERROR, on=ProjectView, source="kueue-multikueue", final=True)
def groups_of_a_worker(view: ProjectView) -> Problems:
    """Worker with an unknown instance group."""
    for link, _, worker in _pairs(view):
        for name, group in link.worker.groups.items():
            existing = worker.instance_groups.get(name)
            if existing is None:
                message = f"{worker.name} has no group {name}; it has {listed(worker.instance_groups, 'and')}"
            elif group.instance_type not in existing.types:
                message = f"{name} of {worker.name} is {listed(existing.types, 'and')}, and here {group.instance_type}"
            elif group.count > existing.count:
                message = f"{name} of {worker.name} has {existing.count} instances, and here {group.count}"
            else:
                continue
            yield Problem(
                _at(link, "groups", name),
                f"{message}; what is handed on for it would wait there forever",
                f"write here what {worker.name} has",
            )


@rule("PRJ012", ERROR, on=ProjectView, source="kueue-multikueue", final=True)
def names_of_a_worker(view: ProjectView) -> Problems:
    """Team or priority unknown to a worker."""
    for link, manager, worker in _pairs(view):
        for kind in ("teams", "priorities"):
            missing = sorted(getattr(manager.governance, kind).keys() - getattr(worker.governance, kind).keys())
            if missing:
                yield Problem(
                    (link.manager, "governance", kind, missing[0]),
                    f"{worker.name} has no {kind} {listed(missing, 'and')}, and work keeps its namespace, its queue "
                    "and its priority when it is handed on",
                    f"add them to {worker.name}; a shared file that both extend keeps them alike",
                )


@rule("PRJ013", ERROR, on=ProjectView, source="kueue-multikueue", final=True)
def kinds_of_a_worker(view: ProjectView) -> Problems:
    """Job kind that a worker does not accept."""
    for link, manager, worker in _pairs(view):
        taken = shared_work(worker)
        missing = [kind for kind in link.shared.jobs if taken and kind not in taken.jobs]
        if missing:
            yield Problem(
                (link.manager, *_HERE, "jobs"),
                f"{manager.name} hands on {listed(missing, 'and')}, which its account in {worker.name} may not create",
                f"add them to governance.kueue.multikueue.jobs of {worker.name}, or remove them here",
            )


@rule("PRJ014", WARNING, on=ProjectView, source="kueue-multikueue")
def quotas_of_workers(view: ProjectView) -> Problems:
    """Manager quotas differ from the workers' guarantees."""
    for name, manager in view.environments.items():
        result = list(links({name: manager}))
        workers = [worker for link in result if (worker := worker_of(link, view.environments))]
        if not result or len(workers) < len(result):
            continue  # What a worker elsewhere guarantees is not known here.
        try:
            here = environment_policy(manager, view.types(name))
            existing = [environment_policy(worker, view.types(worker.name)) for worker in workers]
        except LookupError:
            continue  # Rules of their own say which group, type or key it is.
        for team in here.teams:
            for flavor in here.teams[team].shares:
                desired = here.instances(team, flavor)
                specified = sum(policy.instances(team, flavor) for policy in existing if team in policy.teams)
                if desired != specified:
                    named = listed([worker.name for worker in workers], "and")
                    follows = "work is handed on that no worker admits" if desired > specified else "workers stand idle"
                    yield Problem(
                        (name, "governance", "teams", team, "quota"),
                        f"{team} has {desired:g} of {flavor} here and {specified:g} in {named} together, so {follows}",
                        "make the sums equal",
                    )


@rule("PRJ015", ERROR, on=ProjectView, source="kueue-multikueue vpc-peering")
def way_between_networks(view: ProjectView) -> Problems:
    """Worker network overlaps the manager's."""
    for link, manager, worker in _pairs(view):
        both = overlap(manager.network, worker.network)
        if both and is_private(manager, worker):
            closed = manager.network.endpoints == "closed"
            why = f"{manager.name} has no way out" if closed else f"the endpoint of {worker.name} is private"
            yield Problem(
                _at(link, "environment") if link.worker.environment else _at(link),
                f"{both[0]} of {manager.name} and {both[1]} of {worker.name} overlap, so nothing connects the two "
                f"networks, and {why}",
                "give one of them another range before its first deployment",
            )


@rule("PRJ016", ERROR, on=ProjectView, source="kueue-multikueue", final=True)
def kubernetes_that_hands_on(view: ProjectView) -> Problems:
    """Kubernetes version too old to delegate Jobs."""
    for link, manager, worker in _pairs(view):
        for environment in (manager, worker) if "job" in link.shared.jobs else ():
            eks = environment.cluster.eks
            if eks.existing is None and number(eks.version) < _JOBS_SINCE:
                yield Problem(
                    (environment.name, "cluster", "eks", "version"),
                    f"{environment.name} has Kubernetes {eks.version}; between {manager.name} and {worker.name} Jobs "
                    f"are handed on from {'.'.join(map(str, _JOBS_SINCE))} on",
                    "raise the version, or take job out of governance.kueue.multikueue.jobs on both sides",
                )


@rule("PRJ017", INFO, on=ProjectView, source="kueue-multikueue")
def worker_without_manager(view: ProjectView) -> Problems:
    """Worker without a manager in the project."""
    named = {link.worker.environment for link in links(view.environments)}
    for name, environment in view.environments.items():
        shared = shared_work(environment)
        if shared and shared.role == "worker" and name not in named:
            yield Problem(
                (name, *_HERE, "role"),
                f"{name} takes work from a manager, and none of this project names it as `environment` of a worker",
                "name it there, so that both sides are compared; or accept this for a manager elsewhere",
            )
