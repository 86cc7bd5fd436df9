"""Admission policies on changes of nodes: RBAC knows no permission for a label, an annotation or a taint alone.

Source: Kubernetes documentation, "Validating Admission Policy" (1.30), 2026-11.
"""

from typing import Any, Final

API: Final = "admissionregistration.k8s.io/v1"
POLICY: Final = "ValidatingAdmissionPolicy"
BINDING: Final = "ValidatingAdmissionPolicyBinding"


def policy(condition: str, validations: list[dict[str, str]]) -> dict[str, Any]:
    """The spec of a policy that refuses what some users change of nodes.

    Args:
        condition: CEL expression that is true for a request of these users.
        validations: What has to hold of each change.
    """
    nodes = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["nodes"]}
    return {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [nodes]},
        "matchConditions": [{"name": "ours", "expression": condition}],
        "validations": validations,
    }


def denies(name: str) -> dict[str, Any]:
    """The spec of the binding with which a policy of this name refuses."""
    return {"policyName": name, "validationActions": ["Deny"]}


def only_changes(field: str, keys: tuple[str, ...], *, goes: str | None = None) -> dict[str, str]:
    """That all other keys of a node's labels or annotations are as before, and that only `goes` is taken away."""
    new, old = _now_and_before(field, "{}")
    ours = (*keys, goes) if goes else keys
    taken_away = f" || key == '{goes}'" if goes else ""
    return {
        "expression": f"{new}.all(key, key in [{texts(ours)}] || (key in {old} && {old}[key] == {new}[key])) && "
        f"{old}.all(key, key in {new}{taken_away})",
        "message": f"of {field} only {' and '.join(ours)} may change",
    }


def only_becomes(label: str, values: tuple[str, ...]) -> dict[str, str]:
    """That a label is as before, or one of some values."""
    new, old = _now_and_before("labels", "{}")
    retained = f"('{label}' in {old} && {old}['{label}'] == {new}['{label}'])"
    return {
        "expression": f"!('{label}' in {new}) || {new}['{label}'] in [{texts(values)}] || {retained}",
        "message": f"label {label} may become {', '.join(values)} only",
    }


def stays(field: str) -> dict[str, str]:
    """That a list of a node's metadata is as before."""
    new, old = _now_and_before(field, "[]")
    return {"expression": f"{new} == {old}", "message": f"{field} may not change"}


def texts(values: tuple[str, ...]) -> str:
    """Texts as the items of a list in CEL."""
    return ", ".join(f"'{value}'" for value in values)


def _now_and_before(field: str, absent: str) -> list[str]:
    """A field of a node's metadata after and before the change, with what it is where it is not there."""
    sides = ("object.metadata", "oldObject.metadata")
    return [f"(has({side}.{field}) ? {side}.{field} : {absent})" for side in sides]
