"""The stand-in for HyperPod's training operator on a real API server with Kueue."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from api_server import ApiServer, Object
from control_plane_parts import needs_parts
from job_environment import AWS_PACKAGES, aws_model
from needs import require
from podwright.config.settings.platform import TRAINING_OPERATOR
from podwright.sandbox.control_plane.cache import Cache
from podwright.sandbox.control_plane.control_plane import ControlPlane
from podwright.sandbox.control_plane.pins import pins
from podwright.sandbox.eks.task_governance import settings
from podwright.sandbox.kubernetes.custom_kinds import installed_by
from waiting import until

CACHE = Cache.of_user()
pytestmark = needs_parts("kueue", "training-operator")

MODEL = "sagemaker/hyperpod/training/config/hyperpod_pytorch_job_unified_config.py"
NODES, CPUS, MEMORY, TEAM = 8, 8, 32, "team"
# A CPU node of eight vCPUs and 32 GiB in the table of AWS's client.
INSTANCE_TYPE = "ml.m5.2xlarge"
KUEUE = "kueue.x-k8s.io/v1beta2"
PATIENT = {"evalPeriodSeconds": 3600}
ELASTIC = {
    "minReplicas": 2,
    "maxReplicas": 8,
    "replicaIncrementStep": 2,
    "scalingTimeoutInSeconds": 2,
    "gracefulShutdownTimeoutInSeconds": 5,
    "faultyScaleDownTimeoutInSeconds": 2,
}


def of_kind(api_version: str, kind: str, name: str, namespace: str = "", **fields: Any) -> Object:
    metadata: Object = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata | fields.pop("metadata", {}), **fields}


def node(name: str) -> Object:
    resources = {"cpu": str(CPUS), "memory": f"{MEMORY}Gi", "pods": "110"}
    metadata = {
        "annotations": {"kwok.x-k8s.io/node": "fake"},
        "labels": {"node.kubernetes.io/instance-type": INSTANCE_TYPE},
    }
    return of_kind("v1", "Node", name, metadata=metadata, status={"capacity": resources, "allocatable": resources})


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with Kueue as task governance configures it, which expects the training operator."""
    control_plane = ControlPlane(tmp_path_factory.mktemp("plane"), pins(), CACHE)
    control_plane.start()
    try:
        control_plane.install("kueue", settings({}), expected=["training-operator"])
        control_plane.install("hyperpod-training-operator")
        yield control_plane
    finally:
        control_plane.stop()


@pytest.fixture(scope="module")
def server(plane: ControlPlane) -> ApiServer:
    """Its API server with eight nodes and a queue that has them all, more than one priority, and the job's kind."""
    api = ApiServer.of(plane.kubeconfig)
    for definition in installed_by(TRAINING_OPERATOR):
        api.apply(definition)
    for number in range(NODES):
        api.create(node(f"node-{number}"))
    api.apply(of_kind("v1", "Namespace", TEAM))
    for name, value in {"extra": 10, "tuning": 70, "serving": 100}.items():
        api.apply(of_kind("scheduling.k8s.io/v1", "PriorityClass", name, value=value, preemptionPolicy="Never"))
    until(lambda: api.allows("system:serviceaccount:aws-hyperpod:podwright-training-operator", (), verb="list",
                             group="sagemaker.amazonaws.com", resource="hyperpodpytorchjobs"))  # fmt: skip
    api.apply(of_kind(KUEUE, "ResourceFlavor", "any", spec={}))
    quotas = [
        {"name": "cpu", "nominalQuota": str(NODES * CPUS)},
        {"name": "memory", "nominalQuota": f"{NODES * MEMORY}Gi"},
    ]
    spec = {
        "namespaceSelector": {},
        "preemption": {"withinClusterQueue": "LowerPriority"},
        "resourceGroups": [{"coveredResources": ["cpu", "memory"], "flavors": [{"name": "any", "resources": quotas}]}],
    }
    api.apply(of_kind(KUEUE, "ClusterQueue", TEAM, spec=spec))
    api.apply(of_kind(KUEUE, "LocalQueue", TEAM, TEAM, spec={"clusterQueue": TEAM}))
    return api


