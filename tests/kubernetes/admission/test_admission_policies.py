"""Our admission policies on a real API server: what they refuse, and the ways around them that are closed."""

from collections.abc import Iterator
from typing import Any

import cdk8s
import pytest
from kubernetes.client.exceptions import ApiException

from api_server import ApiServer, Object
from podwright.cdk8s_charts.benchmark_labels.chart import BenchmarkLabels
from podwright.cdk8s_charts.benchmark_labels.handler.benchmark_labeller import DEGRADED, HEALTH, VERDICT, set_up
from podwright.cdk8s_charts.scheduler_guard import scheduler_guard
from podwright.cdk8s_charts.team_guard import team_guard
from podwright.config.settings.groups import InstanceGroup
from podwright.planning.kubernetes.isolation import PodFreedoms
from policies_in_force import in_force, refusal
from waiting import until

TEAM, NAMESPACE, ELSEWHERE = "llm", "guarded", "unguarded"
SCHEDULERS = ["kai-scheduler", "yunikorn"]
IMAGE = "example.com/train"
GPU: Object = {"limits": {"nvidia.com/gpu": "1"}}
OF_OTHERS = {"kai-scheduler": "vision.h100", "yunikorn": "root.h100.vision"}
OWN = {"kai-scheduler": "llm.h100", "yunikorn": "root.h100.dept_models.llm"}
QUEUE = {"kai-scheduler": "kai.scheduler/queue", "yunikorn": "yunikorn.apache.org/queue"}
NOT_PLACED, NODE_NAMED, OTHER_QUEUE = "need schedulerName", "leave out nodeName", "a queue of that team"


def container(resources: Object, name: str = "main") -> Object:
    return {"name": name, "image": IMAGE, "resources": resources}


