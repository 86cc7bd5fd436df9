"""Starts the processes of a control plane, each after the previous one is ready, and stops them by process id."""

import json
import os
import random
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Final

from ...config.errors import CommandError
from ...operations.programs.process import command_line

_READY_SECONDS = 600.0
# Only processes with data need time to write them to disk; the state of the others can be derived again.
_STOP_SECONDS = {False: 3.0, True: 20.0}
_POLL_SECONDS = 0.1
_LAST_LINES = 8
_RECORD = "processes.json"
# Operators start minutes after the choice of their ports. So the ports are below those for clients (32768 on Linux),
# and a control plane reserves its block by the API server's port, which is used at once.
_BLOCKS: Final = range(12_000, 32_000, 50)


@dataclass(frozen=True, slots=True)
class Component:
    """A program with its arguments, and the URL that answers 200 once it is ready.

    While the program starts, `prepare` is called until it returns True. Programs with `holds_data` stop after all other
    ones, and have more time for it.
    """

    name: str
    command: Sequence[str]
    ready: str
    variables: Mapping[str, str] = field(default_factory=dict)
    prepare: Callable[[], bool] = lambda: True
    holds_data: bool = False


@dataclass(frozen=True, slots=True)
class Ports:
    """Ports of the components on 127.0.0.1."""

    api: int
    etcd: int
    etcd_peers: int
    etcd_health: int
    controller_manager: int
    scheduler: int
    kwok: int
    kueue_health: int
    kueue_webhooks: int
    kueue_visibility: int
    training_operator_health: int
    training_operator_webhooks: int
    hyperpod_training_operator_health: int
    mpi_operator_health: int
    kuberay_health: int
    ray_dashboard: int
    jobset_health: int
    jobset_webhooks: int
    trainer_health: int
    trainer_webhooks: int
    lws_health: int
    lws_webhooks: int
    yunikorn_health: int
    kai_admission_webhooks: int
    kai_queue_webhooks: int
    kai_podgroup_webhooks: int

    @classmethod
    def free(cls, api: int = 0) -> "Ports":
        """Return a block of free ports. The caller may choose the port of the API server.

        Raises:
            CommandError: The chosen port is in use, or each block has a port in use.
        """
        ranges = [range(first, first + len(fields(cls))) for first in _BLOCKS]
        blocks = [cls(*block) for block in ranges if api not in block]
        ports = next((block for block in random.sample(blocks, len(blocks)) if block.are_free()), None)
        if ports is None:
            raise CommandError(f"no {len(fields(cls))} ports side by side are free", "end programs that listen on them")
        if not api:
            return ports
        chosen = replace(ports, api=api)
        if not chosen.are_free():
            raise CommandError(
                f"port {api} of the Kubernetes API is in use by another program", "end that, or choose another port"
            )
        return chosen

    @classmethod
    def read(cls, file: Path) -> "Ports | None":
        """Read ports from a file; None without one, or if another version of podwright wrote it."""
        try:
            return cls(**json.loads(file.read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def write(self, file: Path) -> None:
        """Write the ports into a file."""
        file.write_text(json.dumps(asdict(self)), encoding="utf-8")

    def are_free(self) -> bool:
        """True if no process listens on any of the ports."""
        try:
            bound_ports(tuple(asdict(self).values()))
        except OSError:
            return False
        return True


def bound_ports(ports: Sequence[int]) -> list[int]:
    """Return different free ports; 0 stands for any. Raises OSError if a port is in use."""
    probes = [socket.socket() for _ in ports]
    try:
        for probe, port in zip(probes, ports, strict=True):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()


@dataclass(frozen=True, slots=True)
class Running:
    """A started process."""

    name: str
    pid: int
    program: str
    log: str
    holds_data: bool = False


class Processes:
    """The processes on record in a folder. Another program that opens the same folder can stop them."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._started: list[Running] = []
        self._components: dict[str, Component] = {}
        """Processes that were started and not stopped, in the order of their start."""

    @property
    def running(self) -> list[Running]:
        """Living processes in the order of their start.

        If the folder was deleted, only those of this program, also if another program has a folder at its path now.
        """
        items = dict.fromkeys([*(self._read_record() or ()), *self._started])
        return [item for item in items if is_alive(item)]

    def _read_record(self) -> list[Running] | None:
        """Return the processes in the record file; None if another program has replaced it since the last start."""
        try:
            rows = json.loads((self._folder / _RECORD).read_text(encoding="utf-8"))
        except FileNotFoundError:
            rows = []
        items = [Running(**row) for row in rows]
        return None if self._started and set(items).isdisjoint(self._started) else items

    def start(self, trusted: Path, *components: Component) -> None:
        """Start components at the same time and wait until all are ready.

        Args:
            trusted: Certificate of the authority of their servers.
            components: The components to start.

        Raises:
            CommandError: A component ended or did not become ready. The message has the last lines of its log.
        """
        self._components |= {component.name: component for component in components}
        launched = [(component, *self._launch(component)) for component in components]
        for component, item, child in launched:
            self._wait(component, item, child, trusted)

    def has(self, name: str) -> bool:
        """True if this program has started a component and not stopped it."""
        return name in self._components

    def restart_ended(self, trusted: Path) -> list[str]:
        """Restart components that have ended unexpectedly, one at a time. Returns their names.

        Raises:
            CommandError: A component does not become ready; the next call tries again.
        """
        ended = [item for name, item in self._components.items() if self._children[name].poll() is not None]
        for component in ended:
            self._started = [item for item in self._started if item.name != component.name]
            self.start(trusted, component)
        return [component.name for component in ended]

    def _launch(self, component: Component) -> tuple[Running, subprocess.Popen[bytes]]:
        """Start a process with its own log and working folder, and record it."""
        log = self._folder / f"{component.name}.log"
        working_folder = self._folder / component.name
        working_folder.mkdir(exist_ok=True)
        with log.open("wb") as output:
            child = subprocess.Popen(
                component.command,
                cwd=working_folder,
                env=os.environ | dict(component.variables),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                # Ctrl-C in the terminal must not reach it.
                start_new_session=True,
            )
        self._children[component.name] = child
        started = Running(component.name, child.pid, str(component.command[0]), str(log), component.holds_data)
        # A new process may not have its command line yet, by which it is recognized.
        others = [other for other in self.running if other not in self._started]
        self._started.append(started)
        self._write([*others, *self._started])
        return started, child

    def _wait(self, component: Component, item: Running, child: subprocess.Popen[bytes], trusted: Path) -> None:
        """Wait until a child is ready."""
        deadline = time.monotonic() + _READY_SECONDS
        while not (component.prepare() and answers(component.ready, trusted)):
            if child.poll() is not None:
                raise CommandError(f"{item.name} ended at its start:\n{_tail(item.log)}", f"its log is {item.log}")
            if time.monotonic() > deadline:
                raise CommandError(
                    f"{item.name} was not ready in {_READY_SECONDS:.0f} s:\n{_tail(item.log)}", f"its log is {item.log}"
                )
            time.sleep(_POLL_SECONDS)

    def stop(self, *names: str) -> None:
        """Stop the recorded processes with these names, or all of them. Processes with data stop last."""
        is_own, running = self._read_record() is not None, self.running
        stopped = [item for item in running if not names or item.name in names]
        self._components = {name: item for name, item in self._components.items() if names and name not in names}
        for holds_data, seconds in _STOP_SECONDS.items():
            self._end([item for item in stopped if item.holds_data == holds_data], seconds)
        for name in [name for name in self._children if not names or name in names]:
            # A new process may not be recognized yet.
            child = self._children.pop(name)
            child.terminate()
            child.wait()
        self._started = [item for item in self._started if names and item not in stopped]
        if not is_own:
            return
        if names:
            self._write([item for item in running if item not in stopped])
        else:
            (self._folder / _RECORD).unlink(missing_ok=True)

    def _end(self, items: list[Running], seconds: float) -> None:
        """Terminate processes at the same time, and kill those that still run after so many seconds."""
        for item in items:
            _signal(item, signal.SIGTERM)
        deadline = time.monotonic() + seconds
        while alive := [item for item in items if self._is_alive(item)]:
            for item in alive if time.monotonic() > deadline else ():
                _signal(item, signal.SIGKILL)
            time.sleep(_POLL_SECONDS)

    def _is_alive(self, item: Running) -> bool:
        for child in self._children.values():
            # A child that has ended remains in the process table until its parent waits for it.
            child.poll()
        return is_alive(item)

    def _write(self, items: list[Running]) -> None:
        new = self._folder / f"{_RECORD}.new"
        new.write_text(json.dumps([asdict(item) for item in items]), encoding="utf-8")
        new.replace(self._folder / _RECORD)


def _signal(item: Running, number: signal.Signals) -> None:
    # It may have ended in the meantime.
    with suppress(ProcessLookupError):
        os.kill(item.pid, number)


def is_alive(item: Running) -> bool:
    """True if the process lives and is the recorded program; the system reuses ids."""
    return item.program.encode() in command_line(item.pid)[:1]


def answers(url: str, trusted: Path) -> bool:
    """True if a URL on loopback answers 200, with a certificate of `trusted`."""
    context = ssl.create_default_context(cafile=str(trusted)) if url.startswith("https:") else None
    # Requests for loopback must not go to a proxy.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    try:
        with opener.open(url, timeout=2) as answer:
            return answer.status == 200
    except OSError:
        # It does not listen yet, or answers 500 until it is ready.
        return False


def _tail(log: str) -> str:
    return "\n".join(Path(log).read_text(encoding="utf-8", errors="replace").splitlines()[-_LAST_LINES:])
