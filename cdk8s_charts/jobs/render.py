"""Manifests of jobs, of whatever kind, as plain data.

Nothing here needs jsii: hundreds of jobs are rendered in the time that a chart takes to start.
"""

from collections.abc import Callable
from typing import Final

from ...config.settings.jobs.patch import patch_of
from ...planning.jobs.plan import JobPlan
from . import batch, hyperpod_pytorch, inference, jobset, leader_worker_set, mpi, pytorch, ray, space, train
from .nvlink import compute_domain
from .pod import Manifest
from .strategic_merge import merged
from .volumes import provider_classes

KINDS: Final[dict[str, Callable[[JobPlan], list[Manifest]]]] = {
    "hyperpod_pytorch": hyperpod_pytorch.manifests,
    "pytorch": pytorch.manifests,
    "ray": ray.manifests,
    "ray_cluster": ray.cluster_manifests,
    "nccl_test": mpi.manifests,
    "mpi": mpi.manifests,
    "train": train.manifests,
    "jobset": jobset.manifests,
    "leader_worker_set": leader_worker_set.manifests,
    "job": batch.manifests,
    "inference": inference.manifests,
    "jumpstart": inference.jumpstart,
    "space": space.manifests,
}
"""What makes the manifests of each kind."""


def render(plan: JobPlan) -> list[Manifest]:
    """The objects of a job, in the order in which they are applied; the last one is the job itself."""
    *others, job = KINDS[plan.job.kind](plan)
    if plan.job.patch:
        job = merged(job, patch_of(plan.job.patch))
    if plan.pod.nvlink:
        others.append(compute_domain(plan.name, plan.placement.namespace, plan.job.sizes[-1]))
    return [*others, *provider_classes(plan), job]
