"""Kubernetes' strategic merge, for kinds of which no API server and no client knows how their lists merge.

Source: Kubernetes documentation, "Update API Objects in Place Using kubectl patch", and the merge keys of the API
reference, 2026-11.
"""

from typing import Any, Final

_DIRECTIVE: Final = "$patch"
# Lists whose items are told apart by a field; all others are replaced. Those of pods are Kubernetes' own, the rest are
# lists of the operators' kinds that have such a field.
_KEYS: Final = {
    "containers": "name",
    "initContainers": "name",
    "env": "name",
    "environmentVariables": "name",
    "imagePullSecrets": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "ports": "containerPort",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
    "replicaSpecs": "name",
    "replicatedJobs": "name",
    "runtimePatches": "manager",
    "workerGroupSpecs": "groupName",
}


def merged(original: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """An object with a patch laid over it.

    null takes a field away; `$patch: delete` takes a mapping or an item of a list away, `$patch: replace` puts the rest
    of the patch in its stead.
    """
    if patch.get(_DIRECTIVE) == "replace":
        return {name: value for name, value in patch.items() if name != _DIRECTIVE}
    result = dict(original)
    for name, value in patch.items():
        if value is None or (isinstance(value, dict) and value.get(_DIRECTIVE) == "delete"):
            result.pop(name, None)
        elif isinstance(value, dict):
            result[name] = merged(result[name] if isinstance(result.get(name), dict) else {}, value)
        elif isinstance(value, list) and name in _KEYS and all(isinstance(item, dict) for item in value):
            result[name] = _merged_list(result.get(name) or [], value, _KEYS[name])
        else:
            result[name] = value
    return result


def _merged_list(original: list[Any], patch: list[dict[str, Any]], key: str) -> list[Any]:
    """A list of items that `key` tells apart, with a patch laid over it; what is new comes last."""
    if any(item.get(_DIRECTIVE) == "replace" and key not in item for item in patch):
        return [item for item in patch if _DIRECTIVE not in item]
    result = {item.get(key): item for item in original}
    for item in patch:
        if item.get(_DIRECTIVE) == "delete":
            result.pop(item.get(key), None)
        else:
            result[item.get(key)] = merged(result.get(item.get(key), {}), item)
    return list(result.values())
