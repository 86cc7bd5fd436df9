"""What doctor makes of a cluster: causes, what is over, what is noise, and what it cannot explain."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from doctor_small_cluster import LONG_AGO, bundle_of, causes, cluster, event, found, log, nodes, pod
from podwright.cdk8s_charts.benchmark_labels.handler.benchmark_labeller import DEGRADED, SEEN
from podwright.operations.doctor.bundle import moment
from podwright.operations.doctor.classes import CLASSES
from podwright.operations.doctor.diagnose import diagnose
from podwright.operations.doctor.knowledge import SYMPTOM, knowledge
from podwright.operations.doctor.pods import pods_of

CAPACITY = "We currently do not have sufficient capacity to launch new ml.p5en.48xlarge instances. Please try again."
SHORT: dict[str, Any] = {"cluster": cluster(current=2)}
FAILED_NODE = {"InstanceId": "i-h3", "InstanceStatus": {"Status": "Failure"}}
LOG = "logs/LifecycleConfig/h200/i-h3.log"
SLURM = {"index": {"orchestrator": "slurm"}}


def broken_node(*lines: str) -> dict[str, Any]:
    """A node whose lifecycle scripts failed, with their log."""
    return {"nodes": {"ClusterNodeSummaries": nodes(FAILED_NODE)}, LOG: log(*lines)}


def test_a_cluster_without_trouble_is_well() -> None:
    diagnosis = found()
    assert diagnosis.verdict == "well"
    assert diagnosis.to_json()["causes"] == []


@pytest.mark.parametrize(
    ("files", "cause"),
    [
        (SHORT | event("Failed to provision EC2 Instance", CAPACITY), "no-capacity"),
        (SHORT | event("Instance creation failed", "EFA health checks did not run successfully."), "efa-check"),
        (
            {"cluster": cluster(ClusterStatus="Failed", FailureMessage="ResourceLimitExceeded: 'ml.p5en.48xlarge'")},
            "service-quota",
        ),
        (broken_node("mount.lustre: mount fs-1@tcp:/x at /fsx failed: Connection timed out"), "lustre-mount"),
        (broken_node("fatal: unable to access 'https://github.com/x/': Failed to connect"), "endpoint-unreachable"),
        (broken_node("An error occurred (AccessDenied) when calling the GetObject operation"), "not-authorized"),
        (broken_node("KeyError: 'worker-group-2'", "returned non-zero exit status 1."), "group-name-mismatch"),
        (broken_node("something nobody has seen"), "lifecycle-failed"),
        (SHORT | {"subnets": {"Subnets": [{"SubnetId": "subnet-b", "AvailableIpAddressCount": 3}]}}, "subnet-full"),
    ],
)
def test_one_cause(files: dict[str, Any], cause: str) -> None:
    assert causes(found(**files)) == [cause]


def test_a_capacity_error_after_which_the_group_filled_up_is_over() -> None:
    assert found(**event("Failed to provision EC2 Instance", CAPACITY)).verdict == "well"


def test_a_group_may_take_some_time_to_fill() -> None:
    scaling = {"ClusterOperationSummaries": [{"Type": "Scaling", "CreationTime": "2026-11-21T09:40:00Z"}]}
    assert found(cluster=cluster(current=2), operations=scaling).verdict == "well"
    old = {"ClusterOperationSummaries": [{"Type": "Scaling", "CreationTime": "2026-11-21T08:00:00Z"}]}
    assert found(cluster=cluster(current=2), operations=old).verdict == "unknown"


def test_what_nobody_knows_is_unknown() -> None:
    diagnosis = found(**SHORT, **event("The frobnicator is out of order"))
    assert diagnosis.verdict == "unknown"
    assert "2 of 4" in diagnosis.unexplained[0].text


def test_words_that_mean_nothing_are_not_a_cause() -> None:
    text = "Request to service failed. If failure persists after retry, contact customer support."
    assert found(**SHORT, **event("2 node(s) lost orchestration-ready status.", text)).verdict == "unknown"


def test_a_plan_in_another_zone_explains_the_missing_capacity() -> None:
    arn = "arn:aws:sagemaker:us-west-2:111122223333:training-plan/h200-q1"
    plan = {
        "TrainingPlanName": "h200-q1",
        "Status": "Active",
        "AvailableInstanceCount": 16,
        "ReservedCapacitySummaries": [{"AvailabilityZoneId": "usw2-az3"}],
    }
    files: dict[str, Any] = {
        "cluster": cluster(current=0, group={"TrainingPlanArn": arn}),
        "subnets": {"Subnets": [{"SubnetId": "subnet-b", "AvailabilityZoneId": "usw2-az2"}]},
        **event("Failed to provision EC2 Instance", CAPACITY),
    }
    assert causes(found(plans={arn: plan}, **files)) == ["plan-in-other-zone"]
    assert causes(found(plans={arn: plan | {"Status": "Expired"}}, **files)) == ["plan-not-active"]


def test_two_causes_in_two_groups_are_both_told() -> None:
    files = SHORT | event("Failed to provision EC2 Instance", CAPACITY) | broken_node("mount.lustre: failed")
    assert sorted(causes(found(**files))) == ["lustre-mount", "no-capacity"]


def test_a_log_that_ended_well_says_nothing() -> None:
    text = log("mount.lustre: failed, trying again", "The lifecycle scripts succeeded")
    assert found(**{LOG: text}).verdict == "well"


def test_the_newest_operation_of_a_stack_counts() -> None:
    stack = {"StackName": "prod-eks", "StackId": "arn:1", "StackStatus": "ROLLBACK_COMPLETE"}
    events = [
        _stack_event("Vpc", "AWS::EC2::VPC", "CREATE_FAILED", "The maximum number of VPCs has been reached.", 30),
        _stack_event("Role", "AWS::IAM::Role", "CREATE_FAILED", "Resource creation cancelled", 31),
        _stack_event("prod-eks", "AWS::CloudFormation::Stack", "CREATE_IN_PROGRESS", "User Initiated", 10),
        _stack_event("Key", "AWS::KMS::Key", "CREATE_FAILED", "Access Denied", 5),
    ]
    diagnosis = found(stacks={"Stacks": [stack]}, stack_events={"prod-eks": events})
    assert causes(diagnosis) == ["service-quota"]
    stack["StackStatus"] = "UPDATE_COMPLETE"
    assert found(stacks={"Stacks": [stack]}, stack_events={"prod-eks": events}).verdict == "well"


def _stack_event(id: str, type: str, status: str, reason: str, minute: int) -> dict[str, Any]:
    return {
        "StackId": "arn:1",
        "StackName": "prod-eks",
        "LogicalResourceId": id,
        "PhysicalResourceId": "arn:1" if id == "prod-eks" else id,
        "ResourceType": type,
        "ResourceStatus": status,
        "ResourceStatusReason": reason,
        "Timestamp": f"2026-11-21T09:{minute:02}:00Z",
    }


def _kubernetes_node(health: str, **labels: str) -> dict[str, Any]:
    marks = {"sagemaker.amazonaws.com/node-health-status": health} | labels
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-01T08:00:00Z"}
    return {"metadata": {"name": "hyperpod-i-h0", "labels": marks}, "status": {"conditions": [ready]}}


def _detection(reason: str, xid: int, time: str = "2026-11-21T09:50:00Z") -> str:
    record = {
        "msg": "NPD caught event: %v",
        "details: ": {"reason": reason, "message": f"NVRM: Xid (PCI:0000:b9:00): {xid}, pid=1"},
        "HealthMonitoringAgentDetectionEvent": "HealthEvent",
    }
    return log(json.dumps(record), time=time)


def test_a_marked_node_explains_the_job_that_it_took_down() -> None:
    pods = [
        pod(f"llama-{rank}", "Failed", labels={"job-name": "llama"}, spec={"nodeName": f"hyperpod-i-h{rank}"})
        for rank in range(2)
    ]
    logs = {
        f"kubernetes/logs/hyperpod-ns-research/llama-{rank}/main.log": log(
            "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7) ran for 600004 milliseconds"
        )
        for rank in range(2)
    }
    alone = found(pods={"items": pods}, **logs)
    assert causes(alone) == ["collective-timeout"]
    marked = _kubernetes_node(
        "UnschedulablePendingReplacement", **{"sagemaker.amazonaws.com/fault-reasons": "XidHardwareFailure"}
    )
    agent = {"logs/SagemakerHealthMonitoringAgent/h200/i-h0.log": _detection("XidHardwareFailure", 74)}
    diagnosis = found(pods={"items": pods}, kubernetes_nodes={"items": [marked]}, **logs, **agent)
    assert causes(diagnosis) == ["gpu-fault"]
    assert not diagnosis.unexplained


def test_a_node_that_joined_degraded_is_told_with_its_steps() -> None:
    marked = _kubernetes_node("Schedulable", **{DEGRADED: "clock"})
    marked["metadata"]["annotations"] = {SEEN: "clock: no answer from 169.254.169.123"}
    diagnosis = found(kubernetes_nodes={"items": [marked]})
    assert causes(diagnosis) == ["own-degraded"]
    assert "clock: no answer from 169.254.169.123" in str(diagnosis.to_json())
    assert found(kubernetes_nodes={"items": [_kubernetes_node("Schedulable")]}).verdict == "well"


def test_a_node_in_quarantine_is_told_with_who_and_why_as_long_as_it_is_there() -> None:
    entry = {"node": "i-h0", "reason": "ECC errors", "by": "rule of prod", "since": "2026-11-21T10:00:00+00:00"}
    for more in ({}, SLURM):
        diagnosis = found(quarantines={"i-h0": entry, "i-replaced": entry | {"node": "i-replaced"}}, **more)
        assert causes(diagnosis) == ["own-quarantine"]
        assert "ECC errors (rule of prod)" in str(diagnosis.to_json())
        assert "i-replaced" not in str(diagnosis.to_json())


def test_a_detection_on_a_node_that_works_again_is_over() -> None:
    path = "logs/SagemakerHealthMonitoringAgent/h200/i-h0.log"
    well = {"kubernetes_nodes": {"items": [_kubernetes_node("Schedulable")]}}
    assert found(**well, **{path: _detection("XidHardwareFailure", 74)}).verdict == "well"
    assert found(**SLURM, **{path: _detection("XidUserAppError", 31)}).verdict == "well"
    assert found(**SLURM, **{path: _detection("XidHardwareFailure", 74)}).classes == {"node_health"}


def test_where_nodes_are_not_repaired_a_detection_stays() -> None:
    agent = {"logs/SagemakerHealthMonitoringAgent/h200/i-h0.log": _detection("XidHardwareFailure", 74, LONG_AGO)}
    assert found(**SLURM, **agent).verdict == "well"
    manual = cluster(NodeRecovery="None")
    assert found(**SLURM, **agent, cluster=manual).classes == {"node_health"}


def test_a_pod_that_started_at_the_second_try_is_well() -> None:
    running = pod("agent", "Running", status={"containerStatuses": [{"ready": True, "restartCount": 1}]})
    warning = {
        "type": "Warning",
        "reason": "FailedMount",
        "message": "MountVolume.SetUp failed",
        "involvedObject": {"kind": "Pod", "name": "agent", "namespace": "hyperpod-ns-research"},
        "lastTimestamp": "2026-11-21T08:01:00Z",
    }
    assert found(pods={"items": [running]}, kubernetes_events={"items": [warning]}).verdict == "well"
    pending = pod("agent", "Pending")
    diagnosis = found(pods={"items": [pending]}, kubernetes_events={"items": [warning]})
    assert causes(diagnosis) == ["mount-failed"]


def test_a_job_that_found_its_nodes_in_the_end_is_well() -> None:
    """Kubeflow's operator writes the scheduler's words into an event of the job, which outlives them by an hour."""
    owner = [{"kind": "PyTorchJob", "name": "llama", "controller": True}]
    warning = {
        "type": "Warning",
        "reason": "Unschedulable",
        "message": "Error pod llama-0 condition message: 0/3 nodes are available: 1 Insufficient nvidia.com/gpu, "
        "2 node(s) didn't match Pod's node affinity/selector.",
        "involvedObject": {"kind": "PyTorchJob", "name": "llama", "namespace": "hyperpod-ns-research"},
        "lastTimestamp": "2026-11-21T09:55:00Z",
    }
    events = {"items": [warning]}
    ready = {"containerStatuses": [{"ready": True}]}
    running, pending = pod("llama-0", "Running", status=ready), pod("llama-0", "Pending")
    for item in (running, pending):
        item["metadata"]["ownerReferences"] = owner
    assert found(pods={"items": [running]}, kubernetes_events=events).verdict == "well"
    assert causes(found(pods={"items": [pending]}, kubernetes_events=events)) == ["not-tolerated"]


def test_a_pod_that_waits_for_missing_nodes_follows_from_their_cause() -> None:
    message = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
    pending = pod("llama-0", "Pending", status={"conditions": [{"status": "False", "message": message}]})
    assert causes(found(pods={"items": [pending]})) == ["no-room"]
    short = SHORT | event("Failed to provision EC2 Instance", CAPACITY)
    assert causes(found(pods={"items": [pending]}, **short)) == ["no-capacity"]


def test_a_crash_without_a_known_reason_is_unknown() -> None:
    waiting = {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container"}
    crashing = pod("web", "Running", status={"containerStatuses": [{"state": {"waiting": waiting}}]})
    assert found(pods={"items": [crashing]}).verdict == "unknown"


@pytest.mark.parametrize(
    ("message", "created", "verdict"),
    [
        ("couldn't assign flavors to pod set: insufficient unused quota", "2026-11-21T09:30:00Z", "well"),
        ("couldn't assign flavors to pod set: insufficient unused quota", "2026-11-21T06:00:00Z", "explained"),
        ("insufficient quota, request > maximum capacity (8)", "2026-11-21T09:40:00Z", "explained"),
        ("ClusterQueue hyperpod-ns-x-clusterqueue is inactive", "2026-11-21T09:40:00Z", "explained"),
    ],
)
def test_a_job_may_wait_for_its_turn_and_not_for_ever(message: str, created: str, verdict: str) -> None:
    condition = {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": message}
    workload = {
        "metadata": {"name": "job-llama", "namespace": "hyperpod-ns-x", "creationTimestamp": created},
        "status": {"conditions": [condition]},
    }
    diagnosis = found(workloads={"items": [workload]})
    assert diagnosis.verdict == verdict
    assert diagnosis.classes <= {"quota_engine"}


def test_nccl_over_tcp_is_told_of_a_job_that_runs_and_asks_for_efa() -> None:
    resources = {"limits": {"vpc.amazonaws.com/efa": 16}}
    spec = {"nodeName": "hyperpod-i-h0", "containers": [{"resources": resources}]}
    path = "kubernetes/logs/hyperpod-ns-research/llama-0/main.log"
    text = {path: log("llama-0:1:1 [0] NCCL INFO Using network Socket")}
    assert causes(found(pods={"items": [pod("llama-0", "Running", spec=spec)]}, **text)) == ["nccl-over-sockets"]
    assert found(pods={"items": [pod("llama-0", "Running")]}, **text).verdict == "well"


def test_what_could_not_be_seen_is_named_and_the_rest_works() -> None:
    unseen = {"index": {"unseen": {"pods": "the Kubernetes API cannot be reached from here"}}}
    diagnosis = diagnose(bundle_of(**unseen, **SHORT, **event("Failed to provision", CAPACITY)))
    assert causes(diagnosis) == ["no-capacity"]
    assert diagnosis.to_json()["unseen"] == {"pods": "the Kubernetes API cannot be reached from here"}


def test_knowledge_is_cited_and_of_known_classes() -> None:
    known = knowledge().causes
    assert len(known) >= 40
    assert {cause.class_name for cause in known} == set(CLASSES)
    assert all(cause.sources and cause.fix and SYMPTOM <= cause.rank <= 5 for cause in known)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, []),
        ({"conditions": [{"type": "QuotaReserved", "status": "True"}]}, []),
        ({"conditions": [{"type": "QuotaReserved", "status": "False"}]}, ["kueue-waits"]),
        (
            {
                "conditions": [{"type": "QuotaReserved", "status": "True"}],
                "admissionChecks": [{"name": "capacity", "state": "Pending"}],
            },
            ["kueue-waits"],
        ),
    ],
)
def test_a_job_waits_where_kueue_says_so(status: dict[str, Any], expected: list[str]) -> None:
    workload = {"metadata": {"name": "llama", "namespace": "team", "creationTimestamp": "2026-11-20T10:00:00Z"}}
    assert causes(found(workloads={"items": [workload | {"status": status}]})) == expected


@pytest.mark.parametrize(
    ("unseen", "count", "expected"),
    [({}, 9, []), ({"pods": "forbidden"}, 1, []), ({"pods": "forbidden"}, 9, ["endpoint-unreachable"])],
)
def test_without_pods_their_repeated_events_count(unseen: dict[str, str], count: int, expected: list[str]) -> None:
    probe = 'Get "http://10.20.1.2:8080/readyz": dial tcp 10.20.1.2:8080: connect: connection refused'
    event_of_pod = {
        "type": "Warning",
        "reason": "Unhealthy",
        "message": f"Readiness probe failed: {probe}",
        "involvedObject": {"kind": "Pod", "namespace": "kube-system", "name": "coredns-1"},
        "lastTimestamp": "2026-11-21T09:50:00Z",
        "count": count,
    }
    diagnosis = found(kubernetes_events={"items": [event_of_pod]}, index={"unseen": unseen})
    assert causes(diagnosis) == expected


def test_a_time_without_a_zone_is_utc_and_one_with_a_zone_is_what_it_says() -> None:
    utc = moment("2026-11-21T09:30:00Z")
    assert utc is not None
    assert [moment("2026-11-21T09:30:00"), moment("2026-11-21T10:30:00+01:00")] == [utc, utc]


def test_pods_of_all_groups_of_a_set_are_one_jobs() -> None:
    """They are owned by StatefulSets, one for the leaders and one for each group."""
    names = {"serve-0": "serve", "serve-0-1": "serve-0", "serve-1-1": "serve-1"}
    items = [
        {
            "metadata": {
                "name": name,
                "namespace": "team-a",
                "labels": {"leaderworkerset.sigs.k8s.io/name": "serve"},
                "ownerReferences": [{"kind": "StatefulSet", "name": owner}],
            },
            "status": {"phase": "Pending"},
        }
        for name, owner in names.items()
    ]
    pods = pods_of(items, datetime.now(UTC))
    assert [pod.subject for pod in pods] == ["job team-a/serve"] * 3
