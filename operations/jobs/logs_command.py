"""Print the log of a job: of its first rank, or of the rank that --rank names.

With --follow the command waits until the pod runs, and prints new lines. With --slowest it reads the logs of all pods,
and names the rank with the longest steps, if the job logs step times.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ...planning.quota.amounts import amount_of, is_accelerator
from ..arguments import load
from ..doctor.pods import Pod
from ..kubernetes.in_vpc import POLL_SECONDS, InVpc
from ..kubernetes.kubectl import Kubectl, Refused
from ..output.console import write_json, write_note, write_text
from .cluster_jobs import ClusterJob
from .reach import add_job, kubectl_for, one_job
from .slurm_jobs import is_slurm, print_log
from .step_times import STEP_LINES, PodLog, is_of, print_times, rank_times

_AT_ONCE: Final = 8
_POLL: Final = 2.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright logs`."""
    add_job(parser)
    parser.add_argument(
        "--rank", metavar="N", type=int, help="print the log of this rank, counted over all pods (default: 0)"
    )
    parser.add_argument("--follow", action="store_true", help="wait until the pod runs, and print new lines")
    parser.add_argument(
        "--lines", metavar="N", type=int, default=200, help="number of lines, from the end (default: 200)"
    )
    parser.add_argument(
        "--previous", action="store_true", help="print the log of the container before its last restart"
    )
    parser.add_argument("--slowest", action="store_true", help="read the logs of all pods, and name the slowest rank")


def run(args: argparse.Namespace) -> int:
    """Print a log, or what all logs say of step times."""
    environment = load(args).environment
    if is_slurm(environment):
        return print_log(args, environment)
    kubectl = kubectl_for(args, environment)
    _, job = one_job(args, environment, kubectl)
    if args.slowest:
        return _slowest(args, job, kubectl)
    number = args.rank or 0
    pods = _pods(args, environment, kubectl, job, number)
    pod, first = _pod_of(job, pods, number)
    options = [f"--container={_container(pod)}", f"--namespace={job.namespace}", f"--tail={args.lines}"]
    options += ["--follow"] * args.follow + ["--previous"] * args.previous
    if args.json and not args.follow:
        lines = [line for line in _log(kubectl, pod, options) if is_of(line, args.rank, first)]
        write_json({"job": job.name, "rank": number, "pod": pod.name, "node": pod.node, "lines": lines})
        return 0
    write = _writer(args, pod, first)
    write_note(f"{pod.name} on {pod.node or 'no node yet'}, ranks from {first}")
    try:
        kubectl.stream(write, "logs", pod.name, *options)
    except Refused as refused:
        raise _no_log(pod, refused) from None
    return 0


def _writer(args: argparse.Namespace, pod: Pod, first: int) -> Callable[[str], None]:
    """What becomes of each line: printed, as an object of its own for machines; those of other ranks are left out."""

    def write(line: str) -> None:
        if is_of(line, args.rank, first):
            write_text(json.dumps({"pod": pod.name, "line": line}) if args.json else line)

    return write


def _pods(
    args: argparse.Namespace, environment: Environment, kubectl: Kubectl, job: ClusterJob, rank: int
) -> list[Pod]:
    """The pods that have ranks. With --follow it waits until that of the rank has a log."""
    state = ""
    while True:
        pods = ranked(job)
        if not args.follow or (pods and _pod_of(job, pods, rank)[0].phase != "Pending") or job.state == "failed":
            break
        words = f"{job.name} is {job.state}" + (f": {job.reason}" if job.reason else "")
        if words != state:
            # Said once for each state: it is asked every few seconds.
            write_note(words)
            state = words
        time.sleep(POLL_SECONDS if isinstance(kubectl, InVpc) else _POLL)
        _, job = one_job(args, environment, kubectl)
    if not pods:
        reason = f": {job.reason}" if job.reason else ""
        hint = f"`podwright why {environment.name} {job.name}` says why"
        raise CommandError(f"{job.name} has no pods; it is {job.state}{reason}", hint)
    return pods


def ranked(job: ClusterJob) -> list[Pod]:
    """The pods whose processes have ranks, in their order: those with accelerators, where any has some.

    A launcher of MPI is the exception: it prints what all ranks print.
    """
    if job.kind == "mpi":
        return list(job.pods)
    fast = [pod for pod in job.pods if _accelerators(pod)]
    return fast or list(job.pods)


def _accelerators(pod: Pod) -> int:
    return sum(
        amount_of(name, count)
        for container in pod.spec.get("containers") or ()
        for name, count in ((container.get("resources") or {}).get("limits") or {}).items()
        if is_accelerator(name)
    )


def ranks_of(job: ClusterJob, pod: Pod) -> int:
    """Processes of a pod: as many as the job says, else one for each accelerator."""
    # It may be a number or a word, such as auto, that only the pod itself resolves.
    stated: Any = job.item.get("spec", {}).get("nprocPerNode")
    return int(stated) if str(stated or "").isdigit() else max(_accelerators(pod), 1)


def _pod_of(job: ClusterJob, pods: list[Pod], rank: int) -> tuple[Pod, int]:
    """The pod of a rank, and the rank of its first process. Raises CommandError where there is no such rank."""
    first = 0
    for pod in pods:
        if first <= rank < first + ranks_of(job, pod):
            return pod, first
        first += ranks_of(job, pod)
    raise CommandError(f"{job.name} has no rank {rank}", f"its {len(pods)} pods have ranks 0 to {first - 1}", 2)


def _container(pod: Pod) -> str:
    """The container that does the work: the first."""
    return pod.spec["containers"][0]["name"]


def _log(kubectl: Kubectl, pod: Pod, options: list[str]) -> list[str]:
    try:
        return kubectl.run("logs", pod.name, *options).splitlines()
    except Refused as refused:
        raise _no_log(pod, refused) from None


def _no_log(pod: Pod, refused: Refused) -> CommandError:
    texts = "; ".join(text for text, _ in pod.texts())
    return CommandError(
        f"{pod.name} has no log: {refused}", f"the pod is {pod.phase}" + (f": {texts}" if texts else "")
    )


def _slowest(args: argparse.Namespace, job: ClusterJob, kubectl: Kubectl) -> int:
    """Print step times by rank, the slowest first."""
    with ThreadPoolExecutor(1 if isinstance(kubectl, InVpc) else _AT_ONCE) as pool:
        logs = list(pool.map(lambda each: _pod_log(kubectl, job, *each), _numbered(job)))
    return print_times(args, job.name, rank_times(logs))


def _numbered(job: ClusterJob) -> Iterator[tuple[Pod, int]]:
    first = 0
    for pod in ranked(job):
        yield pod, first
        first += ranks_of(job, pod)


def _pod_log(kubectl: Kubectl, job: ClusterJob, pod: Pod, first: int) -> PodLog:
    """The end of a pod's log. A pod without one is said, and counts for nothing."""
    options = (f"--container={_container(pod)}", f"--namespace={job.namespace}", f"--tail={STEP_LINES}")
    try:
        lines = kubectl.run("logs", pod.name, *options).splitlines()
    except Refused as refused:
        write_note(f"{pod.name} has no log: {refused}")
        lines = []
    return PodLog(pod.name, pod.node, first, lines)
