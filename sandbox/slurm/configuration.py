"""The files that HyperPod's agent writes on nodes with Slurm: slurm.conf, gres.conf and resource_config.json.

All nodes run on one machine. So each node of Slurm has its own port, and empty device files represent its GPUs.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

_FIRST_PORT: Final = 17_001
_HEAD: Final = """\
# As HyperPod's agent writes it, with what one machine needs to be several.
ClusterName={cluster}
SlurmctldHost={host}({address})
SlurmctldParameters=enable_configless
SlurmUser=slurm
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd/%n
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.%n.pid
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/%n.log
ReturnToService=2
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_min_interval=100000,sched_interval=2
SlurmdParameters=config_overrides
GresTypes=gpu
KillWait=1
MpiDefault=none
"""


@dataclass(frozen=True, slots=True)
class SlurmNode:
    """A node of the cluster, with the fields of HyperPod's list and Slurm's resources."""

    address: str
    group: str
    instance_type: str
    instance_id: str = ""
    labels: Mapping[str, str] | None = None
    """Labels, such as those of its network layers."""
    cpus: int = 1
    memory_mib: int = 1
    gpus: int = 0

    @property
    def name(self) -> str:
        """Its name in Slurm, which is its host name."""
        return host_name(self.address)


def host_name(address: str) -> str:
    """Return the host name of an EC2 instance with this address."""
    return f"ip-{address.replace('.', '-')}"


def ports_of(nodes: Iterable[SlurmNode], former: Mapping[str, int]) -> dict[str, int]:
    """Return a port for each node, by its address. An existing node keeps its port, since its slurmd continues."""
    addresses = [node.address for node in nodes]
    ports = {address: former[address] for address in addresses if address in former}
    for address in addresses:
        ports.setdefault(address, next(port for port in itertools.count(_FIRST_PORT) if port not in ports.values()))
    return ports


def slurm_conf(
    cluster: str,
    controller: str,
    nodes: Sequence[SlurmNode],
    ports: Mapping[str, int],
    partitions: Mapping[str, Iterable[str]],
    more: str = "",
) -> str:
    """slurm.conf.

    Args:
        cluster: The cluster's name.
        controller: Address of the controller, which all nodes of Slurm are on.
        nodes: The compute nodes.
        ports: The port of each node, by its address.
        partitions: Instance groups by partition.
        more: Further lines.
    """
    host = host_name(controller)
    lines = [
        f"NodeName={node.name} NodeAddr={node.address} NodeHostname={host} Port={ports[node.address]} CPUs={node.cpus} "
        f"RealMemory={node.memory_mib}{f' Gres=gpu:{node.gpus}' if node.gpus else ''} State=UNKNOWN"
        for node in nodes
    ]
    lines.append("PartitionName=dev Nodes=ALL Default=YES MaxTime=INFINITE State=UP")
    for partition, groups in partitions.items():
        if members := ",".join(node.name for node in nodes if node.group in groups):
            lines.append(f"PartitionName={partition} Nodes={members} MaxTime=INFINITE State=UP")
    text = _HEAD.format(cluster=cluster, host=host, address=controller) + more
    return text + "\n".join([*lines, "include accounting.conf"]) + "\n"


def gres_conf(nodes: Iterable[SlurmNode]) -> str:
    """Return gres.conf, which has the device files of GPUs."""
    equipped = [node for node in nodes if node.gpus]
    return "".join(f"NodeName={node.name} Name=gpu File=/opt/gpus/gpu[0-{node.gpus - 1}]\n" for node in equipped)


def resource_config(nodes: Iterable[SlurmNode], own_group: str) -> dict[str, Any]:
    """Return HyperPod's list of the cluster, in which the machine is a node of `own_group`."""
    groups: dict[str, list[SlurmNode]] = {own_group: []}
    for node in nodes:
        groups.setdefault(node.group, []).append(node)
    # The machine has all addresses of the cluster. The scripts use the first one of the list.
    return {
        "ClusterType": "Slurm",
        "InstanceGroups": [
            {"Name": group, "InstanceType": members[0].instance_type, "Instances": list(map(_entry, members))}
            for group, members in groups.items()
            if members
        ],
    }


def _entry(node: SlurmNode) -> dict[str, Any]:
    return {
        "InstanceName": node.group,
        "InstanceId": node.instance_id or f"i-{node.address}",
        "CustomerIpAddress": node.address,
        "InstanceLabel": dict(node.labels) if node.labels else None,
    }
