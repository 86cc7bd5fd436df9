"""What keeps pods of teams from going around the scheduler that counts them, and out of the queues of other teams."""

from typing import Any, Final, Literal

from ..config.catalog.kubernetes_groups import TEAM_LABEL
from ..planning.jobs.queue import KAI_QUEUE_LABEL, YUNIKORN_QUEUE_LABEL

_API: Final = "admissionregistration.k8s.io/v1"
_PODS: Final = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
_EVERYTHING: Final = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}
_KAI_PROJECT_LABEL: Final = "project"
# Kubernetes itself wants limits of devices, and refuses them in ephemeral containers and in the pod as a whole. What a
# claim holds is not known when its pod comes. Its type checker does not know the fields of resources, hence dyn().
_USES_ACCELERATORS: Final = (
    "(has(object.spec.resourceClaims) && size(object.spec.resourceClaims) > 0) || variables.containers.exists(c, "
    "has(c.resources) && has(dyn(c.resources).limits) && dyn(c.resources).limits.exists(name, "
    "name.startsWith('nvidia.com/') || name.startsWith('aws.amazon.com/neuron')))"
)
_VARIABLES: Final = {
    "containers": "object.spec.containers + (has(object.spec.initContainers) ? object.spec.initContainers : [])",
    "accelerators": _USES_ACCELERATORS,
}


def scheduler_guard(scheduler: Literal["kai-scheduler", "yunikorn"]) -> list[dict[str, Any]]:
    """Objects that refuse pods with accelerators in namespaces of teams unless `scheduler` counts them as the team's.

    KAI and YuniKorn count the pods that they place, in the queue that these name. Kubernetes' own scheduler would place
    others on the same nodes, and they would be in nobody's quota; so would pods that name their node, which nothing
    places. And neither engine asks whose namespace a pod is in that names a queue. Kubernetes checks this itself (since
    1.30), so it holds while the scheduler is down too. Pods without accelerators are not looked at, but for the queues
    of KAI, which takes them from whatever owns a pod.

    Sources: default grouper of KAI Scheduler's podgrouper; YuniKorn documentation, labels and annotations, 2026-11.

    Args:
        scheduler: Name of the scheduler, as pods give it.
    """
    message = f"pods with accelerators in a team's namespace need schedulerName: {scheduler}, which keeps the quotas"
    placed = {
        "expression": f"object.spec.schedulerName == '{scheduler}' || !variables.accelerators",
        "message": message,
    }
    node = {
        "expression": "!has(object.spec.nodeName) || object.spec.nodeName == '' || !variables.accelerators",
        "message": f"pods with accelerators in a team's namespace get their node from {scheduler}: leave out nodeName",
    }
    return [
        *_policy("podwright-scheduler", _PODS, ["CREATE"], _VARIABLES, [placed, node]),
        *(_kai_queues() if scheduler == "kai-scheduler" else _yunikorn_queues()),
    ]


def _kai_queues() -> list[dict[str, Any]]:
    """Queues are called `TEAM.POOL`. KAI reads two labels of what owns a pod, and of the pod."""
    variables = {}
    for name, label in (("queue", KAI_QUEUE_LABEL), ("project", _KAI_PROJECT_LABEL)):
        value = f"?metadata.?labels[?'{label}'].orValue('')"
        variables |= {name: f"object.{value}", f"{name}_before": f"oldObject == null ? '' : oldObject.{value}"}
    # What is there already can still be changed, and deleted.
    same_queue = "variables.queue == variables.queue_before"
    same = f"({same_queue} && variables.project == variables.project_before)"
    queue = {
        "expression": f"variables.queue == '' || {same_queue} || {_own('queue')}",
        "message": f"label {KAI_QUEUE_LABEL} in a team's namespace names a queue of that team: TEAM.GROUP",
    }
    project = {
        # Without a dot it is no queue of ours, and beside the other label nobody reads it.
        "expression": f"variables.queue != '' || !variables.project.contains('.') || {same} || {_own('project')}",
        "message": f"label {_KAI_PROJECT_LABEL} in a team's namespace is a queue to KAI, and this is none of that team",
    }
    return _policy("podwright-queue", _EVERYTHING, ["CREATE", "UPDATE"], variables, [queue, project])


def _own(name: str) -> str:
    """That a label names a queue of the team."""
    value = f"variables.{name}"
    team = f"namespaceObject.metadata.labels['{TEAM_LABEL}']"
    return f"({value}.split('.').size() == 2 && {value}.split('.')[0] == {team})"


def _yunikorn_queues() -> list[dict[str, Any]]:
    """Paths of queues end with the team. YuniKorn reads an annotation and two labels."""
    keys = (("labels", YUNIKORN_QUEUE_LABEL), ("annotations", YUNIKORN_QUEUE_LABEL), ("labels", "queue"))
    queues = ", ".join(f"METADATA.?{field}[?'{key}'].orValue('')" for field, key in keys)
    variables = {
        "before": f"oldObject == null ? [] : [{queues.replace('METADATA', 'oldObject.metadata')}]",
        "queues": f"[{queues.replace('METADATA', 'object.metadata')}]",
        "team": f"namespaceObject.metadata.labels['{TEAM_LABEL}']",
    }
    own = {
        "expression": "!variables.accelerators || variables.queues == variables.before || "
        "variables.queues.all(queue, queue == '' || queue.endsWith('.' + variables.team))",
        "message": "pods with accelerators in a team's namespace name a queue of that team: root.GROUP...TEAM",
    }
    return _policy("podwright-queue", _PODS, ["CREATE", "UPDATE"], _VARIABLES | variables, [own])


def _policy(
    name: str,
    subjects: dict[str, list[str]],
    operations: list[str],
    variables: dict[str, str],
    validations: list[dict[str, str]],
) -> list[dict[str, Any]]:
    """A policy for objects in namespaces of teams, and its binding."""
    # Objects of the cluster would match whatever the selector says.
    rule = {**subjects, "operations": operations, "scope": "Namespaced"}
    of_teams = {"key": TEAM_LABEL, "operator": "Exists"}
    return admission_policy(name, [rule], of_teams, variables, validations)


def admission_policy(
    name: str,
    rules: list[dict[str, Any]],
    namespaces: dict[str, Any],
    variables: dict[str, str],
    validations: list[dict[str, str]],
) -> list[dict[str, Any]]:
    """A ValidatingAdmissionPolicy that refuses, in the namespaces whose labels fit an expression, and its binding."""
    policy = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": rules, "namespaceSelector": {"matchExpressions": [namespaces]}},
        "variables": [{"name": key, "expression": expression} for key, expression in variables.items()],
        "validations": validations,
    }
    binding = {"policyName": name, "validationActions": ["Deny"]}
    return [
        {"apiVersion": _API, "kind": kind, "metadata": {"name": name}, "spec": spec}
        for kind, spec in (("ValidatingAdmissionPolicy", policy), ("ValidatingAdmissionPolicyBinding", binding))
    ]
