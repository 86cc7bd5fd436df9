"""What the sandbox's services do with the objects of a cluster, whether a store has them or a real API server."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..protocol.json_objects import JsonObject


class ApiError(Exception):
    """A refusal of the Kubernetes API: HTTP status, reason and message as in its Status object."""

    def __init__(self, code: int, reason: str, message: str):
        super().__init__(message)
        self.code, self.reason = code, reason


@dataclass(frozen=True, slots=True)
class Release:
    """A Helm release as it should become: the chart's folder, and the file of its values."""

    name: str
    namespace: str
    chart: Path
    values: Path
    makes_namespace: bool
    skips_crds: bool


class ClusterObjects(Protocol):
    """The objects of one cluster. `namespace` is that of objects that name none; what is refused raises ApiError."""

    @property
    def version(self) -> str:
        """The Kubernetes version of the API, such as 1.34."""
        ...

    def find(self, api_version: str, kind: str, name: str, namespace: str = "default") -> JsonObject | None:
        """An object; None without it, and where its kind is not served."""
        ...

    def named(self, resource: str, name: str, namespace: str) -> JsonObject:
        """An object by how kubectl names its kind, such as `deployment`; refused without it."""
        ...

    def all(self, api_version: str, kind: str, namespace: str = "", labels: str = "") -> list[JsonObject]:
        """The objects of a kind, of one namespace if it is named, that a label selector matches."""
        ...

    def create(self, manifest: JsonObject, namespace: str = "default") -> JsonObject:
        """Make a new object. Returns it; an existing one is refused."""
        ...

    def apply(self, manifest: JsonObject, namespace: str = "default") -> JsonObject:
        """Make an object, or change it to what the manifest says. Returns it."""
        ...

    def patch(self, current: JsonObject, change: JsonObject, form: str) -> None:
        """Change an object by a patch of the form `strategic`, `merge` or `json`."""
        ...

    def remove(self, manifest: JsonObject, namespace: str = "default") -> None:
        """Delete an object if it is there, a namespace with all that is in it. It is gone when this returns."""
        ...

    def install(self, owner: str) -> None:
        """Serve the custom kinds that a chart or an add-on of this name brings; those that are there stay."""
        ...

    def upgrade(self, release: Release) -> None:
        """Install a Helm release, or change it, and serve the custom kinds that its chart brings."""
        ...

    def uninstall(self, name: str, namespace: str) -> None:
        """Delete a Helm release if it is there."""
        ...


def ensure_namespace(objects: ClusterObjects, name: str, **metadata: JsonObject) -> None:
    """Make a namespace where there is none of this name; an existing one stays as it is."""
    if objects.find("v1", "Namespace", name) is None:
        objects.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, **metadata}})


def unknown_kind(manifest: JsonObject) -> ApiError:
    """What kubectl says of an object whose kind the API does not serve."""
    return ApiError(
        404,
        "NotFound",
        f'resource mapping not found for name: "{manifest["metadata"]["name"]}" namespace: '
        f'"{manifest["metadata"].get("namespace", "")}" from "manifest.yaml": no matches for kind '
        f'"{manifest["kind"]}" in version "{manifest["apiVersion"]}"\nensure CRDs are installed first',
    )
