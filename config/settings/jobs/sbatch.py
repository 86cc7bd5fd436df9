"""Batch jobs of Slurm."""

from typing import Annotated, Literal

from pydantic import Field

from ..base import MountPath
from .base import DistributedJob


class SbatchJob(DistributedJob):
    """A batch script of Slurm: `command` in a container of `image` by enroot and pyxis, a task on each of `nodes`.

    A command that begins with torchrun gets the arguments with which its nodes find each other, in place of its own.
    """

    kind: Literal["sbatch"]
    """Kind of job."""
    processes_per_node: int | None = Field(default=None, ge=1, le=128)
    """Processes that torchrun starts on a node. Default: one for each accelerator."""
    borrow: bool = False
    """Run on what others leave idle, until they want it back: in the account TEAM_borrow."""
    time_limit_minutes: Annotated[int, Field(ge=1, le=525_600)] | None = None
    """Slurm stops it after this; no limit but the partition's when absent."""
    auto_resume: bool = True
    """HyperPod's own `srun --auto-resume=1`: after a fault of a node the job continues on its replacement."""
    folders: dict[MountPath, MountPath] = {}
    """Folders of the node by the path at which the container sees them. Shared file systems are there as on nodes."""
    output: Annotated[str, Field(pattern=r"^[A-Za-z0-9%._/-]+$", max_length=1024)] = "%x-%j.out"
    """File of its output, from the home of whoever submits; %x is the job's name, %j its number."""
