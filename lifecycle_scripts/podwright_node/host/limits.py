"""Limits of processes and of the kernel that training runs into."""

from __future__ import annotations

from dataclasses import replace

from ..runner.applies import Only
from ..runner.drop_ins import drop_in
from ..runner.node import Node
from ..runner.units import install, installed, is_active

SERVICES = {"eks": ("containerd",), "slurm": ("slurmd", "containerd", "docker")}
"""What starts the processes of users; they inherit its limits."""
STACK_BYTES = 8 * 2**20
"""The kernel's own default, for containers: with an unlimited stack the kernel lays memory out in its older way, with
less randomness, and glibc gives threads another size of stack than the image was tested with."""
HUGE_PAGES = 2560
"""2 MiB pages: the 5120 MiB that AWS's samples of EFA pods request (awslabs/awsome-distributed-ai, 2026-07)."""
SYSCTL = "/etc/sysctl.d/90-podwright.conf"
USERS = "/etc/security/limits.d/90-podwright.conf"
_EVERY_NODE = {
    # A cluster of thousands of nodes and pods has more neighbours than the kernel's 1024.
    "net.ipv4.neigh.default.gc_thresh1": "16384",
    "net.ipv4.neigh.default.gc_thresh2": "32768",
    "net.ipv4.neigh.default.gc_thresh3": "65536",
    # Windows for one stream at 100 Gb/s within a region.
    "net.core.rmem_max": "268435456",
    "net.core.wmem_max": "268435456",
    "net.ipv4.tcp_rmem": "4096 131072 268435456",
    "net.ipv4.tcp_wmem": "4096 131072 268435456",
    "net.core.somaxconn": "16384",
    # Data loaders map many files, log shippers watch many.
    "vm.max_map_count": "1048576",
    "fs.inotify.max_user_instances": "8192",
    "fs.inotify.max_user_watches": "1048576",
}


def sysctls(node: Node) -> dict[str, str]:
    """Kernel settings of this node."""
    settings = dict(_EVERY_NODE)
    if node.type_facts.get("efa_interfaces", 0) > 0:
        settings["vm.nr_hugepages"] = str(max(HUGE_PAGES, _configured_huge_pages(node)))
        if node.orchestrator == "slurm":
            # Ranks of one node read each other's memory (EC2 User Guide, "Disable ptrace protection").
            settings["kernel.yama.ptrace_scope"] = "0"
    return settings


def files(node: Node) -> dict[str, str]:
    """The settings files of kernel and users."""
    users = "".join(f"* {kind} {item} {value}\n" for item, value in _USER_LIMITS for kind in ("soft", "hard"))
    return {USERS: users, SYSCTL: "".join(f"{name} = {value}\n" for name, value in sysctls(node).items())}


def services(node: Node) -> dict[str, str]:
    """Drop-ins of the services, below the unit folder."""
    text = "[Service]\nLimitMEMLOCK=infinity\nLimitNOFILE=1048576\nLimitSTACK={}\n"
    return {
        f"{name}.service.d/50-podwright-limits.conf": text.format(_stack(name, unlimited="infinity"))
        for name in SERVICES[node.orchestrator]
    }


def reload(node: Node) -> None:
    """Let the kernel, systemd and what runs already have them."""
    # --ignore: not every kernel has every setting, Yama's for one.
    node.run("sysctl", "--ignore", "-p", str(node.path(SYSCTL)))
    install(node, services(node))
    for service in SERVICES[node.orchestrator]:
        if is_active(node, service):
            process = node.run("systemctl", "show", "--property=MainPID", "--value", service).strip()
            if process not in ("", "0"):
                stack = _stack(service, unlimited="unlimited")
                limits = ("--memlock=unlimited", "--nofile=1048576", f"--stack={stack}")
                node.run("prlimit", "--pid", process, *limits)


_FILES = drop_in("limits", applies_to=Only(), files=files, reload=reload)
STEP = replace(_FILES, check=lambda node: _FILES.check(node) and installed(node, services(node)))

_USER_LIMITS = (("memlock", "unlimited"), ("nofile", "1048576"), ("stack", "unlimited"))


def _stack(service: str, *, unlimited: str) -> str:
    """Soft and hard limit of the stack: none for jobs of Slurm, as for users; the default for containers."""
    return unlimited if service == "slurmd" else f"{STACK_BYTES}:{unlimited}"


def _configured_huge_pages(node: Node) -> int:
    """What somebody else, such as the EFA installer, reserves at boot; never less than that."""
    numbers = [0]
    for path in sorted(node.path("/etc/sysctl.d").glob("*.conf")):
        if path.name != SYSCTL.rpartition("/")[2]:
            lines = (line.split("=", 1) for line in path.read_text(encoding="utf-8").splitlines() if "=" in line)
            numbers += [int(value) for name, value in lines if name.strip() == "vm.nr_hugepages"]
    return max(numbers)
