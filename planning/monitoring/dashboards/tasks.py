"""Jobs, one by one: what each holds, what it makes of it, and which of its pods holds the others up."""

from ....config.settings.observability import Targets
from .panel import Choice, Dashboard, Panel, Row

_JOB = '{$cluster, namespace=~"$namespace", job_name=~"$job"}'
_PODS = '{$cluster, namespace=~"$namespace", pod!=""}'
_OWNER = f"* on (cluster_name, namespace, pod) group_left (job_name) namespace_pod_job:owner:info{_JOB}"
_NAME = "{{namespace}}/{{job_name}}"


def define(targets: Targets) -> Dashboard:
    """The dashboard."""
    return Dashboard(
        name="tasks",
        title="Tasks",
        says="Jobs, one by one: what each holds, what it makes of it, and which of its pods holds the others up.",
        needs=("namespace_job:pods_running:sum",),
        rows=(
            Row("What jobs hold", _held()),
            Row("What they make of it", _made(targets)),
            Row("Stragglers", _stragglers()),
            Row("Hosts and network", _hosts()),
            Row("Trouble", _trouble()),
        ),
        choices=(
            Choice("namespace", "namespace", "namespace_job:pods_running:sum"),
            Choice("job", "job_name", "namespace_job:pods_running:sum"),
        ),
    )


def _by_job(operation: str, pods: str) -> str:
    return f"{operation} by (namespace, job_name) (({pods}) {_OWNER})"


def _of_pods(metric: str, operation: str = "avg") -> str:
    return f"{operation} by (cluster_name, namespace, pod) ({metric}{_PODS})"


def _held() -> tuple[Panel, ...]:
    """GPUs and pods that each job holds."""
    return (
        Panel("stacked", "GPUs", "count", {_NAME: f"namespace_job:gpus:sum{_JOB}"}, "GPUs that each job holds."),
        Panel(
            "stacked",
            "Pods",
            "count",
            {_NAME: f"namespace_job:pods_running:sum{_JOB}"},
            "Pods of each job that run.",
            width=6,
        ),
        Panel(
            "stacked",
            "Pods that wait",
            "count",
            {_NAME: f"namespace_job:pods_waiting:sum{_JOB} > 0"},
            "Pods that wait for a node, a volume or their image. A job that runs with some of its pods waiting is "
            "elastic, or stuck.",
            width=6,
            may_be_empty=True,
        ),
    )


def _made(targets: Targets) -> tuple[Panel, ...]:
    """Use, tensor work and memory of each job's GPUs."""
    used = _of_pods("DCGM_FI_DEV_FB_USED")
    free = _of_pods("DCGM_FI_DEV_FB_FREE")
    return (
        Panel(
            "lines",
            "Use of GPUs",
            "fraction",
            {_NAME: f"namespace_job:gpu_utilization:avg{_JOB}"},
            "Share of time in which the job's GPUs did anything; the dashed line is the environment's target.",
            {targets.gpu_utilization_percent / 100: "orange"},
            width=8,
            most=1,
        ),
        Panel(
            "lines",
            "Work of tensor cores",
            "fraction",
            {_NAME: f"namespace_job:gpu_tensor_active:avg{_JOB}"},
            "Full use with idle tensor cores is a job that waits in a collective operation.",
            width=8,
            most=1,
        ),
        Panel(
            "lines",
            "Memory of GPUs",
            "fraction",
            {_NAME: _by_job("avg", f"{used} / ({used} + {free})")},
            "A job that leaves much of it empty could take larger batches.",
            width=8,
            most=1,
        ),
    )