@pytest.fixture(autouse=True)
def no_jobs(request: pytest.FixtureRequest, server: ApiServer) -> Iterator[None]:
    """Each test leaves no job, and with it no pod and no Workload behind."""
    yield
    for kind in ("HyperPodPyTorchJob", "Job"):
        for item in server.items("batch/v1" if kind == "Job" else "sagemaker.amazonaws.com/v1", kind, TEAM):
            server.delete({"apiVersion": "batch/v1", "kind": kind} | item)
    until(lambda: not server.items("v1", "Pod", TEAM) and not server.items(KUEUE, "Workload", TEAM))


def template(priority: str = "", **annotations: str) -> Object:
    container = {"name": "pytorch", "image": "example.com/train", "resources": {"requests": {"cpu": str(CPUS)}}}
    specification: Object = {"containers": [container]} | ({"priorityClassName": priority} if priority else {})
    return {"metadata": {"annotations": annotations}, "spec": specification}


def job(name: str, *parts: Object, queue: str = "", **policy: Any) -> Object:
    labels = {"labels": {"kueue.x-k8s.io/queue-name": queue}} if queue else {}
    elastic = policy.pop("elastic", None)
    spec = {"replicaSpecs": list(parts), "runPolicy": {"ttlSecondsAfterFinished": -1, **policy}}
    spec |= {"elasticPolicy": elastic} if elastic else {}
    return of_kind("sagemaker.amazonaws.com/v1", "HyperPodPyTorchJob", name, TEAM, metadata=labels, spec=spec)


def part(name: str, replicas: int, **fields: Any) -> Object:
    return {"name": name, "replicas": replicas, "template": template(), **fields}


def pods(server: ApiServer, *, running: bool = True) -> dict[str, str]:
    """The uids of pods that run, by name."""
    items = server.items("v1", "Pod", TEAM)
    alive = [item for item in items if "deletionTimestamp" not in item["metadata"]]
    return {
        item["metadata"]["name"]: item["metadata"]["uid"]
        for item in alive
        if not running or item["status"]["phase"] == "Running"
    }


def state(server: ApiServer, item: Object) -> str:
    """The condition of a job that holds."""
    conditions = server.read(item).get("status", {}).get("conditions") or [{"type": ""}]
    return conditions[-1]["type"]


def run(server: ApiServer, item: Object, count: int) -> dict[str, str]:
    """Submit a job, and wait until so many pods of it run."""
    server.create(item)
    until(lambda: state(server, item) == "Running" and len(pods(server)) == count)
    return pods(server)


# What `hyp create hyp-pytorch-job` does with its options, without the message that it sends to AWS afterwards.
HYP = """
import sys
from sagemaker.hyperpod.common.telemetry import telemetry_logging
telemetry_logging._requests_helper = lambda url, timeout: None
from hyperpod_pytorch_job_template.v1_1.model import PyTorchJobConfig
PyTorchJobConfig.model_validate_json(sys.argv[1]).to_domain().create()
"""


def hyp_create(plane: ControlPlane, name: str, **options: Any) -> Object:
    """Submit a job by AWS's own client, as the file of credentials that people have lets it."""
    template_package = AWS_PACKAGES / "hyperpod_pytorch_job_template"
    require(template_package.is_dir(), "sagemaker-hyperpod, where .ci/run puts it")
    typed = {"job_name": name, "image": "example.com/train", "namespace": TEAM, "queue_name": TEAM, **options}
    subprocess.run(
        [sys.executable, "-P", "-W", "ignore", "-c", HYP, json.dumps(typed)],
        check=True,
        env=os.environ | {"PYTHONPATH": str(AWS_PACKAGES), "KUBECONFIG": str(plane.kubeconfig)},
    )
    return of_kind("sagemaker.amazonaws.com/v1", "HyperPodPyTorchJob", name, TEAM)


