"""The custom kinds that podwright's manifests use, as data.

Those that upstream defines are in `upstream_kinds.csv`, by name alone: a real control plane has upstream's definitions,
and a store keeps their objects unchecked. The others have no definition that could be installed here: ours is
`crd_schemas/<group>_<Kind>.json`, one file a kind, for a store and for a real control plane.

Both say what installs the kind: a Helm chart by its name in `charts.json`, an EKS add-on, or `hyperpod-karpenter` for
HyperPod where it scales groups. A file of ours says where
its fields, types and limits come from, too. It holds: `source`, `url` and `date`; `installed_by`; `group`, `kind`,
`plural`, `short_names` and `scope`; and `versions`, the OpenAPI v3 schema of each served version, the stored one first.
A pod template is an object with `"title": "PodTemplateSpec"` that keeps unknown fields, and is checked as Kubernetes
itself checks one.
"""

import csv
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import jsonschema
import kubernetes_validate
from jsonschema import validators

from ..protocol.json_objects import JsonObject

_SCHEMAS: Final = Path(__file__).parent / "crd_schemas"
_UPSTREAM: Final = Path(__file__).parent / "upstream_kinds.csv"
_UNCHECKED: Final[JsonObject] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_POD_TITLE: Final = "PodTemplateSpec"
_POD_TEMPLATE: Final = "x-podwright-pod-template"
_KUBERNETES: Final = "1.34"


@cache
def names() -> tuple[str, ...]:
    """The names of our files without their ending, `<group>_<Kind>`, in order."""
    return tuple(sorted(file.stem for file in _SCHEMAS.glob("*.json")))


@cache
def content(name: str) -> JsonObject:
    """What one file of ours holds."""
    return json.loads((_SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))


@cache
def upstream_kinds() -> tuple[JsonObject, ...]:
    """The kinds whose definition upstream publishes, in the form of our files, without what their fields are."""
    with _UPSTREAM.open(encoding="utf-8", newline="") as file:
        return tuple(
            {
                **row,
                "short_names": row["short_names"].split(),
                "versions": {row["version"]: _UNCHECKED},
                "installed_by": row["installed_by"].split(),
            }
            for row in csv.DictReader(file)
        )


@cache
def definition(group: str, kind: str) -> JsonObject:
    """The custom resource definition of a kind. Raises LookupError for one that podwright does not use."""
    kinds = {(known["group"], known["kind"]): known for known in (*map(content, names()), *upstream_kinds())}
    if (group, kind) not in kinds:
        raise LookupError(f"podwright uses no kind {kind} of {group}")
    return _definition(kinds[group, kind])


@cache
def own_of(owner: str) -> tuple[JsonObject, ...]:
    """Our definitions of the kinds that a Helm chart or an EKS add-on of this name brings."""
    return tuple(_definition(content(name)) for name in names() if owner in content(name)["installed_by"])


@cache
def installed_by(owner: str) -> tuple[JsonObject, ...]:
    """Those, and the definitions of upstream's kinds, without their fields: as far as podwright uses them."""
    upstream = (_definition(kind) for kind in upstream_kinds() if owner in kind["installed_by"])
    return (*own_of(owner), *upstream)


def violations(manifest: JsonObject) -> list[str]:
    """What our schema of its kind has against a manifest, each as `path: reason`; empty when it is valid.

    Raises LookupError when there is no file of the kind, or its version is not served.
    """
    group, _, version = manifest["apiVersion"].rpartition("/")
    name = f"{group}_{manifest['kind']}"
    if name not in names():
        raise LookupError(f"{name}.json is not in {_SCHEMAS.name}; known are {', '.join(names())}")
    schema = content(name)["versions"].get(version)
    if schema is None:
        raise LookupError(f"{manifest['kind']} has no version {version} in {_SCHEMAS.name}")
    return [f"{'.'.join(map(str, error.absolute_path))}: {error.message}" for error in violations_of(schema, manifest)]


def violations_of(schema: JsonObject, manifest: JsonObject) -> list[jsonschema.ValidationError]:
    """What a structural schema has against a manifest, by path. Unknown fields are refused, as `kubectl` does."""
    return sorted(_validator(schema).iter_errors(manifest), key=lambda error: list(map(str, error.path)))


def _definition(content: JsonObject) -> JsonObject:
    """The CustomResourceDefinition of a kind that is told in short."""
    kind = {"kind": content["kind"], "plural": content["plural"], "shortNames": content["short_names"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{content['plural']}.{content['group']}"},
        "spec": {
            "group": content["group"],
            "names": kind | {"singular": content["kind"].lower(), "listKind": f"{content['kind']}List"},
            "scope": content["scope"],
            "versions": [
                {"name": name, "served": True, "storage": index == 0, "schema": {"openAPIV3Schema": schema}}
                | ({"subresources": {"status": {}}} if "status" in schema.get("properties", {}) else {})
                for index, (name, schema) in enumerate(content["versions"].items())
            ],
        },
    }


# By identity: a schema is long, and the store keeps each for as long as it serves it.
_VALIDATORS: dict[int, tuple[JsonObject, Any]] = {}


def _validator(schema: JsonObject) -> Any:
    known = _VALIDATORS.get(id(schema))
    if known is None or known[0] is not schema:
        strict = _strict(schema)
        strict["properties"] = strict.get("properties", {}) | {"apiVersion": {}, "kind": {}, "metadata": {}}
        known = _VALIDATORS[id(schema)] = (schema, _Validator(strict))
    return known[1]


def _strict(schema: JsonObject) -> JsonObject:
    """A structural schema with unknown fields refused, as `kubectl --validate=strict` does, and extensions honoured."""
    if schema.get("title") == _POD_TITLE:
        return {_POD_TEMPLATE: True}
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"], "pattern": schema.get("pattern", "")}
    result = {
        key: _strict(value) if isinstance(value, dict) and key in ("items", "additionalProperties") else value
        for key, value in schema.items()
    }
    if "properties" in schema:
        result["properties"] = {key: _strict(value) for key, value in schema["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields") and "additionalProperties" not in schema:
            result["additionalProperties"] = False
    if result.pop("nullable", False) and isinstance(result.get("type"), str):
        result["type"] = [result["type"], "null"]
    return result


def _unique(validator: Any, keys: list[str], instance: Any, schema: JsonObject) -> Iterator[jsonschema.ValidationError]:
    """A list that is a map by some keys of its items holds each of them once."""
    observed = set[tuple[Any, ...]]()
    for item in instance:
        key = tuple(item.get(name) for name in keys)
        if key in observed:
            yield jsonschema.ValidationError(f"{', '.join(map(str, key))} is there twice")
        observed.add(key)


def _pod(validator: Any, requested: bool, instance: Any, schema: JsonObject) -> Iterator[jsonschema.ValidationError]:
    template = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "x"}, "template": instance}
    try:
        kubernetes_validate.validate(template, _KUBERNETES, strict=True)
    except kubernetes_validate.ValidationError as error:
        yield jsonschema.ValidationError(error.message, path=list(error.path)[1:])


_Validator = validators.extend(jsonschema.Draft4Validator, {"x-kubernetes-list-map-keys": _unique, _POD_TEMPLATE: _pod})
