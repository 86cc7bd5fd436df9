"""Shared file systems and local disks, as nodes see them."""

from ....config.settings.observability import Targets
from .panel import Dashboard, Panel, Row

_LUSTRE = '{$cluster, fstype="lustre"}'
_MOUNT = "{{mountpoint}}"


def define(_: Targets) -> Dashboard:
    """The dashboard."""
    return Dashboard(
        name="storage",
        title="Storage",
        says="Shared file systems and local disks, as nodes see them. What FSx itself measures is on CloudWatch's "
        "dashboard.",
        needs=("node_filesystem_size_bytes",),
        rows=(Row("Lustre", _lustre()), Row("Disks of nodes", _disks())),
        hours=24,
    )


def _lustre() -> tuple[Panel, ...]:
    """Capacity, inodes and traffic of Lustre, and when it will be full."""
    used = "filesystem:lustre_used:ratio{$cluster}"
    free_files, files = f"node_filesystem_files_free{_LUSTRE}", f"node_filesystem_files{_LUSTRE}"
    allocatable = f"min by (mountpoint) (node_filesystem_avail_bytes{_LUSTRE})"
    return (
        Panel(
            "bars",
            "Full",
            "fraction",
            {_MOUNT: used},
            "Lustre becomes slow when it is nearly full, and from 85 % on an alert says so.",
            {0: "green", 0.75: "orange", 0.85: "red"},
            width=8,
            height=5,
            most=1,
        ),
        Panel(
            "number",
            "Full in",
            "hours",
            {_MOUNT: f"(1 - {used}) / (deriv(filesystem:lustre_used:ratio{{$cluster}}[3h]) > 0) / 3600"},
            "Hours until it is full if it goes on as in the last three hours; none while it does not grow.",
            {0: "red", 12: "orange", 48: "green"},
            width=4,
            height=5,
            may_be_empty=True,
        ),
        Panel(
            "number",
            "Nodes that mount it",
            "count",
            {_MOUNT: f"count by (mountpoint) (node_filesystem_size_bytes{_LUSTRE})"},
            "A node that lost its mount is missing here.",
            width=4,
            height=5,
        ),
        Panel(
            "number",
            "Files that fit",
            "fraction",
            {_MOUNT: f"min by (mountpoint) ({free_files} / {files})"},
            "Share of the files that it can still hold. Millions of small files fill it before bytes do.",
            {0: "red", 0.15: "orange", 0.3: "green"},
            width=4,
            height=5,
        ),
        Panel(
            "number",
            "Nodes where it takes no writes",
            "count",
            {_MOUNT: f"sum by (mountpoint) (node_filesystem_readonly{_LUSTRE})"},
            "Checkpoints fail there.",
            {0: "green", 1: "red"},
            width=4,
            height=5,
        ),
        Panel("lines", "Full, over time", "fraction", {_MOUNT: used}, "Share of its room that is in use.", most=1),
        Panel(
            "lines", "Room that is left", "bytes", {_MOUNT: allocatable}, "A step down is a checkpoint, or a data set."
        ),
    )


def _disks() -> tuple[Panel, ...]:
    """Local disks: how full they are, and how busy."""
    local = '{$cluster, mountpoint=~"/|/opt/sagemaker|/opt/dlami/nvme"}'
    full = f"1 - node_filesystem_avail_bytes{local} / node_filesystem_size_bytes{local}"

    def busiest(metric: str) -> str:
        return f"topk(10, sum by (instance) (rate({metric}{{$cluster}}[$rate])))"

    return (
        Panel(
            "bars",
            "Fullest disks",
            "fraction",
            {"{{instance}} {{mountpoint}}": f"topk(10, {full})"},
            "Images and caches fill root disks; /opt/sagemaker and /opt/dlami/nvme are there for them.",
            {0: "green", 0.8: "orange", 0.9: "red"},
            width=8,
            most=1,
        ),
        Panel(
            "lines",
            "Read from local disks",
            "bytes/s",
            {"{{instance}}": busiest("node_disk_read_bytes_total")},
            "The ten nodes that read most.",
            width=8,
        ),
        Panel(
            "lines",
            "Written to local disks",
            "bytes/s",
            {"{{instance}}": busiest("node_disk_written_bytes_total")},
            "The ten nodes that write most.",
            width=8,
        ),
    )
