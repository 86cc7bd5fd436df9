"""A Kubernetes control plane of upstream programs on the loopback interface, with one etcd."""

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ...config.errors import CommandError
from ..kubernetes.certificates import Authority
from .cache import Cache, State
from .components import Components
from .kai_programs import KaiPrograms
from .kubectl import apply, delete, read_objects, wait_deleted, wait_served
from .operators import OWN, Name, Operator, is_settings, operator, release
from .pins import KUBERNETES, Pins, pins
from .processes import Ports, Processes, Running
from .ray_dashboard import RayDashboard
from .webhooks import Manifest, on_loopback

_OPERATORS: Final = "operators.json"
_PORTS: Final = "ports.json"
_DEFINITION: Final = "CustomResourceDefinition"


def pins_for(version: str, cache: Cache) -> Pins:
    """The pins of a cluster's minor version of Kubernetes, where that is installed; else those of the default one."""
    minor = pins().minors.get(version)
    return pins().of_minor(version) if minor and cache.state(minor) is State.INSTALLED else pins()


class ControlPlane:
    """The upstream programs of a Kubernetes control plane, whose data, keys and logs lie in one folder."""

    def __init__(self, folder: Path, pins: Pins, cache: Cache, time_scale: float = 1.0) -> None:
        """Raises CommandError where a part of the control plane is not installed."""
        absent = [part.name for part in pins.parts if cache.state(part) is not State.INSTALLED]
        if absent:
            raise CommandError(
                f"the control plane lacks {', '.join(absent)}", "install it by `podwright sandbox kubernetes install`"
            )
        self.version = pins.part(KUBERNETES).version
        """Of Kubernetes."""
        self._folder = folder.resolve()
        self._parts = {part.name: cache.folder(part) for part in pins.parts} | OWN
        self._time_scale = time_scale
        self._processes = Processes(self._folder / "processes")
        self._components: Components | None = None
        self._dashboard: RayDashboard | None = None
        self._kai: KaiPrograms | None = None
        self._lock = threading.RLock()
        """Held by whoever starts or stops processes: what is being stopped is not started again."""

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self._folder / "keys" / "admin.kubeconfig"

    @property
    def endpoint(self) -> str:
        """The URL of its API server, which has been started once."""
        ports = Ports.read(self._folder / _PORTS)
        assert ports is not None, "it has been started"
        return f"https://127.0.0.1:{ports.api}"

    @property
    def authority(self) -> bytes:
        """The certificate that signs the API server's, as PEM."""
        return Authority.open(self._folder / "keys").file.read_bytes()

    @property
    def kubelets(self) -> Authority:
        """Signs the server of its kubelets, and the API server as that server's only client."""
        return Authority.open(self._folder / "keys" / "kubelets")

    @property
    def running(self) -> list[Running]:
        """Its living processes, in the order of their start."""
        return self._processes.running

    def start(self, port: int = 0, options: Mapping[str, str] | None = None) -> None:
        """Start everything; what the folder's etcd holds is there again.

        Args:
            port: Of the API server; 0 for any.
            options: More of the API server's, by name.

        Raises:
            CommandError: It runs already, the port is taken, or a component does not get ready. Then all are stopped.
        """
        with self._lock:
            self._start_all(port, options or {})

    def _start_all(self, port: int, options: Mapping[str, str]) -> None:
        """Start everything, or nothing."""
        if self.running:
            raise CommandError(f"the control plane in {self._folder} runs already", "stop it first")
        former = Ports.read(self._folder / _PORTS)
        # The same ones, where they are free: kubeconfigs of users and services of operators name them.
        ports = former if former and port in (0, former.api) and former.are_free() else Ports.free(port)
        components = self._components = Components(self._folder, self._parts, ports, self._time_scale)
        try:
            self._start(components, options, moved=ports != former)
            ports.write(self._folder / _PORTS)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop all of its processes, etcd last. Its data stay."""
        with self._lock:
            self._processes.stop()
            if self._dashboard:
                self._dashboard.stop()
                self._dashboard = None

    def restart_ended(self) -> list[str]:
        """Start again what ended by itself. Returns the names of the components.

        Raises:
            CommandError: One does not get ready; the next call tries it again.
        """
        with self._lock:
            return self._processes.restart_ended(self._running_components().authority.file)

    def _start(self, components: Components, options: Mapping[str, str], *, moved: bool) -> None:
        """Start the API server, then what acts on its objects."""
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
        """Let an operator's services lead to its new ports."""
        objects = on_loopback(release(item, self._parts[item.name]), item.services)
        served = {"Service", "APIService", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"}
        # kubectl refuses to apply nothing, which one without a service has.
        if moved := [entry for entry in objects if entry["kind"] in served or _is_converted(entry)]:
            apply(self.kubeconfig, moved)

    @property
    def operators(self) -> list[Name]:
        """The operators that were installed, which start with it."""
        try:
            return json.loads((self._folder / _OPERATORS).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return []

    def install(self, name: Name, settings: Mapping[str, Any] | None = None) -> None:
        """Apply the release of an operator and start it; one that is there stays.

        Args:
            name: The operator.
            settings: What its configuration has in place of the release's, by key.

        Raises:
            CommandError: Its objects are refused, or it does not get ready.
        """
        if name in self.operators:
            return
        components = self._running_components()
        item = operator(name, components.ports)
        objects = release(item, self._parts[name], settings)
        # It may have been uninstalled a moment ago.
        wait_deleted(self.kubeconfig, objects)
        apply(self.kubeconfig, on_loopback(objects, item.services))
        wait_served(self.kubeconfig, [entry["metadata"]["name"] for entry in objects if entry["kind"] == _DEFINITION])
        with self._lock:
            if name == "kuberay":
                self._dashboard = self._dashboard or components.ray_dashboard()
            self._processes.start(components.authority.file, components.operator(item))
            if "kueue" in self.operators:
                # It looks for kinds when it starts, and for those that it lacks every two minutes.
                self._restart(operator("kueue", components.ports))
            self._write_operators([*self.operators, name])

    def chart(self, name: str) -> Path | None:
        """The folder of a Helm chart that one of its parts carries."""
        folders = (part / "charts" / name for part in self._parts.values())
        return next((folder for folder in folders if folder.is_dir()), None)

    def restart(self, name: Name, settings: Mapping[str, Any] | None = None) -> None:
        """Start an operator again, if it runs and the configuration changed that the cluster has for it.

        Args:
            name: The operator.
            settings: What its configuration now has in place of the release's; None leaves the cluster's as it is.
        """
        if name not in self.operators:
            return
        components = self._running_components()
        item = operator(name, components.ports)
        if settings is not None:
            apply(
                self.kubeconfig, [entry for entry in release(item, self._parts[name], settings) if is_settings(entry)]
            )
        if not components.is_configured(item):
            with self._lock:
                self._restart(item)

    def _restart(self, item: Operator) -> None:
        components = self._running_components()
        self._processes.stop(item.name)
        self._processes.start(components.authority.file, components.operator(item))

    def uninstall(self, name: Name) -> None:
        """Stop an operator and take its release away, except for its kinds and their objects."""
        if name in self.operators:
            item = operator(name, self._running_components().ports)
            objects = [entry for entry in release(item, self._parts[name]) if entry["kind"] != _DEFINITION]
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
    return item["kind"] == _DEFINITION and "webhook" in item["spec"].get("conversion", {})
