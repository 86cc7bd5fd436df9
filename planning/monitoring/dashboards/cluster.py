"""Nodes, GPUs and what connects them: is the cluster well, and is it at work?"""

from collections.abc import Mapping
from typing import Final

from ....config.settings.observability import Targets
from .panel import Choice, Colour, Dashboard, Panel, Row

_GPU: Final = '{$cluster, Hostname=~"$node"}'
_HEALTH: Final[tuple[tuple[str, Colour], ...]] = (
    ("Schedulable", "green"),
    ("Unschedulable", "yellow"),
    ("UnschedulablePendingReboot", "orange"),
    ("UnschedulablePendingReplacement", "red"),
)
_DISKS: Final = '{$cluster, mountpoint=~"/|/opt/sagemaker|/opt/dlami/nvme"}'


def define(targets: Targets) -> Dashboard:
    """The dashboard."""
    return Dashboard(
        name="cluster",
        title="Cluster",
        says="Nodes, GPUs and what connects them: is the cluster well, and is it at work?",
        needs=("podwright_instances",),
        rows=(
            Row("Now", _now(targets.gpu_utilization_percent / 100)),
            Row("Nodes", _nodes()),
            Row("GPUs", _gpus(targets.gpu_utilization_percent / 100)),
            Row("Faults of GPUs", _faults()),
            Row("NVLink and PCIe", _links()),
            Row("EFA", _efa()),
            Row("Neuron", _neuron()),
            Row("Hosts", _hosts()),
        ),
        choices=(Choice("node", "Hostname", "DCGM_FI_DEV_GPU_TEMP"),),
    )


def _tile(title: str, unit: str, query: str, says: str, steps: Mapping[float, Colour] | None = None) -> Panel:
    return Panel("number", title, unit, {title: query}, says, steps or {}, width=4, height=4)


def _now(target: float) -> tuple[Panel, ...]:
    """The state at a glance: instances, faults, use."""
    return (
        _tile("Instances", "count", "cluster:instances:sum{$cluster}", "Instances that the cluster has and pays for."),
        _tile(
            "Instances that lack",
            "count",
            'sum(podwright_instances{$cluster, state="target"}) - sum(podwright_instances{$cluster, state="current"})',
            "Instances that groups want and do not have: capacity that is awaited, or creation that fails.",
            {0: "green", 1: "orange"},
        ),
        _tile(
            "Nodes that take work",
            "fraction",
            "cluster:nodes_schedulable:ratio{$cluster}",
            "Share of the nodes that HyperPod calls Schedulable.",
            {0: "red", 0.9: "orange", 0.98: "green"},
        ),
        _tile("GPUs", "count", "cluster:gpus:count{$cluster}", "GPUs that the nodes' exporters see."),
        _tile(
            "GPUs allocated",
            "fraction",
            "cluster:gpu_allocation:ratio{$cluster}",
            "Share of the GPUs that running pods hold. Held and unused is worse than free: see the next number.",
        ),
        _tile(
            "Use of allocated GPUs",
            "fraction",
            "cluster:gpu_utilization:avg{$cluster}",
            "How much of the time GPUs that are held do anything; coloured by the environment's target.",
            {0: "red", target / 2: "orange", target: "green"},
        ),
    )


def _nodes() -> tuple[Panel, ...]:
    """Health of each node over time, and the nodes that are not schedulable."""
    # `or` keeps its left side where both have a series for a node, so the worst health comes first and wins.
    state = " or ".join(
        f'max by (node) (podwright_node_health{{$cluster, health="{health}"}}) * {number}'
        for number, (health, _) in reversed(list(enumerate(_HEALTH)))
    )
    trouble = 'max by (node) (max_over_time(podwright_node_health{$cluster, health!="Schedulable"}[$__range]))'
    return (
        Panel(
            "stacked",
            "Nodes by health",
            "count",
            {"{{health}}": "sum by (health) (instance_group_health:nodes:count{$cluster})"},
            "What HyperPod says of its nodes. Unschedulable with no action pending is a deep health check, or a fault "
            "that nobody fixes.",
        ),
        Panel(
            "stacked",
            "Instances by group",
            "count",
            {"{{instance_group}}": 'podwright_instances{$cluster, state="current"}'},
            "Instances of each group. A step down that nobody asked for is a lost node.",
        ),
        Panel(
            "states",
            "Nodes with trouble",
            "count",
            # `and` keeps the lanes of nodes that had trouble; thousands of healthy ones would hide them.
            {"{{node}}": f"({state}) and on (node) ({trouble} > 0)"},
            "A lane for each node from its first trouble on: how long from fault to action, and back to health?",
            steps={number: colour for number, (_, colour) in enumerate(_HEALTH)},
            words={number: health for number, (health, _) in enumerate(_HEALTH)},
            may_be_empty=True,
        ),
        Panel(
            "table",
            "Faults on nodes",
            "count",
            {"there": "max by (node, instance_group, fault) (podwright_node_fault{$cluster}) > 0"},
            "Types of faults that HyperPod has put on nodes.",
            width=6,
            may_be_empty=True,
        ),
        Panel(
            "bars",
            "Nodes started within a day",
            "count",
            {
                "{{instance_group}}": "count by (instance_group) "
                "(time() - podwright_node_launched_timestamp_seconds{$cluster} < 86400)"
            },
            "New nodes and replaced ones. Replacements that repeat are worth a case with AWS.",
            width=6,
            may_be_empty=True,
        ),
    )


