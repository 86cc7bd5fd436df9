"""Variables with which the processes of a job's pods find each other: number of the pod, pods, address of the first.

They are torchrun's own: it reads each of its arguments from PET_ and the argument's name, so `torchrun train.py` needs
none of them. The static rendezvous numbers ranks as the pods are numbered, which topology-aware placement and
`podwright logs --rank` rely on. Sources: PyTorch 2.11, `torch/distributed/run.py` and
`elastic/rendezvous/static_tcp_rendezvous.py`; Kubeflow Training Operator 1.9.3, `pkg/controller.v1/pytorch/envvar.go`
and `pkg/controller.v1/common/pod.go`; JobSet 0.11.0, `pkg/controllers/jobset_controller.go`; Kubernetes 1.34, Job.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from ...config.settings.jobs.base import Job
from ...config.settings.jobs.kinds import JobSet
from ...config.settings.jobs.pytorch import PyTorchJob

JOBSET_NODE: Final = "node"
"""What a JobSet calls the Job that its pods are of."""
SLICE: Final = "SLICE_INDEX"
"""Variable with the number of the slice that a pod of a JobSet belongs to."""
# That of torchrun. Source: PyTorch documentation, torchrun.
_PORT: Final = "29500"
# Pods of one job start minutes apart where one has to pull its image or waits for a node to be replaced, and torchrun
# gives up after 10 minutes otherwise.
_TIMEOUT: Final = "timeout=3600"


class Rendezvous(NamedTuple):
    """Variables of a pod."""

    fields: Mapping[str, str]
    """Fields of the pod that have the value of a variable, by the variable."""
    values: Mapping[str, str]
    """Values of further variables, which may name those of `fields` as $(NAME)."""


def rendezvous(name: str, job: Job, processes: int) -> Rendezvous:
    """What podwright adds to the variables that a job's operator sets; nothing where the operator sets all of them.

    Args:
        name: Name of the job.
        job: The job.
        processes: Processes of a pod.
    """
    if isinstance(job, PyTorchJob) and job.elastic is None and job.start > 1:
        # The operator sets PET_NNODES and PET_NPROC_PER_NODE, and the others only for a job with a Master.
        number = "metadata.labels['training.kubeflow.org/replica-index']"
        return Rendezvous(*_own(number, job.start, processes, f"{name}-worker-0"))
    if isinstance(job, JobSet):
        slices = {SLICE: "metadata.annotations['jobset.sigs.k8s.io/job-index']"} if job.slices > 1 else {}
        first = f"{name}-{JOBSET_NODE}-{f'$({SLICE})' if slices else '0'}-0.{name}"
        pods = job.start // job.slices
        sizes = {"PET_NNODES": str(pods), "PET_NPROC_PER_NODE": str(processes)}
        number = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
        fields, values = _own(number, pods, processes, first)
        return Rendezvous(slices | fields, sizes | values)
    return Rendezvous({}, {})


def _own(number: str, pods: int, processes: int, first: str) -> tuple[dict[str, str], dict[str, str]]:
    """Fields and values for torchrun, and for programs that read PyTorch's own variables.

    Args:
        number: Field of a pod with its number.
        pods: Pods that meet.
        processes: Processes of a pod.
        first: Address of the first pod.
    """
    fields, values = {"PET_NODE_RANK": number}, {"MASTER_ADDR": first, "MASTER_PORT": _PORT}
    values |= {f"PET_{name}": value for name, value in values.items()} | {"PET_RDZV_CONF": _TIMEOUT}
    if processes == 1:
        # A program that starts without torchrun is one rank.
        fields["RANK"], values["WORLD_SIZE"] = number, str(pods)
    return fields, values
