"""Puts our part of Slurm's configuration back whenever HyperPod's agent writes slurm.conf or the list of nodes.

Lifecycle scripts run once, and slurm.conf is written again when the cluster grows or a node is replaced. So the
controller keeps these scripts and node.json, and two systemd units start the two steps that look at those files.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

from ..runner import units
from ..runner.applies import Only
from ..runner.failure import Failure
from ..runner.lock import held
from ..runner.log import Log
from ..runner.node import Node
from ..runner.steps import Step, run
from . import configuration, control, topology

HOME = "/opt/podwright/refresh"
PATH_UNIT = "podwright-slurm.path"
SERVICE_UNIT = "podwright-slurm.service"
UNITS = {
    PATH_UNIT: f"""\
[Unit]
Description=Watches what HyperPod's agent writes about Slurm

[Path]
PathChanged={control.CONF}
PathChanged=/opt/ml/config/resource_config.json

[Install]
WantedBy=multi-user.target
""",
    # HyperPod may write again what this has just changed. A pause, and an end after many rounds, keep the two from
    # chasing each other.
    SERVICE_UNIT: f"""\
[Unit]
Description=Puts podwright's part of Slurm's configuration back
StartLimitIntervalSec=600
StartLimitBurst=10

[Service]
Type=oneshot
WorkingDirectory={HOME}
ExecStartPre=/usr/bin/sleep 5
ExecStart=/usr/bin/python3 -B -m podwright_node.slurm.refresh
""",
}


def is_installed(node: Node) -> bool:
    """Whether the copy equals these scripts and the units watch."""
    return (
        units.installed(node, UNITS, [PATH_UNIT])
        and node.remembered(STEP.name).get("copied") == _sum(node)
        and (units.is_active(node, PATH_UNIT))
    )


def install(node: Node) -> None:
    """Copy the scripts and node.json to where they stay, and start to watch."""
    target = node.path(HOME)
    if target.exists():
        node.run("rm", "--recursive", str(target))
    target.mkdir(parents=True)
    node.run("cp", "--recursive", *(str(node.bundle / name) for name in ("podwright_node", "node.json")), str(target))
    node.remember(STEP.name, copied=_sum(node))
    units.install(node, UNITS, [PATH_UNIT])
    node.run("systemctl", "restart", PATH_UNIT)


def _sum(node: Node) -> str:
    """The manifest names every file of the bundle with its digest."""
    return (node.bundle / "manifest.json").read_text(encoding="utf-8")


STEP = Step(
    "slurm-refresh",
    applies_to=Only(orchestrator="slurm", roles=("controller",)),
    check=is_installed,
    apply=install,
    needs=("slurm-configuration",),
)


def main(arguments: list[str] | None = None) -> int:
    """Run the two steps by the copy that this module belongs to; returns the exit code."""
    parser = argparse.ArgumentParser(prog="slurm_refresh", description=__doc__)
    parser.add_argument("--root", type=Path, default=Path("/"), help="root of the file system")
    root = parser.parse_args(arguments).root
    steps = [
        # The steps that they wait for at boot ran long ago, and are not part of this run.
        dataclasses.replace(topology.STEP, needs=()),
        dataclasses.replace(configuration.STEP, needs=(topology.STEP.name,)),
    ]
    with Log(root / "var/log/provision/podwright-slurm.jsonl") as log:
        try:
            # Lifecycle scripts may still run: both would write the same files.
            with held(root / "run/podwright.lock"):
                return 0 if run(steps, Node.here(root, Path(__file__).resolve().parents[2], log)) else 1
        except Failure as failure:
            log.say("error", step="start", error=str(failure))
            return 1


if __name__ == "__main__":
    sys.exit(main())
