"""Slurm's own daemons.

With API-driven configuration HyperPod's image starts them before our scripts run. With provisioning_parameters.json the
scripts do: HyperPod's agent writes slurm.conf on the controller, and all other nodes get it from there.
"""

from __future__ import annotations

from ..runner import units
from ..runner.applies import Only
from ..runner.membership import listed
from ..runner.node import Node
from ..runner.retry import wait_until
from ..runner.steps import Step
from . import control
from .node_state import own_name, shown

CONF_SECONDS = 300
START_SECONDS = 180
GUARD = "slurmd.service.d/50-podwright-controller.conf"
CLIENT = "slurmd.service.d/50-podwright-configuration.conf"
GUARD_TEXT = f"""\
[Unit]
# slurmd takes the slurm.conf of the controller away when it starts there.
ConditionPathExists=!{control.CONF}
"""
"""Keeps slurmd from starting where slurm.conf itself lies."""


def is_configured(node: Node) -> bool:
    """Whether slurm.conf names a controller."""
    return bool(control.controllers(node))


def await_configuration(node: Node) -> None:
    """Wait until HyperPod's agent has written slurm.conf."""
    wait_until(
        node,
        lambda: is_configured(node),
        seconds=CONF_SECONDS,
        what=f"{control.CONF} names a controller",
        next_step="HyperPod's cluster agent writes it: see `journalctl -u sagemaker-cluster-agent` on the controller",
    )


CONFIGURED = Step(
    "slurm-conf",
    applies_to=Only(orchestrator="slurm", roles=("controller",)),
    check=is_configured,
    apply=await_configuration,
    seconds=CONF_SECONDS + 30,
)


def _by_script(node: Node) -> bool:
    return node.facts["slurm"]["configuration"] == "provisioning_parameters"


def run_already(node: Node) -> bool:
    """Whether the daemon of this node's part runs, with what it needs."""
    if node.role == "controller":
        return units.installed(node, {GUARD: GUARD_TEXT}) and control.controls(node) and control.answers(node)
    if not _by_script(node):
        return True
    # A login node's slurmd only fetches the configuration, and ends where slurm.conf does not list the node.
    return units.installed(node, client(node)) and (
        units.is_active(node, "slurmd") or (node.role == "login" and control.answers(node))
    )


def start(node: Node) -> None:
    """Start it, and wait until the controller answers."""
    if node.role == "controller":
        units.install(node, {GUARD: GUARD_TEXT})
        # The image may have started it; a run of ours that was killed may have left it stopped.
        node.run("systemctl", "enable", "--now", "slurmctld")
    else:
        units.install(node, client(node))
        node.run("systemctl", "enable", "slurmd")
        node.run("systemctl", "restart", "slurmd")
    wait_until(
        node,
        lambda: control.answers(node),
        seconds=START_SECONDS,
        what="slurmctld answers",
        next_step="see `journalctl -u slurmctld` on the controller, and that the security group lets 6817 through",
    )


def client(node: Node) -> dict[str, str]:
    """The drop-in that tells slurmd where its configuration is."""
    group = node.facts["slurm"]["controller_group"]
    # Where there are several controllers each of them hands the configuration out, and slurmd tries one after another.
    addresses = [each.entry["CustomerIpAddress"] for each in listed(node.root) if each.group == group]
    servers = ",".join(address for address in addresses if address)
    return {CLIENT: f'[Service]\nEnvironment="SLURMD_OPTIONS=--conf-server {servers}"\n'}


STEP = Step(
    "slurm-daemons",
    applies_to=Only(orchestrator="slurm"),
    check=run_already,
    apply=start,
    needs=(
        "network",
        "slurm-conf",
        "slurm-accounting",
        "slurm-configuration",
        "slurm-health",
        "slurm-imex",
        "slurm-containers",
    ),
    seconds=START_SECONDS + 60,
    attempts=3,
)


def is_closed_to_jobs(node: Node) -> bool:
    """Whether no job can land here: Slurm does not know the node, or it is drained."""
    name = own_name(node)
    return name is None or "DRAIN" in shown(node, name).upper()


def close_to_jobs(node: Node) -> None:
    """Drain it: HyperPod's partition `dev` takes in every node that runs slurmd."""
    name = own_name(node)
    if name:
        reason = "podwright: login node, takes no jobs"
        control.command(node, "scontrol", "update", f"NodeName={name}", "State=DRAIN", f"Reason={reason}")


LOGIN_STEP = Step(
    "slurm-login",
    applies_to=Only(orchestrator="slurm", roles=("login",)),
    check=is_closed_to_jobs,
    apply=close_to_jobs,
    needs=("slurm-daemons",),
    attempts=3,
)
