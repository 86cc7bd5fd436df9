"""Gates on Slurm: commands on a login node or controller, through a session that ends with them.

A job runs as long as the session that waits for it, so an interrupted gate leaves none behind. What a gate that was
killed left is cancelled by its name before the next one starts.
"""

import base64
import hashlib
import json
import shlex
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol

from ...config.errors import CommandError, PodwrightError
from ...config.settings.environment import Environment
from ..aws.account import Account
from ..aws.calls import change
from ..aws.clusters import existing_cluster
from ..aws.session import nodes as session_nodes
from ..aws.session import one_command
from .gate import Context, Observation, Result
from .jobs import group_for
from .nccl_table import table_of

_BEGIN, _END = "podwright-begin", "podwright-end"
_ALIVE: Final = "podwright-alive"
_GRACE: Final = 60.0
# A session without output for twenty minutes is ended, and a job may wait longer. The sleep outlives the loop that is
# killed, and must not hold the session's output open.
_KEEP_ALIVE: Final = f"(while sleep 60 >/dev/null 2>&1; do echo {_ALIVE}; done) & k=$!; trap 'kill $k' EXIT"


class CommandFailed(PodwrightError):
    """A command on the node failed; the text is what it said."""


class Reach(Protocol):
    """What is asked, where, and how long an answer may take."""

    @property
    def account(self) -> Account:
        """The account of the cluster."""
        ...

    @property
    def environment(self) -> Environment:
        """The environment of the cluster."""
        ...

    @property
    def seconds(self) -> float:
        """How long it may take altogether."""
        ...

    @property
    def left(self) -> float:
        """How much of that is left."""
        ...


class Slurm:
    """Commands on a node of a Slurm cluster."""

    def __init__(self, context: Reach, order: Sequence[str] = ("controller", "login")) -> None:
        """Finds a controller or login node, of the first kind in `order`. Raises CommandError where none runs."""
        environment, self._context = context.environment, context
        existing = session_nodes(context.account, environment.cluster.name)
        kinds = {name: group.slurm.node_type for name, group in environment.instance_groups.items() if group.slurm}
        ways = [node for node in existing if kinds.get(node.group) in order]
        if not ways:
            raise CommandError(
                f"no {order[0]} of {environment.name} is running", f"`podwright status {environment.name}` says why"
            )
        self._node = min(ways, key=lambda node: (order.index(kinds[node.group]), node.instance))

    def run(self, script: str) -> str:
        """What a bash script prints, run as root. Raises CommandError when it fails or takes too long."""
        try:
            return self.tried(script)
        except CommandFailed as failed:
            raise CommandError(f"on {self._node.instance}: {failed}") from None

    def tried(self, script: str) -> str:
        """As `run`, but raises CommandFailed when the script fails."""
        with self._session(script) as process:
            try:
                output, _ = process.communicate(timeout=max(self._context.left, 0) + _GRACE)
            except subprocess.TimeoutExpired:
                raise CommandFailed(f"no answer in {self._context.seconds / 60:g} min") from None
        return _answer(output)

    def stream(self, script: str, write: Callable[[str], None]) -> None:
        """Hand each line that a script prints to `write`, as it comes. Raises CommandFailed when the script fails."""
        started, code = False, ""
        with self._session(f"{_KEEP_ALIVE}; {script}") as process:
            assert process.stdout
            with process.stdout:
                for line in map(str.rstrip, process.stdout):
                    if line.startswith(_END):
                        code = line.removeprefix(_END).strip()
                    elif started and not code and line != _ALIVE:
                        write(line)
                    started = started or line == _BEGIN
            process.wait()
        if code != "0":
            raise CommandFailed(f"exit code {code}" if code else "the session ended before the command")

    @contextmanager
    def _session(self, script: str) -> Iterator[subprocess.Popen[str]]:
        """The process of a session that runs a script; neither of them outlives the block."""
        packed = base64.b64encode(script.encode()).decode()
        # One line that survives the document's own quoting; the marks tell the answer from what SSM prints around it.
        line = f"sudo bash -c 'echo {_BEGIN}; echo {packed} | base64 -d | bash 2>&1; echo {_END} $?'"
        command = one_command(self._context.account, self._node, line)
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            yield process
        finally:
            if process.poll() is None:
                # What it runs on the node ends with the session, which a plugin that is killed would leave open.
                session = next(json.loads(word)["SessionId"] for word in command if word.startswith("{"))
                change(self._context.account, "ssm", "terminate_session", SessionId=session)
                process.kill()
                process.communicate()


