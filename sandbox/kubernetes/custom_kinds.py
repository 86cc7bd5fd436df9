"""The custom kinds that podwright's manifests use, as data.

`upstream_kinds.csv` has the names of kinds with a public definition: a real control plane installs upstream's
definitions, and a store does not check their objects. For kinds without a public definition, podwright has its own in
`crd_schemas/<group>_<Kind>.json`, for stores and real control planes.

Both contain the installer of a kind: a Helm chart by its name in `charts.json`, an EKS add-on, or `hyperpod-karpenter`
for clusters whose groups HyperPod scales. A file of podwright's also has the source of its fields, types and limits:
`source`, `url` and `date`; `installed_by`; `group`, `kind`, `plural`, `short_names` and `scope`; and `versions`, the
OpenAPI v3 schema of each served version, the stored one first. An object with `"title": "PodTemplateSpec"` keeps
unknown fields, and is checked with Kubernetes' schema of pod templates.
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
    """Return the sorted names of podwright's files without suffix, `<group>_<Kind>`."""
    return tuple(sorted(file.stem for file in _SCHEMAS.glob("*.json")))


@cache
def content(name: str) -> JsonObject:
    """Return the content of a file of podwright's."""
    return json.loads((_SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))


@cache
def upstream_kinds() -> tuple[JsonObject, ...]:
    """Return the kinds with a public definition, in the form of podwright's files, without schemas."""
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
    """Return the custom resource definition of a kind. Raises LookupError for a kind that podwright does not use."""
    kinds = {(known["group"], known["kind"]): known for known in (*map(content, names()), *upstream_kinds())}
    if (group, kind) not in kinds:
        raise LookupError(f"podwright uses no kind {kind} of {group}")
    return _definition(kinds[group, kind])


@cache
def own_of(owner: str) -> tuple[JsonObject, ...]:
    """Return podwright's definitions of the kinds of a Helm chart or an EKS add-on."""
    return tuple(_definition(content(name)) for name in names() if owner in content(name)["installed_by"])


@cache
def installed_by(owner: str) -> tuple[JsonObject, ...]:
    """Return podwright's definitions, and definitions without schema of the public kinds that podwright uses."""
    upstream = (_definition(kind) for kind in upstream_kinds() if owner in kind["installed_by"])
    return (*own_of(owner), *upstream)


def violations(manifest: JsonObject) -> list[str]:
    """Return the violations of a manifest against podwright's schema of its kind, each as `path: reason`.

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
    """Return the violations of a manifest against a structural schema by path. Unknown fields are violations."""
    return sorted(_validator(schema).iter_errors(manifest), key=lambda error: list(map(str, error.path)))


def _definition(content: JsonObject) -> JsonObject:
    """Return the CustomResourceDefinition of a kind in the short form."""
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


# Cached by identity, since schemas are long and the store keeps them.
_VALIDATORS: dict[int, tuple[JsonObject, Any]] = {}


def _validator(schema: JsonObject) -> Any:
    known = _VALIDATORS.get(id(schema))
    if known is None or known[0] is not schema:
        strict = _strict(schema)
        strict["properties"] = strict.get("properties", {}) | {"apiVersion": {}, "kind": {}, "metadata": {}}
        known = _VALIDATORS[id(schema)] = (schema, _Validator(strict))
    return known[1]


def _strict(schema: JsonObject) -> JsonObject:
    """Return a structural schema with unknown fields forbidden, as by `kubectl --validate=strict`."""
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
    """Check that the items of a list of type map have different keys."""
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
