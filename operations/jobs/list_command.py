"""List the jobs of a cluster, of all kinds and teams: state, queue, GPUs, and why each job waits.

A team's role is enough. The command names namespaces that you may not read.
"""

import argparse
from datetime import UTC, datetime

from ..arguments import load
from ..kubernetes.kubectl import NO_SCHEDULER
from ..output.console import write_json, write_line
from .by_priority import by_priority, write_by_priority
from .reach import add_job, kubectl_for, read
from .slurm_jobs import is_slurm, list_jobs
from .table import job_rows, write_jobs
from .training_jobs import list_training_jobs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright jobs`."""
    add_job(parser, job=False)
    parser.add_argument("--all", action="store_true", help="also list jobs that have ended")
    parser.add_argument("--by-priority", action="store_true", help="count jobs by priority class instead")
    parser.add_argument(
        "--training-jobs",
        action="store_true",
        help="list SageMaker training jobs in AWS Batch queues (default without a cluster)",
    )


def run(args: argparse.Namespace) -> int:
    """Print the jobs."""
    environment = load(args).environment
    if args.training_jobs or not environment.has_cluster:
        return list_training_jobs(args, environment)
    if is_slurm(environment):
        return list_jobs(args, environment)
    kubectl = kubectl_for(args, environment)
    cluster = read(kubectl, environment, args.team, ("nodes",))
    ended = ("succeeded", "failed")
    rows = [row for row in job_rows(cluster) if args.all or row["state"] not in ended]
    if args.json:
        classes = {"classes": by_priority(rows)} if args.by_priority else {}
        write_json({"environment": environment.name, "jobs": rows, **classes, "not_readable": list(cluster.hidden)})
        return 0
    if rows and args.by_priority:
        write_by_priority(by_priority(rows), f"Jobs of {environment.name} by priority", datetime.now(UTC))
    elif rows:
        write_jobs(rows, f"Jobs of {environment.name}", datetime.now(UTC))
    else:
        write_line(
            f"No jobs wait or run on {environment.name}." + ("" if args.all else " --all lists those that ended.")
        )
    if cluster.hidden:
        write_line(f"Not readable by you: {', '.join(cluster.hidden)}")
    if not kubectl.is_real:
        write_line(f"They stay as they are: {NO_SCHEDULER}.")
    return 0
