"""The sandbox's made-up metrics: all of the table, with its labels, and what faults do to them in a real Prometheus."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from needs import require
from podwright.config.catalog.metrics import metrics
from podwright.config.loading.load import load_environment
from podwright.operations.programs.prometheus import Prometheus, QueryError, installed
from podwright.operations.programs.prometheus import history as prometheus_of
from podwright.planning.monitoring.synthetic.cluster import Node, SyntheticCluster, synthetic_cluster
from podwright.planning.monitoring.synthetic.faults import FAULTS, Fault, with_faults
from podwright.planning.monitoring.synthetic.metrics import history, snapshot

END = 1_800_000_000.0
START, BROKEN = END - 7200, END - 3600


def synthetic(**more: object) -> SyntheticCluster:
    path = Path(__file__).parents[3] / "environments" / "sandbox.yaml"
    made = synthetic_cluster(load_environment(path).environment, START, END, step=300, nodes=2, devices=1)
    return replace(made, **more)


def gpu_node(made: SyntheticCluster) -> str:
    return next(node.name for node in made.nodes if node.gpus)


def test_every_metric_is_made_up_with_the_labels_of_its_row() -> None:
    trainium = Node.numbered("trainium", 0, "ml.trn1.32xlarge", neuron=1)
    healthy = synthetic(endpoints=["chat"])
    healthy.nodes.append(trainium)
    # What shows only in trouble comes from the faults.
    kinds, node = ("crash-loop", "unschedulable", "plan-idle"), gpu_node(healthy)
    broken = with_faults(healthy, *(Fault(kind=kind, node=node, start=BROKEN) for kind in kinds))
    text = history(broken, synthetic(cluster="slurm", orchestrator="slurm"))
    actual = dict[str, set[frozenset[str]]]()
    for name, labels in re.findall(r"^(\w+)\{([^}]*)\} [-+0-9.e]+ \d+$", text, re.MULTILINE):
        actual.setdefault(name, set()).add(frozenset(re.findall(r'(\w+)="', labels)))
    # Nothing in the sandbox ends a container for want of memory.
    assert set(metrics()) - set(actual) == {"kube_pod_container_status_last_terminated_reason"}
    for name, sets in actual.items():
        allowed = {*metrics()[name].labels, "cluster_name"}
        assert all(labels <= allowed for labels in sets), name
    assert text.endswith("# EOF\n")


def test_two_histories_of_the_same_are_the_same() -> None:
    assert history(synthetic(), names=["DCGM_FI_DEV_GPU_TEMP"]) == history(synthetic(), names=["DCGM_FI_DEV_GPU_TEMP"])


def test_a_snapshot_is_what_an_exporter_shows() -> None:
    lines = snapshot(synthetic(), END - 60).splitlines()
    [queue] = [line for line in lines if line.startswith("kueue_cluster_queue_nominal_quota") and "product" in line]
    assert queue.endswith(" 1")


@pytest.fixture(scope="module")
def prometheus() -> Iterator[Prometheus]:
    require(installed(), "Prometheus and promtool: Debian's package prometheus")
    healthy = synthetic(cluster="well")
    node = gpu_node(healthy)
    clusters = [
        with_faults(replace(healthy, cluster=kind), Fault(kind=kind, node=node, start=BROKEN)) for kind in FAULTS
    ]
    names = {
        name
        for query in SHOWS.values()
        for name in re.findall(r"\b(?:DCGM|node|kube|kueue|training|podwright)_\w+|\bup\b", query)
    }
    with prometheus_of(history(healthy, *clusters, names=names)) as running:
        yield running


# What tells each fault from a cluster in which all is well, at the end of the history.
SHOWS = {
    "xid-reboot": "podwright_node_health{health='UnschedulablePendingReboot'} and on (cluster_name) "
    "DCGM_FI_DEV_XID_ERRORS == 73",
    "xid-replace": f"count by (cluster_name) (podwright_node_launched_timestamp_seconds > {BROKEN - 900})",
    "gpu-lost": "last_over_time(DCGM_FI_DEV_XID_ERRORS{err_code='79'}[2h])",
    "unschedulable": "kube_node_spec_taint == 1 unless on (cluster_name) podwright_node_health{health=~'.+Pending.+'}",
    "gpu-hot": "DCGM_FI_DEV_GPU_TEMP > 88",
    "gpu-power": "rate(DCGM_FI_DEV_POWER_VIOLATION[20m]) > 1e8",
    "ecc": "increase(DCGM_FI_DEV_ECC_DBE_VOL_TOTAL[20m]) > 1",
    "row-remap": "DCGM_FI_DEV_ROW_REMAP_FAILURE == 1",
    "nvlink": "rate(DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL[20m]) > 1",
    "pcie": "rate(DCGM_FI_DEV_PCIE_REPLAY_COUNTER[20m]) > 1",
    "efa": "rate(node_amazonefa_rx_drops[20m]) > 1",
    "lustre-full": "node_filesystem_avail_bytes{fstype='lustre'} / node_filesystem_size_bytes < 0.15",
    "disk-full": "node_filesystem_avail_bytes{fstype='xfs'} / node_filesystem_size_bytes < 0.05",
    "out-of-memory": "node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes < 0.05",
    "straggler": "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE / on (cluster_name) group_left () "
    "max by (cluster_name) (DCGM_FI_PROF_PIPE_TENSOR_ACTIVE) < 0.8 and DCGM_FI_DEV_GPU_UTIL > 50",
    "hang": "min by (cluster_name, namespace) (DCGM_FI_DEV_GPU_UTIL{namespace!=''}) >= 100 "
    "and on (cluster_name, namespace) max by (cluster_name, namespace) (DCGM_FI_PROF_PIPE_TENSOR_ACTIVE) == 0",
    "restart": "max_over_time(training_auto_recovery_count[50m]) > 0",
    "exporter-down": "up == 0",
    "not-ready": "kube_node_status_condition{condition='Ready', status='true'} == 0",
    "crash-loop": "kube_pod_container_status_waiting_reason == 1",
    "benchmark": "podwright_benchmark_value < on (cluster_name, instance_group, kernel) group_left () "
    "podwright_benchmark_limit and on (cluster_name, instance_id) podwright_benchmark_verdict{verdict='fail'} == 1",
    "plan-ending": "podwright_plan_end_timestamp_seconds - time() < 86400",
    "plan-idle": "podwright_plan_instances{state='available'} > 4",
    "starved": "kueue_pending_workloads > 0",
    "surge": "podwright_instances{state='current'} > ignoring (state) podwright_instances{state='target'}",
    "blind": "max by (cluster_name) (podwright_instances) unless on (cluster_name) "
    "podwright_measured_timestamp_seconds",
}


def test_every_fault_has_something_that_shows_it() -> None:
    assert set(SHOWS) == set(FAULTS)


@pytest.mark.parametrize("kind", SHOWS)
def test_a_fault_shows(prometheus: Prometheus, kind: str) -> None:
    observed = {series["metric"]["cluster_name"] for series in prometheus.instant(SHOWS[kind], END - 60)}
    assert kind in observed
    assert "well" not in observed
    before = prometheus.instant(SHOWS[kind], BROKEN - 60)
    assert not [series for series in before if series["metric"]["cluster_name"] == kind]


def test_prometheus_says_what_is_wrong_with_a_query(prometheus: Prometheus) -> None:
    with pytest.raises(QueryError, match="unclosed left parenthesis"):
        prometheus.instant("sum(up", END)
