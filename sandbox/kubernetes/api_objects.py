"""The objects of a real API server, through the official Kubernetes client, and its Helm releases, through helm.

Server-side apply keeps the fields of other managers. The client is imported at its first use, since that takes half a
second and 40 MB, which a sandbox without a real cluster does not need.
"""

import json
import logging
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml
from urllib3.exceptions import HTTPError

from ...operations.programs.helm import helm
from ..protocol.json_objects import JsonObject
from . import chart_renderer
from .cluster_objects import ApiError, Release, unknown_kind
from .custom_kinds import own_of

_LOG = logging.getLogger(__name__)
# Field manager of the sandbox. A later apply by it without a field removes that field.
_MANAGER = "podwright-sandbox"
_DEFINITION = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
# Less than the 300 s for which the sandbox's services wait for each other. A namespace takes 5 s.
_WAIT_SECONDS = 50.0
_POLL_SECONDS = 0.1
_PLUGIN = "podwright"


@dataclass
class Connection:
    """The official client of an API server, and the kinds that the server has reported."""

    client: Any
    kinds: dict[str, dict[str, JsonObject]] = field(default_factory=dict)
    """The resources of each group and version, by kind."""

    def request(self, method: str, path: str, body: Any = None, content: str = "json", **query: str) -> JsonObject:
        """Send a request. Raises ApiError with the server's message, or if the server does not answer."""
        from kubernetes.client.exceptions import ApiException

        headers = {"Accept": "application/json", "Content-Type": f"application/{content}"}
        try:
            answer = self.client.call_api(
                path, method, {}, list(query.items()), headers, body, auth_settings=["BearerToken"],
                _preload_content=False, _return_http_data_only=True,
            )  # fmt: skip
        except ApiException as error:
            raise _refusal(error) from error
        except HTTPError as error:
            message = f"the API server at {self.client.configuration.host} does not answer: {error}"
            raise ApiError(503, "ServiceUnavailable", message) from error
        return json.loads(answer.data)

    def resources(self, api_version: str) -> dict[str, JsonObject]:
        """Return the resources of a group and version, by kind; empty if the server does not serve it."""
        try:
            answer = self.request("GET", f"/{_root(api_version)}")
        except ApiError as error:
            if error.code == 404:
                return {}
            raise
        self.kinds[api_version] = {item["kind"]: item for item in answer["resources"] if "/" not in item["name"]}
        return self.kinds[api_version]

    def resource(self, api_version: str, kind: str) -> JsonObject | None:
        """Return the resource of a kind; None if it is not served. Missing kinds are requested again."""
        known = self.kinds.get(api_version, {}).get(kind)
        return known or self.resources(api_version).get(kind)


@lru_cache(maxsize=64)
def connection(kubeconfig: Path, written: int) -> Connection:
    """Return the connection of a kubeconfig, which `written`, its modification time, identifies."""
    from kubernetes import client, config

    configuration = client.Configuration()
    config.load_kube_config(str(kubeconfig), client_configuration=configuration)
    # The server is on loopback.
    configuration.proxy = None
    return Connection(client.ApiClient(configuration))


def _root(api_version: str) -> str:
    return f"apis/{api_version}" if "/" in api_version else f"api/{api_version}"


def _refusal(error: Any) -> ApiError:
    """Return the server's Status object or plain text as an error."""
    try:
        status = json.loads(error.body)
    except ValueError:
        return ApiError(error.status, error.reason or "Unknown", error.body)
    return ApiError(error.status, status.get("reason") or "Unknown", status.get("message", error.body))


