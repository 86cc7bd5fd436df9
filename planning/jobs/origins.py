"""From a field of a job's manifest back to the setting that it comes from, so that people fix the right one."""

import re
from typing import Final

from ...config.findings import Path
from ...config.settings.jobs.base import Job
from ...config.settings.jobs.pytorch import HyperPodPyTorchJob

# The first that fits. What stands in a pod is the same for all kinds.
_POD: Final = (
    (r"\binitContainers\b", "init"),
    (r"containers\[0\]\.image$", "image"),
    (r"containers\[0\]\.(command|args)\b", "command"),
    (r"containers\[0\]\.env\b", "env"),
    (r"containers\[0\]\.resources\.\w+\.cpu$", "vcpu"),
    (r"containers\[0\]\.resources\.\w+\.memory$", "memory_gib"),
    (r"containers\[0\]\.resources\.\w+\.hugepages", "huge_pages_mib"),
    (r"containers\[0\]\.resources\.\w+\.vpc\.amazonaws\.com/efa$", "efa"),
    (r"containers\[0\]\.resources\b", "accelerators"),
    (r"\bhostPath\b", "scratch"),
    (r"\b(volumes|volumeMounts)\b", "mounts"),
    (r"\bsecurityContext\b", "security"),
    (r"\bimagePullPolicy$", "pull"),
    (r"\bimagePullSecrets\b", "pull_secrets"),
    (r"\bserviceAccountName$", "service_account"),
    (r"\bpriorityClassName$", "priority"),
    (r"\b(nodeSelector|affinity|tolerations)\b", "group"),
    (r"\bhostNetwork$", "host_network"),
    (r"\bannotations\b.*topology", "topology"),
    (r"\blabels\b.*priority", "priority"),
    (r"\blabels\b.*queue", "team"),
    (r"\blabels\b", "labels"),
    (r"^metadata\.namespace$", "team"),
)
_ENDPOINT: Final = (
    (r"^spec\.replicas", "replicas"),
    (r"^spec\.autoScalingSpec", "autoscaling"),
    (r"^spec\.dataCapture", "data_capture"),
    (r"^spec\.(tlsConfig|dnsConfig)", "tls"),
    (r"^spec\.intelligentRoutingSpec", "routing"),
    (r"^spec\.invocationEndpoint", "path"),
    (r"^spec\.kvCacheSpec", "kv_cache"),
    (r"^spec\.loadBalancer\.routingAlgorithm", "balance"),
    (r"^spec\.loadBalancer", "health_path"),
    (r"^spec\.maxDeployTimeInSeconds", "deploy_seconds"),
    (r"^spec\.metrics", "metrics"),
)
_KINDS: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "hyperpod_pytorch": (
        (r"^spec\.elasticPolicy\.minReplicas", "elastic.min_replicas"),
        (r"^spec\.elasticPolicy\.maxReplicas", "elastic.max_replicas"),
        (r"^spec\.elasticPolicy\.replicaIncrementStep", "elastic.step"),
        (r"^spec\.elasticPolicy\.replicaDiscreteValues", "elastic.values"),
        (r"^spec\.elasticPolicy\.scalingTimeout", "elastic.scaling_timeout_seconds"),
        (r"^spec\.elasticPolicy\.gracefulShutdown", "elastic.graceful_shutdown_timeout_seconds"),
        (r"^spec\.elasticPolicy\.faultyScaleDown", "elastic.faulty_scale_down_timeout_seconds"),
        (r"^spec\.elasticPolicy", "elastic"),
        (r"^spec\.runPolicy\.(restartPolicy|jobMaxRetryCount)", "restarts"),
        (r"^spec\.runPolicy\.logMonitoringConfiguration", "log_rules"),
        (r"^spec\.runPolicy\.activeDeadline", "active_deadline_seconds"),
        (r"^spec\.runPolicy\.startupDeadline", "startup_deadline_seconds"),
        (r"^spec\.runPolicy\.faultDeadline", "fault_deadline_seconds"),
        (r"^spec\.runPolicy\.cleanPodPolicy", "clean_pods"),
        (r"^spec\.runPolicy\.ttl", "keep_seconds"),
        (r"^spec\.nprocPerNode", "processes_per_node"),
        (r"^spec\.replicaSpecs\[\d+\]\.spares", "spares"),
        (r"^spec\.replicaSpecs\[\d+\]\.maxReplicas", "elastic.max_replicas"),
        (r"^spec\.replicaSpecs\[\d+\]\.replicas", "nodes"),
        (r"terminationGracePeriodSeconds$", "elastic.graceful_shutdown_timeout_seconds"),
    ),
    "inference": (
        *_ENDPOINT,
        (r"^spec\.modelName", "model_name"),
        (r"^spec\.modelVersion", "model_version"),
        (r"^spec\.modelSourceConfig", "model"),
        (r"^spec\.endpointName", "endpoint"),
        (r"^spec\.nodeAffinity", "group"),
        (r"^spec\.worker\.args", "command"),
        (r"^spec\.worker\.environmentVariables", "env"),
        (r"^spec\.worker\.image", "image"),
        (r"^spec\.worker\.modelInvocationPort", "port"),
        (r"^spec\.worker\.modelVolumeMount", "weights"),
        (r"^spec\.worker\.probes", "probes"),
        (r"^spec\.worker\.requestLimits", "request_limits"),
        (r"^spec\.worker\.resources\.\w+\.cpu$", "vcpu"),
        (r"^spec\.worker\.resources\.\w+\.memory$", "memory_gib"),
        (r"^spec\.worker\.resources", "accelerators"),
    ),
    "jumpstart": (
        *_ENDPOINT,
        (r"^spec\.environmentVariables", "env"),
        (r"^spec\.model\.modelId", "model_id"),
        (r"^spec\.model\.modelVersion", "model_version"),
        (r"^spec\.model\.modelHubName", "hub"),
        (r"^spec\.model\.acceptEula", "accept_eula"),
        (r"^spec\.model\.gatedModelDownloadRole", "gated_role"),
        (r"^spec\.model\.additionalConfigs", "configs"),
        (r"^spec\.sageMakerEndpoint", "endpoint"),
        (r"^spec\.server\.acceleratorPartitionType", "partition"),
        (r"^spec\.server\.executionRole", "execution_role"),
        (r"^spec\.server", "group"),
    ),
}


def field_of(name: str, job: Job, placement: str) -> Path:
    """The setting that made a field of a job's manifest; the job itself where several made it together.

    Args:
        name: Name of the job.
        job: Its template.
        placement: Path of the field as Kubernetes writes it, such as `spec.replicaSpecs[0].replicas`.
    """
    kind: str = getattr(job, "kind", "")
    for pattern, field in (*_KINDS.get(kind, ()), *_POD):
        if re.search(pattern, placement):
            inner = _log_rule(job, placement) if field == "log_rules" else ()
            return ("jobs", name, *field.split("."), *inner)
    return ("jobs", name)


def _log_rule(job: Job, placement: str) -> tuple[str, ...]:
    """Which of the log rules is meant: they stand in the manifest in the order of the file."""
    number = re.search(r"logMonitoringConfiguration\[(\d+)\]", placement)
    names = list(job.log_rules) if isinstance(job, HyperPodPyTorchJob) else []
    return (names[int(number[1])],) if number and int(number[1]) < len(names) else ()
