"""Where the sandbox's metrics have series: a GPU with the pod that holds it, a queue, a node's file system.

Places follow the columns `exporter` and `per` of the metric table; `VARIANTS` are labels beyond a place's own, such as
the phases of a pod.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import inf
from typing import Final

from ....config.catalog.metrics import Metric
from ....config.catalog.prices import hourly
from .cluster import Job, Node, Plan, SyntheticCluster, Team

Labels = dict[str, str]
BUCKETS: Final = (1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5120, 10240, inf)
"""Upper bounds of the histograms, in the metric's unit; those of Kueue's waiting times."""
KERNELS: Final = {
    "gemm_bf16": ("TFLOPS", 742.0, 650.0),
    "memory_copy": ("GB/s", 3920.0, 3500.0),
    "all_reduce": ("GB/s", 462.0, 400.0),
}
"""Benchmarks with their unit, a healthy value and the limit. The values are made up."""
COHORT: Final = "podwright"
"""A name for the cohort of all queues; what task governance calls it is not documented."""


@dataclass(frozen=True, kw_only=True)
class SeriesSource:
    """One series' place: its labels, what it belongs to, and how long it is there."""

    labels: Labels
    """All that are known of it; a metric's series have some of them."""
    start: float = -inf
    end: float = inf
    node: Node | None = None
    job: Job | None = None
    team: Team | None = None
    plan: Plan | None = None


_RESOURCES: Final = (
    {"resource": "nvidia_com_gpu", "unit": "integer"},
    {"resource": "vpc_amazonaws_com_efa", "unit": "integer"},
    {"resource": "cpu", "unit": "core"},
    {"resource": "memory", "unit": "byte"},
)
_CONDITIONS: Final = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")
_HISTOGRAM: Final = tuple({"le": "+Inf" if bound == inf else f"{bound:g}"} for bound in BUCKETS)


def _each(**labels: tuple[str, ...]) -> tuple[Labels, ...]:
    return tuple(dict(zip(labels, values, strict=True)) for values in product(*labels.values()))


VARIANTS: Final[Mapping[str, tuple[Labels, ...]]] = {
    "node_cpu_seconds_total": _each(mode=("idle", "user", "system", "iowait")),
    "kube_node_spec_taint": (
        {"key": "sagemaker.amazonaws.com/node-health-status", "value": "Unschedulable", "effect": "NoSchedule"},
    ),
    "kube_node_status_condition": _each(condition=_CONDITIONS, status=("true", "false", "unknown")),
    "kube_node_status_allocatable": _RESOURCES,
    "kube_node_status_capacity": _RESOURCES,
    "kube_pod_container_resource_requests": _RESOURCES,
    "kube_pod_container_resource_limits": _RESOURCES,
    "kube_pod_status_phase": _each(phase=("Pending", "Running", "Succeeded", "Failed", "Unknown")),
    "kube_pod_status_reason": _each(
        reason=("Evicted", "NodeAffinity", "NodeLost", "Shutdown", "UnexpectedAdmissionError")
    ),
    "kube_pod_container_status_waiting_reason": _each(reason=("CrashLoopBackOff", "ImagePullBackOff")),
    "kube_pod_container_status_last_terminated_reason": _each(reason=("Error", "OOMKilled")),
    "apiserver_request_total": _each(verb=("GET",), resource=("pods",), code=("200", "429", "500")),
    "up": _each(job=("dcgm-exporter", "efa-exporter", "node-exporter", "kubelet")),
    "kueue_pending_workloads": _each(status=("active", "inadmissible")),
    "kueue_evicted_workloads_total": _each(
        reason=("Preempted", "PodsReadyTimeout", "AdmissionCheck", "ClusterQueueStopped", "Deactivated")
    ),
    "kueue_preempted_workloads_total": _each(reason=("InClusterQueue", "InCohortReclamation", "InCohortFairSharing")),
    "kueue_cluster_queue_status": _each(status=("active", "pending", "terminating")),
    "kueue_admission_wait_time_seconds_bucket": _HISTOGRAM,
    "kueue_quota_reserved_wait_time_seconds_bucket": _HISTOGRAM,
    "model_latency_milliseconds_bucket": _HISTOGRAM,
    "model_ttfb_milliseconds_bucket": _HISTOGRAM,
    "training_fault_type_count": _each(fault_type=("hardware", "process", "hang")),
    "training_fault_recovery_time_ms": _each(fault_type=("hardware", "process", "hang")),
    "podwright_instances": _each(state=("current", "target")),
    "podwright_nodes": _each(
        status=("Running", "Pending", "Failure", "ShuttingDown", "SystemUpdating", "DeepHealthCheckInProgress")
    ),
    "podwright_node_status": _each(status=("Running",)),
    "podwright_node_health": _each(health=("Schedulable",), deep_health_check=("Passed",)),
    "podwright_plan_instances": _each(state=("total", "available", "in_use", "unhealthy")),
    "podwright_benchmark_verdict": _each(verdict=("pass", "warn", "fail", "skip")),
    "podwright_source_seen": _each(source=("instances", "nodes", "health", "plans", "benchmarks")),
    "DCGM_FI_DEV_XID_ERRORS": _each(err_code=("0",), err_msg=("No Error",)),
}
"""Labels of a metric's series that its place does not have. Changes to a world may bring others."""


