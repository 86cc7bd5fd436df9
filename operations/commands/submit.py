"""Submit a job of an environment to its cluster: check it, render its manifest, and apply all of it or nothing.

The command reaches the Kubernetes API as `podwright connect` does: directly, through an open tunnel of `podwright
connect`, or through the runner inside the VPC. It does not submit a job with an error. --set changes settings for this
run. --name submits a second job beside one that runs. --manager submits the job to a MultiKueue manager, which selects
a worker.
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
    parser.add_argument("job", metavar="JOB", help="name of a job under `jobs` of the file")
    parser.add_argument("--name", metavar="NAME", help="name of the run (default: the name of the job)")
    parser.add_argument("--manager", metavar="ENV", help="submit to this MultiKueue manager, which selects a worker")
    parser.add_argument(
        "--user", metavar="NAME", help="on Slurm: user who runs the job (default: you, or the team's only user)"
    )
    parser.add_argument(
        "--recipes", metavar="DIR", type=Path, help="for a recipe: folder with a checkout of sagemaker-hyperpod-recipes"
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
        f"`podwright project` lists managers, whose file has `environment: {worker.name}` next to the worker's secret",
        2,
    )
