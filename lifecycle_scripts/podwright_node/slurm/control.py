"""How the steps read Slurm's configuration and speak with its daemons."""

from __future__ import annotations

import re
import socket
from pathlib import PurePosixPath

from ..runner import units
from ..runner.node import Node

ETC = "/opt/slurm/etc"
CONF = f"{ETC}/slurm.conf"
OURS = "podwright.conf"
"""What podwright adds, included at the end of slurm.conf. A name without a folder: slurmctld then hands the file to
nodes that have no configuration of their own (slurm.conf(5) of 21.08 and later, "INCLUDE MODIFIERS")."""
DATABASE_PORT = 6819


def command(node: Node, *words: str, timeout: float = 60) -> str:
    """Run one of Slurm's commands and return what it printed.

    Raises:
        Failure: the command is missing, fails, or takes longer than `timeout` seconds.
    """
    return node.run(_program(node, words[0]), *words[1:], timeout=timeout)


def settings(node: Node) -> dict[str, str]:
    """Cluster-wide settings of slurm.conf and the files that it includes, ours left out, by name in lower case."""
    results: dict[str, str] = {}
    for line in lines(node):
        name, equals, value = line.partition("=")
        # Lines that define nodes and partitions hold settings of one node or partition, of no meaning for the cluster.
        if equals and not re.match(r"(nodename|nodeset|partitionname|downnodes|slurmctldhost)$", name.strip().lower()):
            results[name.strip().lower()] = value.strip()
    return results


def lines(node: Node, path: str = CONF) -> list[str]:
    """Lines of slurm.conf without comments, with those of included files in their place, ours left out."""
    result: list[str] = []
    for line in (node.read(path) or "").splitlines():
        # A backslash before # makes it part of the value.
        text = re.sub(r"(?<!\\)#.*", "", line).strip()
        include = re.match(r"include\s+(\S+)$", text, re.IGNORECASE)
        if include is None:
            result += [text] if text else []
        elif include[1] != OURS:
            result += lines(node, str(PurePosixPath(path).parent / include[1]))
    return result


def controllers(node: Node) -> list[tuple[str, str]]:
    """Host name and address of every controller, the first one first."""
    results = []
    for line in lines(node):
        host = re.match(r"slurmctldhost\s*=\s*([^\s(]+)(?:\(([^)]+)\))?", line, re.IGNORECASE)
        if host:
            # An address in brackets stands where the name does not resolve.
            results.append((host[1], host[2] or host[1]))
    return results


def nodes(node: Node) -> dict[str, str]:
    """Address of every node that slurm.conf defines, by its name there."""
    results: dict[str, str] = {}
    for line in lines(node):
        words = {name.lower(): value for name, value in re.findall(r"(\w+)=(\S+)", line)}
        if "nodename" in words and words["nodename"].lower() != "default":
            names = _each(node, words["nodename"])
            # slurm.conf(5): NodeAddr is NodeHostname where it is not given, and that NodeName.
            addresses = _each(node, words.get("nodeaddr", words.get("nodehostname", words["nodename"])))
            # An address that stands once is that of all names of the line.
            results.update(zip(names, addresses if len(addresses) == len(names) else addresses * len(names)))
    return results


def _each(node: Node, expression: str) -> list[str]:
    # Only Slurm itself expands `ip-10-1-[1-64]` rightly.
    return command(node, "scontrol", "show", "hostnames", expression).split() if "[" in expression else [expression]


def joined(present: str | None, *words: str) -> str:
    """A list of a setting with these words, and all that is there."""
    return ",".join(dict.fromkeys([*filter(None, (present or "").split(",")), *words]))


def running(node: Node) -> dict[str, str]:
    """Settings by which slurmctld runs, by name in lower case.

    Raises:
        Failure: it does not answer.
    """
    pairs = (line.split("=", 1) for line in command(node, "scontrol", "show", "config").splitlines() if " = " in line)
    return {name.strip().lower(): value.strip() for name, value in pairs}


def controls(node: Node) -> bool:
    """Whether slurmctld runs on this node."""
    return units.is_active(node, "slurmctld")


def answers(node: Node) -> bool:
    """Whether a controller answers this node."""
    return node.succeeds(_program(node, "scontrol"), "show", "config", timeout=20)


def _program(node: Node, name: str) -> str:
    # systemd starts services with a short PATH that does not have Slurm's programs.
    own = node.path(f"/opt/slurm/bin/{name}")
    return str(own) if own.exists() else name


def database_answers(host: str) -> bool:
    """Whether slurmdbd listens there."""
    try:
        socket.create_connection((host, DATABASE_PORT), timeout=5).close()
    except OSError:
        return False
    return True


def version(node: Node) -> tuple[int, int]:
    """Slurm's release, such as (25, 11)."""
    match = re.search(r"(\d+)\.(\d+)", command(node, "scontrol", "--version"))
    return (int(match[1]), int(match[2])) if match else (0, 0)
