"""Values of Kueue's chart, and the configuration of its manager."""

import json
from collections.abc import Mapping
from typing import Any, Final

from ...config.catalog.charts import Chart
from ...config.catalog.images import Image
from ...config.catalog.kubernetes_groups import TEAM_LABEL
from ...config.settings.governance.teams import Governance, WaitForPods
from ..quota.amounts import NEURON
from .chart_values import SystemPlacement, set_mirrored

EXTERNAL_FRAMEWORK: Final = "HyperPodPyTorchJob.v1.sagemaker.amazonaws.com"
"""The job kind whose own operator makes Kueue's workloads for it. Source: HyperPod training operator 1.2."""

_MULTIKUEUE_FRAMEWORKS: Final = {
    "job": ("batch/job",),
    "ray": ("ray.io/rayjob", "ray.io/raycluster"),
    "train": ("trainer.kubeflow.org/trainjob",),
}
# What quotas do not count although pods ask for it: pods that use EFA need huge pages, and the kubelet keeps both.
_NOT_COUNTED: Final = ["ephemeral-storage", "hugepages-"]

# The chart's own, with more memory: to place by topology the manager keeps every pod and node of the cluster in mind.
_RESOURCES: Final = {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "4Gi"}}

# What the chart sets; its whole configuration is replaced, and the manager's own defaults are for small clusters.
_CLIENT: Final = {"qps": 50, "burst": 100}
_CONCURRENCY: Final = {
    "Job.batch": 5,
    "Pod": 5,
    "Workload.kueue.x-k8s.io": 5,
    "LocalQueue.kueue.x-k8s.io": 1,
    "ClusterQueue.kueue.x-k8s.io": 1,
    "ResourceFlavor.kueue.x-k8s.io": 1,
}

DEVICE_CLAIMS: Final = {
    "KueueDRAIntegration": False,
    "KueueDRAIntegrationExtendedResource": False,
    "KueueDRAIntegrationPartitionableDevices": False,
    "KueueDRARejectWorkloadsWhenDRADisabled": False,
}
"""Feature gates by which Kueue counts no claims of devices, and takes work that has some.

Quotas count what device plugins offer. With the first one on, Kueue 0.19 refuses a pod that claims a device without a
quota, such as the NVLink channel of an UltraServer; with it off, and the last one on, every pod that claims a device.
Source: Kueue 0.19.2, `pkg/controller/core/workload_controller.go`.
"""
# One manager on each node, as far as there are several.
_SPREAD: Final = {
    "maxSkew": 1,
    "topologyKey": "kubernetes.io/hostname",
    "whenUnsatisfiable": "ScheduleAnyway",
    "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "kueue", "control-plane": "controller-manager"}},
}


def kueue_values(
    chart: Chart,
    governance: Governance,
    placement: SystemPlacement,
    *,
    mirror: Mapping[str, Image] | None = None,
    neuron: bool = False,
) -> dict[str, Any]:
    """Values of Kueue's chart.

    Decided for you: two managers of which one leads, on nodes of the system group. Work in namespaces of teams waits
    for quota whether it names a queue or not; no other namespace is touched. Metrics include the quotas and their use.
    What pods ask for that no quota counts (huge pages, ephemeral storage, claims of devices) is left out.

    Args:
        chart: Kueue's chart.
        governance: The environment's governance.
        placement: Where the managers run.
        mirror: Where mirrored images lie, by the original's name (see `mirrors.mirror_of`).
        neuron: Whether there are nodes with Neuron devices.
    """
    values: dict[str, Any] = {
        "controllerManager": {
            "replicas": 2,
            # While a node is drained one manager has to stay: its webhook answers for every job that is made.
            "podDisruptionBudget": {"enabled": True, "minAvailable": 1},
            "manager": {
                # Without it a full system group could push the manager aside, and with it all admission.
                "priorityClassName": "system-cluster-critical",
                "image": {"pullPolicy": "IfNotPresent"},
                "resources": _RESOURCES,
            },
            "topologySpreadConstraints": [_SPREAD],
            "nodeSelector": placement.node_selector,
            "tolerations": list(placement.tolerations),
        },
        # One text, because the chart takes it so. JSON is YAML.
        "managerConfig": {
            "controllerManagerConfigYaml": json.dumps(manager_configuration(governance, neuron=neuron), indent=1)
        },
    }
    set_mirrored(values, chart, mirror or {})
    return values


def manager_configuration(governance: Governance, *, neuron: bool = False) -> dict[str, Any]:
    """The Configuration of Kueue's manager (config.kueue.x-k8s.io/v1beta2)."""
    kueue = governance.kueue
    of_teams = {"matchExpressions": [{"key": TEAM_LABEL, "operator": "Exists"}]}
    configuration: dict[str, Any] = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": ":8081"},
        # Kueue leaves these out by itself, and dashboards show what is left of a quota by them.
        "metrics": {"bindAddress": ":8443", "enableClusterQueueResources": True},
        "webhook": {"port": 9443},
        "leaderElection": {"leaderElect": True, "resourceName": "c1f6bfd2.kueue.x-k8s.io"},
        "clientConnection": _CLIENT,
        "controller": {"groupKindConcurrency": _CONCURRENCY},
        "featureGates": {**DEVICE_CLAIMS, **kueue.feature_gates},
        "manageJobsWithoutQueueName": kueue.every_job,
        # Pods of the system are of no team, and Kueue must not hold them.
        "managedJobsNamespaceSelector": of_teams,
        "integrations": {"frameworks": list(kueue.frameworks), "externalFrameworks": [EXTERNAL_FRAMEWORK]},
        "resources": {"excludeResourcePrefixes": _NOT_COUNTED},
        # Left out, Kueue waits 30 minutes since 0.19, as long as HyperPod takes to replace a node.
        "waitForPodsReady": _wait_for_pods(governance.wait_for_pods or WaitForPods()),
    }
    shared = kueue.multikueue
    if shared and shared.role == "manager":
        # What runs nowhere but here would hold quota of the workers: only kinds that Kueue hands on are known.
        frameworks = [name for kind in shared.jobs for name in _MULTIKUEUE_FRAMEWORKS[kind]]
        configuration["integrations"] = {"frameworks": frameworks}
        configuration["multiKueue"] = {"gcInterval": "60s", "workerLostTimeout": f"{shared.lost_after_seconds}s"}
    if neuron:
        # The device plugin offers a device under either name; jobs may ask by the newer one.
        configuration["resources"]["transformations"] = [
            {"input": "aws.amazon.com/neuron", "strategy": "Replace", "outputs": {NEURON: "1"}}
        ]
    if governance.fair_share:
        configuration["fairSharing"] = {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]}
    return configuration


def _wait_for_pods(wait: WaitForPods) -> dict[str, Any]:
    """Kueue's waitForPodsReady: how long an admitted job may lack pods, and when it is queued again."""
    requeuing: dict[str, Any] = {
        # From the eviction on, and not from its creation: a job that was sent back does not stand first again.
        "timestamp": "Eviction",
        "backoffBaseSeconds": wait.backoff_base_seconds,
        "backoffMaxSeconds": wait.backoff_max_seconds,
    }
    if wait.tries is not None:
        requeuing["backoffLimitCount"] = wait.tries
    recovery = wait.timeout_seconds if wait.recovery_timeout_seconds is None else wait.recovery_timeout_seconds
    return {
        "timeout": f"{wait.timeout_seconds}s",
        "recoveryTimeout": f"{recovery}s",
        "blockAdmission": wait.one_at_a_time,
        "requeuingStrategy": requeuing,
    }