def series_sources(cluster: SyntheticCluster, metric: Metric) -> Iterator[SeriesSource]:
    """The places of a metric in a world. Raises KeyError for a row of the table whose `per` is not known here."""
    for series in _SOURCES[metric.exporter, metric.per](cluster):
        for variant in VARIANTS.get(metric.name, ({},)):
            yield replace(series, labels=series.labels | variant | {"cluster_name": cluster.cluster})


def series_of(metric: Metric, series: SeriesSource) -> Labels:
    """The labels of a metric's series at a place."""
    return {name: series.labels.get(name, "") for name in (*metric.labels, "cluster_name")}


def _nodes(cluster: SyntheticCluster) -> Iterator[SeriesSource]:
    """One source for each node, with the names that the exporters give to it."""
    for node in cluster.nodes:
        labels = {
            "instance": node.name,
            "node": node.name,
            "nodename": node.name,
            "Hostname": node.name,
            "instance_id": node.instance_id,
            "node_logical_id": node.logical_id,
            "instance_group": node.group,
            "instance_type": node.instance_type,
            "provider_id": f"aws:///{node.zone_id}/sagemaker/cluster/hyperpod-{node.instance_id}",
            "internal_ip": node.address,
            "release": "6.1.0-sandbox",
            "kernel_version": "6.1.0-sandbox",
            "kubelet_version": "v1.34.0-sandbox",
            "controller": "mc0",
        }
        yield SeriesSource(labels=labels, start=node.joined, end=node.left, node=node)


def _held(cluster: SyntheticCluster, series: SeriesSource) -> Iterator[SeriesSource]:
    """A node's place, in turn idle and with the pod of a job on it."""
    node = series.node
    assert node is not None
    at = series.start
    for job in cluster.jobs_on(node.name):
        start, end = max(job.start, at), min(job.end, series.end)
        if at < start:
            yield replace(series, start=at, end=start)
        if start < end:
            pod = {
                "namespace": job.namespace,
                "pod": f"{job.name}-{job.nodes.index(node.name)}",
                "container": "trainer",
            }
            yield replace(series, labels=series.labels | pod, job=job, start=start, end=end)
        at = max(at, end)
    if at < series.end:
        yield replace(series, start=at)


def _gpus(cluster: SyntheticCluster) -> Iterator[SeriesSource]:
    for series in _nodes(cluster):
        node = series.node
        for held in _held(cluster, series) if node and node.gpus else ():
            for gpu in range(node.gpus if node else 0):
                uuid = f"GPU-{series.labels['instance_id'][2:]}-{gpu}"
                labels = {
                    "gpu": str(gpu),
                    "UUID": uuid,
                    "device": f"nvidia{gpu}",
                    "modelName": node.gpu_model if node else "",
                }
                yield replace(held, labels=held.labels | labels)


def _pods(cluster: SyntheticCluster) -> Iterator[SeriesSource]:
    for series in _nodes(cluster):
        for held in _held(cluster, series) if series.node and series.node.gpus else ():
            if held.job:
                owner = {"owner_kind": "HyperPodPyTorchJob", "owner_name": held.job.name}
                created = {"created_by_kind": "HyperPodPyTorchJob", "created_by_name": held.job.name}
                created["priority_class"] = held.job.priority
                yield replace(held, labels=held.labels | owner | created)


def _times(
    source: Callable[[SyntheticCluster], Iterator[SeriesSource]], label: str, count: Callable[[Node], list[str]]
) -> Callable[[SyntheticCluster], Iterator[SeriesSource]]:
    """Each node's place once for each of its parts."""

    def parts(cluster: SyntheticCluster) -> Iterator[SeriesSource]:
        for series in source(cluster):
            for part in count(series.node) if series.node else ():
                # EFA's exporter labels ports and Neuron's runtimes. Both are given: `series_of` keeps what the metric
                # has.
                yield replace(series, labels=series.labels | {label: part, "port": "1", "runtime_tag": "0"})

    return parts


def _busy(cluster: SyntheticCluster) -> Iterator[SeriesSource]:
    """Nodes with the job that they have, without its labels: whose exporters know nothing of pods."""
    for series in _nodes(cluster):
        for held in _held(cluster, series):
            yield replace(held, labels=series.labels)


def _mounts(cluster: SyntheticCluster) -> Iterator[SeriesSource]:
    kinds = [{"mountpoint": "/", "device": "/dev/nvme0n1p1", "fstype": "xfs"}]
    if cluster.file_system_gib:
        # The source of an FSx for Lustre mount: DNS name at network, then the mount name.
        kinds.append({"mountpoint": "/fsx", "device": "fs-0123456789abcdef0.fsx@tcp:/abcdefgh", "fstype": "lustre"})
    for series in _nodes(cluster):
        for kind in kinds:
            yield replace(series, labels=series.labels | kind)