def _tenths(values: str) -> dict[str, str]:
    """Of many devices: how the best and the worst do."""
    return {
        "best tenth": f"quantile(0.9, {values})",
        "median": f"quantile(0.5, {values})",
        "worst tenth": f"quantile(0.1, {values})",
    }


def _gpus(target: float) -> tuple[Panel, ...]:
    """Use, memory, power and temperature of GPUs."""
    memory = f"DCGM_FI_DEV_FB_USED{_GPU} / (DCGM_FI_DEV_FB_USED{_GPU} + DCGM_FI_DEV_FB_FREE{_GPU})"
    power = f"DCGM_FI_DEV_POWER_USAGE{_GPU}"
    return (
        Panel(
            "lines",
            "Use",
            "fraction",
            _tenths(f"DCGM_FI_DEV_GPU_UTIL{_GPU} / 100"),
            "Share of time in which any kernel ran, over all GPUs; the dashed line is the environment's target.",
            {target: "orange"},
            most=1,
        ),
        Panel(
            "lines",
            "Work of tensor cores",
            "fraction",
            _tenths(f"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{_GPU}"),
            "Share of cycles in which tensor cores worked: closer to how much is computed than use is.",
            most=1,
        ),
        Panel(
            "lines",
            "Memory",
            "fraction",
            {"fullest": f"max({memory})", "mean": f"avg({memory})", "emptiest": f"min({memory})"},
            "Memory of GPUs that is in use.",
            width=8,
            most=1,
        ),
        Panel(
            "lines",
            "Hottest",
            "celsius",
            {"{{Hostname}} {{gpu}}": f"topk(10, max by (Hostname, gpu) (DCGM_FI_DEV_GPU_TEMP{_GPU}))"},
            "From 88 °C on a GPU may slow itself down, and with it every GPU of its job.",
            {88: "red"},
            width=8,
        ),
        Panel(
            "lines",
            "Power",
            "watts",
            {"most": f"max({power})", "mean": f"avg({power})", "least": f"min({power})"},
            "What a GPU draws. It falls when a job waits, even while use looks full.",
            width=8,
        ),
    )


def _faults() -> tuple[Panel, ...]:
    """Xid errors, remapped rows and clocks that were held down."""
    remapped = f"max by (Hostname, gpu) (DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS{_GPU})"
    slowed = {
        cause: f"topk(10, max by (Hostname, gpu) (rate(DCGM_FI_DEV_{cause}_VIOLATION{_GPU}[$rate])) > 0)"
        for cause in ("THERMAL", "POWER")
    }
    return (
        Panel(
            "table",
            "Xids",
            "count",
            {"Xid": f"max by (Hostname, gpu) (DCGM_FI_DEV_XID_ERRORS{_GPU}) > 0"},
            "The last Xid of a GPU since its driver started. 48, 64, 74, 79 and 95 are the hardware more often than "
            "not; 13 and 31 are mostly the program.",
            width=6,
            may_be_empty=True,
        ),
        Panel(
            "bars",
            "Memory rows remapped",
            "count",
            {"{{Hostname}} {{gpu}}": f"topk(10, {remapped} > 0)"},
            "Rows that spare ones replaced after uncorrectable errors. Spare rows run out.",
            width=6,
            may_be_empty=True,
        ),
        Panel(
            "lines",
            "Slowed down",
            "count",
            {"heat {{Hostname}} {{gpu}}": slowed["THERMAL"], "power {{Hostname}} {{gpu}}": slowed["POWER"]},
            "How fast the counters of lowered clocks grow. Versions of the exporter count in different units, so "
            "compare GPUs and not numbers.",
            may_be_empty=True,
        ),
    )