def _answer(output: str) -> str:
    lines = [line.rstrip("\r") for line in output.splitlines()]
    ends = [line for line in lines if line.startswith(_END)]
    if _BEGIN not in lines or not ends:
        raise CommandFailed(f"the session ended without an answer: {' '.join(lines[-3:])}")
    body = lines[lines.index(_BEGIN) + 1 : lines.index(ends[-1])]
    message = "\n".join(line for line in body if line != _ALIVE)
    if ends[-1] != f"{_END} 0":
        raise CommandFailed(message or f"exit code {ends[-1].removeprefix(_END).strip()}")
    return message


def _srun(context: Context, stem: str, group: str, nodes: int, script: str, options: str) -> str:
    """A script that runs another one on every node of a job, and prints what they print."""
    part = context.environment.instance_groups[group].slurm
    partition = part.partition if part and part.partition else group
    digest = hashlib.sha256(f"{group} {nodes} {script}".encode()).hexdigest()[:8]
    name, minutes = f"podwright-{stem}-{digest}", max(int(context.left // 60), 1)
    return (
        f"{_KEEP_ALIVE}; scancel --quiet --name={name}; "
        f"srun --quiet --job-name={name} --partition={shlex.quote(partition)} --nodes={nodes} --ntasks-per-node=1 "
        f"--time={minutes} --immediate={int(max(context.left, 1))} {options} bash -c {shlex.quote(script)}"
    )


def canary(context: Context) -> Result:
    """A task on each of some nodes, which counts the GPUs that Slurm gives it."""
    settings, environment = context.settings.canary, context.environment
    group = settings.group or _compute(context) or group_for(environment, context.types)
    nodes = min(settings.nodes, environment.instance_groups[group].count)
    rows = [context.types.get(instance_type) for instance_type in environment.instance_groups[group].types]
    gpus = all(row.accelerator_vendor == "nvidia" for row in rows)
    context.asked |= {"runs": "podwright's own", "group": group, "nodes": nodes}
    script = 'echo "$(hostname) sees $(ls /dev/nvidia[0-9]* 2>/dev/null | wc -l) GPUs"'
    if gpus:
        script += '; [ -n "$(nvidia-smi -L)" ]'
    slurm = Slurm(context)
    context.say(f"runs a task on {nodes} nodes of {group}")
    try:
        message = slurm.tried(_srun(context, "canary", group, nodes, script, "--gpus-per-node=1" if gpus else ""))
    except CommandFailed as failed:
        observation = Observation()
        observation.check(f"job on {nodes} nodes of {group}", "completes", str(failed).splitlines()[-1], False)
        step = "`sinfo -R` on the controller shows nodes that are drained, `squeue` what else waits"
        return Result(False, f"the job did not complete: {failed}", observation.checks, step, {"output": str(failed)})
    lines = [line for line in message.splitlines() if " sees " in line]
    observation = Observation(answers={"output": message})
    observation.check(f"job on {nodes} nodes of {group}", f"{nodes} tasks", f"{len(lines)} tasks", len(lines) == nodes)
    return Result(
        not observation.missing, f"{len(lines)} of {nodes} tasks completed", observation.checks, "", observation.answers
    )


def _compute(context: Context) -> str | None:
    """The first compute group with accelerators, else the first."""
    groups = {
        name: group
        for name, group in context.environment.instance_groups.items()
        if group.slurm and group.slurm.node_type == "compute" and group.count
    }
    fast = [name for name, group in groups.items() if context.types.get(group.types[0]).accelerator_count]
    return next(iter([*fast, *groups]), None)


def all_reduce(context: Context, group: str, nodes: int) -> tuple[Any, Result]:
    """The all-reduce of podwright's own programs, one task on each node, as a table of one row."""
    mode = "thorough" if context.settings.nccl.max_bytes == "16G" else "quick"
    row = existing_cluster(context.account, context.environment.cluster.name).group(group)
    source, kind = row.scripts, row.type
    # Nodes do not keep the scripts that set them up; their role may read them again.
    script = (
        f"b=$(mktemp -d) && trap 'rm -r $b' EXIT && aws s3 cp --quiet --recursive {shlex.quote(source)} $b && cd $b && "
        f"r=$(python3 -B -m podwright_benchmarks job {shlex.quote(kind)} --mode {mode}); "
        '[ "$SLURM_NODEID" != 0 ] || echo "$r"'
    )
    slurm = Slurm(context)
    context.say(f"measures {nodes} nodes of {group}")
    try:
        message = slurm.tried(_srun(context, "nccl", group, nodes, script, "--exclusive"))
    except CommandFailed as failed:
        step = "`sinfo -R` on the controller shows nodes that are drained, `squeue` what else waits"
        return None, Result(False, str(failed), (), step, {"output": str(failed)})
    try:
        record = json.loads(message[message.index("{") : message.rindex("}") + 1])
    except ValueError:
        return None, Result(False, "the job printed no record", (), "", {"output": message})
    return table_of(record, (16 if mode == "thorough" else 8) * 2**30), Result(True, "", (), "", {"record": record})
