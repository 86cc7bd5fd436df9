"""Lustre over EFA on the client's side: LNet's network `efa` beside `tcp`.

For nodes in the zone of a file system that serves EFA, on types that FSx takes as EFA clients, where the image has
Lustre's module for EFA; other nodes reach the file system over TCP. On EKS this is what pods
profit from: the CSI driver mounts with the host's kernel. Commands and the number of interfaces are those of the FSx
for Lustre User Guide, "Configuring EFA clients" (2026-11); which of a type's interfaces are used is ours: evenly
spread, so that every PCI bus takes part.
"""

from __future__ import annotations

from ..devices.efa import efa_devices
from ..host.network import primary_interface
from ..runner import deadline
from ..runner.applies import Only
from ..runner.failure import Failure
from ..runner.node import Node
from ..runner.retry import retry
from ..runner.steps import Step
from ..runner.units import FOLDER, install, installed, uninstall

MODULE = "kefalnd"
UNIT = "podwright-lnet.service"
MODULE_OPTIONS = "/etc/modprobe.d/podwright-lustre.conf"
PEER_CREDITS = 32
MANY_CPUS = 64
PATIENCE_SECONDS = 60


def wanted(node: Node) -> bool:
    """Whether a file system serves EFA to this node, and the image can take it."""
    return _served(node) and node.succeeds("modinfo", MODULE)


def devices(node: Node) -> list[str]:
    """The EFA devices that Lustre uses."""
    every = efa_devices(node)
    number = min(node.type_facts["lustre_efa_interfaces"], len(every))
    return [every[index * len(every) // number] for index in range(number)]


def is_configured(node: Node) -> bool:
    """Whether every interface is up in LNet, and will be after a reboot."""
    interface = primary_interface(node)
    return (
        interface is not None
        and node.read(MODULE_OPTIONS) == module_options(node)
        and installed(node, {UNIT: unit(interface, devices(node))}, [UNIT])
        and _up(node) == len(devices(node)) > 0
    )


def configure(node: Node) -> None:
    """Load the modules and add the interfaces, by the unit that does it at the next boot."""
    interface = primary_interface(node)
    if interface is None:
        raise Failure("there is no default route, so no interface for LNet's tcp network", "see the step network")
    if not efa_devices(node):
        raise Failure("the kernel shows no EFA device", "see the step efa")
    units = {UNIT: unit(interface, devices(node))}
    try:
        _configure(node, units)
    except (Failure, deadline.Late):
        with deadline.clean_up():
            # Mounts that asked for this unit would fail with it; without it they go over TCP.
            uninstall(node, units, [UNIT])
            node.succeeds("lnetctl", "net", "del", "--net", "efa")
        raise


def is_in_use(node: Node) -> bool:
    """Whether mounts go over EFA: it was configured, and not given up for TCP."""
    return wanted(node) and node.path(f"{FOLDER}/{UNIT}").is_file()


def _configure(node: Node, units: dict[str, str]) -> None:
    node.write(MODULE_OPTIONS, module_options(node))
    install(node, units, [UNIT])
    node.run("systemctl", "restart", UNIT)

    def all_up() -> None:
        if _up(node) != len(devices(node)):
            raise Failure(
                f"{_up(node)} of {len(devices(node))} EFA interfaces are up in LNet",
                f"see `lnetctl net show --net efa`, `dmesg`, `journalctl -u {UNIT}`, and the EFA rules of the "
                "security groups of node and file system",
            )

    retry(node, all_up, seconds=PATIENCE_SECONDS, what="LNet's EFA interfaces")


def module_options(node: Node) -> str:
    """Options of Lustre's modules. FSx advises these above 64 vCPUs (User Guide, "Performance tips")."""
    if node.type_facts["vcpu"] <= MANY_CPUS:
        return ""
    return "options ptlrpc ptlrpcd_per_cpt_max=32\noptions ksocklnd credits=2560\n"


def unit(interface: str, names: list[str]) -> str:
    """The unit that configures LNet; a dash before a command lets it find its work done already."""
    add = "\n".join(
        f"ExecStart=-/usr/sbin/lnetctl net add --net efa --if {name} --peer-credits {PEER_CREDITS}" for name in names
    )
    return f"""\
[Unit]
Description=Lustre over EFA
Wants=network-online.target
After=network-online.target
Before=remote-fs-pre.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/sbin/modprobe lnet
ExecStart=/usr/sbin/modprobe {MODULE} ipif_name={interface}
ExecStart=/usr/sbin/modprobe ksocklnd
ExecStart=/usr/sbin/lnetctl lnet configure
ExecStart=-/usr/sbin/lnetctl net add --net tcp --if {interface}
{add}
ExecStart=/usr/sbin/lnetctl set discovery 1
ExecStart=-/usr/sbin/lnetctl udsp add --src efa --priority 0
ExecStart=/usr/sbin/modprobe lustre

[Install]
WantedBy=multi-user.target
"""


def _served(node: Node) -> bool:
    every = node.facts["file_systems"]["lustre"].values()
    serves = any(lustre["efa"] and lustre["zone"] == node.zone for lustre in every)
    return serves and node.type_facts.get("lustre_efa_interfaces", 0) > 0


def _applies(node: Node) -> bool:
    if _served(node) and not wanted(node):
        node.log.say("warning", note=f"the image has no module {MODULE}: Lustre goes over TCP, which is slower")
    return wanted(node)


def _up(node: Node) -> int:
    if not node.succeeds("lnetctl", "net", "show", "--net", "efa"):
        return 0
    return node.run("lnetctl", "net", "show", "--net", "efa").count("status: up")


STEP = Step("lnet", applies_to=Only(also=_applies), check=is_configured, apply=configure, needs=("network", "efa"))
