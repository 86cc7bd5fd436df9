"""A Kubernetes control plane of upstream programs on the loopback interface, with one etcd."""

import json
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from ...config.catalog.charts import KAI
from ...config.errors import CommandError
from ...planning.helm.operators import BASE_PARTS
from ..kubernetes.api_objects import ApiObjects
from ..kubernetes.certificates import Authority
from ..kubernetes.ray_dashboard import RayDashboard
from .cache import Cache, State
from .cluster_api import apply, are_served, delete, wait_deleted
from .components import Components
from .definitions import KIND, Definitions, Etcd
from .kai_programs import KaiPrograms
from .kubectl import read_objects
from .operators import OWN, Name, Operator, is_settings, operator, release
from .pins import KUBERNETES, Pins, pins
from .processes import Ports, Processes, Running
from .webhooks import Manifest, on_loopback

_OPERATORS: Final = "operators.json"
_PORTS: Final = "ports.json"


def pins_for(version: str, cache: Cache) -> Pins:
    """Return the pins of a minor version of Kubernetes if it is installed; otherwise those of the default version."""
    minor = pins().minors.get(version)
    return pins().of_minor(version) if minor and cache.state(minor) is State.INSTALLED else pins()


def missing_parts(names: Iterable[str], pins: Pins, cache: Cache) -> list[str]:
    """Return those of the named parts that are not installed, in the order of the build."""
    required = set(names)
    return [part.name for part in pins.parts if part.name in required and cache.state(part) is not State.INSTALLED]