def _stragglers() -> tuple[Panel, ...]:
    """Pods that are slower than the median of their job."""
    tensor = f"({_of_pods('DCGM_FI_PROF_PIPE_TENSOR_ACTIVE')} {_OWNER})"
    clock = f"({_of_pods('DCGM_FI_DEV_SM_CLOCK', 'min')} {_OWNER})"

    def behind(pods: str) -> str:
        median = f"quantile by (cluster_name, namespace, job_name) (0.5, {pods})"
        return f"{pods} / on (cluster_name, namespace, job_name) group_left () ({median} > 0)"

    return (
        Panel(
            "bars",
            "Pods behind their job",
            "fraction",
            {"{{namespace}}/{{pod}}": f"bottomk(10, {behind(tensor)})"},
            "A pod's work of tensor cores as a share of its job's median: the ten that are furthest behind. A pod that "
            "computes less than its peers makes them wait.",
            {0: "red", 0.8: "orange", 0.9: "green"},
            width=8,
        ),
        Panel(
            "bars",
            "Slowest clocks of a job",
            "fraction",
            {"{{namespace}}/{{pod}}": f"bottomk(10, {behind(clock)})"},
            "Slowest clock among a pod's GPUs, as a share of its job's median: heat or power slows one GPU down, and "
            "all others wait for it.",
            {0: "red", 0.9: "orange", 0.97: "green"},
            width=8,
        ),
        Panel(
            "lines",
            "Spread within jobs",
            "fraction",
            {
                _NAME: f"1 - min by (namespace, job_name) ({tensor}) "
                f"/ (quantile by (namespace, job_name) (0.5, {tensor}) > 0)"
            },
            "How far the slowest pod is behind the median over time. It hides while all wait for the same pod, so read "
            "it with the clocks.",
            width=8,
            most=1,
        ),
    )


def _hosts() -> tuple[Panel, ...]:
    """Traffic, CPU and memory of each job's pods."""

    def rate(metric: str) -> str:
        return f"sum by (cluster_name, namespace, pod) (rate({metric}{_PODS}[$rate]))"

    return (
        Panel(
            "lines",
            "CPUs",
            "count",
            {_NAME: _by_job("sum", rate("container_cpu_usage_seconds_total"))},
            "CPUs that a job keeps busy.",
            width=6,
        ),
        Panel(
            "lines",
            "Memory",
            "bytes",
            {_NAME: _by_job("sum", _of_pods("container_memory_working_set_bytes", "sum"))},
            "Memory of hosts that a job holds and the kernel cannot take back.",
            width=6,
        ),
        Panel(
            "lines",
            "Held back by CPU limits",
            "fraction",
            {_NAME: _by_job("max", rate("container_cpu_cfs_throttled_seconds_total"))},
            "Time in which a pod wanted more CPU than its limit allows, of the pod that is held back most.",
            width=6,
        ),
        Panel(
            "lines",
            "Network without EFA",
            "bytes/s",
            {_NAME: _by_job("sum", rate("container_network_transmit_bytes_total"))},
            "What pods send over the ordinary network. Much of it from a job on several nodes is NCCL over TCP.",
            width=6,
        ),
    )


def _trouble() -> tuple[Panel, ...]:
    """Jobs that hang, restart or meet hardware faults."""
    hanging = (
        f"({_of_pods('DCGM_FI_DEV_GPU_UTIL', 'min')} >= 95) and "
        f"({_of_pods('DCGM_FI_PROF_PIPE_TENSOR_ACTIVE', 'max')} < 0.01)"
    )
    return (
        Panel(
            "table",
            "Busy without computing",
            "percent",
            {"use of GPUs": hanging},
            "Pods whose GPUs are busy while no tensor core works: they wait for a peer. After minutes it is a hang.",
            width=8,
            height=6,
            may_be_empty=True,
        ),
        Panel(
            "table",
            "GPUs held and idle",
            "count",
            {"GPUs": 'namespace_pod:gpus_idle:count{$cluster, namespace=~"$namespace"} > 0'},
            "Pods that hold GPUs and do nothing with them.",
            width=8,
            height=6,
            may_be_empty=True,
        ),
        Panel(
            "table",
            "Restarts within the hour",
            "count",
            {
                "restarts": "sum by (namespace, pod) "
                f"(increase(kube_pod_container_status_restarts_total{_PODS}[1h])) > 0"
            },
            "Containers that Kubernetes started again.",
            width=8,
            height=6,
            may_be_empty=True,
        ),
        Panel(
            "table",
            "Why containers wait",
            "count",
            {"containers": f"sum by (namespace, pod, reason) (kube_pod_container_status_waiting_reason{_PODS}) > 0"},
            "ImagePullBackOff and CreateContainerError do not fix themselves.",
            may_be_empty=True,
        ),
        Panel(
            "table",
            "Why containers ended",
            "count",
            {
                "containers": "sum by (namespace, pod, reason) "
                '(kube_pod_container_status_last_terminated_reason{$cluster, namespace=~"$namespace", '
                'reason!="Completed"}) > 0'
            },
            "OOMKilled is memory of the host, not of the GPU.",
            may_be_empty=True,
        ),
    )