def pod(scheduler: str | None, devices: Object | None = None, *, metadata: Object | None = None, **spec: Any) -> Object:
    """A pod, of one GPU where nothing else is said."""
    named = {"schedulerName": scheduler} if scheduler else {}
    containers = [container(GPU if devices is None else devices)]
    meta = {"name": "pod", "namespace": NAMESPACE} | (metadata or {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": containers} | named | spec}


def deployment(template: Object, **metadata: Any) -> Object:
    """A Deployment of such pods."""
    labels = {"app": "deployment"}
    described = {"metadata": {"labels": labels}, "spec": template["spec"]}
    spec = {"selector": {"matchLabels": labels}, "template": described}
    meta = {"name": "deployment", "namespace": NAMESPACE} | metadata
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}


def namespace(server: ApiServer, name: str, **labels: str) -> None:
    """A namespace in which pods can be made."""
    server.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    until(lambda: server.items("v1", "ServiceAccount", name))


@pytest.fixture(scope="module", params=SCHEDULERS)
def scheduler(request: pytest.FixtureRequest, server: ApiServer) -> Iterator[str]:
    """A scheduler whose guard is in force, with a Deployment of before, which names the queue of another team."""
    name: str = request.param
    namespace(server, NAMESPACE)
    namespace(server, ELSEWHERE)
    before = deployment(pod(None, {}), name="before", labels={QUEUE[name]: OF_OTHERS[name]})
    server.apply(before)
    namespace(server, NAMESPACE, **{"podwright/team": TEAM})

    def probe() -> None:
        # The policies come one after the other, and this is about the last of them.
        server.create(queued(name, OF_OTHERS[name]), dry_run=True)

    with in_force(server, scheduler_guard(name), probe):
        until(lambda: accepted(server, pod(name)) and not accepted(server, pod(None)))
        yield name
    server.delete(before)


def accepted(server: ApiServer, item: Object) -> bool:
    try:
        server.create(item, dry_run=True)
    except ApiException:
        return False
    return True


def queued(scheduler: str, queue: str, field: str = "labels", key: str | None = None) -> Object:
    """A pod that the scheduler places, with a queue."""
    return pod(scheduler, metadata={field: {key or QUEUE[scheduler]: queue}})


@pytest.mark.parametrize("name", ["nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "aws.amazon.com/neuroncore"])
@pytest.mark.parametrize("other", [None, "another-scheduler"])
def test_pods_with_accelerators_name_the_scheduler(
    server: ApiServer, scheduler: str, name: str, other: str | None
) -> None:
    resources = {"limits": {name: "1"}}
    with pytest.raises(ApiException) as error:
        server.create(pod(other, resources), dry_run=True)
    assert NOT_PLACED in refusal(error.value)
    server.create(pod(scheduler, resources), dry_run=True)


CLAIMS = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
WAYS_AROUND = {
    "in an init container": {"devices": {}, "initContainers": [container(GPU, "first")]},
    "in a sidecar": {"devices": {}, "initContainers": [container(GPU, "first") | {"restartPolicy": "Always"}]},
    "by requests and limits": {"devices": {"requests": GPU["limits"], "limits": GPU["limits"]}},
    "by a claim": {"devices": {}, "resourceClaims": CLAIMS},
    "by a claim of a container": {"devices": {"claims": [{"name": "gpu"}]}, "resourceClaims": CLAIMS},
    "without a name": {"metadata": {"name": None, "generateName": "pod-"}},
}


@pytest.mark.parametrize("way", WAYS_AROUND)
def test_wherever_a_pod_has_its_accelerators(server: ApiServer, scheduler: str, way: str) -> None:
    with pytest.raises(ApiException) as error:
        server.create(pod(None, **WAYS_AROUND[way]), dry_run=True)
    assert NOT_PLACED in refusal(error.value)
    server.create(pod(scheduler, **WAYS_AROUND[way]), dry_run=True)


@pytest.mark.parametrize("way", [{}, *(WAYS_AROUND[name] for name in ("in an init container", "by a claim"))])
def test_pods_with_accelerators_do_not_choose_their_node(server: ApiServer, scheduler: str, way: Object) -> None:
    with pytest.raises(ApiException) as error:
        server.create(pod(scheduler, nodeName="node-1", **way), dry_run=True)
    assert NODE_NAMED in refusal(error.value)


def test_what_the_guard_is_not_about(server: ApiServer, scheduler: str) -> None:
    server.create(pod(None, {"limits": {"cpu": "1", "vpc.amazonaws.com/efa": "1"}}), dry_run=True)
    server.create(pod(None, {}, nodeName="node-1"), dry_run=True)
    server.create(pod(None, metadata={"namespace": ELSEWHERE}), dry_run=True)
    free = queued(scheduler, OF_OTHERS[scheduler])
    server.create(free | {"metadata": free["metadata"] | {"namespace": ELSEWHERE}}, dry_run=True)


@pytest.mark.parametrize(
    ("api_version", "kind", "fields"),
    [
        ("v1", "ConfigMap", {}),
        ("v1", "Event", {"involvedObject": {"namespace": NAMESPACE}}),
        ("coordination.k8s.io/v1", "Lease", {}),
        (
            "authorization.k8s.io/v1",
            "LocalSubjectAccessReview",
            {"spec": {"user": "ada", "resourceAttributes": {"namespace": NAMESPACE}}},
        ),
    ],
)
def test_nothing_else_in_the_namespace_is_looked_at(
    server: ApiServer, scheduler: str, api_version: str, kind: str, fields: Object
) -> None:
    metadata = {"namespace": NAMESPACE} | ({} if "Review" in kind else {"name": "other"})
    server.create({"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}, dry_run=True)


def test_nor_what_lies_in_no_namespace(server: ApiServer, scheduler: str) -> None:
    """A selector of namespaces alone would let such objects through to the policy."""
    metadata = {"name": "other", "labels": {QUEUE[scheduler]: OF_OTHERS[scheduler]}}
    item = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": metadata, "value": 1}
    server.create(item, dry_run=True)


def test_a_refused_pod_is_not_there_and_workloads_say_why(server: ApiServer, scheduler: str) -> None:
    with pytest.raises(ApiException):
        server.create(pod(None))
    workload = deployment(pod(None))
    server.apply(workload)

    def reasons() -> list[str]:
        sets = server.items("apps/v1", "ReplicaSet", NAMESPACE)
        conditions = [condition for item in sets for condition in item["status"].get("conditions", ())]
        return [condition["message"] for condition in conditions if condition["type"] == "ReplicaFailure"]

    try:
        assert NOT_PLACED in until(reasons)[0]
        owners = [item["metadata"]["name"] for item in server.items("v1", "Pod", NAMESPACE)]
        assert [name for name in owners if not name.startswith("before-")] == []
    finally:
        server.delete(workload)


@pytest.fixture
def placed(server: ApiServer, scheduler: str) -> Iterator[Object]:
    """A pod as it has to be, which waits."""
    item = pod(scheduler, metadata={"name": "placed", "labels": {QUEUE[scheduler]: OWN[scheduler]}})
    server.create(item)
    yield item
    server.delete(item)


CHANGES = {
    "another scheduler": ("", {"spec": {"schedulerName": "default-scheduler"}}),
    "a node": ("", {"spec": {"nodeName": "node-1"}}),
    "more devices": ("resize", {"spec": {"containers": [container({"limits": {"nvidia.com/gpu": "2"}})]}}),
    "devices for a debugger": ("ephemeralcontainers", {"spec": {"ephemeralContainers": [container(GPU, "debugger")]}}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_kubernetes_itself_refuses_what_would_change_a_pod_that_was_accepted(
    server: ApiServer, placed: Object, change: str
) -> None:
    """So the guard need not look at changes and subresources."""
    subresource, changed = CHANGES[change]
    with pytest.raises(ApiException) as error:
        server.merge(placed, changed, subresource=subresource)
    assert error.value.status == 422


@pytest.mark.parametrize(
    "item",
    [
        pod(None, {"requests": {"nvidia.com/gpu": "1"}}),
        pod(None, {}, resources=GPU),
        pod(None, {}, ephemeralContainers=[container({}, "debugger")]),
    ],
    ids=["requests without limits", "of the whole pod", "ephemeral containers from the start"],
)
def test_kubernetes_itself_refuses_devices_elsewhere(server: ApiServer, scheduler: str, item: Object) -> None:
    with pytest.raises(ApiException) as error:
        server.create(item, dry_run=True)
    assert error.value.status == 422


def test_a_copy_for_debugging_is_a_new_pod(server: ApiServer, scheduler: str, placed: Object) -> None:
    """`kubectl debug --copy-to` leaves labels and the node out, and can leave out more."""
    copied = server.read(placed)["spec"] | {"schedulerName": "default-scheduler"}
    with pytest.raises(ApiException) as error:
        server.create({**placed, "metadata": {"name": "copy", "namespace": NAMESPACE}, "spec": copied}, dry_run=True)
    assert NOT_PLACED in refusal(error.value)


def test_a_team_names_its_own_queues(server: ApiServer, scheduler: str, placed: Object) -> None:
    server.create(queued(scheduler, OWN[scheduler]), dry_run=True)
    others = [OF_OTHERS[scheduler], f"x{OWN[scheduler]}".replace(".llm", ".xllm"), "default"]
    for other in others:
        with pytest.raises(ApiException) as error:
            server.create(queued(scheduler, other), dry_run=True)
        assert OTHER_QUEUE in refusal(error.value)
    with pytest.raises(ApiException) as error:
        server.merge(placed, {"metadata": {"labels": {QUEUE[scheduler]: OF_OTHERS[scheduler]}}})
    assert OTHER_QUEUE in refusal(error.value)


def test_a_department_of_a_teams_name_is_not_its_queue(server: ApiServer, scheduler: str) -> None:
    department = {"kai-scheduler": "llm.department.h100", "yunikorn": "root.h100.dept_llm"}[scheduler]
    with pytest.raises(ApiException) as error:
        server.create(queued(scheduler, department), dry_run=True)
    assert OTHER_QUEUE in refusal(error.value)


@pytest.mark.parametrize(("field", "key"), [("annotations", None), ("labels", "queue")])
def test_yunikorn_reads_queues_from_more_than_a_label(
    server: ApiServer, scheduler: str, field: str, key: str | None
) -> None:
    item = queued(scheduler, OF_OTHERS["yunikorn"], field, key)
    assert accepted(server, item) == (scheduler == "kai-scheduler")


def test_kai_reads_queues_from_what_owns_pods(server: ApiServer, scheduler: str) -> None:
    item = deployment(pod(None, {}), labels={QUEUE[scheduler]: OF_OTHERS[scheduler]})
    assert accepted(server, item) == (scheduler == "yunikorn")


@pytest.mark.parametrize(
    ("labels", "taken"),
    [
        ({"project": "vision.h100"}, False),
        ({"project": "llm.department.h100"}, False),
        ({"project": "llm.h100"}, True),
        ({"project": "speech"}, True),
        ({"project": "vision.h100", "kai.scheduler/queue": "llm.h100"}, True),
    ],
)
def test_kai_takes_projects_for_queues(server: ApiServer, scheduler: str, labels: Object, taken: bool) -> None:
    for item in (pod(scheduler, metadata={"labels": labels}), deployment(pod(None, {}), labels=labels)):
        assert accepted(server, item) == (taken or scheduler == "yunikorn")


def test_a_project_that_nobody_read_is_none_once_its_queue_goes(
    server: ApiServer, scheduler: str, placed: Object
) -> None:
    """The label of the queue hides the other one."""
    server.merge(placed, {"metadata": {"labels": {"project": "vision.h100"}}})
    if scheduler == "kai-scheduler":
        with pytest.raises(ApiException) as error:
            server.merge(placed, {"metadata": {"labels": {QUEUE[scheduler]: None}}})
        assert "is none of that team" in refusal(error.value)


def test_what_was_there_before_can_still_be_changed_and_deleted(server: ApiServer, scheduler: str) -> None:
    before = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "before", "namespace": NAMESPACE}}
    changed = server.merge(before, {"metadata": {"finalizers": ["example.com/wait"]}, "spec": {"replicas": 2}})
    assert changed["spec"]["replicas"] == 2
    assert changed["metadata"]["labels"] == {QUEUE[scheduler]: OF_OTHERS[scheduler]}
    server.merge(before, {"metadata": {"finalizers": None}})


# --- Pods of teams and their nodes ---

GUARDED = "hyperpod-ns-llm"
ON_NETWORK = "hyperpod-ns-vision"


@pytest.fixture(scope="module")
def guard(server: ApiServer) -> Iterator[None]:
    """The policy for two teams of engine hyperpod, one of which has a job on the node's network."""
    namespace(server, GUARDED)
    namespace(server, ON_NETWORK)
    freedoms = PodFreedoms(guarded=("llm", "vision"), host_network=("vision",), privileged=())
    with in_force(
        server, team_guard("hyperpod", freedoms), lambda: server.create(team_pod(hostNetwork=True), dry_run=True)
    ):
        yield


def team_pod(security: Object | None = None, *, location: str = GUARDED, **spec: Any) -> Object:
    """A pod of the team, whose container has a security context where one is given."""
    main = container({}) | ({"securityContext": security} if security else {})
    return pod(None, metadata={"namespace": location}, **{"containers": [main], **spec})


def host_path(path: str) -> Object:
    return {"volumes": [{"name": "of-node", "hostPath": {"path": path}}]}


PRIVILEGED: Object = {"securityContext": {"privileged": True}}
REACHES = {
    "privileged": (team_pod({"privileged": True}), "not privileged"),
    "privileged at first": (team_pod(initContainers=[container({}, "first") | PRIVILEGED]), "not privileged"),
    "privileged beside": (
        team_pod(initContainers=[container({}, "beside") | PRIVILEGED | {"restartPolicy": "Always"}]),
        "not privileged",
    ),
    "a second container": (
        team_pod(containers=[container({}), container({}, "second") | PRIVILEGED]),
        "not privileged",
    ),
    "a capability": (team_pod({"capabilities": {"add": ["SYS_ADMIN"]}}), "no capability beyond"),
    "all capabilities": (team_pod({"capabilities": {"add": ["ALL"]}}), "no capability beyond"),
    "a capability by its long name": (team_pod({"capabilities": {"add": ["CAP_SYS_ADMIN"]}}), "no capability beyond"),
    "proc": (team_pod({"procMount": "Unmasked"}, hostUsers=False), "unmask /proc"),
    "the network": (team_pod(hostNetwork=True), "leave out hostNetwork"),
    "processes": (team_pod(hostPID=True), "processes or memory"),
    "memory": (team_pod(hostIPC=True), "processes or memory"),
    "the root": (team_pod(**host_path("/")), "mount their team's folder"),
    "kubelet's files": (team_pod(**host_path("/var/lib/kubelet")), "mount their team's folder"),
    "all of the scratch disk": (team_pod(**host_path("/opt/dlami/nvme")), "mount their team's folder"),
    "another team's folder": (team_pod(**host_path("/opt/dlami/nvme/teams/vision")), "mount their team's folder"),
    "a folder with its name before": (team_pod(**host_path("/opt/dlami/nvme/teams/llm2")), "mount their team's folder"),
    # What a pod has put there may be a link.
    "below its own folder": (team_pod(**host_path("/opt/dlami/nvme/teams/llm/link")), "mount their team's folder"),
    "the second volume": (
        team_pod(
            volumes=[
                {"name": "own", "hostPath": {"path": "/opt/dlami/nvme/teams/llm"}},
                {"name": "of-node", "hostPath": {"path": "/etc"}},
            ]
        ),
        "mount their team's folder",
    ),
}


@pytest.mark.parametrize("way", REACHES)
def test_a_pod_of_a_team_does_not_reach_its_node(server: ApiServer, guard: None, way: str) -> None:
    item, says = REACHES[way]
    with pytest.raises(ApiException) as error:
        server.create(item, dry_run=True)
    assert says in refusal(error.value)
    # It is the policy, and not Kubernetes itself.
    server.create({**item, "metadata": {**item["metadata"], "namespace": "default"}}, dry_run=True)


def test_a_way_up_is_no_folder_of_a_team(server: ApiServer, guard: None) -> None:
    with pytest.raises(ApiException):
        server.create(team_pod(**host_path("/opt/dlami/nvme/teams/llm/../vision")), dry_run=True)


def test_a_debugger_is_held_to_it_too(server: ApiServer, guard: None) -> None:
    item = team_pod()
    server.create(item)
    debugger = container({}, "debugger")
    try:
        changed = {"spec": {"ephemeralContainers": [debugger | PRIVILEGED]}}
        with pytest.raises(ApiException) as error:
            server.merge(item, changed, subresource="ephemeralcontainers")
        assert "not privileged" in refusal(error.value)
        server.merge(item, {"spec": {"ephemeralContainers": [debugger]}}, subresource="ephemeralcontainers")
    finally:
        server.delete(item)


def test_what_pods_of_a_team_may_have(server: ApiServer, guard: None) -> None:
    server.create(team_pod(), dry_run=True)
    server.create(team_pod({"capabilities": {"add": ["IPC_LOCK"], "drop": ["ALL"]}, "runAsUser": 1000}), dry_run=True)
    for folder in ("/opt/dlami/nvme/teams/llm", "/opt/sagemaker/teams/llm"):
        server.create(team_pod(**host_path(folder)), dry_run=True)
    shm = {"name": "shm", "emptyDir": {"medium": "Memory"}}
    server.create(team_pod(volumes=[shm], hostNetwork=False, hostPID=False), dry_run=True)


def test_a_job_of_the_file_frees_its_own_team(server: ApiServer, guard: None) -> None:
    server.create(team_pod(location=ON_NETWORK, hostNetwork=True), dry_run=True)
    with pytest.raises(ApiException) as error:
        server.create(team_pod({"privileged": True}, location=ON_NETWORK, hostNetwork=True), dry_run=True)
    assert "not privileged" in refusal(error.value)


# --- Labels of benchmarks ---

LABELLER = {"name": "podwright-benchmark-labels", "namespace": "kube-system"}


def node(name: str) -> Object:
    metadata = {"name": name, "labels": {"kept": "label"}, "annotations": {"kept": "annotation"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"providerID": "aws:///i-1"}}


def token(server: ApiServer, bound_to: str | None) -> str:
    """A token of the labeller's account, of its pod on a node if any."""
    request: Object = {"expirationSeconds": 600}
    if bound_to:
        item = pod(None, {}, nodeName=bound_to, serviceAccountName=LABELLER["name"])
        made = server.create(item | {"metadata": {"name": f"on-{bound_to}", "namespace": "kube-system"}})
        metadata = made["metadata"]
        request["boundObjectRef"] = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": metadata["name"],
            "uid": metadata["uid"],
        }
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": LABELLER}
    return server.create(account, subresource="token", body={"spec": request})["status"]["token"]


@pytest.fixture(scope="module")
def labellers(server: ApiServer) -> Iterator[dict[str | None, ApiServer]]:
    """The server as pods of the labeller on two nodes reach it, and with a token of no pod."""
    group = InstanceGroup.model_validate({"instance_type": "ml.p5en.48xlarge", "count": 2})
    chart = BenchmarkLabels(cdk8s.App(), "labels", groups={"h200": group})
    objects = [item for item in chart.to_json() if item["kind"] != "DaemonSet"]
    nodes = [node("node-1"), node("node-2")]
    for item in [*objects, *nodes]:
        server.apply(item)
    users = {name: server.with_token(token(server, name)) for name in ("node-1", "node-2", None)}
    with in_force(server, objects, lambda: users[None].merge(nodes[0], {"metadata": {"labels": {"a": "b"}}})):
        yield users
    for name in ("node-1", "node-2"):
        server.delete(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"on-{name}", "namespace": "kube-system"}}
        )
        server.delete(node(name))


def test_the_labeller_labels_its_node(labellers: dict[str | None, ApiServer]) -> None:
    for name in ("node-1", "node-2"):
        for verdict in ("pass", "warn", "skip", "fail"):
            changed = labellers[name].merge(node(name), {"metadata": {"labels": {VERDICT: verdict}}})
            assert changed["metadata"]["labels"][VERDICT] == verdict
        marked = {
            "labels": {HEALTH: "UnschedulablePendingReplacement"},
            "annotations": {"podwright/benchmarks-started": "1"},
        }
        assert labellers[name].merge(node(name), {"metadata": marked})["metadata"]["labels"]["kept"] == "label"


def test_a_node_is_marked_degraded_until_its_set_up_went_well(labellers: dict[str | None, ApiServer]) -> None:
    for steps, label in (({"clock": "no answer"}, "clock"), ({"clock": "?", "ssh": "?"}, "clock.ssh"), ({}, None)):
        made = set_up({"degraded": steps, "ended": "2026-11-21T10:00:00.000+00:00"})
        try:
            changed = labellers["node-1"].merge(node("node-1"), {"metadata": made})["metadata"]
        except ApiException as error:
            pytest.fail(refusal(error))
        assert changed["labels"].get(DEGRADED) == label
        assert changed["labels"]["kept"] == "label"
        assert ("podwright/degraded-steps" in changed["annotations"]) == bool(label)


@pytest.mark.parametrize("bound_to", ["node-2", None])
def test_and_no_other_node(labellers: dict[str | None, ApiServer], bound_to: str | None) -> None:
    with pytest.raises(ApiException) as error:
        labellers[bound_to].merge(node("node-1"), {"metadata": {"labels": {VERDICT: "warn"}}})
    assert "a pod labels the node that it runs on" in refusal(error.value)


OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "00000000-0000-0000-0000-000000000000"}


@pytest.mark.parametrize(
    "change",
    [
        {"metadata": {"labels": {"kept": "changed"}}},
        {"metadata": {"labels": {"kept": None}}},
        {"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}},
        {"metadata": {"labels": {VERDICT: None}}},
        {"metadata": {"labels": {VERDICT: "anything"}}},
        {"metadata": {"labels": {HEALTH: "Schedulable"}}},
        {"metadata": {"annotations": {"kept": None}}},
        {"metadata": {"annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "false"}}},
        {"metadata": {"finalizers": ["example.com/never"]}},
        {"metadata": {"ownerReferences": [OWNER]}},
        {"spec": {"unschedulable": True}},
        {"spec": {"taints": None}},
        {"spec": {"taints": [{"key": "other", "effect": "NoExecute"}]}},
    ],
    ids=str,
)
def test_nor_anything_else_of_its_node(
    server: ApiServer, labellers: dict[str | None, ApiServer], change: Object
) -> None:
    server.merge(
        node("node-1"),
        {"metadata": {"labels": {VERDICT: "pass"}}, "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}},
    )
    with pytest.raises(ApiException) as error:
        labellers["node-1"].merge(node("node-1"), change)
    assert "ValidatingAdmissionPolicy 'podwright-benchmark-labels'" in refusal(error.value)


def test_finalizers_of_others_stay(server: ApiServer, labellers: dict[str | None, ApiServer]) -> None:
    server.merge(node("node-1"), {"metadata": {"finalizers": ["example.com/drain"]}})
    with pytest.raises(ApiException) as error:
        labellers["node-1"].merge(node("node-1"), {"metadata": {"finalizers": None}})
    assert "finalizers may not change" in refusal(error.value)


@pytest.mark.parametrize("subresource", ["status", "proxy"])
def test_nor_what_belongs_to_its_node(labellers: dict[str | None, ApiServer], subresource: str) -> None:
    """The role lets it have none of that, so the policy need not look."""
    with pytest.raises(ApiException) as error:
        labellers["node-1"].merge(node("node-1"), {"status": {"capacity": {}}}, subresource=subresource)
    assert error.value.status == 403
    assert "cannot patch" in refusal(error.value)


def test_others_label_nodes_as_they_like(server: ApiServer, labellers: dict[str | None, ApiServer]) -> None:
    changed = server.merge(node("node-2"), {"metadata": {"labels": {HEALTH: "Schedulable", VERDICT: "own"}}})
    assert changed["metadata"]["labels"][HEALTH] == "Schedulable"
    again = labellers["node-2"].merge(
        node("node-2"), {"metadata": {"annotations": {"podwright/benchmarks-started": "2"}}}
    )
    assert again["metadata"]["labels"][VERDICT] == "own"
