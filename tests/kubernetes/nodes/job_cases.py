"""Jobs of each kind that run on real nodes: how one is written, and what its processes print.

docs/user/jobs.md has a row for each of them.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from podwright.planning.helm.operators import Operator

SCRIPT: Final = "/etc/train/all_reduce.py"
ALL_REDUCE: Final = """\
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.tensor(dist.get_rank())
dist.all_reduce(total)
print(f"rank {dist.get_rank()} of {dist.get_world_size()} adds up to {total}", flush=True)
dist.destroy_process_group()
"""
"""What each rank runs, on CPUs."""
MPI_SCRIPT: Final = "/etc/train/mpi.py"
MPI: Final = """\
import os
import runpy

os.environ |= {"RANK": os.environ["OMPI_COMM_WORLD_RANK"], "WORLD_SIZE": os.environ["OMPI_COMM_WORLD_SIZE"]}
runpy.run_path("/etc/train/all_reduce.py", run_name="__main__")
"""
"""The same with the ranks that Open MPI gives."""
RAY_SCRIPT: Final = "/etc/train/ray_ranks.py"
RAY: Final = """\
import ray


@ray.remote(num_gpus=8)
class Rank:
    def address(self):
        return ray.util.get_node_ip_address()

    def add_up(self, rank, ranks, address):
        import torch
        import torch.distributed as dist

        dist.init_process_group("gloo", f"tcp://{address}:29500", rank=rank, world_size=ranks)
        total = torch.tensor(rank)
        dist.all_reduce(total)
        dist.destroy_process_group()
        return f"rank {rank} of {ranks} adds up to {total}"


ranks = [Rank.remote() for _ in range(2)]
address = ray.get(ranks[0].address.remote())
for line in ray.get([item.add_up.remote(rank, len(ranks), address) for rank, item in enumerate(ranks)]):
    print(line, flush=True)
"""
"""The same in two actors of Ray, on two nodes: each actor needs all GPUs of a node."""
FIRST_WORKER: Final = "job-worker-0.job.hyperpod-ns-llm.svc"
LEAD: Final = [
    *("torchrun", "--nnodes", "$(LWS_GROUP_SIZE)", "--node-rank", "$(LWS_WORKER_INDEX)"),
    *("--master-addr", "$(LWS_LEADER_ADDRESS)", "--nproc-per-node", "1", SCRIPT),
]
TORCHRUN: Final = ["torchrun", SCRIPT]


@dataclass(frozen=True)
class Case:
    """One job."""

    kind: str
    operators: tuple[Operator, ...]
    settings: dict[str, Any]
    ranks: int
    """Ranks that add up with each other."""
    shape: str
    """What the job is made of, as docs/user/jobs.md says it."""
    groups: int = 1
    """How many times so many ranks do."""
    overrides: dict[str, Any] = field(default_factory=dict)

    @property
    def row(self) -> str:
        """Its row in docs/user/jobs.md."""
        groups = f", {self.groups} times" if self.groups > 1 else ""
        runners = ", ".join(self.operators) or "Kubernetes"
        return f"| `{self.kind}` | {self.shape} | {self.ranks} ranks{groups} | {runners} |"

    @property
    def lines(self) -> list[str]:
        """What the ranks print, sorted."""
        total = sum(range(self.ranks))
        return sorted([f"rank {rank} of {self.ranks} adds up to {total}" for rank in range(self.ranks)] * self.groups)


CASES: Final = {
    "pytorch": Case(
        kind="pytorch",
        operators=("training-operator",),
        settings={"nodes": 2, "accelerators": 2, "command": TORCHRUN},
        ranks=4,
        shape="2 pods of 2 processes, by torchrun",
    ),
    "pytorch, elastic": Case(
        kind="pytorch",
        operators=("training-operator",),
        settings={"accelerators": 1, "elastic": {"min_replicas": 2, "max_replicas": 2}, "command": TORCHRUN},
        ranks=2,
        shape="Elastic, with as many pods at least as at most: 2, by torchrun with c10d",
        overrides={"governance": {"engine": "kai"}},
    ),
    "jobset, two slices": Case(
        kind="jobset",
        operators=("jobset",),
        settings={"nodes": 4, "slices": 2, "accelerators": 1, "command": TORCHRUN},
        ranks=2,
        groups=2,
        shape="4 pods in 2 slices, by torchrun",
    ),
    "hyperpod_pytorch": Case(
        kind="hyperpod_pytorch",
        operators=("hyperpod-training-operator",),
        settings={"nodes": 2, "accelerators": 2, "command": [SCRIPT]},
        ranks=4,
        shape="2 pods of 2 processes, by AWS's hyperpodrun",
    ),
    "train": Case(
        kind="train",
        operators=("jobset", "trainer"),
        settings={"nodes": 2, "accelerators": 1, "command": TORCHRUN},
        ranks=2,
        shape="2 pods, by torchrun",
    ),
    "job": Case(
        kind="job",
        operators=(),
        settings={"nodes": 2, "accelerators": 1, "command": ["torchrun", "--standalone", "--nproc-per-node=2", SCRIPT]},
        ranks=2,
        groups=2,
        shape="2 pods of 2 processes, each pod by itself, by torchrun",
    ),
    "mpi": Case(
        kind="mpi",
        operators=("mpi-operator",),
        settings={
            "nodes": 2,
            "accelerators": 2,
            "command": [
                *("mpirun", "--allow-run-as-root", "-x", "PATH", "-x", "MASTER_PORT=29500"),
                *("-x", f"MASTER_ADDR={FIRST_WORKER}", "python", MPI_SCRIPT),
            ],
        },
        ranks=4,
        shape="A launcher and 2 workers of 2 processes, by Open MPI over ssh",
    ),
    "ray": Case(
        kind="ray",
        operators=("kuberay",),
        settings={"nodes": 2, "ray_version": "2.60.0", "command": ["python", RAY_SCRIPT]},
        ranks=2,
        shape="A head and 2 workers, in actors of Ray",
    ),
    "leader_worker_set": Case(
        kind="leader_worker_set",
        operators=("lws",),
        settings={"nodes": 2, "replicas": 2, "accelerators": 1, "command": LEAD, "leader_command": LEAD},
        ranks=2,
        groups=2,
        shape="2 groups of a leader and a worker, by torchrun",
    ),
}
NOT_RUN: Final = {
    "nccl_test": "Its program opens GPUs",
    "ray_cluster": "A `ray` job makes the same cluster; no test sends a job to one that stays",
    "recipe": "AWS's launcher of recipes is in no package index; bash runs the script that calls it",
    "inference": "AWS's operator is closed, and the sandbox makes no pods of it",
    "jumpstart": "The same",
    "space": "AWS's operator is closed, and the sandbox makes no pods of it",
    "sbatch": "Runs on [a real Slurm](../operator.md#a-real-slurm) instead",
}
"""Kinds of which no process runs on real nodes, with the reason, as docs/user/jobs.md says it."""
