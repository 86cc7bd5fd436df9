"""What the stand-in for HyperPod's training operator decides, from a job and what is there: without an API server."""

import copy
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from podwright.sandbox.training_operator import reconciler
from podwright.sandbox.training_operator.agents import (
    PODS_AT_START,
    RESTARTS_AT_START,
    Agent,
    Plan,
    Report,
    Request,
    agents_of,
    plan,
)
from podwright.sandbox.training_operator.decisions import Decision, after_processes_failed, decide
from podwright.sandbox.training_operator.jobs import Job, Manifest, written
from podwright.sandbox.training_operator.pods import Placement, pod
from podwright.sandbox.training_operator.reconciler import Reconciler
from podwright.sandbox.training_operator.sizes import Observed
from podwright.sandbox.training_operator.workloads import PriorityClass, priority_class, workload

START = datetime(2026, 11, 23, 12, tzinfo=UTC)
TEMPLATE: Manifest = {"spec": {"containers": [{"name": "pytorch", "image": "example.com/train"}]}}
STEPS = {"minReplicas": 2, "maxReplicas": 8, "replicaIncrementStep": 2, "scalingTimeoutInSeconds": 60}


def part(name: str, replicas: int, **fields: Any) -> Manifest:
    return {"name": name, "replicas": replicas, "template": TEMPLATE, **fields}


class Cluster:
    """A job, and what becomes of it: pods are as their names say, Workloads as somebody says."""

    def __init__(self, *parts: Manifest, queue: str = "", elastic: Manifest | None = None, **policy: Any) -> None:
        labels = {"kueue.x-k8s.io/queue-name": queue} if queue else {}
        metadata = {"name": "job", "namespace": "team", "uid": "1234567890", "labels": labels}
        self.manifest: Manifest = {
            "metadata": metadata | {"creationTimestamp": written(START)},
            "spec": {"replicaSpecs": list(parts), "runPolicy": policy, "elasticPolicy": elastic},
        }
        self.pods: dict[str, Manifest] = {}
        self.workloads: dict[str, Manifest] = {}
        self.now = START
        self.made = 0

    @property
    def job(self) -> Job:
        return Job(self.manifest)

    @property
    def state(self) -> str:
        return self.manifest["status"]["conditions"][-1]["type"]

    def decide(self, seconds: float = 1) -> Decision:
        """Decide a while later, and do what was decided."""
        self.now += timedelta(seconds=seconds)
        decision = decide(Observed(self.job, self.pods, self.workloads, self.now))
        status = self.manifest.get("status", {}) | decision.status
        self.manifest["status"] = {key: value for key, value in status.items() if value is not None}
        for name in decision.deleted_pods:
            del self.pods[name]
        for new in decision.pods:
            self.made += 1
            metadata = {"name": new.slot.name, "namespace": "team", "uid": str(self.made)}
            self.pods[new.slot.name] = {"metadata": metadata, "spec": {"nodeName": f"hyperpod-i-{self.made}"}}
        for name in decision.deleted_workloads:
            del self.workloads[name]
        for claim in decision.workloads:
            item = workload(self.job, claim, 0, topologies=False)
            item["metadata"]["generation"] = 1
            self.workloads[claim.name] = item | {"status": {"conditions": []}}
        for name, conditions in decision.conditions.items():
            self.say(name, **{entry["type"]: entry for entry in conditions})
        for name, conditions in decision.returned.items():
            self.workloads[name]["status"]["conditions"] = conditions
        return decision

    def say(self, name: str, **conditions: Manifest) -> None:
        """Set conditions of a Workload."""
        known = {entry["type"]: entry for entry in self.workloads[name]["status"]["conditions"]}
        self.workloads[name]["status"]["conditions"] = list((known | conditions).values())

    def admit(self, *names: str) -> None:
        """Kueue admits Workloads; all that wait where none is named."""
        for name in names or self.workloads:
            known = {entry["type"]: entry["status"] for entry in self.workloads[name]["status"]["conditions"]}
            if known.get("Admitted") != "True":
                kinds = {"QuotaReserved": "True", "Admitted": "True", "Evicted": "False"}
                self.say(name, **{kind: self.condition(kind, status) for kind, status in kinds.items()})

    def evict(self, name: str) -> None:
        self.say(name, Evicted=self.condition("Evicted", "True", "Preempted"))

    def condition(self, kind: str, status: str, reason: str = "Reason") -> Manifest:
        time = written(self.now)
        return {"type": kind, "status": status, "reason": reason, "message": "words", "lastTransitionTime": time}

    def run(self, phase: str = "Running") -> None:
        """Let all pods be in a phase."""
        for item in self.pods.values():
            item["status"] = {"phase": phase, "conditions": [{"type": "Ready", "status": "True"}]}

    def settle(self, seconds: float = 1) -> None:
        """Admit and run whatever comes, until nothing else comes for a while."""
        for _ in range(12):
            self.admit()
            self.run()
            self.decide(seconds)


