"""What HyperPod's agent writes on the nodes of a Slurm cluster: slurm.conf, gres.conf and resource_config.json.

One machine stands for all nodes. So each node of Slurm has a port of its own, and device files stand for its GPUs.
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
    """A node of the cluster, as HyperPod lists it and Slurm counts it."""

    address: str
    group: str
    instance_type: str
    instance_id: str = ""
    labels: Mapping[str, str] | None = None
    """Such as its layers of the network."""
    cpus: int = 1
    memory_mib: int = 1
    gpus: int = 0

    @property
    def name(self) -> str:
        """As Slurm and the host itself call it."""
        return host_name(self.address)


def host_name(address: str) -> str:
    """The host name of an EC2 instance with that address."""
    return f"ip-{address.replace('.', '-')}"


def ports_of(nodes: Iterable[SlurmNode], former: Mapping[str, int]) -> dict[str, int]:
    """A port for each node, by its address. One that stays keeps its own: its slurmd runs on."""
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
    """gres.conf: the device files of GPUs."""
    equipped = [node for node in nodes if node.gpus]
    return "".join(f"NodeName={node.name} Name=gpu File=/opt/gpus/gpu[0-{node.gpus - 1}]\n" for node in equipped)


def resource_config(nodes: Iterable[SlurmNode], own_group: str) -> dict[str, Any]:
    """HyperPod's list of the cluster, by which the machine is a node of `own_group`."""
    groups: dict[str, list[SlurmNode]] = {own_group: []}
    for node in nodes:
        groups.setdefault(node.group, []).append(node)
    # The machine has all addresses of the cluster; the first that the list names is the one that counts.
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
