"""A Kubernetes control plane of upstream programs on the loopback interface, with one etcd."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ...config.errors import CommandError
from ..kubernetes.certificates import Authority
from .cache import Cache, State
from .components import Components
from .kubectl import apply, read_objects
from .operators import Name, operator, release
from .pins import Pins
from .processes import Component, Ports, Processes, Running
from .webhooks import on_loopback

_OPERATORS: Final = "operators.json"
_PORTS: Final = "ports.json"


class ControlPlane:
    """The upstream programs of a Kubernetes control plane, whose data, keys and logs lie in one folder."""

    def __init__(self, folder: Path, pins: Pins, cache: Cache) -> None:
        """Raises CommandError where a part of the control plane is not installed."""
        absent = [part.name for part in pins.parts if cache.state(part) is not State.INSTALLED]
        if absent:
            raise CommandError(
                f"the control plane lacks {', '.join(absent)}", "install it by `podwright sandbox kubernetes install`"
            )
        self._folder = folder.resolve()
        self._parts = {part.name: cache.folder(part) for part in pins.parts}
        self._processes = Processes(self._folder / "processes")
        self._components: Components | None = None

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
        if self.running:
            raise CommandError(f"the control plane in {self._folder} runs already", "stop it first")
        former = Ports.read(self._folder / _PORTS)
        # The same ones, where they are free: kubeconfigs of users and services of operators name them.
        ports = former if former and port in (0, former.api) and former.are_free() else Ports.free(port)
        components = self._components = Components(self._folder, self._parts, ports)
        try:
            self._start(components, options or {}, moved=ports != former)
            ports.write(self._folder / _PORTS)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop all of its processes, the last one first. Its data stay."""
        self._processes.stop()

    def _start(self, components: Components, options: Mapping[str, str], *, moved: bool) -> None:
        """Start the API server, then what acts on its objects."""
        trusted = components.authority.file
        self._processes.start(trusted, components.etcd())
        self._processes.start(trusted, components.api_server(options))
        apply(components.admin, read_objects(self._parts["kwok"] / "permissions.yaml"))
        operators = [self._operator(name, components) for name in self.operators]
        if moved:
            for name in self.operators:
                self._apply(name, components)
        base = [components.controller_manager(), components.scheduler(), components.kwok()]
        self._processes.start(trusted, *base, *operators)

    @property
    def operators(self) -> list[Name]:
        """The operators that were installed, which start with it."""
        try:
            return json.loads((self._folder / _OPERATORS).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return []

    def install(self, name: Name) -> None:
        """Apply the release of an operator and start it; one that is there stays.

        Raises:
            CommandError: Its objects are refused, or it does not get ready.
        """
        if name in self.operators:
            return
        assert self._components is not None, "the control plane runs"
        self._apply(name, self._components)
        self._processes.start(self._components.authority.file, self._operator(name, self._components))
        (self._folder / _OPERATORS).write_text(json.dumps([*self.operators, name]), encoding="utf-8")

    def _apply(self, name: Name, components: Components) -> None:
        services = operator(name, components.ports).services
        apply(self.kubeconfig, on_loopback(release(self._parts[name]), services))

    def _operator(self, name: Name, components: Components) -> Component:
        return components.operator(operator(name, components.ports), release(self._parts[name]))
