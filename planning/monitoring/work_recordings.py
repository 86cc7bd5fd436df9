"""What is recorded of jobs from their pods and GPUs, whatever operator runs them.

A job's own account of its time comes from the training operator (`recordings`). What GPUs and pods show goes further,
and is an estimate: a GPU that computes nothing may save a checkpoint, read data or wait for a peer.
"""

from typing import Final

from .recording import Recording

_STALLED: Final = 0.02
# Pods come and go within some minutes when a job changes its size.
_CHANGED: Final = "changes(namespace_job:pods_running:sum{$cluster}[5m])"
# What runs a pod's work, rather than what keeps a pod of the system alive.
_WORK_OWNERS = 'owner_kind!~"DaemonSet|ReplicaSet|StatefulSet|Node|<none>|"'


def _by_job(pods: str, operation: str) -> str:
    """A quantity of pods, by the job that they work for."""
    joined = (
        f"({pods}) * on (cluster_name, namespace, pod) group_left (job_name) namespace_pod_job:owner:info{{$cluster}}"
    )
    return f"{operation} by (cluster_name, namespace, job_name) ({joined})"


def _of_pods(metric: str, operation: str) -> str:
    return f'{operation} by (cluster_name, namespace, pod) ({metric}{{$cluster, pod!=""}})'


def _in_phase(phase: str) -> str:
    return f'max by (cluster_name, namespace, pod) (kube_pod_status_phase{{$cluster, phase="{phase}"}})'


_OF_JOB = ("namespace", "job_name")

WORK: Final = (
    Recording(
        "namespace_pod_job:owner:info",
        "max by (cluster_name, namespace, pod, job_name) (label_replace("
        f'kube_pod_owner{{$cluster, {_WORK_OWNERS}}}, "job_name", "$1", "owner_name", "(.+)"))',
        ("namespace", "pod", "job_name"),
        "info",
        "The job that a pod works for.",
    ),
    Recording(
        "namespace_job:gpus:sum",
        _by_job(_of_pods("DCGM_FI_DEV_GPU_UTIL", "count"), "sum"),
        _OF_JOB,
        "GPUs",
        "GPUs that a job holds.",
    ),
    Recording(
        "namespace_job:gpu_utilization:avg",
        _by_job(_of_pods("DCGM_FI_DEV_GPU_UTIL", "avg") + " / 100", "avg"),
        _OF_JOB,
        "fraction",
        "How much of the time a job's GPUs do anything.",
    ),
    Recording(
        "namespace_job:gpu_tensor_active:avg",
        _by_job(_of_pods("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "avg"), "avg"),
        _OF_JOB,
        "fraction",
        "How much of the time the tensor cores of a job's GPUs work.",
    ),
    Recording(
        "namespace_job:gpus_stalled:avg",
        _by_job(_of_pods("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "avg") + f" < bool {_STALLED}", "avg"),
        _OF_JOB,
        "fraction",
        f"Share of a running job's pods whose tensor cores work less than {_STALLED:.0%} of the time: they save a "
        "checkpoint, read data, start, or wait for one another.",
    ),
    Recording(
        "namespace_job:pods_running:sum",
        _by_job(_in_phase("Running"), "sum"),
        _OF_JOB,
        "pods",
        "Pods of a job that run.",
    ),
    Recording(
        "namespace_job:pods_waiting:sum",
        _by_job(_in_phase("Pending"), "sum"),
        _OF_JOB,
        "pods",
        "Pods of a job that wait for a place, or for their image.",
    ),
    Recording(
        "namespace_job:stalled_scaling:avg",
        f"namespace_job:gpus_stalled:avg{{$cluster}} * ({_CHANGED} > bool 0)",
        _OF_JOB,
        "fraction",
        "Share of a job's pods that compute nothing while the number of its pods has just changed: what scaling costs, "
        "as far as GPUs show it.",
    ),
    Recording(
        "namespace_job:stalled_otherwise:avg",
        f"namespace_job:gpus_stalled:avg{{$cluster}} * ({_CHANGED} == bool 0)",
        _OF_JOB,
        "fraction",
        "Share of a job's pods that compute nothing while their number stays: checkpoints, reading data, waiting.",
    ),
    *(
        Recording(
            f"cluster:stalled_{cause}:avg",
            f"sum by (cluster_name) (namespace_job:stalled_{cause}:avg{{$cluster}} "
            "* namespace_job:gpus:sum{$cluster}) / sum by (cluster_name) (namespace_job:gpus:sum{$cluster})",
            (),
            "fraction",
            "The same of all jobs, by their GPUs.",
        )
        for cause in ("scaling", "otherwise")
    ),
)
