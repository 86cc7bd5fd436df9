"""What podwright adds to HyperPod's slurm.conf: a file of its own, included by the last line.

Slurm takes the last value of a setting, so the include has to come last. HyperPod's agent writes slurm.conf anew when
the cluster changes; slurm-refresh puts the line back. The head's slurmd is never started for it (slurm-daemons).
"""

from __future__ import annotations

import hashlib
import os
import re

from ..runner.applies import Only
from ..runner.node import Node
from ..runner.retry import wait_until
from ..runner.steps import Step
from . import accounting, associations, control, failover, health
from . import topology as slurm_topology

PATH = f"{control.ETC}/{control.OURS}"
INCLUDE = f"include {control.OURS}"
RESTART = (
    "preempttype",
    "prioritytype",
    "accountingstoragetype",
    "accountingstorageenforce",
    "accountingstoragetres",
    "topologyplugin",
    "statesavelocation",
)
"""Settings that slurmctld acts by from its start only: `scontrol reconfigure` shows the new value and some releases go
on with the old plugin. It is started anew for these; jobs continue meanwhile."""
START_SECONDS = 120


def settings(node: Node) -> dict[str, str]:
    """All that podwright sets, by name."""
    present = control.settings(node)
    return {
        # Auto-resume: a job whose node fails goes back into the queue, and its log resumes where it stopped.
        # Otherwise a requeued job empties its log when it begins again.
        "JobRequeue": "1",
        "JobFileAppend": "1",
        # A node that fails its prolog is drained, and the job goes back into the queue; without the word it would be
        # held.
        "SchedulerParameters": control.joined(present.get("schedulerparameters"), "nohold_on_prolog_fail"),
        **health.settings(node, present),
        **_state(node),
        **failover.settings(node, present),
        **accounting.settings(node),
        **slurm_topology.plugin(node),
        **associations.settings(node, present),
    }


def _state(node: Node) -> dict[str, str]:
    """Where several controllers share what they know about jobs."""
    shared = node.facts["slurm"]["shared_directory"]
    # Every controller reads it when it takes over, so it lies on storage that all of them mount.
    return {"StateSaveLocation": f"{shared}/podwright-slurm/{node.facts['cluster']['name']}"} if shared else {}


def text(node: Node) -> str:
    """The file."""
    rows = "".join(f"{name}={value}\n" for name, value in sorted(settings(node).items()))
    return f"# Written by podwright; changes belong into the environment.\n{rows}"


def is_in_force(node: Node) -> bool:
    """Whether the file is there, slurm.conf ends with it, and Slurm has read both, and the topology."""
    conf = node.read(control.CONF) or ""
    return (
        node.read(PATH) == text(node)
        and conf.rstrip().endswith(f"\n{INCLUDE}")
        and node.remembered(STEP.name).get("read") == _digest(node)
    )


def enforce(node: Node) -> None:
    """Write the file, include it last, and let a running slurmctld read it."""
    for setting in health.skipped(control.settings(node)):
        note = f"slurm.conf says {setting}, so podwright's health check does not run; let that script call it"
        node.log.say("warning", step=STEP.name, note=note)
    for folder in _state(node).values():
        node.path(folder).mkdir(parents=True, exist_ok=True)
        # slurmctld writes there as its own user.
        os.chown(node.path(folder), *accounting.slurm_user(node))
    if node.read(PATH) != text(node):
        node.write(PATH, text(node))
    conf = node.read(control.CONF) or ""
    if not conf.rstrip().endswith(f"\n{INCLUDE}"):
        # In case the agent kept our line and wrote others behind it.
        others = re.sub(rf"^{re.escape(INCLUDE)}\n?", "", conf, flags=re.MULTILINE).rstrip("\n")
        _rewrite(node, f"{others}\n{INCLUDE}\n")
    if control.controls(node):
        _read_anew(node)
    # Where it does not run yet, it reads all this when it starts.
    node.remember(STEP.name, read=_digest(node))


def _rewrite(node: Node, conf: str) -> None:
    """Replace slurm.conf, which keeps its owner and mode."""
    path = node.path(control.CONF)
    before = path.stat()
    # Beside it and then over it: slurmctld or slurmd may read the file at any moment.
    temporary = f"{control.CONF}.podwright"
    node.write(temporary, conf, mode=before.st_mode & 0o7777)
    os.chown(node.path(temporary), before.st_uid, before.st_gid)
    node.path(temporary).replace(path)


def _read_anew(node: Node) -> None:
    """Have slurmctld read its configuration; started anew where a plugin changed, which a reconfigure ignores."""
    before = control.running(node)
    if not _differing(before, node, RESTART):
        control.command(node, "scontrol", "reconfigure")
        return
    if accounting.settings(node) and not before.get("accountingstoragetype", "").endswith("slurmdbd"):
        # It has run without accounting and given the cluster an id that the database does not know. Taken away before
        # the restart: whoever kills this between the two finds slurmctld running and does both again.
        node.remove(f"{before.get('statesavelocation', '/var/spool/slurmctld')}/clustername")
    node.run("systemctl", "restart", "slurmctld")
    wait_until(
        node,
        lambda: control.answers(node),
        seconds=START_SECONDS,
        what="slurmctld answers after its restart",
        next_step=f"see `journalctl -u slurmctld`; without the line `{INCLUDE}` it runs as HyperPod set it up",
    )
    differing = _differing(control.running(node), node, tuple(name.lower() for name in settings(node)))
    if differing:
        node.log.say(
            "warning", step=STEP.name, note=f"slurmctld runs with another {', '.join(differing)} than {PATH} says"
        )


def _differing(now: dict[str, str], node: Node, names: tuple[str, ...]) -> list[str]:
    """Those of our settings that slurmctld does not run with. A list may hold more than ours."""
    desired = {name.lower(): value for name, value in settings(node).items() if name.lower() in names}
    return [name for name, value in desired.items() if name in now and not _words(value) <= _words(now[name])]


def _words(value: str) -> set[str]:
    # Slurm prints names in their own case, and lists in its own order.
    return set(value.lower().split(","))


def _digest(node: Node) -> str:
    topology = slurm_topology.file(node)
    parts = [text(node), node.read(control.CONF) or "", topology[1] if topology else ""]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


STEP = Step(
    "slurm-configuration",
    applies_to=Only(orchestrator="slurm", roles=("controller",)),
    check=is_in_force,
    apply=enforce,
    needs=("home", "lustre", "slurm-conf", "slurm-accounting", "slurm-topology", "slurm-failover"),
    attempts=2,
)
