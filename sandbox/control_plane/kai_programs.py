"""KAI's programs on one control plane: started, changed and stopped with the Deployments of its cluster."""

import threading
import time
from typing import Final

from ...config.errors import CommandError
from ..kubernetes.api_objects import ApiObjects
from . import kai
from .components import Components
from .processes import Component, Processes, bound_ports

_DEPLOYED_SECONDS: Final = 600.0
_POLL_SECONDS: Final = 0.2


class KaiPrograms:
    """Those that run."""

    def __init__(self, components: Components, processes: Processes, lock: threading.RLock) -> None:
        """`lock` is held by whoever starts or stops processes."""
        self._components, self._processes, self._lock = components, processes, lock
        self._objects, self._part = ApiObjects(components.admin), components.parts[kai.PART]
        self._running: dict[str, kai.Program] = {}

    def move(self) -> None:
        """Let KAI's webhooks lead to the ports that the control plane has now."""
        kai.move(self._objects, self._components.ports)

    def deploy(self, release: str) -> None:
        """Run KAI as its Helm release says, which has just been installed or changed.

        Raises:
            CommandError: A part of it does not get ready.
        """
        components = self._components
        kai.configure(self._objects, components.admin, release, components.ports)
        deadline = time.monotonic() + _DEPLOYED_SECONDS
        is_deployed = False
        # Asked before programs are started: else the last Deployments could come in between, and have none.
        while not (self.run() and is_deployed):
            if time.monotonic() > deadline:
                raise CommandError(
                    f"KAI's operator has not deployed KAI in {_DEPLOYED_SECONDS:.0f} s",
                    f"its log is {components.folder / 'processes' / 'kai-operator.log'}",
                )
            time.sleep(_POLL_SECONDS)
            is_deployed = kai.is_deployed(self._objects, self._part, components.ports)

    def remove(self) -> None:
        """Take away what KAI's operator made. Its release is gone."""
        kai.remove(self._objects)
        self.run()

    def run(self) -> bool:
        """Start and stop programs, until those run that the cluster's Deployments name.

        Returns whether they do; it takes another call where a program lacks what its pod would mount.

        Raises:
            CommandError: One does not get ready; the next call tries it again.
        """
        with self._lock:
            return self._run()

    def _run(self) -> bool:
        deployed = {program.name: program for program in kai.deployed(self._objects, self._part)}
        ended = [name for name, program in self._running.items() if deployed.get(name) != program]
        if ended:
            self._processes.stop(*ended)
        self._running = {name: program for name, program in self._running.items() if name not in ended}
        new = {name: self._component(program) for name, program in deployed.items() if name not in self._running}
        ready = {name: process for name, process in new.items() if process}
        self._running |= {name: deployed[name] for name in ready}
        self._processes.start(self._components.authority.file, *ready.values())
        return len(ready) == len(new)

    def _component(self, program: kai.Program) -> Component | None:
        """The process of a program; None until what its pod mounts is there."""
        components = self._components
        folder = components.folder / "processes" / program.name
        folder.mkdir(parents=True, exist_ok=True)
        if not program.mount(self._objects, folder):
            return None
        health, other = bound_ports((0, 0))
        kubeconfig = components.account_kubeconfig(program.name, program.user)
        return program.component(folder, self._part, kubeconfig, components.ports, (health, other))
