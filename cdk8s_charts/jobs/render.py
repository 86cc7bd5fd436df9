"""Manifests of jobs, of whatever kind, as plain data.

Nothing here needs jsii: hundreds of jobs are rendered in the time that a chart takes to start.
"""

from collections.abc import Callable
from typing import Final

from ...planning.jobs.plan import JobPlan
from . import batch, hyperpod_pytorch, inference, mpi, pytorch, ray, space, train
from .nvlink import compute_domain
from .pod import Manifest

KINDS: Final[dict[str, Callable[[JobPlan], list[Manifest]]]] = {
    "hyperpod_pytorch": hyperpod_pytorch.manifests,
    "pytorch": pytorch.manifests,
    "ray": ray.manifests,
    "nccl_test": mpi.manifests,
    "mpi": mpi.manifests,
    "train": train.manifests,
    "job": batch.manifests,
    "inference": inference.manifests,
    "space": space.manifests,
}
"""What makes the manifests of each kind."""


def render(plan: JobPlan) -> list[Manifest]:
    """The objects of a job, in the order in which they are applied; the last one is the job itself."""
    manifests = KINDS[plan.job.kind](plan)
    if plan.pod.nvlink:
        return [compute_domain(plan.name, plan.placement.namespace, plan.job.sizes[-1]), *manifests]
    return manifests
