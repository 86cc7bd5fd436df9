"""What `podwright budgets --apply` does in a real Kueue: a queue that is held, and work of a lower priority."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from api_server import ApiServer, Object, started
from podwright.config.settings.environment import Environment
from podwright.config.settings.governance.teams import TeamBudget
from podwright.operations.kubernetes.kubectl import Kubectl
from podwright.operations.spend.kept_budgets import keep_budgets
from podwright.planning.quota.budgets import Standing, period_at
from podwright.sandbox.control_plane.control_plane import ControlPlane
from waiting import until

API = "kueue.x-k8s.io/v1beta2"
NAMESPACE = "team-research"
AT = datetime(2026, 11, 26, 12, tzinfo=UTC)
ENVIRONMENT = Environment.model_validate(
    {
        "name": "prod",
        "account": "111122223333",
        "region": "us-west-2",
        "network": {"zones": ["usw2-az1", "usw2-az2"]},
        "instance_groups": {"h200": {"instance_type": "ml.p5en.48xlarge", "count": 4}},
        "governance": {
            "engine": "kueue",
            "priorities": {"training": 50, "sweep": 20, "idle": 0},
            "teams": {"research": {"quota": {"h200": 2}}},
        },
    }
)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with Kueue, a team's queue with room for one job, and priority classes."""
    with started(tmp_path_factory.mktemp("budgets"), "kueue") as control_plane:
        control_plane.install("kueue")
        server = ApiServer.of(control_plane.kubeconfig)
        server.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        group = {"coveredResources": ["cpu"], "flavors": [{"name": "any", "resources": [CPU]}]}
        server.apply(kueue("ResourceFlavor", "any", {}))
        server.apply(kueue("ClusterQueue", "research", {"namespaceSelector": {}, "resourceGroups": [group]}))
        server.apply(kueue("LocalQueue", "research", {"clusterQueue": "research"}))
        for name, value in ENVIRONMENT.governance.priorities.items():
            metadata = {"name": f"{name}-priority"}
            server.apply({"apiVersion": API, "kind": "WorkloadPriorityClass", "metadata": metadata, "value": value})
        yield control_plane


CPU = {"name": "cpu", "nominalQuota": "1"}


def kueue(kind: str, name: str, spec: Object) -> Object:
    metadata = {"name": name} | ({"namespace": NAMESPACE} if kind == "LocalQueue" else {})
    return {"apiVersion": API, "kind": kind, "metadata": metadata, "spec": spec}


def job(name: str, priority: str) -> Object:
    container = {"name": "main", "image": "registry.example.com/main", "resources": {"requests": {"cpu": "1"}}}
    labels = {"kueue.x-k8s.io/queue-name": "research", "kueue.x-k8s.io/priority-class": f"{priority}-priority"}
    metadata = {"name": name, "namespace": NAMESPACE, "labels": labels}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {"suspend": True, "template": template},
    }


def standing(used: float, when_reached: str, at: datetime = AT) -> Standing:
    settings = {"accelerator_hours": 100, "when_reached": when_reached}
    settings |= {"demote_to": "idle"} if when_reached == "demote" else {}
    budget = TeamBudget.model_validate(settings)
    return Standing("research", budget, period_at(budget, at), at, used)


def workloads(server: ApiServer) -> dict[str, Object]:
    """By the job that owns each."""
    items = server.items(API, "Workload", NAMESPACE)
    return {item["metadata"]["ownerReferences"][0]["name"]: item for item in items}


def admitted(server: ApiServer) -> set[str]:
    return {name for name, item in workloads(server).items() if item.get("status", {}).get("admission")}


def priorities(server: ApiServer) -> dict[str, int]:
    return {name: item["spec"]["priority"] for name, item in workloads(server).items()}


def test_a_budget_demotes_and_holds_in_a_real_kueue(plane: ControlPlane) -> None:
    server, kubectl = ApiServer.of(plane.kubeconfig), Kubectl(plane.kubeconfig, True)
    first, second = job("first", "training"), job("second", "training")
    for item in (first, second):
        server.apply(item)
    until(lambda: len(admitted(server)) == 1 and len(workloads(server)) == 2)
    (running,) = admitted(server)
    waiting = "second" if running == "first" else "first"

    done = keep_budgets(kubectl, ENVIRONMENT, [standing(120, "demote")])
    assert len(done) == 2
    assert priorities(server) == {"first": 0, "second": 0}
    assert keep_budgets(kubectl, ENVIRONMENT, [standing(121, "demote")]) == [], "once is enough"
    sweep = job("sweep", "sweep")
    server.apply(sweep)
    until(lambda: "sweep" in workloads(server))
    # Kueue leaves the priorities alone, and takes by them: what is demoted comes after what it came before.
    server.delete(job(running, "training"))
    until(lambda: admitted(server) == {"sweep"})
    assert priorities(server)[waiting] == 0
    assert keep_budgets(kubectl, ENVIRONMENT, [standing(125, "demote")])[0].startswith("demoted job-sweep")

    december = datetime(2026, 12, 1, 0, 5, tzinfo=UTC)
    keep_budgets(kubectl, ENVIRONMENT, [standing(0, "demote", december)])
    assert priorities(server) == {waiting: 50, "sweep": 20}
    assert not any(item["metadata"].get("annotations") for item in workloads(server).values())

    (held,) = keep_budgets(kubectl, ENVIRONMENT, [standing(100, "hold", december)])
    assert held == "held queue team-research/research until 2027-01-01: the budget of research is reached"
    # What is lost of the metrics frees nobody before the period ends.
    assert keep_budgets(kubectl, ENVIRONMENT, [standing(0, "hold", december)]) == []
    server.delete(sweep)
    until(lambda: "sweep" not in workloads(server))
    # Kueue has looked at the queue, and at what waits in it.
    until(lambda: "is inactive" in str(workloads(server)[waiting]["status"]))
    assert admitted(server) == set(), "a held queue admits nothing"
    january = datetime(2027, 1, 1, 0, 5, tzinfo=UTC)
    (released,) = keep_budgets(kubectl, ENVIRONMENT, [standing(1, "hold", january)])
    assert released.startswith("released queue team-research/research")
    until(lambda: admitted(server) == {waiting})
    keep_budgets(kubectl, ENVIRONMENT, [])
    assert "annotations" not in server.read(kueue("LocalQueue", "research", {}))["metadata"]
