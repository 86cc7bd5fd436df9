"""Alerts on GPUs, and on the network between them."""

from typing import Final

from .alert import Alert

# Xids after which a GPU has to be isolated, reset or rebooted. HyperPod's own table is not published; these are the
# severities of AWS's sample health check (awsome-distributed-ai, gpu-cluster-healthcheck, 2026-07). Of the others most
# are errors of programs, such as 13 and 31.
HARDWARE_XIDS: Final = (
    *(48, 54, 64, 74, 79, 95, 109, 110, 119, 120, 136, 140, 143, 151, 155, 156, 158, 168),
)  # fmt: skip


def _gpu(metric: str) -> str:
    return f"max by (cluster_name, Hostname, gpu) ({metric})"


_XID = _gpu("DCGM_FI_DEV_XID_ERRORS{$cluster}")
_OF = "GPU {{ $labels.gpu }} of {{ $labels.Hostname }}"

ALERTS: Final = (
    Alert(
        name="GpuXid",
        severity="critical",
        expression=" or ".join(f"{_XID} == {xid}" for xid in HARDWARE_XIDS),
        summary=_OF + " reported Xid {{ $value }}, a fault of the hardware",
    ),
    Alert(
        name="GpuMissing",
        severity="critical",
        expression="max_over_time(node:gpus:count{$cluster}[6h]) - node:gpus:count{$cluster} > 0",
        summary="Node {{ $labels.node }} has lost {{ $value }} of its GPUs",
        minutes=5,
    ),
    Alert(
        name="GpuMemoryFailed",
        severity="critical",
        expression=_gpu("DCGM_FI_DEV_ROW_REMAP_FAILURE{$cluster}") + " > 0",
        summary=_OF + " has no spare memory rows left",
    ),
    Alert(
        name="GpuMemoryErrors",
        severity="warning",
        expression=_gpu("increase(DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS{$cluster}[1h])") + " > $threshold",
        summary=_OF + " had uncorrectable memory errors within the hour",
        threshold=0,
        unit="rows",
    ),
    Alert(
        name="GpuHot",
        severity="warning",
        expression=_gpu("DCGM_FI_DEV_GPU_TEMP{$cluster}") + " >= $threshold",
        summary=_OF + " has {{ $value }} °C",
        minutes=5,
        threshold=88,
        unit="celsius",
    ),
    Alert(
        name="GpuThrottling",
        severity="warning",
        # Newer exporters count nanoseconds and older ones microseconds, so only that it grows means the same in both.
        expression=_gpu("rate(DCGM_FI_DEV_THERMAL_VIOLATION{$cluster}[$rate])") + " > 0",
        summary=_OF + " has been slowed down by heat for ten minutes",
        minutes=10,
    ),
    Alert(
        name="GpuClockLow",
        severity="warning",
        # A synchronous job goes at the pace of its slowest GPU.
        expression="100 - 100 * max by (cluster_name, namespace, modelName, Hostname, gpu) "
        '(DCGM_FI_DEV_SM_CLOCK{$cluster, namespace!=""} and DCGM_FI_DEV_GPU_UTIL{$cluster} > 50) '
        "/ on (cluster_name, namespace, modelName) group_left () quantile by (cluster_name, namespace, modelName) "
        "(0.5, DCGM_FI_DEV_SM_CLOCK{$cluster}) > $threshold",
        summary=_OF + " runs {{ $value | humanize }} % slower than others of {{ $labels.namespace }}",
        minutes=15,
        threshold=20,
        unit="percent",
        orchestrator="eks",
    ),
    Alert(
        name="GpuNvlinkErrors",
        severity="warning",
        # A retry now and then is how the link works; a recovery is not.
        expression=_gpu("increase(DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL{$cluster}[1h])")
        + " > 0 or "
        + _gpu("increase(DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL{$cluster}[1h])")
        + " > $threshold",
        summary=_OF + " had errors of its NVLink within the hour: {{ $value | humanize }}",
        threshold=100,
        unit="retries an hour",
    ),
    Alert(
        name="GpuPcieReplays",
        severity="warning",
        expression=_gpu("rate(DCGM_FI_DEV_PCIE_REPLAY_COUNTER{$cluster}[$rate])") + " > $threshold",
        summary=_OF + " repeats {{ $value | humanize }} transfers a second over PCIe",
        minutes=15,
        threshold=1,
        unit="per second",
    ),
    Alert(
        name="EfaErrors",
        severity="warning",
        expression="node:efa_errors:rate{$cluster} > $threshold",
        summary="EFA of {{ $labels.instance }} has {{ $value | humanize }} errors a second",
        minutes=10,
        threshold=1,
        unit="per second",
    ),
)
