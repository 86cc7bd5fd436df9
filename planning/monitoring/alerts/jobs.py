"""Alerts on jobs: whether they get on, and whether they use what they hold."""

from typing import Final

from .alert import Alert

_POD = "{{ $labels.namespace }}/{{ $labels.pod }}"


def _of_pods(aggregation: str, metric: str, labels: str = "") -> str:
    return f"{aggregation} by (cluster_name, namespace, pod) ({metric}{{$cluster{labels}}})"


ALERTS: Final = (
    Alert(
        name="JobHanging",
        severity="critical",
        # A collective operation that waits for a peer keeps its GPU busy, and its tensor cores idle.
        expression=_of_pods("min", "DCGM_FI_DEV_GPU_UTIL", ', namespace!=""')
        + " >= 95 and "
        + _of_pods("max", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE")
        + " < 0.01",
        summary=f"{_POD} keeps its GPUs busy without computing for $threshold minutes: it probably waits for a peer",
        minutes=None,
        threshold=15,
        unit="minutes",
        orchestrator="eks",
    ),
    Alert(
        name="GpuIdle",
        severity="warning",
        expression="namespace_pod:gpus_idle:count{$cluster} > 0",
        summary=f"{_POD} has left GPUs idle for $threshold minutes: {{{{ $value }}}}",
        minutes=None,
        target="gpu_idle_minutes",
        unit="minutes",
        orchestrator="eks",
    ),
    Alert(
        name="GpuUtilizationLow",
        severity="warning",
        expression="100 * namespace:gpu_utilization:avg{$cluster} < $threshold",
        summary="GPUs of {{ $labels.namespace }} are used to {{ $value | humanize }} %; the target is $threshold %",
        minutes=120,
        target="gpu_utilization_percent",
        unit="percent",
        orchestrator="eks",
    ),
    Alert(
        name="GoodputLow",
        severity="warning",
        expression="100 * cluster:goodput:ratio{$cluster} < $threshold",
        summary="Jobs train {{ $value | humanize }} % of their time; the target is $threshold %",
        minutes=60,
        target="goodput_percent",
        unit="percent",
        orchestrator="eks",
    ),
    Alert(
        name="JobRestartsOften",
        severity="warning",
        expression="sum by (cluster_name, jobName) "
        "(increase(hyperpod_training_operator_jobs_restarted_total{$cluster}[1h])) >= $threshold",
        summary="Job {{ $labels.jobName }} was restarted {{ $value | humanize }} times within the hour",
        threshold=3,
        unit="restarts",
        orchestrator="eks",
    ),
    Alert(
        name="JobRecoverySlow",
        severity="warning",
        expression="max by (cluster_name, job_name) (training_fault_recovery_time_ms{$cluster}) / 60000 > $threshold",
        summary="Job {{ $labels.job_name }} took {{ $value | humanize }} minutes to recover from a fault",
        target="resume_minutes",
        unit="minutes",
        orchestrator="eks",
    ),
    Alert(
        name="JobFailed",
        severity="warning",
        # A job's counter is there from its first failure on, so an increase would miss that one.
        expression="sum by (cluster_name, jobName) (hyperpod_training_operator_jobs_failed_total{$cluster} "
        "- (hyperpod_training_operator_jobs_failed_total{$cluster} offset 15m "
        "or hyperpod_training_operator_jobs_failed_total{$cluster} * 0)) > 0",
        summary="Job {{ $labels.jobName }} has failed",
        orchestrator="eks",
    ),
    Alert(
        name="PodNotStarting",
        severity="warning",
        expression="max by (cluster_name, namespace, pod, reason) (kube_pod_container_status_waiting_reason{$cluster, "
        'reason=~"CrashLoopBackOff|ImagePullBackOff|ErrImagePull|CreateContainerConfigError|CreateContainerError"}) '
        "== 1",
        summary=f"{_POD} does not start: {{{{ $labels.reason }}}}",
        minutes=15,
        orchestrator="eks",
    ),
)
