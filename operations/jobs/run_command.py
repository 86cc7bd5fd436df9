"""Run a command as a job on nodes of an instance group, without an entry in the file. The command prints the manifest.

Group, team and rules apply as for a job of the file. To run it again, add it under `jobs`: the manifest has all
settings.
"""

import argparse
import re
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any, Final

from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ...planning.jobs.launcher import launch_of
from ..arguments import add_name, load
from ..kubernetes.job_manifests import job_manifests, yaml_text
from ..output.console import write_line, write_note
from .changed import with_job
from .reach import add_way
from .slurm_jobs import is_slurm, submit_batch
from .submission import add_options, submit

_NAME_CHARACTERS: Final = 24
KINDS: Final = ("pytorch", "hyperpod_pytorch", "train", "mpi", "job", "sbatch")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright run`."""
    add_name(parser)
    parser.add_argument("words", metavar="COMMAND", nargs="+", help="command to run, with its arguments, after --")
    parser.add_argument("--team", metavar="TEAM", help="team whose quota the job uses")
    parser.add_argument("--group", metavar="GROUP", required=True, help="instance group that runs the job")
    parser.add_argument(
        "--nodes", metavar="N", type=int, default=1, help="number of nodes; each runs one pod (default: 1)"
    )
    parser.add_argument(
        "--image", metavar="IMAGE", help="container image (default: the image of the environment's jobs)"
    )
    parser.add_argument(
        "--kind",
        choices=KINDS,
        help="kind of job (default: a PyTorch job for torchrun or several nodes, otherwise job)",
    )
    parser.add_argument("--name", metavar="NAME", help="name of the job (default: from the command and the time)")
    parser.add_argument("--priority", metavar="PRIORITY", help="priority class of governance.priorities")
    parser.add_argument(
        "--user", metavar="NAME", help="on Slurm: user who runs the job (default: you, or the team's only user)"
    )
    add_options(parser)
    add_way(parser)


def run(args: argparse.Namespace) -> int:
    """Print the manifest and apply it."""
    loaded = load(args)
    environment = loaded.environment
    kind = args.kind or _kind(args, environment)
    name = args.name or _name(args.words)
    job: dict[str, Any] = {
        "kind": kind,
        "team": args.team,
        "group": args.group,
        "priority": args.priority,
        "image": args.image or _image(args, environment),
        "command": args.words,
        "nodes": args.nodes,
    }
    specified = {key: value for key, value in job.items() if value is not None}
    changed = with_job(loaded, name, specified, args.settings)
    if kind == "sbatch":
        return submit_batch(args, changed, name)
    manifests = job_manifests(changed, [name])[name]
    # To the terminal's reader in any case; what reads the answer gets JSON alone.
    (write_note if args.json else write_line)(f"---\n{yaml_text(manifests).rstrip()}\n---")
    return submit(args, changed, name, manifests, environment)


def _kind(args: argparse.Namespace, environment: Environment) -> str:
    """The kind of job that a command needs, of those whose operators the environment has."""
    if is_slurm(environment):
        return "sbatch"
    if args.nodes == 1 and not launch_of(args.words):
        return "job"
    if environment.platform.pytorch_jobs:
        return "pytorch"
    if environment.platform.training_operator:
        return "hyperpod_pytorch"
    return "train" if environment.platform.kubeflow_trainer else "job"


def _image(args: argparse.Namespace, environment: Environment) -> str:
    """The image of the team's jobs, else of all jobs of the environment. Raises CommandError for none or several."""
    # A model of JumpStart brings its own.
    jobs = [job for job in environment.jobs.values() if job.image]
    own = {job.image for job in jobs if job.team == args.team and job.group == args.group}
    images = own if len(own) == 1 else {job.image for job in jobs}
    if len(images) == 1:
        return images.pop()
    several = f"the jobs of {environment.name} have {len(images)} images" if images else "no job of the file names one"
    raise CommandError(f"which image? {several}", "say --image IMAGE", 2)


def _name(words: list[str]) -> str:
    """A name by the program and the time, so that a second run is another job."""
    program = next((word for word in words if word.endswith((".py", ".sh"))), words[0])
    stem = re.sub(r"[^a-z0-9]+", "-", PurePosixPath(program).stem.lower()).strip("-")[:_NAME_CHARACTERS].strip("-")
    return f"{stem if stem[:1].isalpha() else 'run'}-{datetime.now(UTC):%m%d-%H%M%S}"
