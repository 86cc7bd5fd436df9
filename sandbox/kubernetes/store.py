"""A simulated Kubernetes API of an EKS cluster, which checks objects against Kubernetes' schemas and stores them.

It has no controllers, scheduler or kubelets: a Deployment gets no pods, and jobs do not change. The store only creates
the first namespaces, and a Node for each Running HyperPod node.

Sources: the JSON schemas of kubernetes-validate 1.37.0; Kubernetes API conventions for messages of errors.
"""

import copy
import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

import kubernetes_validate
from kubernetes_validate import utils

from ..protocol.clock import now
from ..protocol.json_objects import JsonObject, merged
from . import rendered_releases
from .cluster_objects import ApiError, Release, unknown_kind
from .custom_kinds import installed_by, violations_of

# kubernetes_validate reads a megabyte of definitions for each manifest.
utils.schema_contents = cache(utils.schema_contents)
_CLUSTER_SCOPED = {
    "APIService", "CSIDriver", "CSINode", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition",
    "DeviceClass", "FlowSchema", "IngressClass", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration", "Namespace", "Node", "PersistentVolume", "PriorityClass",
    "PriorityLevelConfiguration", "ResourceSlice", "RuntimeClass", "StorageClass", "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration", "VolumeAttachment",
    "VolumeAttributesClass",
}  # fmt: skip
_SHORT_NAMES = {
    "configmaps": ["cm"], "daemonsets": ["ds"], "deployments": ["deploy"], "namespaces": ["ns"], "nodes": ["no"],
    "persistentvolumeclaims": ["pvc"], "persistentvolumes": ["pv"], "pods": ["po"], "serviceaccounts": ["sa"],
    "services": ["svc"], "statefulsets": ["sts"], "storageclasses": ["sc"], "customresourcedefinitions": ["crd"],
}  # fmt: skip
_VERBS = ["create", "delete", "get", "list", "patch", "update"]
_FIRST_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


class Key(NamedTuple):
    """Key of a stored object."""

    kind: str
    """Kind with its group, such as `apps/Deployment`."""
    namespace: str
    """Namespace; empty for cluster-scoped kinds."""
    name: str


def plural(kind: str) -> str:
    """Return the resource name of a built-in kind, such as `networkpolicies` for NetworkPolicy."""
    lower = kind.lower()
    if lower == "endpoints":
        return lower
    if lower.endswith("y"):
        return lower[:-1] + "ies"
    return lower + "es" if lower.endswith(("s", "x", "ch")) else lower + "s"


class ServedKind(NamedTuple):
    """A kind that the API serves."""

    group: str
    version: str
    kind: str
    plural: str
    """Name of its resource."""


@lru_cache(maxsize=8)
def built_in_kinds(version: str) -> frozenset[ServedKind]:
    """Return the built-in kinds of a Kubernetes version: those with a list kind."""
    supported = [
        item
        for item in utils.all_versions()
        if tuple(map(int, item.split(".")[:2])) <= tuple(map(int, version.split(".")[:2]))
    ]
    location = files("kubernetes_validate") / "kubernetes-json-schema" / f"v{supported[-1]}-local" / "_definitions.json"
    kinds = {
        (item["group"], item["version"], item["kind"])
        for definition in json.loads(location.read_text())["$defs"].values()
        for item in definition.get("x-kubernetes-group-version-kind", [])
    }
    return frozenset(
        ServedKind(group, version, kind, plural(kind))
        for group, version, kind in kinds
        if (group, version, f"{kind}List") in kinds
    )


def group_of(api_version: str) -> str:
    """Return the group of an apiVersion; empty for the core group."""
    return api_version.rpartition("/")[0]


def kind_key(manifest: JsonObject) -> str:
    """Return the group and kind of a manifest."""
    return f"{group_of(manifest['apiVersion'])}/{manifest['kind']}"


