"""A batch job of Slurm as the script that sbatch takes: account, QOS, partition, container and environment."""

import shlex
from typing import Final

from ...config.catalog.instance_types import LOGICAL_CORES, Catalog, ranks_per_device
from ...config.settings.environment import Environment
from ...config.settings.jobs.sbatch import SbatchJob
from .launcher import TORCHRUN, launch_of
from .plan import Planner

_PORT: Final = 29500
# Slurm expands these when the job runs; everything else is text.
_PEERS: Final = f'--nnodes="$SLURM_NNODES" --rdzv-backend=c10d --rdzv-endpoint="$MASTER_ADDR:{_PORT}"'


def account_of(job: SbatchJob) -> str:
    """The account that it runs in: its team's, or that for what others leave idle; empty without a team."""
    return f"{job.team}_borrow" if job.team and job.borrow else job.team or ""


def batch_script(environment: Environment, name: str, types: Catalog) -> str:
    """The script of a job. The rules have found its group, types, team and priority."""
    job: SbatchJob = environment.jobs[name]  # pyrefly: ignore[bad-assignment]
    group = environment.instance_groups[job.group]
    rows = [types.get(type_name) for type_name in group.types]
    existing = min(row.accelerator_count for row in rows)
    count = existing if job.accelerators is None else job.accelerators
    variables = Planner(environment, types).variables(name)
    ranks = min(ranks_per_device(row, variables.get(LOGICAL_CORES)) for row in rows)
    partition = group.slurm.partition if group.slurm and group.slurm.partition else job.group
    options = {
        "job-name": name,
        "account": account_of(job),
        "qos": f"{job.team}_{job.priority}" if job.team and job.priority and not job.borrow else "",
        "partition": partition,
        "nodes": str(job.start),
        "ntasks-per-node": "1",
        "gpus-per-node": str(count) if count and rows[0].accelerator_vendor == "nvidia" else "",
        "cpus-per-task": str(int(job.vcpu)) if job.vcpu else "",
        "mem": f"{int(job.memory_gib * 1024)}M" if job.memory_gib else "",
        "time": str(job.time_limit_minutes or ""),
        "output": job.output,
    }
    lines = ["#!/bin/bash", *(f"#SBATCH --{key}={value}" for key, value in options.items() if value)]
    # A whole node is nobody else's, with all its processors and memory.
    lines += ["#SBATCH --exclusive"] if count == existing and not (job.vcpu or job.memory_gib) else []
    lines += ["set -euo pipefail"]
    lines += [f"export {key}={shlex.quote(value)}" for key, value in variables.items()]
    lines += ['MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed -n 1p)', "export MASTER_ADDR"]
    lines += [f"export MASTER_PORT={_PORT}", _srun(environment, job, job.processes_per_node or max(count * ranks, 1))]
    return "\n".join(lines) + "\n"


def _srun(environment: Environment, job: SbatchJob, processes: int) -> str:
    """The step that runs the command in its container on every node."""
    words = [
        "srun",
        *(["--auto-resume=1"] if job.auto_resume else []),
        f"--container-image={container_image(job.image)}",
    ]
    if mounts := ",".join(f"{source}:{path}" for path, source in _mounts(environment, job).items()):
        words.append(f"--container-mounts={mounts}")
    text = shlex.join(words)
    if launch := launch_of(job.command):
        count = shlex.quote(launch.dropped.get("nproc-per-node", str(processes)))
        launched = f"{TORCHRUN} {_PEERS} --nproc-per-node={count} {shlex.join((*launch.retained, *launch.script))}"
        # The variables are those of the node, so a shell in the container reads them.
        return f"{text} bash -c {shlex.quote(launched)}"
    return f"{text} {shlex.join(job.command)}".rstrip()


def _mounts(environment: Environment, job: SbatchJob) -> dict[str, str]:
    """Folders of the node by their path in the container: shared file systems, then the job's own."""
    storage = environment.storage
    shared = [lustre.mount for lustre in storage.lustres.values()]
    shared += [storage.home.openzfs.mount] if storage.home else []
    return {str(path): str(path) for path in shared} | {str(path): str(source) for path, source in job.folders.items()}


def container_image(image: str) -> str:
    """An image as enroot takes it: a file as it is, else with # after the registry."""
    registry, slash, rest = image.partition("/")
    return f"{registry}#{rest}" if slash and ("." in registry or ":" in registry) else image