@dataclass(frozen=True)
class ApiObjects:
    """The objects of the API server of an administrator's kubeconfig."""

    kubeconfig: Path
    define: Callable[[Sequence[JsonObject]], None] | None = field(default=None, compare=False)
    """Applies custom resource definitions faster than the API server, if its control plane can."""

    def __reduce__(self) -> tuple[type["ApiObjects"], tuple[Path]]:
        """Pickle only the kubeconfig. A control plane that starts again sets the other attributes."""
        return ApiObjects, (self.kubeconfig,)

    @property
    def _api(self) -> Connection:
        return connection(self.kubeconfig, self.kubeconfig.stat().st_mtime_ns)

    @property
    def version(self) -> str:
        """The Kubernetes version of the API, such as 1.34."""
        answer = self._api.request("GET", "/version")
        return f"{answer['major']}.{answer['minor']}"

    def find(self, api_version: str, kind: str, name: str, namespace: str = "default") -> JsonObject | None:
        """Return an object; None if it does not exist or its kind is not served."""
        path = self._path(api_version, kind, namespace)
        try:
            return self._api.request("GET", f"{path}/{quote(name)}") if path else None
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    def named(self, resource: str, name: str, namespace: str) -> JsonObject:
        """Return an object by kubectl's name of its kind. Raises ApiError without it."""
        groups = self._api.request("GET", "/apis")["groups"]
        for api_version in ("v1", *(group["preferredVersion"]["groupVersion"] for group in groups)):
            for kind, served in self._api.resources(api_version).items():
                names = (served["name"], served["singularName"], *served.get("shortNames", ()))
                result = self.find(api_version, kind, name, namespace) if resource.lower() in names else None
                if result:
                    return result
        raise ApiError(404, "NotFound", f'{resource} "{name}" not found')

    def all(self, api_version: str, kind: str, namespace: str = "", labels: str = "") -> list[JsonObject]:
        """Return the objects of a kind, in a namespace or in all, that match a label selector."""
        path = self._path(api_version, kind, namespace)
        if not path:
            return []
        answer = self._api.request("GET", path, labelSelector=labels)
        # The items of a list lack these.
        return [{"apiVersion": api_version, "kind": kind, **item} for item in answer["items"]]

    def create(self, manifest: JsonObject, namespace: str = "default") -> JsonObject:
        """Create an object and return it. Raises ApiError if it exists.

        It is tried out as a plain creation and then applied: only what was applied is taken out again by an `apply`
        that leaves it out, as kubectl does with what it created by `--save-config`.
        """
        path = self._required_path(manifest, namespace)
        self._api.request("POST", path, manifest, fieldManager=_MANAGER, dryRun="All")
        return self.apply(manifest, namespace)

    def apply(self, manifest: JsonObject, namespace: str = "default") -> JsonObject:
        """Apply a manifest and return the object. A new kind is served by then."""
        path = f"{self._required_path(manifest, namespace)}/{quote(manifest['metadata']['name'])}"
        stored = self._api.request("PATCH", path, manifest, "apply-patch+yaml", fieldManager=_MANAGER, force="true")
        if (stored["apiVersion"], stored["kind"]) == _DEFINITION:
            self._wait_served(stored)
        return stored

    def patch(self, current: JsonObject, change: JsonObject, form: str) -> None:
        """Patch an object by a patch of the form `strategic`, `merge` or `json`."""
        metadata = current["metadata"]
        path = f"{self._required_path(current, '')}/{quote(metadata['name'])}"
        content = {"strategic": "strategic-merge-patch+json", "merge": "merge-patch+json", "json": "json-patch+json"}
        self._api.request("PATCH", path, change, content[form], fieldManager=_MANAGER)

    def remove(self, manifest: JsonObject, namespace: str = "default") -> None:
        """Delete an object if it exists. A namespace is deleted with its objects.

        As `kubectl delete`, this returns once the object is gone: what is made next may need its name. Raises ApiError
        where finalizers hold it.
        """
        metadata = manifest["metadata"]
        reference = manifest["apiVersion"], manifest["kind"], metadata["name"], metadata.get("namespace") or namespace
        path = self._path(reference[0], reference[1], reference[3])
        if path is None:
            return
        try:
            answer = self._api.request("DELETE", f"{path}/{quote(reference[2])}", propagationPolicy="Background")
        except ApiError as error:
            if error.code == 404:
                return
            raise
        # The object if its deletion takes time, otherwise a Status.
        uid = answer["metadata"].get("uid") or answer["details"]["uid"]

        def is_gone() -> bool:
            current = self.find(*reference)
            return current is None or current["metadata"]["uid"] != uid

        _wait(is_gone, f"{reference[1]} {reference[2]} is still being deleted")

    def install(self, owner: str) -> None:
        """Serve the kinds of a chart or an add-on for which only podwright has definitions. Existing ones remain."""
        self._add_definitions(own_of(owner))

    def upgrade(self, release: Release) -> None:
        """Install or upgrade a Helm release, and serve the custom kinds of its chart.

        Nothing waits for pods, and no hooks run. What would lead the API server to a process that is not here is left
        out (see `chart_renderer`). What an operator that runs here brought before becomes the release's.
        """
        flags = ["--create-namespace"] * release.makes_namespace + ["--skip-crds"] * release.skips_crds
        if not release.skips_crds:
            self._define(release.chart)
        leading_here = self._leading_here()
        if leading_here:
            flags += ["--take-ownership", "--force-conflicts"]
        with tempfile.TemporaryDirectory(prefix="podwright-plugins-") as folder:
            report = Path(folder) / "left-out"
            _write_plugin(Path(folder), [release.namespace, str(report), *leading_here])
            options = ["--namespace", release.namespace, "--values", str(release.values), "--post-renderer", _PLUGIN]
            self._helm(
                *("upgrade", release.name, str(release.chart), "--install", "--no-hooks", *options, *flags),
                plugins=Path(folder),
            )
            # helm does not render a chart without objects.
            lines = report.read_text(encoding="utf-8").splitlines() if report.exists() else ()
        for line in lines:
            _LOG.warning("%s of the release %s is left out: its Service has no process here", line, release.name)
        # The chart's definitions come first, since Helm does not adopt definitions of other managers.
        self.install(release.name)

    def uninstall(self, name: str, namespace: str) -> None:
        """Delete a Helm release if it exists."""
        self._helm("uninstall", name, "--namespace", namespace, "--ignore-not-found", "--no-hooks")

    def _define(self, chart: Path) -> None:
        """Serve the kinds of a chart's `crds` folder. Helm applies them, too, but does not wait for them."""
        texts = (file.read_text(encoding="utf-8") for file in sorted(chart.glob("crds/*.yaml")))
        self._add_definitions(item for text in texts for item in yaml.load_all(text, yaml.CSafeLoader) if item)

    def _add_definitions(self, definitions: Iterable[JsonObject]) -> None:
        """Serve kinds that the server does not serve yet."""
        missing = [item for item in definitions if self.find(*_DEFINITION, item["metadata"]["name"]) is None]
        if self.define and missing:
            self.define(missing)
            return
        for definition in missing:
            self.apply(definition)

    def _helm(self, *arguments: str, plugins: Path | None = None) -> None:
        helm(*arguments, "--kubeconfig", str(self.kubeconfig), plugins=plugins)

    def _leading_here(self) -> list[str]:
        """Return the Services that lead to a process: those of type ExternalName. Other addresses are not routed."""
        services = [item for item in self.all("v1", "Service") if item["spec"]["type"] == "ExternalName"]
        return [f"{item['metadata']['namespace']}/{item['metadata']['name']}" for item in services]

    def _path(self, api_version: str, kind: str, namespace: str) -> str | None:
        """Return the path of a kind's objects, in a namespace or in all; None for a kind that is not served."""
        served = self._api.resource(api_version, kind)
        if served is None:
            return None
        scope = f"namespaces/{quote(namespace)}/" if served["namespaced"] and namespace else ""
        return f"/{_root(api_version)}/{scope}{served['name']}"

    def _required_path(self, manifest: JsonObject, namespace: str) -> str:
        path = self._path(manifest["apiVersion"], manifest["kind"], manifest["metadata"].get("namespace") or namespace)
        if path is None:
            raise unknown_kind(manifest)
        return path

    def _wait_served(self, definition: JsonObject) -> None:
        """Wait until objects of a kind can be created. A former definition is still served for a moment."""
        spec, name = definition["spec"], definition["metadata"]["name"]
        versions = [f"{spec['group']}/{version['name']}" for version in spec["versions"] if version["served"]]

        def is_served() -> bool:
            current = self.find(*_DEFINITION, name) or {}
            conditions = current.get("status", {}).get("conditions") or ()
            established = any(item["type"] == "Established" and item["status"] == "True" for item in conditions)
            return established and all(spec["names"]["kind"] in self._api.resources(version) for version in versions)

        _wait(is_served, f"{name} is not served")


def _write_plugin(plugins: Path, arguments: list[str]) -> None:
    """Write the post-renderer plugin that Helm runs, in JSON, which is valid YAML."""
    plugin = {
        "apiVersion": "v1",
        "type": "postrenderer/v1",
        "name": _PLUGIN,
        "version": "1.0.0",
        "runtime": "subprocess",
        "runtimeConfig": {
            "platformCommand": [{"command": sys.executable, "args": ["-P", "-m", chart_renderer.__name__, *arguments]}]
        },
    }
    folder = plugins / _PLUGIN
    folder.mkdir()
    (folder / "plugin.yaml").write_text(json.dumps(plugin), encoding="utf-8")


def _wait(condition: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + _WAIT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise ApiError(504, "Timeout", f"{otherwise} after {_WAIT_SECONDS:.0f} s (sandbox)")
        time.sleep(_POLL_SECONDS)
