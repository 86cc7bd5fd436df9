"""Hand a job of an environment to its cluster: check it, make its manifest, and apply that, all of it or nothing.

It goes the way that `podwright connect` makes: directly where the network leads to the API, else through a tunnel that
`podwright connect` holds open in another window, else through the runner inside the VPC. A job that rules refuse is not
handed over. With --set a run has other settings than the file; with --name it is a job of its own beside the one that
runs. With --manager a manager of MultiKueue gets it, which gives it to the first of its workers with room.
"""

import argparse
from pathlib import Path

from ...config.errors import CommandError
from ...config.loading.project import Project
from ...config.settings.environment import Environment
from ...planning.quota.links import links, worker_of
from ..arguments import add_name, load
from ..jobs.changed import with_settings
from ..jobs.reach import add_way
from ..jobs.recipe_launcher import submit_recipe
from ..jobs.slurm_jobs import is_slurm, submit_batch
from ..jobs.submission import add_options, submit
from ..jobs.training_jobs import is_training_job, submit_training_job
from ..kubernetes.job_manifests import job_manifests, recipes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright submit`."""
    add_name(parser)
    parser.add_argument("job", metavar="JOB", help="a key of its `jobs`")
    parser.add_argument("--name", metavar="NAME", help="what the run is called (default: as the job)")
    parser.add_argument(
        "--manager", metavar="ENV", help="hand it to this manager of MultiKueue, which finds it a worker"
    )
    parser.add_argument("--user", metavar="NAME", help="on Slurm, as which user (default: you, or the team's only one)")
    parser.add_argument(
        "--recipes", metavar="DIR", type=Path, help="for a recipe, where AWS's collection of them is checked out"
    )
    add_options(parser)
    add_way(parser)


def run(args: argparse.Namespace) -> int:
    """Apply the manifests of one job."""
    loaded = load(args)
    if is_training_job(loaded.environment, args.job):
        return submit_training_job(args, loaded)
    loaded = with_settings(loaded, args.job, args.settings, args.name)
    environment, name = loaded.environment, args.name or args.job
    if is_slurm(environment):
        return submit_batch(args, loaded, name)
    manifests = job_manifests(loaded, [name]).get(name)
    target = _manager(args, environment) if args.manager else environment
    if manifests is None:
        return submit_recipe(args, name, recipes(loaded, [name])[name], target)
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
