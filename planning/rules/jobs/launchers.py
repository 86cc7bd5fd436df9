"""Rules on the launchers in commands of jobs, and on whether the processes that they start find each other."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any, Final

from ....config.catalog.instance_types import Catalog
from ....config.findings import listed
from ....config.settings.environment import Environment
from ....config.settings.jobs.kinds import BatchJob
from ...jobs.launcher import HYPERPODRUN, PYTHON, Launch, launch_of, started_by_launcher
from ..framework.rule import ERROR, Problem, Problems, rule
from .jobs import plans

_SHELLS: Final = ("bash", "sh", "dash", "ash", "zsh", "ksh")
# Programs that start others and are no Python scripts.
_STARTERS: Final = (
    *("accelerate", "deepspeed", "torchrun", HYPERPODRUN, "mpirun", "mpiexec", "srun", "ray"),
    *("env", "exec", "numactl", "nsys", "ncu", "timeout", "nohup", "torch.distributed.launch"),
)
_COUNT: Final = re.compile(r"\d+(:\d+)?")
# Kinds whose pods get the number of nodes as a variable, which an argument of torchrun overrides.
_WITH_VARIABLES: Final = ("pytorch", "train", "jobset")


@rule("JOB041", ERROR, on=Environment, source="hyperpodrun", final=True)
def launcher_starts_a_script(environment: Environment) -> Problems:
    """Program that hyperpodrun cannot start."""
    for name, job in environment.jobs.items():
        if job.kind != "hyperpod_pytorch" or job.launch != HYPERPODRUN:
            continue
        if not job.command:
            yield Problem(
                ("jobs", name, "kind"),
                "there is no command, so hyperpodrun has no script to start",
                "write the script and its arguments: `command: [train.py, --lr, 1e-4]`; or `launch: image` for an "
                "image whose entry point starts hyperpodrun itself",
            )
            continue
        started = started_by_launcher(job.command)
        program = PurePosixPath(started.script[0]).name if started.script else ""
        spelled = [word.replace("_", "-") for word in (*started.retained, *job.hyperpodrun_args)]
        plain = "--no-python" in spelled
        problem = (
            f"command starts {program}; podwright puts hyperpodrun in front of it, which runs a Python script called "
            f"{program} in each process"
        )
        starts_another = any(launcher in word for word in started.script for launcher in ("torchrun", HYPERPODRUN))
        if not program:
            yield Problem(
                ("jobs", name, "command"),
                f"command names no script after {listed(job.command[:1])} and its arguments",
                "write the script and its arguments: `command: [train.py, --lr, 1e-4]`",
            )
        elif program in _SHELLS and (not plain or starts_another):
            yield Problem(
                ("jobs", name, "command"),
                problem,
                "write the script and its arguments, without shell and launcher: `command: [train.py, --lr, 1e-4]`; "
                "or `launch: image` for a shell script that starts hyperpodrun itself",
            )
        elif not plain and (program in _STARTERS or PYTHON.fullmatch(program)) and "--run-path" not in spelled:
            yield Problem(
                ("jobs", name, "command"),
                problem,
                "write the Python script and its arguments: `command: [train.py, --lr, 1e-4]`, or `[-m, MODULE]`; or "
                "`launch: image` for a command that starts hyperpodrun itself",
            )


@rule("JOB042", ERROR, on=Environment, source="torchrun")
def launcher_agrees_with_the_job(environment: Environment, types: Catalog) -> Problems:
    """Launcher argument that contradicts the job's size."""
    for name, job, plan in plans(environment, types):
        launch = _visible_launch(job)
        if launch is None:
            continue
        allowed = list(_node_counts(job))
        nodes = launch.dropped.get("nnodes", "")
        if _COUNT.fullmatch(nodes) and nodes not in allowed:
            yield Problem(
                ("jobs", name, "command"),
                f"command says --nnodes={nodes}; the job has {listed(allowed)} pods that meet",
                "leave --nnodes out: podwright sets it; or change nodes",
            )
        processes = launch.dropped.get("nproc-per-node", "")
        own = (job.processes_per_node or plan.pod.ranks) if job.kind == "hyperpod_pytorch" else None
        if own is not None and processes.isdigit() and int(processes) != own:
            yield Problem(
                ("jobs", name, "command"),
                f"command says --nproc-per-node={processes}; podwright starts {own} processes in each pod",
                f"leave it out, or set `processes_per_node: {processes}`",
            )


def _visible_launch(job: Any) -> Launch | None:
    """The launcher in a job's command where podwright sets arguments or variables for it."""
    if job.kind == "hyperpod_pytorch" and job.launch == HYPERPODRUN:
        return started_by_launcher(job.command)
    return launch_of(job.command) if job.kind in _WITH_VARIABLES else None


def _node_counts(job: Any) -> Iterator[str]:
    """What --nnodes of a job's launcher may be: its sizes, and their range where the launcher accepts one."""
    sizes = [size // getattr(job, "slices", 1) for size in job.sizes]
    elastic = len(sizes) > 1
    if not elastic or job.kind == "hyperpod_pytorch":
        yield from map(str, sizes)
    yield f"{sizes[0]}:{sizes[-1]}"


@rule("JOB043", ERROR, on=Environment, source="torchrun k8s-pods")
def pods_find_each_other(environment: Environment) -> Problems:
    """Ranks in pods that cannot find each other."""
    for name, job in environment.jobs.items():
        if not isinstance(job, BatchJob) or job.start == 1:
            continue
        launch = launch_of(job.command)
        if launch and "standalone" not in launch.dropped and launch.dropped.get("nnodes") != "1":
            yield Problem(
                ("jobs", name, "kind"),
                f"command starts {launch.launcher} in {job.start} pods of a Kubernetes Job, which have no address that "
                "the others know: its ranks never meet",
                "use kind pytorch, jobset or train; or add --standalone, which trains in each pod by itself",
            )


@rule("JOB044", ERROR, on=Environment, source="kubeflow-pytorchjob kueue-elastic", final=True)
def grows_under_its_engine(environment: Environment, types: Catalog) -> Problems:
    """Elastic PyTorchJob in a queue of Kueue."""
    for name, job, plan in plans(environment, types):
        if job.kind == "pytorch" and job.elastic and job.team and plan.engine in ("hyperpod", "kueue"):
            yield Problem(
                ("jobs", name, "elastic"),
                f"elastic is set, but Kueue admits a PyTorchJob with a fixed number of workers, here {job.start}; a "
                "change of that number stops the job and queues it again",
                "use kind hyperpod_pytorch, whose operator grows it through Kueue; or remove elastic and set nodes",
            )
