"""How commands about jobs reach the Kubernetes API: by a kubeconfig of the user's own, or as all others."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ..arguments import account_for, add_name, add_sandbox
from ..kubernetes.in_vpc import kubectl_of
from ..kubernetes.kubectl import Kubectl, Refused
from ..output.moving import under_way
from .cluster_jobs import Cluster, ClusterJob, read_cluster


def add_job(parser: argparse.ArgumentParser, *, job: bool = True) -> None:
    """The arguments that say which environment and job are meant, and the way to them."""
    add_name(parser)
    if job:
        parser.add_argument("job", metavar="JOB", help="name of the job on the cluster")
    parser.add_argument("--team", metavar="TEAM", help="only jobs of this team")
    add_way(parser)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def add_way(parser: argparse.ArgumentParser) -> None:
    """The options that say how the Kubernetes API is reached."""
    add_sandbox(parser)
    parser.add_argument(
        "--kubeconfig",
        metavar="FILE",
        type=Path,
        help="use this kubeconfig and no AWS credentials (default: connect as `podwright "
        "connect` does, or by the runner inside the VPC)",
    )


def command_for(args: argparse.Namespace, verb: str, environment: str, *words: str) -> str:
    """A command about jobs as somebody types it who goes the same way as this one."""
    way = ["--sandbox"] * args.sandbox + ([f"--kubeconfig {args.kubeconfig}"] if args.kubeconfig else [])
    return " ".join(("podwright", verb, environment, *words, *way))


def kubectl_for(args: argparse.Namespace, environment: Environment) -> Kubectl:
    """Kubectl on the environment's cluster.

    Raises:
        CommandError: the kubeconfig is not a file, or there is no cluster.
    """
    if args.kubeconfig is None:
        account = account_for(args, environment)
        under_way(f"asking Kubernetes of {environment.name}")
        return kubectl_of(args.project, environment, account)
    if not args.kubeconfig.is_file():
        raise CommandError(f"--kubeconfig {args.kubeconfig} is not a file", "`podwright connect` writes one", 2)
    return Kubectl(args.kubeconfig, True)


def one_job(
    args: argparse.Namespace, environment: Environment, kubectl: Kubectl, *more: str, around: bool = False
) -> tuple[Cluster, ClusterJob]:
    """The job that the arguments mean, and the cluster around it.

    Args:
        args: Those of `add_job`.
        environment: The environment.
        kubectl: The way to its cluster.
        more: Kinds that are read besides, by how kubectl names them.
        around: Read the jobs of all teams in any case.

    Raises:
        CommandError: there is no such job, or several.
    """
    check_team(args.team, environment)
    # A job of the file is in its team's namespace, so the others need not be read.
    template = environment.jobs.get(args.job)
    team = args.team or (template.team if template else None)
    cluster = read(kubectl, environment, None if around else team, more)
    matches = _matches(cluster, args)
    if not matches and team and not (args.team or around):
        cluster = read(kubectl, environment, None, more)
        matches = _matches(cluster, args)
    if len(matches) == 1:
        return cluster, matches[0]
    if matches:
        where = ", ".join(job.team or job.namespace for job in matches)
        raise CommandError(f"{len(matches)} jobs are called {args.job}, of {where}", "say which with --team", 2)
    hint = f"`podwright jobs {environment.name} --all` lists those that are there"
    if args.job in environment.jobs:
        hint = f"`podwright submit {environment.name} {args.job}` hands it over"
    if cluster.hidden:
        hint += f"; you may not read {', '.join(cluster.hidden)}"
    raise CommandError(f"the cluster of {environment.name} has no job {args.job}", hint)


def _matches(cluster: Cluster, args: argparse.Namespace) -> list[ClusterJob]:
    return [job for job in cluster.jobs if job.name == args.job and args.team in (None, job.team)]


def read(kubectl: Kubectl, environment: Environment, team: str | None, more: Sequence[str] = ()) -> Cluster:
    """The jobs of a cluster. Raises CommandError where Kubernetes does not answer."""
    check_team(team, environment)
    try:
        return read_cluster(kubectl, environment, team, more)
    except Refused as refused:
        hint = f"`podwright connect {environment.name}` says how to reach it"
        raise CommandError(f"Kubernetes does not show jobs: {refused}", hint) from None


def check_team(team: str | None, environment: Environment) -> None:
    """Raises CommandError for a team that the environment does not have."""
    if team is not None and team not in environment.governance.teams:
        known = ", ".join(environment.governance.teams) or "none"
        raise CommandError(f"{environment.name} has no team {team}", f"known: {known}", 2)