class ControlPlane:
    """The upstream programs of a Kubernetes control plane. One folder contains its data, keys and logs."""

    def __init__(self, folder: Path, pins: Pins, cache: Cache, time_scale: float = 1.0) -> None:
        """Open the control plane of a folder. It starts with its installed operators.

        Args:
            folder: Folder of its data, keys and logs.
            pins: Versions of its parts.
            cache: Cache that the parts are installed in.
            time_scale: Factor for the waits of podwright's own operators.

        Raises:
            CommandError: Kubernetes, etcd, kwok, or the part of an installed operator is missing.
        """
        self.version = pins.part(KUBERNETES).version
        """Version of Kubernetes."""
        self.pins = pins
        """Versions of its parts."""
        self._folder, self._cache = folder.resolve(), cache
        self._require(*BASE_PARTS, *self.operators)
        self._parts = {part.name: cache.folder(part) for part in pins.parts} | OWN
        self._time_scale = time_scale
        self._processes = Processes(self._folder / "processes")
        self._components: Components | None = None
        self._dashboard: RayDashboard | None = None
        self._kai: KaiPrograms | None = None
        self._defined: set[Name] = set()
        """Operators whose definitions this object has applied."""
        self._lock = threading.RLock()
        """Lock of every start and stop, so that no process is restarted while it is being stopped."""

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self._folder / "keys" / "admin.kubeconfig"

    @property
    def objects(self) -> ApiObjects:
        """The objects of its API server, as its administrator; it has been started."""
        return ApiObjects(self.kubeconfig, self.definitions.apply)

    @property
    def endpoint(self) -> str:
        """The URL of its API server, which has been started once."""
        return f"https://127.0.0.1:{self.api_port}"

    @property
    def api_port(self) -> int:
        """The port of its API server on loopback, which has been started once."""
        ports = Ports.read(self._folder / _PORTS)
        assert ports is not None, "it has been started"
        return ports.api

    @property
    def authority(self) -> bytes:
        """The certificate that signs the API server's, as PEM."""
        return self.users.file.read_bytes()

    @property
    def users(self) -> Authority:
        """The authority that signs the certificates of the API server and its users."""
        return Authority.open(self._folder / "keys")

    @property
    def kubelets(self) -> Authority:
        """The authority that signs the certificates of the kubelets, and of the API server as their only client."""
        return Authority.open(self._folder / "keys" / "kubelets")

    @property
    def running(self) -> list[Running]:
        """Its living processes, in the order of their start."""
        return self._processes.running

    def start(self, port: int = 0, options: Mapping[str, str] | None = None) -> None:
        """Start all programs, with the data of the folder's etcd.

        Args:
            port: Port of the API server; 0 for any.
            options: Further options of the API server, by name.

        Raises:
            CommandError: It already runs, the port is in use, or a component does not become ready. No process remains.
        """
        with self._lock:
            self._start_all(port, options or {})

    def _start_all(self, port: int, options: Mapping[str, str]) -> None:
        """Start all programs; if one fails, stop them all."""
        if self.running:
            raise CommandError(f"the control plane in {self._folder} runs already", "stop it first")
        former = Ports.read(self._folder / _PORTS)
        # Users' kubeconfigs and the services of operators contain the former ports, so free ones are used again.
        ports = former if former and port in (0, former.api) and former.are_free() else Ports.free(port)
        components = self._components = Components(self._folder, self._parts, ports, self._time_scale)
        try:
            self._start(components, options, moved=ports != former)
            ports.write(self._folder / _PORTS)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop all processes, etcd last. The data remain."""
        with self._lock:
            self._processes.stop()
            if self._dashboard:
                self._dashboard.stop()
                self._dashboard = None

    def restart_ended(self) -> list[str]:
        """Restart components that have ended unexpectedly. Returns their names.

        Raises:
            CommandError: One does not get ready; the next call tries it again.
        """
        with self._lock:
            return self._processes.restart_ended(self._running_components().authority.file)

    def _start(self, components: Components, options: Mapping[str, str], *, moved: bool) -> None:
        """Start the API server, then its controllers and operators."""
        trusted = components.authority.file
        self._processes.start(trusted, components.etcd())
        self._processes.start(trusted, components.api_server(options))
        apply(components.admin, read_objects(self._parts["kwok"] / "permissions.yaml"))
        items = [operator(name, components.ports) for name in self.operators]
        for item in items if moved else ():
            self._move(item)
        operators = [components.operator(item) for item in items]
        if "kuberay" in self.operators:
            self._dashboard = components.ray_dashboard()
        self._kai = KaiPrograms(components, self._processes, self._lock)
        base = [components.controller_manager(), components.scheduler(), components.kwok()]
        self._processes.start(trusted, *base, *operators)
        if moved:
            self._kai.move()
        self._kai.run()

    def _move(self, item: Operator) -> None:
        """Change an operator's services to its new ports."""
        objects = on_loopback(release(item, self._parts[item.name]), item.services)
        served = {"Service", "APIService", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"}
        apply(self.kubeconfig, [entry for entry in objects if entry["kind"] in served or _is_converted(entry)])

    @property
    def operators(self) -> list[Name]:
        """The installed operators, which start with the control plane."""
        try:
            return json.loads((self._folder / _OPERATORS).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return []

    def install(self, name: Name, settings: Mapping[str, Any] | None = None, expected: Iterable[Name] = ()) -> None:
        """Apply the release of an operator and start it, unless it is installed.

        Args:
            name: The operator.
            settings: Changes of the release's configuration, by key.
            expected: Operators that will be installed later. If the operator is Kueue, their kinds are applied first:
                Kueue discovers kinds when it starts, and so needs no restart for them.

        Raises:
            CommandError: Its part is not installed, its objects are refused, or it does not get ready.
        """
        self.apply_release(name, settings, expected)
        self.restart(name)

    def apply_release(
        self, name: Name, settings: Mapping[str, Any] | None = None, expected: Iterable[Name] = ()
    ) -> None:
        """Apply an operator's objects, and do not start its process: its chart may change the configuration first.

        `restart` starts it. The arguments and errors are those of `install`.
        """
        if name in self.operators:
            return
        self._require(name)
        components = self._running_components()
        item = operator(name, components.ports)
        objects = release(item, self._parts[name], settings)
        # The deletion of an earlier installation may not have ended.
        wait_deleted(self.kubeconfig, objects)
        has_new_kinds = self._define(item, objects)
        # Kueue discovers kinds when it starts, and retries missing ones only every two minutes.
        for other in (operator(each, components.ports) for each in expected if name == "kueue"):
            self._define(other, release(other, self._parts[other.name]))
        apply(self.kubeconfig, on_loopback([entry for entry in objects if entry["kind"] != KIND], item.services))
        with self._lock:
            if name == "kuberay":
                self._dashboard = self._dashboard or components.ray_dashboard()
            if has_new_kinds and "kueue" in self.operators:
                self._restart(operator("kueue", components.ports))
            self._write_operators([*self.operators, name])

    def _define(self, item: Operator, objects: Iterable[Manifest]) -> bool:
        """Apply the definitions among an operator's objects. Returns True if the API server did not serve all kinds."""
        definitions = [entry for entry in objects if entry["kind"] == KIND]
        is_new = not are_served(self.kubeconfig, definitions)
        # They change only with the version of podwright, and a second application takes seconds of processor time.
        if is_new or item.name not in self._defined:
            self.definitions.apply(definitions, item.services)
            self._defined.add(item.name)
        return is_new

    @property
    def definitions(self) -> Definitions:
        """Applies custom resource definitions to its API server; it has been started."""
        etcd = Etcd(self._running_components().ports.etcd, Authority.open(self._folder / "keys" / "etcd"))
        return Definitions(self._cache.definitions, self.pins.part(KUBERNETES).recipe, self.kubeconfig, etcd)

    def chart(self, name: str) -> Path | None:
        """Return the folder of a Helm chart that one of its installed parts contains."""
        installed = (part for part in self.pins.parts if self._cache.state(part) is State.INSTALLED)
        folders = (self._parts[part.name] / "charts" / name for part in installed)
        return next((folder for folder in folders if folder.is_dir()), None)

    def deploy_kai(self) -> None:
        """Run KAI after its Helm release has been installed or changed.

        Raises:
            CommandError: KAI's part is not installed, or a program of it does not get ready.
        """
        self._require(KAI)
        self.kai.deploy(KAI)

    def _require(self, *names: str) -> None:
        """Raise CommandError if one of these parts is not installed."""
        if absent := missing_parts(names, self.pins, self._cache):
            raise CommandError(
                f"the control plane lacks {', '.join(absent)}",
                "`podwright sandbox kubernetes install ENV` builds what an environment needs",
            )

    def restart(self, name: Name, settings: Mapping[str, Any] | None = None) -> None:
        """Start an operator, or restart it if its configuration in the cluster has changed; it may not be installed.

        Args:
            name: The operator.
            settings: New changes of the release's configuration; None keeps the cluster's configuration.
        """
        if name not in self.operators:
            return
        components = self._running_components()
        item = operator(name, components.ports)
        if settings is not None:
            apply(
                self.kubeconfig, [entry for entry in release(item, self._parts[name], settings) if is_settings(entry)]
            )
        with self._lock:
            if not self._processes.has(name) or not components.is_configured(item):
                self._restart(item)

    def _restart(self, item: Operator) -> None:
        components = self._running_components()
        self._processes.stop(item.name)
        self._processes.start(components.authority.file, components.operator(item))

    def uninstall(self, name: Name) -> None:
        """Stop an operator and delete its release, except for its kinds and their objects."""
        if name in self.operators:
            item = operator(name, self._running_components().ports)
            objects = [entry for entry in release(item, self._parts[name]) if entry["kind"] != KIND]
            delete(self.kubeconfig, objects)
            with self._lock:
                self._processes.stop(name)
                self._write_operators([other for other in self.operators if other != name])

    @property
    def kai(self) -> KaiPrograms:
        """KAI's programs; it has been started."""
        assert self._kai is not None, "the control plane runs"
        return self._kai

    def _running_components(self) -> Components:
        assert self._components is not None, "the control plane runs"
        return self._components

    def _write_operators(self, names: list[Name]) -> None:
        (self._folder / _OPERATORS).write_text(json.dumps(names), encoding="utf-8")


def _is_converted(item: Manifest) -> bool:
    return item["kind"] == KIND and "webhook" in item["spec"].get("conversion", {})
