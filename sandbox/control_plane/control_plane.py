"""A Kubernetes control plane of upstream programs on the loopback interface, with one etcd."""

from collections.abc import Mapping
from pathlib import Path

from ...config.errors import CommandError
from .cache import Cache, State
from .components import Components
from .pins import Pins
from .processes import Ports, Processes, Running


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

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self._folder / "keys" / "admin.kubeconfig"

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
        components = Components(self._folder, self._parts, Ports.free(port))
        try:
            self._start(components, options)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop all of its processes, the last one first. Its data stay."""
        self._processes.stop()

    def _start(self, components: Components, options: Mapping[str, str] | None) -> None:
        """Start one component after the other: each finds there what it needs."""
        trusted = components.authority.file
        self._processes.start(components.etcd(), trusted)
        self._processes.start(components.api_server(options), trusted)
        components.kubeconfig("admin", "podwright", ["system:masters"])
        self._processes.start(components.controller_manager(), trusted)
        self._processes.start(components.scheduler(), trusted)
