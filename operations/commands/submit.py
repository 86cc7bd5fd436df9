"""Hand a job of an environment to its cluster: check it, make its manifest, and apply that, all of it or nothing.

It goes the way that `podwright connect` makes: directly where the network leads to the API, else through a tunnel that
`podwright connect` holds open in another window, else through the runner inside the VPC. A job that rules refuse is not
handed over. With --set a run has other settings than the file; with --name it is a job of its own beside the one that
runs. With --manager a manager of MultiKueue gets it, which gives it to the first of its workers with room.
"""

import argparse

from ...config.errors import CommandError
from ...config.loading.project import Project
from ...config.settings.environment import Environment
from ...planning.quota.links import links, worker_of
from ..arguments import add_name, load
from ..jobs.changed import with_settings
from ..jobs.reach import add_way
from ..jobs.slurm_jobs import is_slurm, submit_batch
from ..jobs.submission import add_options, submit
from ..kubernetes.job_manifests import job_manifests


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright submit`."""
    add_name(parser)
    parser.add_argument("job", metavar="JOB", help="a key of its `jobs`")
    parser.add_argument("--name", metavar="NAME", help="what the run is called (default: as the job)")
    parser.add_argument(
        "--manager", metavar="ENV", help="hand it to this manager of MultiKueue, which finds it a worker"
    )
    parser.add_argument("--user", metavar="NAME", help="on Slurm, as which user (default: you, or the team's only one)")
    add_options(parser)
    add_way(parser)


def run(args: argparse.Namespace) -> int:
    """Apply the manifests of one job."""
    loaded = with_settings(load(args), args.job, args.settings, args.name)
    environment, name = loaded.environment, args.name or args.job
    if is_slurm(environment):
        return submit_batch(args, loaded, name)
    manifests = job_manifests(loaded, [name]).get(name)
    if manifests is None:
        raise CommandError(
            f"{name} is a recipe, and the launcher of sagemaker-hyperpod-recipes submits it",
            f"`podwright render jobs {environment.name} {args.job} --out DIR` writes the script that starts it",
            2,
        )
    target = _manager(args, environment) if args.manager else environment
    return submit(args, loaded, name, manifests, target)


def _manager(args: argparse.Namespace, worker: Environment) -> Environment:
    """The manager that hands work to an environment. Raises CommandError for another."""
    manager = Project.at(args.project).load(args.manager).environment
    if any(worker_of(link, {worker.name: worker}) for link in links({manager.name: manager})):
        return manager
    raise CommandError(
        f"{manager.name} hands no work to {worker.name}",
        f"`podwright project` lists who does; its file names `environment: {worker.name}` beside a worker's secret",
        2,
    )