def conditions(server: ApiServer) -> dict[str, dict[str, str]]:
    """Of each Workload: the conditions by type."""
    items = server.items(KUEUE, "Workload", TEAM)
    stated = {item["metadata"]["name"]: item.get("status", {}).get("conditions", ()) for item in items}
    return {name: {entry["type"]: entry["status"] for entry in entries} for name, entries in stated.items()}


def lose(server: ApiServer, name: str) -> None:
    server.delete(of_kind("v1", "Pod", name, TEAM))


def test_a_job_has_its_pods_and_completes(server: ApiServer) -> None:
    ends = template(**{"podwright/runs-for": "2s"})
    item = job("trains", part("pods", 2, template=ends), queue=TEAM)
    assert run(server, item, 2).keys() == {"trains-pods-0", "trains-pods-1"}
    pod = server.items("v1", "Pod", TEAM)[0]
    assert pod["metadata"]["labels"]["HPJob"] == "trains"
    assert {"name": "NNODES", "value": "2"} in pod["spec"]["containers"][0]["env"]
    assert [entry.get("PodsReady") for entry in until(lambda: conditions(server)).values()] == ["True"]
    until(lambda: state(server, item) == "Completed")
    # cleanPodPolicy is All by default.
    until(lambda: not pods(server, running=False))
    until(lambda: [entry.get("Finished") for entry in conditions(server).values()] == ["True"])
    # As `hyp` reads it.
    aws_model(MODEL, "HyperPodPytorchJobStatus").model_validate(server.read(item)["status"], by_name=True)


def test_a_finished_job_goes_after_its_time(server: ApiServer) -> None:
    ends = template(**{"podwright/runs-for": "1s"})
    server.create(job("short", part("pods", 1, template=ends), ttlSecondsAfterFinished=1))
    until(lambda: pods(server))
    until(lambda: not server.items("sagemaker.amazonaws.com/v1", "HyperPodPyTorchJob", TEAM))


def test_what_a_job_has_goes_with_it(server: ApiServer) -> None:
    item = job("deleted", part("pods", 2), queue=TEAM)
    run(server, item, 2)
    server.delete(item)
    until(lambda: not pods(server, running=False) and not conditions(server))


def test_a_lost_pod_is_made_again_then_all_then_the_job_fails(server: ApiServer) -> None:
    limits = {"numRestartBeforeFullJobRestart": 1, "maxFullJobRestarts": 1}
    item = job("faulty", part("pods", 2), restartPolicy=PATIENT | limits, cleanPodPolicy="None")
    before = run(server, item, 2)
    lose(server, "faulty-pods-0")
    until(lambda: state(server, item) == "Running" and pods(server).keys() == before.keys() and pods(server) != before)
    after = pods(server)
    assert after["faulty-pods-1"] == before["faulty-pods-1"]
    lose(server, "faulty-pods-0")
    until(lambda: state(server, item) == "Running" and len(set(pods(server).values()) - set(after.values())) == 2)
    status = server.read(item)["status"]
    assert (status["restartCount"], status["restartStatus"]["fullJobRestartCount"]) == (2, 1)
    for count in (3, 4):
        lose(server, "faulty-pods-0")
        until(lambda count=count: server.read(item)["status"]["restartCount"] == count)
        until(lambda: state(server, item) in ("Running", "Failed"))
    until(lambda: state(server, item) == "Failed")


def test_pods_of_a_lost_node_run_elsewhere(server: ApiServer) -> None:
    item = job("resumes", part("pods", 2), restartPolicy=PATIENT)
    before = run(server, item, 2)
    lost = server.read(of_kind("v1", "Pod", "resumes-pods-0", TEAM))["spec"]["nodeName"]
    server.delete(of_kind("v1", "Node", lost))
    lose(server, "resumes-pods-0")
    try:
        until(lambda: state(server, item) == "Running" and len(pods(server)) == 2 and pods(server) != before)
        assert server.read(of_kind("v1", "Pod", "resumes-pods-0", TEAM))["spec"]["nodeName"] != lost
    finally:
        server.create(node(lost))


