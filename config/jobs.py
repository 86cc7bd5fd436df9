"""The jobs of an environment: a template of one of several kinds. Only the kinds that a file has are imported."""

from typing import TYPE_CHECKING, Annotated, Any, Final

from .job_base import JobName
from .later import LaterByKind, Place

KINDS: Final[dict[str, Place]] = {
    "hyperpod_pytorch": (".job_pytorch", "HyperPodPyTorchJob"),
    "pytorch": (".job_pytorch", "PyTorchJob"),
    "recipe": (".job_pytorch", "RecipeJob"),
    "ray": (".job_kinds", "RayJob"),
    "nccl_test": (".job_kinds", "NcclTest"),
    "mpi": (".job_kinds", "MpiJob"),
    "train": (".job_kinds", "TrainJob"),
    "job": (".job_kinds", "BatchJob"),
    "inference": (".job_services", "InferenceEndpoint"),
    "space": (".job_services", "Space"),
}
"""Where the model of each kind is."""

if TYPE_CHECKING:
    from .any_job import AnyJob
else:
    AnyJob = Annotated[Any, LaterByKind(KINDS, (".any_job", "AnyJob"))]

Jobs = dict[JobName, AnyJob]