def _queues(cluster: SyntheticCluster) -> Iterator[SeriesSource]:
    for team in cluster.teams:
        queue = f"hyperpod-ns-{team.name}-clusterqueue"
        labels = {"cluster_queue": queue, "preempting_cluster_queue": queue, "cohort": COHORT}
        labels["priority_class"] = "training-priority"
        yield SeriesSource(labels=labels, team=team)


def _quotas(cluster: SyntheticCluster) -> Iterator[SeriesSource]:
    flavors = dict.fromkeys(node.instance_type for node in cluster.nodes if node.gpus)
    for series in _queues(cluster):
        for flavor in flavors:
            yield replace(series, labels=series.labels | {"flavor": flavor, "resource": "nvidia.com/gpu"})


def _jobs(cluster: SyntheticCluster) -> Iterator[SeriesSource]:
    for job in cluster.jobs:
        labels = {"job_name": job.name, "jobName": job.name, "namespace": job.namespace}
        yield SeriesSource(labels=labels, job=job, start=job.start, end=job.end)


def _groups(cluster: SyntheticCluster) -> Iterator[SeriesSource]:
    for name in dict.fromkeys(node.group for node in cluster.nodes):
        node = next(node for node in cluster.nodes if node.group == name)
        yield SeriesSource(labels={"instance_group": name, "instance_type": node.instance_type}, node=node)


def _plans(cluster: SyntheticCluster) -> Iterator[SeriesSource]:
    for plan in cluster.plans:
        yield SeriesSource(labels={"plan": plan.name, "instance_type": plan.instance_type}, plan=plan)


def _kernels(units: Iterable[SeriesSource]) -> Iterator[SeriesSource]:
    """Each kernel of the benchmarks on each node, or on each group, that has GPUs."""
    for series in units:
        for kernel, (unit, _, _) in KERNELS.items() if series.node and series.node.gpus else ():
            yield replace(series, labels=series.labels | {"kernel": kernel, "unit": unit})


def _one(**labels: str) -> Callable[[SyntheticCluster], Iterator[SeriesSource]]:
    return lambda cluster: iter([SeriesSource(labels=labels)])


def _endpoints(cluster: SyntheticCluster) -> Iterator[SeriesSource]:
    for name in cluster.endpoints:
        yield SeriesSource(labels={"resource_name": name, "namespace": "default", "cluster_id": "sandbox"})


_SOURCES: Final[Mapping[tuple[str, str], Callable[[SyntheticCluster], Iterator[SeriesSource]]]] = {
    ("dcgm", "gpu"): _gpus,
    ("neuron_monitor", "neuron_core"): _times(_busy, "neuroncore", lambda node: [str(i) for i in range(node.neuron)]),
    ("neuron_monitor", "neuron_device"): _times(_busy, "neuroncore", lambda node: [str(i) for i in range(node.neuron)]),
    ("efa", "efa"): _times(_busy, "device", lambda node: [f"rdmap{16 + index}s0" for index in range(node.efa)]),
    ("node", "node"): _nodes,
    ("node", "cpu"): _times(_busy, "cpu", lambda node: [str(index) for index in range(node.cpus)]),
    ("node", "mount"): _mounts,
    ("node", "interface"): _times(_busy, "device", lambda node: ["ens5"]),
    ("node", "disk"): _times(_busy, "device", lambda node: ["nvme0n1"]),
    ("collector", "target"): _nodes,
    ("kube_state", "node"): _nodes,
    ("kube_state", "pod"): _pods,
    ("kube_state", "container"): _pods,
    ("kube_state", "deployment"): _one(namespace="kueue-system", deployment="kueue-controller-manager"),
    ("kube_state", "daemonset"): _one(namespace="aws-hyperpod", daemonset="health-monitoring-agent"),
    ("kube_state", "job"): _jobs,
    ("cadvisor", "container"): _pods,
    ("kubernetes_api", "cluster"): _one(),
    ("kueue", "queue"): _queues,
    ("kueue", "quota"): _quotas,
    ("training_operator", "job"): _jobs,
    ("inference", "endpoint"): _endpoints,
    ("slurm", "cluster"): _one(),
    ("podwright", "cluster"): _one(),
    ("podwright", "group"): _groups,
    ("podwright", "node"): _nodes,
    ("podwright", "fault"): _nodes,
    ("podwright", "plan"): _plans,
    ("podwright", "kernel"): lambda cluster: _kernels(_nodes(cluster)),
    ("podwright", "kernel_of_group"): lambda cluster: _kernels(_groups(cluster)),
}


def price(cluster: SyntheticCluster, series: SeriesSource) -> float | None:
    """What an instance of a place costs an hour in US dollars; None where nobody says."""
    resolved_price = hourly(series.labels["instance_type"], cluster.region)
    return resolved_price.usd if resolved_price else None