def test_a_suspended_job_has_no_pods_and_no_quota(server: ApiServer) -> None:
    item = job("pauses", part("pods", 2), queue=TEAM)
    run(server, item, 2)
    server.merge(item, {"spec": {"runPolicy": {"suspend": True}}})
    until(lambda: state(server, item) == "Suspended" and not pods(server, running=False) and not conditions(server))
    server.merge(item, {"spec": {"runPolicy": {"suspend": False}}})
    until(lambda: state(server, item) == "Running" and len(pods(server)) == 2)


def elastic(name: str = "grows") -> Object:
    base = part("base", 2, template=template("tuning"))
    extra = part("elastic", 0, maxReplicas=6, template=template("extra"))
    return job(name, base, extra, queue=TEAM, elastic=ELASTIC, restartPolicy=PATIENT)


def serving(count: int) -> Object:
    """Other work of a priority above all."""
    pod = template("serving")["spec"] | {"restartPolicy": "Never"}
    spec = {"parallelism": count, "completions": count, "suspend": True, "template": {"spec": pod}}
    return of_kind(
        "batch/v1", "Job", "serves", TEAM, metadata={"labels": {"kueue.x-k8s.io/queue-name": TEAM}}, spec=spec
    )


def of_job(server: ApiServer, item: Object) -> int:
    name = item["metadata"]["name"]
    return sum(pod.startswith(f"{name}-") for pod in pods(server))


def test_an_elastic_job_grows_gives_back_whole_steps_and_grows_again(server: ApiServer) -> None:
    item, other = elastic(), serving(1)
    run(server, item, 8)
    server.create(other)
    until(lambda: of_job(server, item) == 6 and of_job(server, other) == 1)
    # Kueue preempted a step and no more than that, and the step waits for its turn.
    assert sorted(entry["Admitted"] for entry in conditions(server).values()) == ["False", *["True"] * 4]
    server.delete(other)
    until(lambda: of_job(server, item) == 8 and state(server, item) == "Running")
    # As `hyp` reads it.
    aws_model(MODEL, "HyperPodPytorchJobStatus").model_validate(server.read(item)["status"], by_name=True)


def test_an_elastic_job_is_suspended_by_what_needs_its_smallest_size(server: ApiServer) -> None:
    item, other = elastic(), serving(7)
    run(server, item, 8)
    server.create(other)
    until(lambda: of_job(server, other) == 7 and not of_job(server, item) and state(server, item) == "Suspended")
    server.delete(other)
    until(lambda: of_job(server, item) == 8 and state(server, item) == "Running")


def test_an_elastic_job_goes_on_with_fewer_after_a_fault(server: ApiServer) -> None:
    item = elastic()
    run(server, item, 8)
    name = server.read(of_kind("v1", "Pod", "grows-elastic-3", TEAM))["spec"]["nodeName"]
    server.delete(of_kind("v1", "Node", name))
    lose(server, "grows-elastic-3")
    try:
        until(lambda: of_job(server, item) == 6 and state(server, item) == "Running")
        assert server.read(item)["status"]["elasticScalingStatus"]["consecutiveScalingFailures"] >= 1
    finally:
        server.create(node(name))
    until(lambda: of_job(server, item) == 8 and state(server, item) == "Running")


def test_a_job_of_hyp_runs_and_grows(plane: ControlPlane, server: ApiServer) -> None:
    sizes = {"replica_count": 2, "max_replica_count": 6, "elastic_replica_increment_step": 2}
    submitted = hyp_create(plane, "typed", instance_type=INSTANCE_TYPE, vcpu=7.0, vcpu_limit=7.0, **sizes)
    until(lambda: state(server, submitted) == "Running" and len(pods(server)) == 6)


