"""The interface of a cluster's objects, for clusters with a store and with a real API server."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..protocol.json_objects import JsonObject


class ApiError(Exception):
    """An error of the Kubernetes API: HTTP status, reason and message of its Status object."""

    def __init__(self, code: int, reason: str, message: str):
        super().__init__(message)
        self.code, self.reason = code, reason


@dataclass(frozen=True, slots=True)
class Release:
    """The desired state of a Helm release: the chart's folder, and the file with its values."""

    name: str
    namespace: str
    chart: Path
    values: Path
    makes_namespace: bool
    skips_crds: bool


class ClusterObjects(Protocol):
    """The objects of one cluster. `namespace` is the default of objects without one. Methods raise ApiError."""

    @property
    def version(self) -> str:
        """The Kubernetes version of the API, such as 1.34."""
        ...

    def find(self, api_version: str, kind: str, name: str, namespace: str = "default") -> JsonObject | None:
        """Return an object; None if it does not exist or its kind is not served."""
        ...

    def named(self, resource: str, name: str, namespace: str) -> JsonObject:
        """Return an object by kubectl's name of its kind, such as `deployment`. Raises ApiError without it."""
        ...

    def all(self, api_version: str, kind: str, namespace: str = "", labels: str = "") -> list[JsonObject]:
        """Return the objects of a kind, in a namespace or in all, that match a label selector."""
        ...

    def create(self, manifest: JsonObject, namespace: str = "default") -> JsonObject:
        """Create an object and return it. Raises ApiError if it exists."""
        ...

    def apply(self, manifest: JsonObject, namespace: str = "default") -> JsonObject:
        """Apply a manifest and return the object."""
        ...

    def patch(self, current: JsonObject, change: JsonObject, form: str) -> None:
        """Patch an object by a patch of the form `strategic`, `merge` or `json`."""
        ...

    def remove(self, manifest: JsonObject, namespace: str = "default") -> None:
        """Delete an object if it exists, and wait for its end. A namespace is deleted with its objects."""
        ...

    def install(self, owner: str) -> None:
        """Serve the custom kinds of a chart or an add-on. Existing definitions remain."""
        ...

    def upgrade(self, release: Release) -> None:
        """Install or upgrade a Helm release, and serve the custom kinds of its chart."""
        ...

    def uninstall(self, name: str, namespace: str) -> None:
        """Delete a Helm release if it exists."""
        ...


def ensure_namespace(objects: ClusterObjects, name: str, **metadata: JsonObject) -> None:
    """Create a namespace unless it exists."""
    if objects.find("v1", "Namespace", name) is None:
        objects.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, **metadata}})


def unknown_kind(manifest: JsonObject) -> ApiError:
    """Return kubectl's error for an object whose kind the API does not serve."""
    return ApiError(
        404,
        "NotFound",
        f'resource mapping not found for name: "{manifest["metadata"]["name"]}" namespace: '
        f'"{manifest["metadata"].get("namespace", "")}" from "manifest.yaml": no matches for kind '
        f'"{manifest["kind"]}" in version "{manifest["apiVersion"]}"\nensure CRDs are installed first',
    )
