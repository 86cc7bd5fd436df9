"""What keeps pods of teams from going around the scheduler that counts them."""

from typing import Any, Final

from ..config.catalog.kubernetes_groups import TEAM_LABEL

_NAME: Final = "podwright-scheduler"
_API: Final = "admissionregistration.k8s.io/v1"
_DEVICES: Final = (
    "has(c.resources) && has(c.resources.limits) && "
    "c.resources.limits.exists(name, name.startsWith('nvidia.com/') || name.startsWith('aws.amazon.com/neuron'))"
)


def scheduler_guard(scheduler: str) -> list[dict[str, Any]]:
    """Objects that refuse pods with accelerators in namespaces of teams unless `scheduler` places them.

    KAI and YuniKorn count the pods that they place. Kubernetes' own scheduler would place others on the same nodes, and
    they would be in nobody's quota. Kubernetes checks this itself (since 1.30), so it holds while the scheduler is down
    too. Pods without accelerators are not looked at.

    Args:
        scheduler: Name of the scheduler, as pods give it.
    """
    containers = f"(object.spec.containers.exists(c, {_DEVICES}) || " + (
        f"(has(object.spec.initContainers) && object.spec.initContainers.exists(c, {_DEVICES})))"
    )
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    of_teams = {"matchExpressions": [{"key": TEAM_LABEL, "operator": "Exists"}]}
    message = f"pods with accelerators in a team's namespace need schedulerName: {scheduler}, which keeps the quotas"
    policy = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule], "namespaceSelector": of_teams},
        "validations": [
            {"expression": f"object.spec.schedulerName == '{scheduler}' || !{containers}", "message": message}
        ],
    }
    return [
        {"apiVersion": _API, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": _NAME}, "spec": policy},
        {
            "apiVersion": _API,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": _NAME},
            "spec": {"policyName": _NAME, "validationActions": ["Deny"]},
        },
    ]