def _links() -> tuple[Panel, ...]:
    """NVLink traffic and its errors."""
    kinds = {"checksum of flow": "CRC_FLIT", "checksum of data": "CRC_DATA", "replay": "REPLAY", "recovery": "RECOVERY"}
    return (
        Panel(
            "lines",
            "NVLink traffic of nodes",
            "bytes/s",
            {
                # The counter is in megabytes.
                "{{Hostname}}": "topk(10, sum by (Hostname) "
                f"(rate(DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL{_GPU}[$rate])) * 1e6)"
            },
            "What the GPUs of a node exchange. A node far below the others of its job is the one they wait for.",
            width=8,
        ),
        Panel(
            "bars",
            "NVLink errors within the hour",
            "count",
            {
                f"{{{{Hostname}}}} {text}": "topk(5, sum by (Hostname) "
                f"(increase(DCGM_FI_DEV_NVLINK_{name}_ERROR_COUNT_TOTAL{_GPU}[1h])) > 0)"
                for text, name in kinds.items()
            },
            "Replays and recoveries cost time; errors of checksums come before them.",
            width=8,
            may_be_empty=True,
        ),
        Panel(
            "lines",
            "PCIe replays",
            "per second",
            {
                "{{Hostname}} {{gpu}}": "topk(10, max by (Hostname, gpu) "
                f"(rate(DCGM_FI_DEV_PCIE_REPLAY_COUNTER{_GPU}[$rate])) > 0)"
            },
            "Transfers that PCIe had to repeat.",
            width=8,
            may_be_empty=True,
        ),
    )


def _efa() -> tuple[Panel, ...]:
    """EFA traffic, retransmissions and errors."""
    most = "topk(10, sum by (instance) (rate({}{{$cluster}}[$rate])))"
    return (
        Panel(
            "lines",
            "Traffic of the cluster",
            "bytes/s",
            {"sent": "cluster:efa_bytes:rate{$cluster}"},
            "What all nodes send over EFA.",
            width=8,
        ),
        Panel(
            "lines",
            "Sent by node",
            "bytes/s",
            {"{{instance}}": most.format("node_amazonefa_tx_bytes")},
            "The ten nodes that send most.",
            width=8,
        ),
        Panel(
            "lines",
            "Written to other nodes' memory",
            "bytes/s",
            {"{{instance}}": most.format("node_amazonefa_rdma_write_bytes")},
            "RDMA writes. None while a job runs on several nodes means that NCCL went over TCP.",
            width=8,
        ),
        Panel(
            "lines",
            "EFA errors",
            "per second",
            {"{{instance}}": "node:efa_errors:rate{$cluster} > 0"},
            "Work requests that failed and packets that were dropped.",
            {1: "red"},
            may_be_empty=True,
        ),
        Panel(
            "bars",
            "EFA devices by node",
            "count",
            {"{{instance}}": "bottomk(20, count by (instance) (node_amazonefa_info{$cluster}))"},
            "The twenty nodes with fewest. All nodes of a type should have the same number.",
        ),
    )


def _neuron() -> tuple[Panel, ...]:
    """Use and memory of Neuron devices."""
    held = "topk(10, sum by (instance_id) (neuron_runtime_memory_used_bytes{$cluster}))"
    return (
        Panel(
            "lines",
            "Use of NeuronCores",
            "fraction",
            _tenths("neuroncore_utilization_ratio{$cluster}"),
            "Use of all NeuronCores.",
            most=1,
        ),
        Panel(
            "lines",
            "Memory of the Neuron runtime",
            "bytes",
            {"{{instance_id}}": held},
            "The ten nodes whose runtime holds most.",
        ),
    )


def _hosts() -> tuple[Panel, ...]:
    """CPU, memory and disks of nodes."""
    idle = 'avg by (instance) (rate(node_cpu_seconds_total{$cluster, mode="idle"}[$rate]))'
    free = "node_memory_MemAvailable_bytes{$cluster} / node_memory_MemTotal_bytes{$cluster}"
    allocatable = f"node_filesystem_avail_bytes{_DISKS} / node_filesystem_size_bytes{_DISKS}"
    return (
        Panel(
            "lines",
            "CPU",
            "fraction",
            {"{{instance}}": f"topk(10, 1 - {idle})"},
            "The ten busiest hosts. Too few CPUs for reading data starve GPUs.",
            width=6,
            most=1,
        ),
        Panel(
            "lines",
            "Memory of hosts",
            "fraction",
            {"{{instance}}": f"topk(10, 1 - {free})"},
            "The ten fullest hosts.",
            width=6,
            most=1,
        ),
        Panel(
            "bars",
            "Fullest disks",
            "fraction",
            {"{{instance}} {{mountpoint}}": f"topk(10, 1 - {allocatable})"},
            "Root and local disks. A full root disk takes the node's agents down.",
            {0: "green", 0.8: "orange", 0.9: "red"},
            width=6,
            most=1,
        ),
        Panel(
            "bars",
            "Processes that ran out of memory",
            "count",
            {"{{instance}}": "topk(10, increase(node_vmstat_oom_kill{$cluster}[1h]) > 0)"},
            "Killed by the kernel within the hour.",
            width=6,
            may_be_empty=True,
        ),
    )