def test_a_default_limit_of_processors_keeps_jobs_of_hyp_out(plane: ControlPlane, server: ApiServer) -> None:
    default = {"limits": [{"type": "Container", "default": {"cpu": "4"}}]}
    limits = server.create(of_kind("v1", "LimitRange", "default", TEAM, spec=default))
    submitted = hyp_create(plane, "whole-nodes", instance_type=INSTANCE_TYPE, replica_count=2, memory=20.0)
    try:
        until(lambda: "requests must not exceed its limits" in str(server.items(KUEUE, "Workload", TEAM)))
    finally:
        server.delete(limits)
    until(lambda: state(server, submitted) == "Running" and len(pods(server)) == 2)


def test_kueue_chooses_the_nodes_where_flavors_have_a_topology(server: ApiServer) -> None:
    host = "kubernetes.io/hostname"
    for item in server.items("v1", "Node", ""):
        name = item["metadata"]["name"]
        server.merge(of_kind("v1", "Node", name), {"metadata": {"labels": {host: name, "placed": "yes"}}})
    server.apply(of_kind(KUEUE, "Topology", "hosts", spec={"levels": [{"nodeLabel": host}]}))
    server.apply(
        of_kind(KUEUE, "ResourceFlavor", "placed", spec={"nodeLabels": {"placed": "yes"}, "topologyName": "hosts"})
    )
    quota = {"name": "cpu", "nominalQuota": str(2 * CPUS)}
    groups = [{"coveredResources": ["cpu"], "flavors": [{"name": "placed", "resources": [quota]}]}]
    server.apply(of_kind(KUEUE, "ClusterQueue", "placed", spec={"namespaceSelector": {}, "resourceGroups": groups}))
    server.apply(of_kind(KUEUE, "LocalQueue", "placed", TEAM, spec={"clusterQueue": "placed"}))
    run(server, job("placed", part("pods", 2), queue="placed"), 2)
    lost = server.read(of_kind("v1", "Pod", "placed-pods-0", TEAM))["spec"]
    assert lost["nodeSelector"] == {host: lost["nodeName"], "placed": "yes"}
    server.delete(of_kind("v1", "Node", lost["nodeName"]))
    lose(server, "placed-pods-0")
    try:
        # Kueue chooses another node for it.
        until(lambda: len(pods(server)) == 2)
        assert server.read(of_kind("v1", "Pod", "placed-pods-0", TEAM))["spec"]["nodeName"] != lost["nodeName"]
    finally:
        server.create(node(lost["nodeName"]))


def test_an_operator_that_ended_starts_again(plane: ControlPlane, server: ApiServer) -> None:
    (process,) = (item for item in plane.running if item.name == "hyperpod-training-operator")
    os.kill(process.pid, signal.SIGKILL)
    assert until(plane.restart_ended) == ["hyperpod-training-operator"]
    run(server, job("later", part("pods", 1)), 1)


def test_kueue_queues_the_jobs_of_an_expected_operator_without_a_restart(
    plane: ControlPlane, server: ApiServer
) -> None:
    (kueue,) = (item for item in plane.running if item.name == "kueue")
    plane.install("training-operator")
    assert kueue in plane.running
    labels = {"labels": {"kueue.x-k8s.io/queue-name": TEAM}}
    spec = {"pytorchReplicaSpecs": {"Worker": {"replicas": 1, "template": template()}}}
    item = of_kind("kubeflow.org/v1", "PyTorchJob", "queued", TEAM, metadata=labels, spec=spec)
    until(lambda: server.accepts(item))
    owners = until(lambda: [work["metadata"]["ownerReferences"] for work in server.items(KUEUE, "Workload", TEAM)])
    server.delete(item)
    assert [owner["kind"] for [owner] in owners] == ["PyTorchJob"]


# The last one.
def test_an_operator_goes_and_its_jobs_stay(plane: ControlPlane, server: ApiServer) -> None:
    item = job("stays", part("pods", 1))
    run(server, item, 1)
    plane.uninstall("hyperpod-training-operator")
    assert "hyperpod-training-operator" not in [process.name for process in plane.running]
    lose(server, "stays-pods-0")
    assert state(server, item) == "Running"
    assert not pods(server)
