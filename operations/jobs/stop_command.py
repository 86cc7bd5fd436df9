"""Stop a job: delete it with all its objects. Its pods end within their grace period.

Files and objects that the job wrote stay. Its log is deleted with its pods.
"""

import argparse

from ...config.errors import CommandError
from ..arguments import load
from ..kubernetes.kubectl import Refused
from ..output.console import write_json, write_line
from .cluster_jobs import Cluster, ClusterJob, Object
from .reach import add_job, command_for, kubectl_for, one_job
from .slurm_jobs import is_slurm, stop_jobs
from .training_jobs import is_training_job, stop_training_job

_DOMAINS = "computedomains.resource.nvidia.com"
_GRACE = 30


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright stop`."""
    add_job(parser)


def run(args: argparse.Namespace) -> int:
    """Delete the job and what was submitted with it."""
    environment = load(args).environment
    if is_training_job(environment, args.job):
        return stop_training_job(args, environment)
    if is_slurm(environment):
        return stop_jobs(args, environment)
    kubectl = kubectl_for(args, environment)
    cluster, job = one_job(args, environment, kubectl, _DOMAINS)
    objects = _objects(cluster, job)
    try:
        kubectl.delete(objects)
    except Refused as refused:
        raise CommandError(
            f"{job.name} stays: {refused}", "a team's role `edit` may stop its jobs, `view` may not"
        ) from None
    names = [f"{item['kind']} {item['metadata']['name']}" for item in objects]
    again = command_for(args, "submit", environment.name, job.name) if job.name in environment.jobs else None
    if args.json:
        write_json({"job": job.name, "team": job.team, "was": job.state, "deleted": names, "next": again})
        return 0
    pods = f"{job.running_pods} pods have" if job.running_pods > 1 else "its pod has"
    seconds = max((pod.spec.get("terminationGracePeriodSeconds", _GRACE) for pod in job.pods), default=_GRACE)
    ends = f"; {pods} {seconds} s to end" if job.running_pods else ""
    write_line(f"Stopped {', '.join(names)}, which was {job.state}{ends}.")
    if again:
        write_line(f"To start it again: {again}")
    return 0


def _objects(cluster: Cluster, job: ClusterJob) -> list[Object]:
    """The job, and the NVLink domain that was submitted with it, which has its name."""
    domains = [
        item
        for item in cluster.kind("ComputeDomain")
        if item["metadata"]["name"] == job.name and item["metadata"]["namespace"] == job.namespace
    ]
    return [
        {
            "apiVersion": item["apiVersion"],
            "kind": item["kind"],
            "metadata": {"name": item["metadata"]["name"], "namespace": job.namespace},
        }
        for item in (job.item, *domains)
    ]
