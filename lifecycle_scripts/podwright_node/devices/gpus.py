"""NVIDIA GPUs: that all are there, that their driver stays loaded, and that NVSwitch and IMEX serve the type."""

from __future__ import annotations

from ..runner.applies import Only
from ..runner.failure import Failure
from ..runner.node import Node
from ..runner.retry import retry, wait_until
from ..runner.steps import Step
from ..runner.units import install, installed, is_active, is_loaded

PATIENCE_SECONDS = 60
PERSISTENCED = "nvidia-persistenced.service"
PERSISTENCE_UNIT = "podwright-persistence.service"
FABRIC_MANAGER = "nvidia-fabricmanager.service"
IMEX = "nvidia-imex.service"
IMEX_CHANNEL = "/dev/nvidia-caps-imex-channels/channel0"
IMEX_OPTIONS = "/etc/modprobe.d/podwright-imex.conf"
_PERSISTENCE_TEXT = """\
[Unit]
Description=Keep the NVIDIA driver loaded between jobs

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/bin/nvidia-smi -pm 1

[Install]
WantedBy=multi-user.target
"""


def modes(node: Node) -> list[str]:
    """Persistence mode of each GPU that the driver shows: Enabled or Disabled."""
    text = node.run("nvidia-smi", "--query-gpu=persistence_mode", "--format=csv,noheader", timeout=60)
    return [line.strip() for line in text.splitlines() if line.strip()]


def all_there(node: Node) -> bool:
    """Whether the driver shows as many GPUs as the type has."""
    return len(modes(node)) == node.type_facts["accelerator_count"]


def wait_for_all(node: Node) -> None:
    """Look again for a while: the driver needs some seconds a GPU."""

    def read() -> None:
        shown, desired = len(modes(node)), node.type_facts["accelerator_count"]
        if shown != desired:
            raise Failure(
                f"{node.instance_type} has {desired} GPUs and nvidia-smi shows {shown}",
                "`dmesg | grep -e NVRM -e Xid` tells why; let HyperPod replace the node",
            )

    retry(node, read, seconds=PATIENCE_SECONDS, what="GPUs")


def persistent(node: Node) -> bool:
    """Whether the driver stays loaded, now and after a reboot."""
    lasting = installed(node, {PERSISTENCE_UNIT: _PERSISTENCE_TEXT}, [PERSISTENCE_UNIT]) or (
        is_loaded(node, PERSISTENCED) and _is_enabled(node, PERSISTENCED)
    )
    return lasting and set(modes(node)) == {"Enabled"}


def persist(node: Node) -> None:
    """By NVIDIA's daemon where the image has it, else by a unit of ours."""
    if is_loaded(node, PERSISTENCED):
        node.run("systemctl", "enable", PERSISTENCED)
        node.run("systemctl", "start", PERSISTENCED)
    else:
        install(node, {PERSISTENCE_UNIT: _PERSISTENCE_TEXT}, [PERSISTENCE_UNIT])
        node.run("systemctl", "restart", PERSISTENCE_UNIT)
    wait_until(
        node,
        lambda: set(modes(node)) == {"Enabled"},
        seconds=PATIENCE_SECONDS,
        what="persistence mode is on for all GPUs",
        next_step="see `nvidia-smi -q -d PERFORMANCE` and `dmesg`",
    )


def fabric_managed(node: Node) -> bool:
    """Whether the fabric manager runs, now and after a reboot."""
    return is_active(node, FABRIC_MANAGER) and _is_enabled(node, FABRIC_MANAGER)


def manage_fabric(node: Node) -> None:
    """Start NVIDIA's fabric manager, without which no CUDA program starts on NVSwitch machines."""
    if not is_loaded(node, FABRIC_MANAGER):
        raise Failure(
            f"{node.instance_type} has NVSwitches and the image has no {FABRIC_MANAGER}",
            "use an image with the fabric manager of its driver's version",
        )
    node.run("systemctl", "enable", FABRIC_MANAGER)
    node.run("systemctl", "start", FABRIC_MANAGER, timeout=180)


def imex_ready(node: Node) -> bool:
    """On EKS: whether the host's IMEX is out of the way of the pods'. On Slurm: whether jobs can configure it."""
    if node.orchestrator == "eks":
        return not is_loaded(node, IMEX)
    return _is_enabled(node, IMEX) and node.path(IMEX_CHANNEL).exists() and node.read(IMEX_OPTIONS) == _imex_options()


def prepare_imex(node: Node) -> None:
    """Mask the host's IMEX on EKS; enable it on Slurm, with channel 0.

    On EKS a ComputeDomain of NVIDIA's DRA driver runs an IMEX daemon for each workload, and NVIDIA asks that the host's
    be masked (GPU Operator, "DRA driver", 25.10). On Slurm the prolog writes the addresses of a job's nodes and
    restarts the service (AWS PCS User Guide, "Configure UltraServer instances").
    """
    if node.orchestrator == "eks":
        node.run("systemctl", "disable", "--now", IMEX)
        node.run("systemctl", "mask", IMEX)
        return
    if not is_loaded(node, IMEX):
        raise Failure(f"{node.instance_type} needs {IMEX}, and the image has none", "use an image with nvidia-imex")
    node.write(IMEX_OPTIONS, _imex_options())
    node.run("systemctl", "enable", IMEX)
    if not node.path(IMEX_CHANNEL).exists():
        node.path(IMEX_CHANNEL).parent.mkdir(parents=True, exist_ok=True)
        node.run("mknod", str(node.path(IMEX_CHANNEL)), "c", _imex_major(node), "0")


_NVIDIA = Only(accelerator="nvidia")
GPUS = Step(
    "gpus", applies_to=_NVIDIA, check=all_there, apply=wait_for_all, severity="fatal", rests_on="accelerator_count"
)
PERSISTENCE = Step("persistence", applies_to=_NVIDIA, check=persistent, apply=persist, needs=("gpus",))
FABRIC = Step(
    "fabric-manager",
    applies_to=Only(also=lambda node: bool(node.type_facts.get("nvswitch"))),
    check=fabric_managed,
    apply=manage_fabric,
    needs=("gpus",),
)
IMEX_STEP = Step(
    "imex",
    applies_to=Only(also=lambda node: bool(node.type_facts.get("imex"))),
    check=imex_ready,
    apply=prepare_imex,
    needs=("gpus",),
)


def _is_enabled(node: Node, unit: str) -> bool:
    return node.succeeds("systemctl", "is-enabled", "--quiet", unit)


def _imex_options() -> str:
    return "options nvidia NVreg_CreateImexChannel0=1\n"


def _imex_major(node: Node) -> str:
    for line in (node.read("/proc/devices") or "").splitlines():
        if line.split()[1:] == ["nvidia-caps-imex-channels"]:
            return line.split()[0]
    raise Failure("the NVIDIA driver has no IMEX channels (/proc/devices)", "use a driver of branch 560 or later")