@pytest.fixture
def elastic() -> Cluster:
    """A job of two, four, six or eight pods, with two pods that it keeps."""
    return Cluster(part("base", 2), part("extra", 0, maxReplicas=6), queue="queue", elastic=STEPS)


@pytest.mark.parametrize(
    ("policy", "sizes"),
    [
        ({}, (3,)),
        (STEPS, (2, 4, 6, 8)),
        ({"minReplicas": 2, "maxReplicas": 8, "replicaDiscreteValues": [2, 4, 8]}, (2, 4, 8)),
        ({"minReplicas": 1, "maxReplicas": 3}, (1, 2, 3)),
    ],
)
def test_sizes(policy: Manifest, sizes: tuple[int, ...]) -> None:
    assert Cluster(part("pods", 3), elastic=policy).job.sizes == sizes


def test_a_job_without_a_queue_starts_at_once() -> None:
    cluster = Cluster(part("pods", 2))
    cluster.decide()
    assert (sorted(cluster.pods), cluster.workloads, cluster.state) == (["job-pods-0", "job-pods-1"], {}, "Starting")
    cluster.run()
    cluster.decide()
    assert cluster.state == "Running"
    cluster.run("Succeeded")
    cluster.decide()
    assert cluster.state == "Completed"
    assert cluster.manifest["status"]["startTime"] < cluster.manifest["status"]["completionTime"]


def test_a_job_in_a_queue_waits_for_it() -> None:
    cluster = Cluster(part("pods", 2, spares=1), queue="queue")
    cluster.decide()
    cluster.decide()
    ((name, item),) = cluster.workloads.items()
    assert [entry["count"] for entry in item["spec"]["podSets"]] == [3]
    assert (cluster.pods, cluster.state) == ({}, "Suspended")
    cluster.admit()
    cluster.decide()
    assert (len(cluster.pods), cluster.state) == (2, "Starting")
    cluster.evict(name)
    assert not cluster.decide().returned
    # Its pods have ended by now.
    returned = cluster.decide().returned[name]
    assert {entry["type"]: entry["status"] for entry in returned} == {
        "Evicted": "True", "PodsReady": "False", "QuotaReserved": "False", "Admitted": "False", "Requeued": "True"
    }  # fmt: skip


def test_suspending_a_job_stops_its_pods_and_then_leaves_the_queue() -> None:
    cluster = Cluster(part("pods", 2), queue="queue")
    cluster.settle()
    cluster.manifest["spec"]["runPolicy"]["suspend"] = True
    assert len(cluster.decide().deleted_pods) == 2
    assert len(cluster.decide().deleted_workloads) == 1
    assert cluster.state == "Suspended"


def test_restarts_are_counted_once_and_become_full_and_then_too_many() -> None:
    policy = {"evalPeriodSeconds": 100, "numRestartBeforeFullJobRestart": 1, "maxFullJobRestarts": 1}
    cluster = Cluster(part("pods", 2), restartPolicy=policy, cleanPodPolicy="None")
    cluster.settle()
    made = [cluster.made]
    for _ in range(3):
        del cluster.pods["job-pods-0"]
        cluster.decide()
        cluster.settle()
        made.append(cluster.made)
    # One pod, all pods, one pod.
    assert [after - before for before, after in pairwise(made)] == [1, 2, 1]
    assert cluster.manifest["status"]["restartCount"] == 3
    del cluster.pods["job-pods-1"]
    cluster.decide()
    assert cluster.state == "Failed"
    assert cluster.manifest["status"]["latestFaultyPodInstanceList"]["faultyPodList"] == ["job-pods-1"]


