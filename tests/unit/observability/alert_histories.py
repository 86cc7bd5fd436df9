"""What the histories of alerts are made of: series that make one fire and resolve, and others close to them.

Values are in promtool's notation, a sample a minute: `1x20` is 1 at minute 0 to 20, `0+5x20` grows by 5 a minute, `_`
is a missing sample. Minutes that a case names are minutes of that history.
"""

from dataclasses import dataclass

CLUSTER = "training-prod"


@dataclass(frozen=True)
class Case:
    """One alert's two histories."""

    alert: str
    series: dict[str, str]
    """Makes it fire, and then resolve."""
    quiet: int
    """A minute at which it does not fire yet."""
    fires: int
    """A minute at which it fires."""
    resolved: int
    """A minute at which it fires no more."""
    labels: dict[str, str]
    """What the alert is told apart by, besides cluster and severity."""
    summary: str
    """What it says."""
    near: dict[str, str]
    """At no minute of `still` does it fire."""
    still: tuple[int, ...]
    begins: int = 0
    """The minute of promtool's clock at which both histories begin. That clock begins on a Thursday, at midnight."""


def s(metric: str, **labels: str) -> str:
    """A series of the cluster."""
    pairs = {"cluster_name": CLUSTER} | labels
    return metric + "{" + ", ".join(f'{name}="{value}"' for name, value in pairs.items()) + "}"


def node(name: str, health: str, deep: str = "Passed") -> str:
    return s("podwright_node_health", instance_group="h200", node=name, health=health, deep_health_check=deep)


def gpu(metric: str, gpu: int = 3, node: str = "hyperpod-i-0a", **labels: str) -> str:
    return s(metric, Hostname=node, gpu=str(gpu), **labels)


def pod_gpu(metric: str, pod: str = "pretrain-0") -> str:
    return gpu(metric, namespace="hyperpod-ns-research", pod=pod)


def clock(index: int, metric: str = "DCGM_FI_DEV_SM_CLOCK") -> str:
    return gpu(metric, index, namespace="hyperpod-ns-research", pod="pretrain-0", modelName="NVIDIA H200")


def queue(metric: str, team: str = "research", **labels: str) -> str:
    return s(metric, cluster_queue=f"hyperpod-ns-{team}-clusterqueue", **labels)


def gpus(metric: str, team: str = "research") -> str:
    return queue(metric, team, flavor="ml.p5en.48xlarge", resource="nvidia.com/gpu")


def lustre(metric: str, instance: str = "10.16.0.4:9100") -> str:
    return s(metric, instance=instance, fstype="lustre", mountpoint="/fsx")


def benchmarked(metric: str, instance: str, **labels: str) -> str:
    return s(metric, instance_id=instance, **SORT, **labels)


def kernel(instance: str, kernel: str, unit: str) -> str:
    return benchmarked("podwright_benchmark_value", instance, kernel=kernel, unit=unit)


def waiting(reason: str) -> str:
    metric = "kube_pod_container_status_waiting_reason"
    return s(metric, namespace="hyperpod-ns-research", pod="pretrain-0", container="train", reason=reason)


SORT = {"instance_group": "h200", "instance_type": "ml.p5en.48xlarge"}
ON = {"node": "hyperpod-i-0a", "instance_group": "h200"}
GPU = {"Hostname": "hyperpod-i-0a", "gpu": "3"}
POD = {"namespace": "hyperpod-ns-research", "pod": "pretrain-0"}
TEAM = {"team": "research"}
PLAN = {"plan": "h200-q1"}
MOUNT = {"mountpoint": "/fsx"}
H200 = {"instance_group": "h200"}
DAY = 86400
