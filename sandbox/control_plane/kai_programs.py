"""Starts, changes and stops KAI's programs on one control plane, following the cluster's Deployments."""

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
    """KAI's programs on one control plane."""

    def __init__(self, components: Components, processes: Processes, lock: threading.RLock) -> None:
        """Prepare the programs. `lock` guards every start and stop of processes."""
        self._components, self._processes, self._lock = components, processes, lock
        self._objects, self._part = ApiObjects(components.admin), components.parts[kai.PART]
        self._running: dict[str, kai.Program] = {}

    def move(self) -> None:
        """Change KAI's webhooks to the control plane's current ports."""
        kai.move(self._objects, self._components.ports)

    def deploy(self, release: str) -> None:
        """Run KAI after its Helm release has been installed or changed.

        Raises:
            CommandError: A part of it does not get ready.
        """
        components = self._components
        kai.configure(self._objects, components.admin, release, components.ports)
        deadline = time.monotonic() + _DEPLOYED_SECONDS
        is_deployed = False
        # The operator may create Deployments while programs start, so completeness is checked before.
        while not (self.run() and is_deployed):
            if time.monotonic() > deadline:
                raise CommandError(
                    f"KAI's operator has not deployed KAI in {_DEPLOYED_SECONDS:.0f} s",
                    f"its log is {components.folder / 'processes' / 'kai-operator.log'}",
                )
            time.sleep(_POLL_SECONDS)
            is_deployed = kai.is_deployed(self._objects, self._part, components.ports)

    def remove(self) -> None:
        """Delete the objects of KAI's operator after its release has been deleted."""
        kai.remove(self._objects)
        self.run()

    def run(self) -> bool:
        """Start and stop programs to match the cluster's Deployments.

        Returns False if a volume of a program does not exist yet; another call is then needed.

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
        """Return the process of a program; None until its volumes exist."""
        components = self._components
        folder = components.folder / "processes" / program.name
        folder.mkdir(parents=True, exist_ok=True)
        if not program.mount(self._objects, folder):
            return None
        health, other = bound_ports((0, 0))
        kubeconfig = components.account_kubeconfig(program.name, program.user)
        return program.component(folder, self._part, kubeconfig, components.ports, (health, other))