def test_a_pod_that_takes_its_time_to_end_is_counted_once() -> None:
    cluster = Cluster(part("pods", 1))
    cluster.settle()
    cluster.run("Failed")
    failed = cluster.pods["job-pods-0"]
    for going in (False, True, True):
        failed["metadata"] |= {"deletionTimestamp": written(START)} if going else {}
        cluster.decide()
        cluster.pods["job-pods-0"] = failed
    del cluster.pods["job-pods-0"]
    cluster.settle()
    assert (cluster.state, cluster.manifest["status"]["restartCount"]) == ("Running", 1)


def test_a_deleted_pod_that_fails_before_it_is_gone_is_counted_once() -> None:
    cluster = Cluster(part("pods", 1))
    cluster.settle()
    deleted = cluster.pods["job-pods-0"]
    deleted["metadata"]["deletionTimestamp"] = written(START)
    cluster.decide()
    cluster.run("Failed")
    cluster.decide()
    del cluster.pods["job-pods-0"]
    cluster.settle()
    assert (cluster.state, cluster.manifest["status"]["restartCount"]) == ("Running", 1)


def test_a_pod_whose_node_has_vanished_is_made_again_and_is_no_restart() -> None:
    cluster = Cluster(part("pods", 1))
    cluster.settle()
    unscheduled = cluster.condition("PodScheduled", "False", "Unschedulable")
    pod = cluster.pods["job-pods-0"]
    pod["status"] = {"phase": "Pending", "conditions": [unscheduled]}
    # The scheduler may find room elsewhere for one that is bound to no node.
    assert cluster.decide(60).deleted_pods == []
    pod["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "vanished"}
    assert cluster.decide().deleted_pods == ["job-pods-0"]
    cluster.settle()
    assert (cluster.state, cluster.manifest["status"]["restartCount"]) == ("Running", 0)


def test_another_window_counts_anew() -> None:
    policy = {"evalPeriodSeconds": 100, "numRestartBeforeFullJobRestart": 0, "maxFullJobRestarts": 1}
    cluster = Cluster(part("pods", 1), restartPolicy=policy)
    for _ in range(3):
        cluster.settle()
        del cluster.pods["job-pods-0"]
        cluster.decide(100)
    assert cluster.state == "Faulted"


def test_retries_have_an_end() -> None:
    cluster = Cluster(part("pods", 1), jobMaxRetryCount=1)
    for state in ("Faulted", "Failed"):
        cluster.settle()
        cluster.run("Failed")
        cluster.decide()
        assert cluster.state == state


@pytest.mark.parametrize(("field", "ready"), [("activeDeadlineSeconds", True), ("startupDeadlineSeconds", False)])
def test_deadlines(field: str, ready: bool) -> None:
    cluster = Cluster(part("pods", 1), **{field: 30})
    cluster.decide()
    if ready:
        cluster.run()
    assert cluster.decide(10).due == START + timedelta(seconds=31)
    cluster.decide(30)
    assert cluster.state == "Failed"


@pytest.mark.parametrize(
    ("rule", "since", "seconds"),
    [
        ({"expectedRecurringFrequencyInSeconds": 300}, 20, 320),
        ({"expectedStartCutOffInSeconds": 120}, 0, 120),
        ({"expectedStartCutOffInSeconds": 120}, 20, None),
        ({"metricThreshold": 3, "operator": "gt"}, 20, None),
    ],
)
def test_a_pod_that_hangs_is_made_again_when_a_rule_finds_it(rule: Manifest, since: int, seconds: int | None) -> None:
    cluster = Cluster(part("pods", 2), logMonitoringConfiguration=[{"name": "rule", "logPattern": "step", **rule}])
    cluster.settle(0)
    pod = cluster.pods["job-pods-1"]
    pod["status"]["startTime"] = written(START)
    pod["metadata"]["annotations"] = {"podwright/hangs-since": written(START + timedelta(seconds=since))}
    due = START + timedelta(seconds=seconds) if seconds else None
    assert cluster.decide(1).due == due
    decision = cluster.decide(400)
    assert decision.deleted_pods == (["job-pods-1"] if seconds else [])
    assert cluster.state == ("Faulted" if seconds else "Running")
    cluster.settle()
    assert (cluster.state, cluster.manifest["status"]["restartCount"]) == ("Running", int(bool(seconds)))


def test_an_elastic_job_asks_for_a_step_after_the_other_and_grows_once_they_have_stayed(elastic: Cluster) -> None:
    elastic.decide()
    elastic.admit()
    elastic.decide()
    elastic.run()
    counts = list[int]()
    for _ in range(8):
        elastic.decide(1)
        elastic.admit()
        counts.append(len(elastic.workloads))
    assert (counts[0], counts[-1], len(elastic.pods)) == (2, 4, 2)
    assert max(after - before for before, after in pairwise(counts)) == 1
    elastic.decide(60)
    assert Counter(name.rpartition("-")[0] for name in elastic.pods) == {"job-base": 2, "job-extra": 6}


def test_a_step_that_is_taken_back_takes_its_pods_along(elastic: Cluster) -> None:
    elastic.settle(60)
    assert len(elastic.pods) == 8
    step = elastic.job.claims[2]
    elastic.evict(step.name)
    elastic.decide()
    assert len(elastic.pods) == 6
    assert not set(elastic.pods) & {slot.name for slot in step.slots}
    elastic.decide()
    assert elastic.state == "Running"
    # It waits in its queue; no other one is asked for.
    assert len(elastic.workloads) == 4


def test_a_step_whose_pods_are_all_lost_does_not_shorten_the_wait_for_the_next(elastic: Cluster) -> None:
    elastic.manifest["spec"]["elasticPolicy"] = STEPS | {"maxReplicas": 4}
    elastic.settle(60)
    assert len(elastic.pods) == 4
    elastic.manifest["spec"]["elasticPolicy"] = STEPS
    elastic.decide()
    elastic.admit()
    # The node of both pods reboots.
    for name in ("job-extra-0", "job-extra-1"):
        del elastic.pods[name]
    elastic.decide()
    assert (len(elastic.pods), elastic.manifest["status"]["restartCount"]) == (4, 1)
    elastic.run()
    elastic.decide(58)
    assert len(elastic.pods) == 4
    elastic.decide(2)
    assert len(elastic.pods) == 6


def test_sizes_between_those_that_are_listed_are_not_used() -> None:
    policy = {"minReplicas": 2, "maxReplicas": 8, "replicaDiscreteValues": [2, 4, 8]}
    cluster = Cluster(part("pods", 2, maxReplicas=8), queue="queue", elastic=policy)
    cluster.settle()
    cluster.evict(cluster.job.claims[1].name)
    cluster.decide()
    assert len(cluster.pods) == 4


def test_without_its_smallest_size_an_elastic_job_gives_all_back(elastic: Cluster) -> None:
    elastic.settle(60)
    elastic.evict(elastic.job.claims[0].name)
    elastic.decide()
    assert (elastic.pods, elastic.state, len(elastic.workloads)) == ({}, "Suspended", 1)


def test_a_pod_that_does_not_come_back_costs_a_step_and_the_next_try_waits_longer(elastic: Cluster) -> None:
    elastic.manifest["spec"]["elasticPolicy"] = STEPS | {"faultyScaleDownTimeoutInSeconds": 30}
    elastic.settle(60)
    del elastic.pods["job-extra-5"]
    elastic.decide()
    assert elastic.state == "Faulted"
    elastic.decide(20)
    assert len(elastic.workloads) == 4
    elastic.decide(20)
    assert len(elastic.workloads) == 3
    elastic.decide()
    assert (len(elastic.pods), elastic.state) == (6, "Running")
    elastic.decide(60)
    assert len(elastic.workloads) == 3
    elastic.decide(60)
    assert len(elastic.workloads) == 4


def test_a_job_that_has_ended_is_cleaned_up() -> None:
    cluster = Cluster(part("pods", 2), queue="queue", ttlSecondsAfterFinished=60, cleanPodPolicy="All")
    cluster.settle()
    cluster.run("Succeeded")
    cluster.decide()
    decision = cluster.decide()
    assert cluster.pods == {}
    (conditions,) = decision.conditions.values()
    assert [(entry["type"], entry["status"]) for entry in conditions] == [("PodsReady", "True"), ("Finished", "True")]
    assert not decision.deletes_job
    assert cluster.decide(60).deletes_job


def test_a_pod_is_where_kueue_says() -> None:
    cluster = Cluster(part("pods", 1), queue="queue")
    (claim,) = cluster.job.claims
    placement = Placement({"group": "h100"}, [{"operator": "Exists"}], by_topology=True)
    made = pod(cluster.job, claim, claim.slots[0], 1, placement)
    assert made["spec"]["nodeSelector"] == {"group": "h100"}
    assert made["spec"]["schedulingGates"] == [{"name": "kueue.x-k8s.io/topology"}]
    assert made["metadata"]["annotations"]["kueue.x-k8s.io/workload"] == claim.name
    assert TEMPLATE["spec"].keys() == {"containers"}


def test_a_jobs_label_goes_before_the_priority_of_its_pods() -> None:
    tuning = {"spec": TEMPLATE["spec"] | {"priorityClassName": "tuning"}}
    cluster = Cluster(part("pods", 1, template=tuning), queue="queue")
    (claim,) = cluster.job.claims
    assert priority_class(cluster.job, claim) == PriorityClass("scheduling.k8s.io", "PriorityClass", "tuning")
    cluster.manifest["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = "training"
    expected = PriorityClass("kueue.x-k8s.io", "WorkloadPriorityClass", "training")
    assert priority_class(cluster.job, claim) == expected


LOG_RULE: Manifest = {"name": "hangs", "logPattern": "step", "expectedRecurringFrequencyInSeconds": 60}
NOW, GRACEFUL, SHUT_DOWN = (
    Request("/stop"),
    Request("/stop", {"is_graceful": True, "timeout": 60}),
    Request("/shutdown"),
)


def report(rank: int, text: str) -> Report:
    """The report of an agent, such as "running of 4 at 1": the state, and what its processes started with."""
    state, *words = text.split(" ")
    numbers = {"of": "2", "at": "3"} | dict(zip(words[::2], words[1::2], strict=True))
    annotations = {PODS_AT_START: numbers["of"], RESTARTS_AT_START: numbers["at"]}
    pod = {"metadata": {"name": str(rank), "annotations": annotations}, "status": {"podIP": f"10.0.0.{rank}"}}
    return Report(pod, state)


def start(rank: int) -> Request:
    """The request that starts the processes of a pod."""
    settings: Manifest = {"nnodes": 2, "faultCount": 3, "master_addr": "10.0.0.0", "master_port": 29500, "rank": rank}
    settings |= {"log_monitoring_configuration": [LOG_RULE]}
    return Request("/start", settings, {PODS_AT_START: "2", RESTARTS_AT_START: "3"})


@pytest.mark.parametrize(
    ("states", "ended", "requests", "faulted"),
    [
        (["ready", "ready"], 0, {"0": start(0), "1": start(1)}, []),
        # One pod does not exist yet, or its agent does not answer.
        (["ready"], 0, {}, []),
        (["ready", ""], 0, {}, []),
        (["running", "running"], 0, {}, []),
        # One was replaced: the processes of the others wait for one that is gone.
        (["running", "ready"], 0, {"0": NOW}, []),
        (["completed", "ready"], 0, {"0": NOW}, []),
        (["stopping", "ready"], 0, {}, []),
        # The job grew.
        (["running of 1", "ready"], 0, {"0": GRACEFUL}, []),
        (["running of 1"], 0, {}, []),
        # A pod that runs was replaced at the same time, so that a checkpoint is impossible.
        (["running of 1 at 2", "ready of 0"], 0, {"0": NOW}, []),
        # It has shrunk, and the other pods end.
        (["running of 4", "running of 4"], 0, {"0": GRACEFUL, "1": GRACEFUL}, []),
        (["running of 4"], 0, {"0": GRACEFUL}, []),
        (["running of 4 at 2", "ready of 0"], 0, {"0": NOW}, []),
        # A process failed or hangs.
        (["running", "faulted"], 0, {"0": NOW, "1": NOW}, ["1"]),
        (["faulted", "faulted"], 0, {"0": NOW, "1": NOW}, ["0", "1"]),
        (["ready", "faulted"], 0, {"1": NOW}, ["1"]),
        (["faulted"], 1, {"0": NOW}, ["0"]),
        # A process failed while the job grows.
        (["faulted of 1"], 0, {"0": NOW}, ["0"]),
        (["faulted of 1", "ready"], 0, {"0": NOW}, ["0"]),
        # The agent of the pod that it grows by does not answer yet.
        (["faulted of 1", " of 0"], 0, {"0": NOW}, ["0"]),
        # One of two pods is lost while the job grows.
        (["faulted of 2", "ready of 0"], 0, {"0": NOW}, []),
        # Processes failed because another pod is lost, or leaves since the job has shrunk.
        (["faulted"], 0, {"0": NOW}, []),
        (["faulted of 4", "running of 4"], 0, {"0": NOW, "1": NOW}, []),
        # The restart is counted already, with the pod that was replaced or before the operator started again.
        (["faulted at 2", "ready at 2"], 0, {"0": NOW}, []),
        (["faulted at 2", "running at 2"], 0, {"0": NOW, "1": NOW}, []),
        # The other pod may be lost.
        (["faulted", ""], 0, {}, []),
        (["completed", "running"], 0, {}, []),
        (["completed", "completed"], 0, {"0": SHUT_DOWN, "1": SHUT_DOWN}, []),
        # Another pod has ended already.
        (["completed"], 1, {"0": SHUT_DOWN}, []),
    ],
)
def test_the_next_requests_to_agents_follow_from_their_states(
    states: list[str], ended: int, requests: dict[str, Request], faulted: list[str]
) -> None:
    reports = [report(rank, state) for rank, state in enumerate(states)]
    assert plan(reports, 2, ended, restarts=3, timeout=60, log_rules=[LOG_RULE]) == Plan(requests, tuple(faulted))


def test_processes_that_fail_are_restarts_until_all_pods_are_replaced() -> None:
    policy = {"restartPolicy": {"numRestartBeforeFullJobRestart": 1, "evalPeriodSeconds": 3600}}
    cluster = Cluster(part("pods", 2), elastic={"minReplicas": 2, "maxReplicas": 2}, **policy)
    cluster.settle()
    status = after_processes_failed(Observed(cluster.job, cluster.pods, {}, cluster.now), ["job-pods-1"])
    assert status
    assert (status["restartCount"], status["restartStatus"]["restartCount"]) == (1, 1)
    assert status["latestFaultyPodInstanceList"] == {
        "restartType": "PLR",
        "faultyPodList": ["job-pods-1"],
        "faultyInstanceIdList": ["i-2"],
    }
    assert status["elasticScalingStatus"]["lastRestartTime"] == written(cluster.now)
    cluster.manifest["status"] |= status
    assert after_processes_failed(Observed(cluster.job, cluster.pods, {}, cluster.now), ["job-pods-1"]) is None


def test_only_containers_of_real_nodes_have_agents() -> None:
    cluster = Cluster(part("pods", 3))
    cluster.decide()
    for name, runtime in (("job-pods-0", "containerd://"), ("job-pods-1", "kwok://"), ("job-pods-2", "containerd://")):
        cluster.pods[name]["status"] = {"phase": "Running", "containerStatuses": [{"containerID": f"{runtime}1"}]}
    cluster.pods["job-pods-2"]["metadata"]["deletionTimestamp"] = "now"
    connection: Any = None
    assert [agent.name for agent in agents_of(connection, cluster.job, cluster.pods)] == ["job-pods-0"]


class Operated:
    """A job in an API server, with agents in its pods on real nodes, and the operator.

    `events` has the counted restarts, the deleted pods, and the requests to agents, in their order.
    """

    def __init__(self, file: Path, patch: pytest.MonkeyPatch, **policy: Any) -> None:
        file.touch()
        self.manifest, self.pods = Cluster(part("pods", 2), **policy).manifest, dict[str, Manifest]()
        self.states, self.events = dict[str, str](), list[tuple[Any, ...]]()
        self.operator, self.unreachable = Reconciler(file, 1.0), False
        patch.setattr(reconciler, "connection", lambda *_: self)
        patch.setattr(Agent, "_request", lambda agent, *args: self.ask(agent.name, *args))

    def request(self, method: str, path: str, body: Any = None, content: str = "json", **query: str) -> Manifest:
        """Answer the operator as the API server does."""
        name = path.removesuffix("/status").rpartition("/")[2]
        if method == "GET":
            items = {"pods": list(self.pods.values()), "workloads": []}
            return copy.deepcopy({"items": items[name]} if name in items else self.manifest)
        if method == "POST":
            name = body["metadata"]["name"]
            body["metadata"]["uid"] = f"{name}-{len(self.events)}"
            body["spec"]["nodeName"] = "hyperpod-i-1"
            containers, ready = [{"containerID": "containerd://1"}], [{"type": "Ready", "status": "True"}]
            body["status"] = {"phase": "Running", "podIP": name, "containerStatuses": containers, "conditions": ready}
            self.pods[name], self.states[name] = body, "ready"
        elif method == "DELETE":
            self.events.append(("deleted", name))
            self.pods[name]["metadata"]["deletionTimestamp"] = "now"
        elif name in self.pods:
            self.pods[name]["metadata"].setdefault("annotations", {}).update(body["metadata"]["annotations"])
        else:
            before = self.restarts
            self.manifest["status"] = self.manifest.get("status", {}) | body["status"]
            self.events += [("counted", self.restarts)] if self.restarts != before else []
        return {}

    def ask(self, name: str, method: str, path: str, body: Any = None) -> Manifest:
        """Answer the operator as an agent does."""
        if path == "/status":
            return {"status": self.states[name]}
        if self.unreachable:
            raise OSError("no way to the agent")
        # The pod says with which restart its processes start, even if the operator ends now.
        annotation = self.pods[name]["metadata"]["annotations"].get(RESTARTS_AT_START)
        assert path != "/start" or annotation == str(self.restarts)
        self.events.append((f"graceful {path}" if body and "is_graceful" in body else path, name))
        self.states[name] = {"/start": "running", "/stop": "ready", "/shutdown": "shutdown"}[path]
        if path == "/shutdown":
            self.pods[name]["status"]["phase"] = "Succeeded"
        return {}

    @property
    def restarts(self) -> int:
        return self.manifest.get("status", {}).get("restartCount", 0)

    @property
    def state(self) -> str:
        return self.manifest["status"]["conditions"][-1]["type"]

    def reconcile(self, times: int = 1) -> list[tuple[Any, ...]]:
        """Let the operator decide so often. Returns the new events."""
        before = len(self.events)
        for _ in range(times):
            self.seconds = self.operator.reconcile("team", "job")
        return self.events[before:]

    def lose(self, name: str) -> None:
        """Remove a pod without the operator."""
        del self.pods[name], self.states[name]


ONE, TWO = "job-pods-0", "job-pods-1"
STARTED = [("/start", ONE), ("/start", TWO)]


@pytest.fixture
def operated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Operated:
    """A job that trains in two pods."""
    return train(tmp_path, monkeypatch)


def train(folder: Path, patch: pytest.MonkeyPatch, **policy: Any) -> Operated:
    """Let the operator start a job's processes in two pods."""
    operated = Operated(folder / "kubeconfig", patch, **policy)
    assert operated.reconcile(3) == STARTED
    assert (operated.state, operated.states) == ("Running", {ONE: "running", TWO: "running"})
    return operated


@pytest.mark.parametrize("states", [("running", "faulted"), ("faulted", "faulted")])
def test_a_failed_process_is_counted_once_and_before_processes_stop(
    operated: Operated, states: tuple[str, str]
) -> None:
    operated.states = dict(zip((ONE, TWO), states, strict=True))
    assert operated.reconcile(3) == [("counted", 1), ("/stop", ONE), ("/stop", TWO), *STARTED]
    operated.states[ONE] = "faulted"
    assert operated.reconcile(3)[0] == ("counted", 2)


def test_a_restart_is_counted_once_if_the_operator_ends_before_processes_stop(operated: Operated) -> None:
    operated.states[TWO], operated.unreachable = "faulted", True
    assert operated.reconcile(2) == [("counted", 1)]
    operated.unreachable = False
    assert operated.reconcile(2) == [("/stop", ONE), ("/stop", TWO), *STARTED]


def test_a_lost_pod_is_one_restart_though_the_processes_of_the_others_fail(operated: Operated) -> None:
    # Its node does not answer, then the pod ends and disappears.
    operated.states = {ONE: "faulted", TWO: ""}
    assert operated.reconcile() == []
    operated.pods[TWO]["metadata"]["deletionTimestamp"] = "now"
    assert operated.reconcile() == [("/stop", ONE)]
    operated.states[ONE] = "faulted"
    operated.lose(TWO)
    assert operated.reconcile(3) == [("counted", 1), ("/stop", ONE), *STARTED]
    assert operated.restarts == 1


def test_a_pod_that_is_lost_while_the_job_grows_is_one_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    operated = train(tmp_path, monkeypatch, elastic={"minReplicas": 2, "maxReplicas": 3})
    operated.manifest["spec"]["replicaSpecs"][0]["replicas"] = 3
    assert operated.reconcile() == []
    operated.pods[TWO]["metadata"]["deletionTimestamp"] = "now"
    operated.states[ONE] = "faulted"
    assert (len(operated.pods), operated.reconcile()) == (3, [("/stop", ONE)])
    operated.lose(TWO)
    assert operated.reconcile(2) == [("counted", 1), *STARTED, ("/start", "job-pods-2")]


@pytest.mark.parametrize("size", [2, 3])
def test_a_reboot_is_a_restart_of_an_elastic_job_though_it_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    elastic = {"minReplicas": 2, "maxReplicas": 3, "gracefulShutdownTimeoutInSeconds": 60}
    operated = train(tmp_path, monkeypatch, elastic=elastic)
    operated.states[TWO] = ""
    operated.manifest["spec"]["replicaSpecs"][0]["replicas"] = size
    assert operated.reconcile(2) == []
    # The node is back, and its kubelet finds that the container has ended.
    operated.pods[TWO]["status"]["phase"] = "Failed"
    assert operated.reconcile() == [("counted", 1), ("deleted", TWO)]
    operated.lose(TWO)
    assert operated.reconcile(2) == [("/stop", ONE)]
    assert operated.reconcile() == [("/start", f"job-pods-{number}") for number in range(size)]


def test_a_full_restart_is_counted_when_the_pods_of_failed_processes_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    operated = train(
        tmp_path, monkeypatch, restartPolicy={"numRestartBeforeFullJobRestart": 0, "evalPeriodSeconds": 60}
    )
    operated.states[TWO] = "faulted"
    assert operated.reconcile(2) == [("/stop", ONE), ("deleted", TWO)]
    operated.lose(TWO)
    # No request to the agent of a pod that is being deleted.
    assert operated.reconcile(2) == [("counted", 1), ("deleted", ONE)]
    operated.lose(ONE)
    assert operated.reconcile(3) == STARTED


def test_the_restart_of_a_lost_pod_counts_for_processes_that_start_at_once(operated: Operated) -> None:
    # While the operator does not run.
    operated.pods[TWO]["metadata"]["uid"] = "new"
    operated.states = {ONE: "ready", TWO: "ready"}
    assert operated.reconcile() == [("counted", 1), *STARTED]


def test_a_pod_that_a_smaller_job_gives_up_gets_no_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    operated = train(tmp_path, monkeypatch, elastic={"minReplicas": 1, "maxReplicas": 2})
    operated.manifest["spec"]["replicaSpecs"][0]["replicas"] = 1
    assert operated.reconcile() == [("deleted", TWO), ("/stop", ONE)]


def test_a_pod_that_has_succeeded_and_is_given_up_is_no_pod_of_a_smaller_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    operated = train(tmp_path, monkeypatch, elastic={"minReplicas": 1, "maxReplicas": 2})
    operated.manifest["spec"]["replicaSpecs"][0]["replicas"] = 1
    assert operated.reconcile() == [("deleted", TWO), ("/stop", ONE)]
    operated.pods[TWO]["status"]["phase"] = "Succeeded"
    operated.states[ONE] = "faulted"
    assert operated.reconcile(2) == [("/stop", ONE), ("/start", ONE)]
    assert operated.restarts == 0


def test_agents_end_with_their_processes_also_after_others_have_ended(operated: Operated) -> None:
    operated.states = {ONE: "running", TWO: "completed"}
    assert operated.reconcile() == []
    operated.pods[TWO]["status"]["phase"] = "Succeeded"
    operated.states[ONE] = "completed"
    assert operated.reconcile(2) == [("/shutdown", ONE)]
    assert operated.state == "Completed"


@pytest.mark.parametrize("agents", ["faulted", "ready", "running"])
@pytest.mark.parametrize("policy", [{"activeDeadlineSeconds": 60}, {"jobMaxRetryCount": 0}])
def test_the_processes_of_a_job_that_has_failed_stay_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: Manifest, agents: str
) -> None:
    operated = train(tmp_path, monkeypatch, cleanPodPolicy="None", ttlSecondsAfterFinished=-1, **policy)
    assert operated.seconds == 2
    if "activeDeadlineSeconds" in policy:
        operated.manifest["status"]["startTime"] = written(datetime.now(UTC) - timedelta(minutes=2))
    else:
        operated.pods[TWO]["status"]["phase"] = "Failed"
    operated.states = dict.fromkeys(operated.states, agents)
    # In the same pass in which it fails, and later.
    assert [event for event in operated.reconcile(2) if event[0] != "counted"] == []
    assert (operated.state, operated.seconds) == ("Failed", 60)
