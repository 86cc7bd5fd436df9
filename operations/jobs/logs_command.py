"""Print the log of a job: of its first rank, or of the rank that --rank names.

If the container does not run, has failed or was restarted, the command says why and what to do. A restarted container
that has printed nothing since gets the log before its restart. With --follow the command waits until the pod runs, and
prints new lines. With --slowest it reads the logs of all pods, and names the rank with the longest steps, if the job
logs step times.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ...planning.jobs.launcher import launch_of
from ...planning.quota.amounts import amount_of, is_accelerator
from ..arguments import load
from ..doctor.knowledge import shown_by
from ..doctor.pods import Pod
from ..kubernetes.in_vpc import POLL_SECONDS, InVpc
from ..kubernetes.kubectl import Kubectl, Refused
from ..output.console import write_json, write_note, write_text
from .cluster_jobs import ClusterJob
from .container_state import ContainerState, container_state
from .reach import add_job, command_for, kubectl_for, one_job
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
    state = container_state(pod, _container(pod))
    if args.json and not args.follow:
        lines = [line for line in _log(kubectl, pod, options) if is_of(line, args.rank, first)]
        described = {"job": job.name, "rank": number, "pod": pod.name, "node": pod.node, "lines": lines}
        write_json(described | {"state": state.text if state else ""})
        return 1 if state and state.has_failed and not lines else 0
    write_note(f"{pod.name} on {pod.node or 'no node yet'}, ranks from {first}")
    log = _Log(kubectl, pod, _writer(args, pod, first))
    log.print(*options)
    if args.follow:
        # It may have ended since.
        _, job = one_job(args, environment, kubectl)
        state = next((container_state(each, _container(each)) for each in job.pods if each.name == pod.name), state)
    return _conclude(args, environment, log, state, options)


class _Log:
    """The log of a pod that is printed, and whether it has any lines."""

    def __init__(self, kubectl: Kubectl, pod: Pod, write: Callable[[str], None]) -> None:
        self.kubectl, self.pod, self._write = kubectl, pod, write
        self.lines = 0
        self.last = ""

    def print(self, *options: str) -> None:
        """Print it. Raises CommandError where kubectl has none."""
        try:
            self.kubectl.stream(self._line, "logs", self.pod.name, *options)
        except Refused as refused:
            raise _no_log(self.pod, refused) from None

    def _line(self, line: str) -> None:
        self.lines, self.last = self.lines + 1, line
        self._write(line)


def _conclude(
    args: argparse.Namespace, environment: Environment, log: _Log, state: ContainerState | None, options: list[str]
) -> int:
    """Say why a container printed no more, after the log before its restart where it has printed nothing since.

    Raises:
        CommandError: It failed and printed nothing.
    """
    if state and state.restarts and not log.lines and not args.previous:
        write_note("nothing since its last restart; before:")
        log.print(*(option for option in options if option != "--follow"), "--previous")
    if state is None:
        if not log.lines:
            hint = command_for(args, "logs", environment.name, args.job, "--follow")
            write_note(f"it runs and has printed nothing yet; `{hint}` waits for lines")
        return 0
    shown = shown_by(log.last, "pod_log", running=False) if log.last and not state.fix else None
    hint = state.fix or (shown.fix if shown else f"`{command_for(args, 'why', environment.name, args.job)}` says more")
    if state.has_failed and not log.lines:
        raise CommandError(state.text, hint)
    if state.has_failed or state.restarts:
        write_note(f"{state.text}\n  → {hint}")
    elif not log.lines:
        write_note(f"{state.text}, and printed nothing")
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
    launch = launch_of(pod.spec["containers"][0].get("command") or ())
    # It may be a number or a word, such as auto, that only the pod itself resolves.
    stated: Any = (launch.dropped if launch else {}).get("nproc-per-node") or job.item["spec"].get("nprocPerNode")
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
    if (state := container_state(pod, _container(pod))) and state.has_failed:
        return CommandError(f"{pod.name} has no log: {state.text}", state.fix or f"kubectl says: {refused}")
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