@dataclass
class KubernetesStore:
    """The objects of one cluster. `nodes` returns the current Node objects."""

    version: str
    objects: dict[Key, JsonObject] = field(default_factory=dict)
    revision: int = 0

    def __post_init__(self) -> None:
        for name in _FIRST_NAMESPACES:
            self.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    def definitions(self) -> Iterator[JsonObject]:
        """The custom resource definitions."""
        for (kind, _, _), item in self.objects.items():
            if kind == "apiextensions.k8s.io/CustomResourceDefinition":
                yield item

    def definition_of(self, manifest: JsonObject) -> tuple[JsonObject, JsonObject] | None:
        """Return the definition and its version that serve a custom object; None without one."""
        group, _, version = manifest["apiVersion"].rpartition("/")
        for item in self.definitions():
            spec = item["spec"]
            if spec["group"] == group and spec["names"]["kind"] == manifest["kind"]:
                for served in spec["versions"]:
                    if served["name"] == version and served.get("served", True):
                        return item, served
        return None

    def install(self, owner: str) -> None:
        """Serve the custom kinds of a chart or an add-on. Existing definitions remain."""
        for item in installed_by(owner):
            if self.key(item) not in self.objects:
                self.put(item)

    def served(self) -> Iterator[ServedKind]:
        """Yield all kinds that the API serves."""
        yield from built_in_kinds(self.version)
        for item in self.definitions():
            spec, names = item["spec"], item["spec"]["names"]
            for version in spec["versions"]:
                yield ServedKind(spec["group"], version["name"], names["kind"], names["plural"])

    def groups(self) -> list[JsonObject]:
        """Return the API groups, for discovery."""
        results: dict[str, set[str]] = {}
        for each in self.served():
            if each.group:
                results.setdefault(each.group, set()).add(each.version)
        answers = list[JsonObject]()
        for group, versions in sorted(results.items()):
            # Stable versions, which have shorter names, precede betas.
            named = [
                {"groupVersion": f"{group}/{version}", "version": version}
                for version in sorted(versions, key=lambda name: (len(name), name))
            ]
            answers.append({"name": group, "versions": named, "preferredVersion": named[0]})
        return answers

    def resources(self, group: str, version: str) -> list[JsonObject]:
        """Return the resources of a group and version, for discovery."""
        return [
            {
                "shortNames": self._short_names(result, name),
                "name": name,
                "singularName": kind.lower(),
                "kind": kind,
                "verbs": _VERBS,
                "namespaced": self.namespaced({"apiVersion": f"{group}/{version}", "kind": kind}),
            }
            for result, served, kind, name in sorted(self.served())
            if (result, served) == (group, version)
        ]

    def _short_names(self, group: str, name: str) -> list[str]:
        result = self.objects.get(Key("apiextensions.k8s.io/CustomResourceDefinition", "", f"{name}.{group}"))
        return result["spec"]["names"].get("shortNames", []) if result else _SHORT_NAMES.get(name, [])

    def namespaced(self, manifest: JsonObject) -> bool:
        """Return True if objects of this kind have a namespace."""
        result = self.definition_of(manifest)
        return result[0]["spec"]["scope"] == "Namespaced" if result else manifest["kind"] not in _CLUSTER_SCOPED

    def check(self, manifest: JsonObject) -> None:
        """Raise ApiError for a manifest that the API server would refuse."""
        for name in ("apiVersion", "kind"):
            if not isinstance(manifest.get(name), str):
                raise ApiError(400, "BadRequest", f"error validating data: {name} not set")
        if not manifest.get("metadata", {}).get("name"):
            raise ApiError(
                422,
                "Invalid",
                f'{manifest["kind"]} "" is invalid: metadata.name: Required value: name or generateName is required',
            )
        result = self.definition_of(manifest)
        if result is None:
            self._check_built_in(manifest)
            return
        schema = result[1].get("schema", {}).get("openAPIV3Schema")
        errors = violations_of(schema, manifest) if schema else []
        if errors:
            raise self._invalid(manifest, ".".join(map(str, errors[0].absolute_path)), errors[0].message)

    def _check_built_in(self, manifest: JsonObject) -> None:
        try:
            kubernetes_validate.validate(_without_nulls(manifest), self.version, strict=True)
        except kubernetes_validate.SchemaNotFoundError:
            raise unknown_kind(manifest) from None
        except kubernetes_validate.ValidationError as error:
            raise self._invalid(manifest, ".".join(map(str, error.path)), error.message) from None

    def _invalid(self, manifest: JsonObject, path: str, message: str) -> ApiError:
        return ApiError(
            422,
            "Invalid",
            f'{manifest["kind"]} "{manifest["metadata"]["name"]}" is invalid: '
            f"{path + ': ' if path else ''}{message} (sandbox)",
        )

    def key(self, manifest: JsonObject, default_namespace: str = "default") -> Key:
        """Return the key of a manifest."""
        namespace = manifest["metadata"].get("namespace") or default_namespace
        return Key(kind_key(manifest), namespace if self.namespaced(manifest) else "", manifest["metadata"]["name"])

    def put(self, manifest: JsonObject, namespace: str = "default") -> JsonObject:
        """Store a checked object. An existing one keeps its uid and creation time."""
        key = self.key(manifest, namespace)
        former = self.objects.get(key)
        stored = copy.deepcopy(manifest)
        self.revision += 1
        metadata: JsonObject = stored["metadata"]
        identity = (former or {}).get("metadata", {})
        metadata["uid"] = identity.get("uid") or str(uuid.uuid4())
        metadata["creationTimestamp"] = identity.get("creationTimestamp") or now().strftime("%Y-%m-%dT%H:%M:%SZ")
        metadata["resourceVersion"] = str(self.revision)
        if key[1]:
            metadata["namespace"] = key[1]
        # Writes do not change the status, as with the status subresource.
        if former and "status" in former and "status" not in stored:
            stored["status"] = former["status"]
        self.objects[key] = stored
        return stored

    def create(self, manifest: JsonObject, namespace: str = "default") -> JsonObject:
        """Check and store a new object. Raises ApiError if it exists or its namespace does not."""
        self.check(manifest)
        key = self.key(manifest, namespace)
        self._need_namespace(key)
        if key in self.objects:
            raise ApiError(409, "AlreadyExists", f'{self._resource(manifest)} "{key[2]}" already exists')
        return self.put(manifest, namespace)

    def apply(self, manifest: JsonObject, namespace: str = "default") -> JsonObject:
        """Check and store a new or changed object."""
        self.check(manifest)
        self._need_namespace(self.key(manifest, namespace))
        return self.put(manifest, namespace)

    def delete(self, manifest: JsonObject, namespace: str = "default") -> JsonObject:
        """Delete an object, a namespace with its objects. Raises ApiError if it does not exist."""
        key = self.key(manifest, namespace)
        if key not in self.objects:
            raise ApiError(404, "NotFound", f'{self._resource(manifest)} "{key[2]}" not found')
        if key[0] == "/Namespace":
            for inner in [item for item in self.objects if item[1] == key[2]]:
                del self.objects[inner]
        return self.objects.pop(key)

    def find(self, api_version: str, kind: str, name: str, namespace: str = "default") -> JsonObject | None:
        """Return an object; None if it does not exist."""
        metadata = {"name": name, "namespace": namespace}
        return self.objects.get(self.key({"apiVersion": api_version, "kind": kind, "metadata": metadata}))

    def named(self, resource: str, name: str, namespace: str) -> JsonObject:
        """Return an object by kubectl's name of its kind. Raises ApiError without it."""
        for (kind, held_in, stored), item in list(self.objects.items()):
            same = kind.rsplit("/", 1)[-1].lower() == resource.lower().rstrip("s")
            if same and stored == name and held_in in ("", namespace):
                return item
        raise ApiError(404, "NotFound", f'{resource} "{name}" not found')

    def all(self, api_version: str, kind: str, namespace: str = "", labels: str = "") -> list[JsonObject]:
        """Return the objects of a kind, in a namespace or in all, that match a label selector."""
        requested = f"{group_of(api_version)}/{kind}"
        return [
            item
            for (stored, held_in, _), item in list(self.objects.items())
            if stored == requested and namespace in ("", held_in) and selected(item, labels)
        ]

    def patch(self, current: JsonObject, change: JsonObject, form: str) -> None:
        """Merge a change into an object, regardless of the patch's form."""
        self.apply(merged(current, change))

    def remove(self, manifest: JsonObject, namespace: str = "default") -> None:
        """Delete an object if it exists, a namespace with its objects."""
        if self.key(manifest, namespace) in self.objects:
            self.delete(manifest, namespace)

    def upgrade(self, release: Release) -> None:
        """Install or upgrade a Helm release, and serve the custom kinds of its chart."""
        rendered_releases.upgrade(self, release)

    def uninstall(self, name: str, namespace: str) -> None:
        """Delete a Helm release if it exists."""
        rendered_releases.uninstall(self, name, namespace)

    def _need_namespace(self, key: Key) -> None:
        if key[1] and ("/Namespace", "", key[1]) not in self.objects:
            raise ApiError(404, "NotFound", f'namespaces "{key[1]}" not found')

    def _resource(self, manifest: JsonObject) -> str:
        group = group_of(manifest["apiVersion"])
        return plural(manifest["kind"]) + (f".{group}" if group else "")


def _without_nulls(value: Any) -> Any:
    """Return a manifest without null members, which the API server drops before it validates."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def selected(item: JsonObject, selector: str) -> bool:
    """Return True if the labels of an object match a selector such as `a=b,c`."""
    labels = item["metadata"].get("labels") or {}
    for part in filter(None, selector.split(",")):
        if "!=" in part:
            name, value = part.split("!=")
            if labels.get(name) == value:
                return False
        elif "=" in part:
            name, value = part.replace("==", "=").split("=")
            if labels.get(name) != value:
                return False
        elif part not in labels:
            return False
    return True
