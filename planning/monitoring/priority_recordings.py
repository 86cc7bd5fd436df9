"""What is recorded by priority class, and of teams whose scheduler's own metrics nobody collects.

With KAI and YuniKorn each pod names its class, and Kubernetes says of it whether it waits or runs. With Kueue a class
is the workload's: Kueue counts by it what it admits and preempts, and not what waits or runs.
"""

from typing import Final

from .recording import Recording

NAMESPACE_TEAM: Final = "(?:hyperpod-ns-|team-)?(.+)"
"""The team's name in that of its namespace, whatever the engine."""
_CLASS: Final = "namespace_pod:priority_class:info{$cluster}"
_GPUS: Final = (
    'sum by (cluster_name, namespace, pod) (kube_pod_container_resource_requests{$cluster, resource="nvidia_com_gpu"})'
)
_ON: Final = "on (cluster_name, namespace, pod) group_left"


def _in_phase(phase: str) -> str:
    return f'max by (cluster_name, namespace, pod) (kube_pod_status_phase{{$cluster, phase="{phase}"}})'


def _since(metric: str, phase: str) -> str:
    """Seconds since a moment of pods in a phase; zero for the others."""
    moment = f"max by (cluster_name, namespace, pod) ({metric}{{$cluster}})"
    return f"(time() - {moment}) * {_ON} () {_in_phase(phase)}"


def _by_class(operation: str, pods: str) -> str:
    return f"{operation} by (cluster_name, priority_class) (({pods}) * {_ON} (priority_class) {_CLASS})"


def _by_team(operation: str, pods: str) -> str:
    """A quantity of the pods that name a class, by team."""
    chosen = f"({pods}) * {_ON} () max by (cluster_name, namespace, pod) ({_CLASS})"
    return (
        f'{operation} by (cluster_name, team) (label_replace({chosen}, "team", "$1", "namespace", "{NAMESPACE_TEAM}"))'
    )


_OF_PODS: Final = (
    ("pods_running:sum", "sum", _in_phase("Running"), "pods", "Pods that run."),
    ("pods_waiting:sum", "sum", _in_phase("Pending"), "pods", "Pods that wait for a place, or for their image."),
    ("gpus_held:sum", "sum", f"{_GPUS} * {_ON} () {_in_phase('Running')}", "GPUs", "GPUs that running pods hold."),
    (
        "waiting_seconds:max",
        "max",
        _since("kube_pod_created", "Pending"),
        "seconds",
        "How long the pod has waited that waits longest; zero where none waits.",
    ),
    (
        "running_seconds:max",
        "max",
        _since("kube_pod_start_time", "Running"),
        "seconds",
        "How long the pod has run that runs longest.",
    ),
)
_CLASSES: Final = ("priority_class",)

PRIORITIES: Final = (
    Recording(
        "namespace_pod:priority_class:info",
        "max by (cluster_name, namespace, pod, priority_class) "
        # Kubernetes's own classes keep pods of the system alive.
        '(kube_pod_info{$cluster, priority_class!~"system-.*|"})',
        ("namespace", "pod", "priority_class"),
        "info",
        "The priority class that a pod names.",
    ),
    *(
        Recording(f"priority_class:{name}", _by_class(operation, pods), _CLASSES, unit, says)
        for name, operation, pods, unit, says in _OF_PODS
    ),
    *(
        Recording(f"team:{name}", _by_team(operation, pods), ("team",), unit, says)
        for name, operation, pods, unit, says in _OF_PODS
    ),
    Recording(
        "priority_class:admissions:increase1h",
        "sum by (cluster_name, priority_class) (increase(kueue_admitted_workloads_total{$cluster}[1h]))",
        _CLASSES,
        "workloads",
        "Workloads that Kueue admitted within the hour.",
    ),
    Recording(
        "priority_class:preemptions:increase1h",
        "sum by (cluster_name, priority_class) "
        '(increase(kueue_evicted_workloads_total{$cluster, reason="Preempted"}[1h]))',
        _CLASSES,
        "workloads",
        "Workloads preempted within the hour.",
    ),
    Recording(
        "priority_class:admission_wait_seconds:p90",
        "histogram_quantile(0.9, sum by (cluster_name, priority_class, le) "
        "(rate(kueue_admission_wait_time_seconds_bucket{$cluster}[1h])))",
        _CLASSES,
        "seconds",
        "How long nine of ten workloads that were admitted within the hour had waited at most.",
    ),
)
