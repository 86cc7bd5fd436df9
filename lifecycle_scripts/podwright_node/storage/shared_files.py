"""File systems that nodes share: FSx for Lustre, and OpenZFS for home folders.

A mount counts when a file can be written, read back and removed. On large clusters some nodes get a mount that is there
but takes no writes; such a mount is taken away and made anew. Everything that touches the file system happens in
another process, since a dead server holds on to whoever asks it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..runner import deadline
from ..runner.applies import Only
from ..runner.failure import Failure
from ..runner.mounts import is_mount_point
from ..runner.node import Node
from ..runner.retry import retry
from ..runner.steps import Step
from ..runner.units import install, installed, mount_unit, uninstall
from .lnet import UNIT as LNET_UNIT
from .lnet import is_in_use as over_efa

PATIENCE_SECONDS = 240
MOUNT_SECONDS = 45
PROBE_SECONDS = 20


@dataclass(frozen=True)
class Remote:
    """A file system of a server."""

    what: str
    where: str
    kind: str
    options: str
    after: str | None = None
    """A unit that has to come first."""

    @property
    def name(self) -> str:
        """Name of its mount unit."""
        return mount_unit(self.where)

    @property
    def units(self) -> dict[str, str]:
        """Its mount unit."""
        ordering = f"Requires={self.after}\nAfter={self.after}\n" if self.after else ""
        text = f"""\
[Unit]
Description={self.what}
Wants=network-online.target
After=network-online.target
{ordering}
[Mount]
What={self.what}
Where={self.where}
Type={self.kind}
Options={self.options}
TimeoutSec={MOUNT_SECONDS}

[Install]
WantedBy=remote-fs.target
"""
        return {self.name: text}


def lustre(node: Node) -> list[Remote]:
    """The Lustre file systems. Over EFA, LNet comes first."""

    def remote(facts: dict[str, Any]) -> Remote:
        efa = facts["efa"] and facts["zone"] == node.zone and over_efa(node)
        what = f"{facts['dns_name']}@tcp:/{facts['mount_name']}"
        return Remote(what, facts["path"], "lustre", "noatime,flock,_netdev", LNET_UNIT if efa else None)

    return [remote(facts) for _, facts in sorted(node.facts["file_systems"]["lustre"].items())]


def home(node: Node) -> list[Remote]:
    """The file system of home folders, with the options that the OpenZFS User Guide advises ("Performance")."""
    facts = node.facts["file_systems"]["home"]
    if facts is None:
        return []
    options = "nfsvers=4.2,nconnect=16,rsize=1048576,wsize=1048576,timeo=600,hard,noatime,_netdev"
    return [Remote(f"{facts['dns_name']}:/fsx/", facts["path"], "nfs", options)]


def is_usable(node: Node, remote: Remote) -> bool:
    """Whether it is mounted, will be after a reboot, and takes writes."""
    return (
        is_mount_point(node, remote.where)
        and installed(node, remote.units, [remote.name])
        and node.succeeds(*_probe(node, remote), timeout=PROBE_SECONDS)
    )


def mount(node: Node, remote: Remote) -> None:
    """Mount it, again and again until it takes writes. What does not in the end is taken away without a trace."""
    install(node, remote.units, [remote.name])

    def attempt() -> None:
        try:
            if not is_mount_point(node, remote.where):
                node.run("systemctl", "start", remote.name, timeout=MOUNT_SECONDS + 15)
            node.run(*_probe(node, remote), timeout=PROBE_SECONDS)
        except Failure as failure:
            _unmount(node, remote)
            raise type(failure)(
                f"{remote.where} ({remote.what}): {failure}",
                f"see `journalctl -u {remote.name}`, that the file system is available, and that its security group "
                "lets this node in",
            ) from failure

    try:
        retry(node, attempt, seconds=PATIENCE_SECONDS, what=f"{remote.where} takes writes")
    except (Failure, deadline.Late):
        with deadline.clean_up():
            _unmount(node, remote)
            uninstall(node, remote.units, [remote.name])
        raise


def _probe(node: Node, remote: Remote) -> tuple[str, ...]:
    file = node.path(f"{remote.where}/.podwright-{node.instance_id or 'node'}")
    script = 'echo "$1" >"$1" && test "$(cat "$1")" = "$1" && rm -f "$1"'
    return ("sh", "-c", script, "sh", str(file))


def _unmount(node: Node, remote: Remote) -> None:
    if is_mount_point(node, remote.where) and not node.succeeds("systemctl", "stop", remote.name, timeout=30):
        node.run("umount", "--force", "--lazy", str(node.path(remote.where)))


def _apply(remotes: list[Remote], node: Node) -> None:
    for remote in remotes:
        if not is_usable(node, remote):
            mount(node, remote)


def _ours(field: str) -> Only:
    """Nodes whose scripts mount, as opposed to those for which HyperPod or pods do."""
    return Only(also=lambda node: bool(node.group_facts.get(field)))


LUSTRE = Step(
    "lustre",
    applies_to=_ours("mounts_lustre"),
    check=lambda node: all(is_usable(node, remote) for remote in lustre(node)),
    apply=lambda node: _apply(lustre(node), node),
    needs=("name-resolution", "lnet"),
    seconds=600,
    severity="fatal",
)
HOME = Step(
    "home",
    applies_to=_ours("mounts_home"),
    check=lambda node: all(is_usable(node, remote) for remote in home(node)),
    apply=lambda node: _apply(home(node), node),
    needs=("name-resolution",),
    seconds=300,
    severity="fatal",
)
