"""Files of /proc and /sys by which a kubelet takes this machine for one of an instance type.

Source: cAdvisor 0.52, which the kubelet 1.34 contains (machine/info.go, utils/sysinfo/sysinfo.go). Where
/sys/devices/system/node is empty, it counts the folders of /sys/devices/system/cpu.
"""

import re
from pathlib import Path
from typing import Final

CPUS: Final = "cpu"
HUGE_PAGES: Final = "hugepages"
MEMORY: Final = "meminfo"
BOOT: Final = "boot_id"
PROCESSORS: Final = "cpuinfo"

_HUGE_PAGE_KIB: Final = 2048
_TOTAL: Final = re.compile(r"^MemTotal:.*$", re.MULTILINE)
_PROCESSOR: Final = re.compile(r"^(processor|physical id|core id)\s*:.*$", re.MULTILINE)


def write_hardware(folder: Path, cpus: int, threads_per_core: int, memory_kib: int, huge_pages: int, boot: str) -> None:
    """Write the files into a folder.

    Args:
        folder: Where.
        cpus: Logical CPUs.
        threads_per_core: Logical CPUs of one core.
        memory_kib: Memory in KiB.
        huge_pages: Number of huge pages of 2 MiB.
        boot: Id of the node's boot.
    """
    folder.mkdir(parents=True, exist_ok=True)
    memory = Path("/proc/meminfo").read_text(encoding="ascii")
    (folder / MEMORY).write_text(_TOTAL.sub(f"MemTotal: {memory_kib} kB", memory), encoding="ascii")
    block = Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("\n\n")[0]
    processors = [_processor(block, number, number // threads_per_core) for number in range(cpus)]
    (folder / PROCESSORS).write_text("\n".join(processors), encoding="utf-8")
    _write(folder / BOOT, boot)
    for name in ("online", "possible", "present"):
        _write(folder / CPUS / name, f"0-{cpus - 1}")
    for number in range(cpus):
        topology = folder / CPUS / f"cpu{number}/topology"
        _write(topology / "core_id", str(number // threads_per_core))
        _write(topology / "physical_package_id", "0")
    _write(folder / HUGE_PAGES / f"hugepages-{_HUGE_PAGE_KIB}kB/nr_hugepages", str(huge_pages))


def _processor(block: str, number: int, core: int) -> str:
    """Return a block of /proc/cpuinfo for another processor."""
    values = {"processor": number, "physical id": 0, "core id": core}
    stated = _PROCESSOR.sub(lambda line: f"{line[1]}\t: {values.pop(line[1])}", block)
    return stated + "".join(f"\n{name}\t: {value}" for name, value in values.items()) + "\n"


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{text}\n", encoding="ascii")
