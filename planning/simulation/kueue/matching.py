"""Whether pods may go to a flavor or a node: taints, node selectors and required affinity, as Kubernetes has them."""

from collections.abc import Iterable, Mapping
from typing import Any

from .work import PodSet

_KEEPS_OUT = ("NoSchedule", "NoExecute")


def untolerated(
    tolerations: Iterable[Mapping[str, Any]], taints: Iterable[Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    """The first taint that keeps pods out; None where none does."""
    tolerations = list(tolerations)
    for taint in taints:
        if taint.get("effect") in _KEEPS_OUT and not any(_covers(each, taint) for each in tolerations):
            return taint
    return None


def _covers(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", "")


def selects(pods: PodSet, labels: Mapping[str, str], keys: Iterable[str] | None = None) -> bool:
    """Whether node selector and required affinity accept these labels.

    Args:
        pods: The pods.
        labels: Of a node or a flavor.
        keys: Only these labels are looked at, as Kueue does for a flavor; a term without any of them accepts all.
    """
    known = None if keys is None else set(keys)
    if any(labels.get(key) != value for key, value in pods.selector.items() if known is None or key in known):
        return False
    if not pods.affinity:
        return True
    return any(_term(term, labels, known) for term in pods.affinity)


def _term(term: Mapping[str, Any], labels: Mapping[str, str], known: set[str] | None) -> bool:
    expressions = [*(term.get("matchExpressions") or []), *(term.get("matchFields") or [])]
    return all(meets(each, labels) for each in expressions if known is None or each["key"] in known)


def meets(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether labels meet one expression of a selector."""
    value, values = labels.get(expression["key"]), expression.get("values") or []
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return value is not None and int(value) > int(values[0])
        case _:
            return value is not None and int(value) < int(values[0])


def accepts(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether a label selector accepts labels; without one, nothing is accepted."""
    if selector is None:
        return False
    pairs = (selector.get("matchLabels") or {}).items()
    return all(labels.get(key) == value for key, value in pairs) and all(
        meets(each, labels) for each in selector.get("matchExpressions") or []
    )
