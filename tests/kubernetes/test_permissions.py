"""Who may do what in Kubernetes by the roles that podwright renders, as the API server's own authorizer says.

Each row of the tables is an action with all those who may do it; whoever is not named may not.
"""

from collections.abc import Iterator

import cdk8s
import pytest

from api_server import ApiServer, Object
from podwright.cdk8s_charts.device_plugins import NeuronDevicePlugin
from podwright.config.catalog.instance_types import catalog
from podwright.config.catalog.kubernetes_groups import (
    KAI_CONTROLLER,
    KAI_READERS,
    KUEUE_READERS,
    NAMESPACE_READERS,
    NODE_MARKERS,
    NODE_READERS,
    team_group,
)
from podwright.config.settings.governance.task_governance import CONTROLLER
from podwright.config.settings.groups import InstanceGroup
from podwright.sandbox.kubernetes import custom_kinds
from rendered_environments import namespaces_of_others, rendered_jobs, rendered_objects
from synthesis import NAMES, environment

# Teams with access, the two ends of MultiKueue, and KAI.
ENVIRONMENTS = ["eight-and-eight", "shared-platform-worker", "three-projects"]
KINDS = {"Namespace", "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}
OWN, OTHER = "hyperpod-ns-language", "hyperpod-ns-vision"


def account(namespace: str, name: str) -> tuple[str, list[str]]:
    return f"system:serviceaccount:{namespace}:{name}", [
        "system:serviceaccounts",
        f"system:serviceaccounts:{namespace}",
    ]


SUBJECTS: dict[str, tuple[str, list[str]]] = {
    "editor": ("ada", [team_group("language", "edit")]),
    "viewer": ("bob", [team_group("language", "view")]),
    "auditor": ("eve", [team_group("language", "view"), team_group("vision", "view")]),
    "neighbour": ("joe", [team_group("vision", "edit")]),
    "stranger": ("sam", []),
    "trainer": account(OWN, "trainer"),
    "node readers": ("lambda", [NODE_READERS]),
    "node markers": ("lambda", [NODE_MARKERS]),
    "kueue readers": ("lambda", [KUEUE_READERS]),
    "namespace readers": ("lambda", [NAMESPACE_READERS]),
    "kai readers": ("lambda", [KAI_READERS]),
    "labeller": account("kube-system", "podwright-benchmark-labels"),
    "neuron plugin": account("kube-system", "neuron-device-plugin"),
    "kueue": account("kueue-system", "kueue-controller-manager"),
    "multikueue": account("kueue-system", "podwright-multikueue"),
    "kubelet": ("system:node:node-1", ["system:nodes"]),
}
MEMBERS = "editor viewer auditor"


@pytest.fixture(scope="module")
def authorizer(server: ApiServer) -> Iterator[ApiServer]:
    """The server with the roles and bindings of the environments."""
    neuron = InstanceGroup.model_validate({"instance_type": "ml.trn2.48xlarge", "count": 1})
    plugin = NeuronDevicePlugin(cdk8s.App(), "neuron", groups=[neuron], types=catalog())
    environments = [environment(name) for name in ENVIRONMENTS]
    items: list[Object] = [namespace for settings in environments for namespace in namespaces_of_others(settings)]
    items += [item for settings in environments for item in rendered_objects(settings) if item["kind"] in KINDS]
    items += [item for item in plugin.to_json() if item["kind"] in KINDS]
    for item in items:
        server.apply(item)
    yield server
    for item in reversed(items):
        if item["kind"] != "Namespace":
            server.delete(item)


def allowed(server: ApiServer, action: str, namespace: str = "") -> str:
    """Those who may do it: `VERB RESOURCE[.GROUP][/SUBRESOURCE] [NAME]`."""
    verb, subject, *name = action.split()
    full, _, subresource = subject.partition("/")
    resource, _, group = full.partition(".")
    attributes = {"verb": verb, "group": group, "resource": resource, "subresource": subresource}
    attributes |= {"namespace": namespace, "name": name[0] if name else ""}
    return " ".join(
        who.replace(" ", "-") for who, (user, groups) in SUBJECTS.items() if server.allows(user, groups, **attributes)
    )


IN_A_NAMESPACE = {
    # Jobs and what they need.
    "create jobs.batch": "editor multikueue",
    "delete jobs.batch": "editor multikueue",
    "patch jobs.batch": "editor",
    "list jobs.batch": f"{MEMBERS} multikueue",
    "create pytorchjobs.kubeflow.org": "editor",
    "get pytorchjobs.kubeflow.org": MEMBERS,
    "create hyperpodpytorchjobs.sagemaker.amazonaws.com": "editor",
    "list hyperpodpytorchjobs.sagemaker.amazonaws.com": f"{MEMBERS} kueue",
    "create rayjobs.ray.io": "editor multikueue",
    "create deployments.apps": "editor",
    "create services": "editor",
    "update configmaps": "editor",
    "list configmaps": MEMBERS,
    # Pods: who may make them, look into them, and who may not place or change them beside their scheduler.
    "create pods": "editor kubelet",
    "list pods": f"{MEMBERS} neuron-plugin",
    "patch pods": "editor neuron-plugin",
    "create pods/exec": "editor",
    "create pods/attach": "editor",
    "create pods/portforward": "editor",
    "get pods/log": MEMBERS,
    "update pods/ephemeralcontainers": "",
    "patch pods/ephemeralcontainers": "",
    "patch pods/resize": "",
    "create pods/binding": "",
    "create bindings": "",
    "patch pods/status": "kubelet",
    "create pods/eviction": "kubelet",
    # Credentials.
    "get secrets": "editor",
    "list secrets": "editor",
    "create secrets": "editor",
    "get serviceaccounts": MEMBERS,
    "create serviceaccounts": "",
    "create serviceaccounts/token": "",
    "impersonate serviceaccounts": "",
    # Whatever keeps a team apart and within its quota.
    "list resourcequotas": MEMBERS,
    "patch resourcequotas": "",
    "delete resourcequotas": "",
    "list limitranges": MEMBERS,
    "patch limitranges": "",
    "patch networkpolicies.networking.k8s.io": "",
    "delete networkpolicies.networking.k8s.io": "",
    "create roles.rbac.authorization.k8s.io": "",
    "create rolebindings.rbac.authorization.k8s.io": "",
    "patch rolebindings.rbac.authorization.k8s.io": "",
    "list localqueues.kueue.x-k8s.io": MEMBERS,
    "create localqueues.kueue.x-k8s.io": "",
    "patch localqueues.kueue.x-k8s.io": "",
    "delete localqueues.kueue.x-k8s.io": "",
    "list workloads.kueue.x-k8s.io": f"{MEMBERS} multikueue",
    "create workloads.kueue.x-k8s.io": "multikueue",
    "patch workloads.kueue.x-k8s.io": "",
    "patch workloads.kueue.x-k8s.io/status": "multikueue",
    "create podgroups.scheduling.run.ai": "",
    "create resourceclaims.resource.k8s.io": "",
    "create resourceclaimtemplates.resource.k8s.io": "",
    "create daemonsets.apps": "",
    "list persistentvolumeclaims": MEMBERS,
    "create persistentvolumeclaims": "",
}
OF_THE_CLUSTER = {
    # Nobody but those whose work it is changes nodes.
    "get nodes node-1": "node-readers node-markers labeller neuron-plugin kubelet",
    "get nodes node-2": "node-readers node-markers labeller neuron-plugin",
    "list nodes": "node-readers neuron-plugin",
    "patch nodes": "node-markers labeller kubelet",
    "update nodes": "kubelet",
    "patch nodes/status": "neuron-plugin kubelet",
    "delete nodes": "",
    "create nodes": "kubelet",
    "get nodes/proxy": "",
    # Quotas, priorities and policies of all.
    "list namespaces": "",
    "create namespaces": "",
    f"patch namespaces {OWN}": "",
    f"delete namespaces {OWN}": "",
    "patch clusterqueues.kueue.x-k8s.io": "",
    "patch cohorts.kueue.x-k8s.io": "",
    "patch resourceflavors.kueue.x-k8s.io": "",
    "patch queues.scheduling.run.ai": "",
    "patch schedulingshards.kai.scheduler": "",
    "create priorityclasses.scheduling.k8s.io": "",
    "create workloadpriorityclasses.kueue.x-k8s.io": "",
    "delete validatingadmissionpolicies.admissionregistration.k8s.io": "",
    "patch validatingadmissionpolicybindings.admissionregistration.k8s.io": "",
    "create mutatingwebhookconfigurations.admissionregistration.k8s.io": "",
    "create clusterrolebindings.rbac.authorization.k8s.io": "",
    "bind clusterroles.rbac.authorization.k8s.io podwright-team-edit": "",
    "escalate clusterroles.rbac.authorization.k8s.io": "",
    "create persistentvolumes": "",
    "impersonate users": "",
    "impersonate groups": "",
    "approve signers.certificates.k8s.io": "",
    # One namespace after the other is not all of them at once.
    "list secrets": "",
    "list pods": "neuron-plugin",
    "list jobs.batch": "multikueue",
}
# In the namespace of another team the same hold, but for who is of that team.
MEMBERS_THERE = {"editor": "neighbour", "viewer": "", "auditor": "auditor"}


@pytest.mark.parametrize("action", IN_A_NAMESPACE)
def test_in_the_namespace_of_a_team(authorizer: ApiServer, action: str) -> None:
    assert allowed(authorizer, action, OWN) == IN_A_NAMESPACE[action]


@pytest.mark.parametrize("action", IN_A_NAMESPACE)
def test_in_the_namespace_of_another_team(authorizer: ApiServer, action: str) -> None:
    expected = {MEMBERS_THERE.get(who, who) for who in IN_A_NAMESPACE[action].split()}
    assert set(allowed(authorizer, action, OTHER).split()) == expected - {""}


@pytest.mark.parametrize("action", OF_THE_CLUSTER)
def test_of_the_cluster(authorizer: ApiServer, action: str) -> None:
    assert allowed(authorizer, action) == OF_THE_CLUSTER[action]


@pytest.mark.parametrize("namespace", ["kube-system", "kueue-system", "kai-scheduler", "aws-hyperpod", "default"])
@pytest.mark.parametrize(
    "action", ["list secrets", "create pods", "create jobs.batch", "patch configmaps", "get pods/log"]
)
def test_nobody_of_a_team_gets_anywhere_else(authorizer: ApiServer, action: str, namespace: str) -> None:
    of_teams = {"editor", "viewer", "auditor", "neighbour", "trainer", "stranger"}
    assert not of_teams & set(allowed(authorizer, action, namespace).split())


def test_readers_see_one_deployment(authorizer: ApiServer) -> None:
    assert allowed(authorizer, f"get deployments.apps {CONTROLLER}", "kueue-system") == "kueue-readers"
    assert allowed(authorizer, f"get deployments.apps {KAI_CONTROLLER}", "kai-scheduler") == "kai-readers"
    assert allowed(authorizer, "get deployments.apps other", "kueue-system") == ""
    assert allowed(authorizer, "list deployments.apps", "kai-scheduler") == ""
    assert allowed(authorizer, f"patch deployments.apps {CONTROLLER}", "kueue-system") == ""


def test_readers_see_the_namespaces_that_they_wait_for(authorizer: ApiServer) -> None:
    assert allowed(authorizer, f"get namespaces {OWN}") == "namespace-readers"
    assert allowed(authorizer, "get namespaces kube-system") == ""
    assert allowed(authorizer, f"delete namespaces {OWN}") == ""


def resources_of_jobs() -> set[str]:
    """The resource of each kind of object that jobs of the environments are."""
    kinds = {(item["apiVersion"].rpartition("/")[0], item["kind"]) for name in NAMES for item in rendered_jobs(name)}
    return {
        f"{custom_kinds.definition(*kind)['spec']['names']['plural']}.{kind[0]}" for kind in kinds - {("batch", "Job")}
    }


@pytest.mark.parametrize("resource", sorted(resources_of_jobs()))
@pytest.mark.parametrize("verb", ["create", "get", "delete"])
def test_members_submit_every_kind_of_job(authorizer: ApiServer, verb: str, resource: str) -> None:
    users = set(allowed(authorizer, f"{verb} {resource}", OWN).split())
    assert users - {"multikueue", "kueue"} == ({"editor"} if verb != "get" else set(MEMBERS.split()))
