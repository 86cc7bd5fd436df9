"""The processes of a control plane: started one after the other, each once the last is ready, and stopped by id."""

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
# What others hold in memory they would do again; what holds data writes it to its disk.
_STOP_SECONDS = {False: 3.0, True: 20.0}
_POLL_SECONDS = 0.1
_LAST_LINES = 8
_RECORD = "processes.json"
# Operators start minutes after their port was chosen. So it is none that systems give to clients (from 32768 on Linux),
# and the other ports of a block, where the API server listens at once, keep other control planes away.
_BLOCKS: Final = range(12_000, 32_000, 50)


@dataclass(frozen=True, slots=True)
class Component:
    """A program with its arguments, and the URL that answers 200 once it is ready.

    `prepare` does what the program needs while it starts, and is called until it returns True. What `holds_data` is
    stopped after all others, and has longer for it.
    """

    name: str
    command: Sequence[str]
    ready: str
    variables: Mapping[str, str] = field(default_factory=dict)
    prepare: Callable[[], bool] = lambda: True
    holds_data: bool = False


@dataclass(frozen=True, slots=True)
class Ports:
    """Where the components listen on 127.0.0.1."""

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
        """A block of ports that nobody listens on; that of the API server may be chosen.

        Raises:
            CommandError: The chosen one is taken, or a port of every block.
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
        """Those that were written; None without a file, or where another version of podwright wrote it."""
        try:
            return cls(**json.loads(file.read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def write(self, file: Path) -> None:
        """Write them into a file."""
        file.write_text(json.dumps(asdict(self)), encoding="utf-8")

    def are_free(self) -> bool:
        """Whether nobody listens on any of them."""
        try:
            bound_ports(tuple(asdict(self).values()))
        except OSError:
            return False
        return True


def bound_ports(ports: Sequence[int]) -> list[int]:
    """Ports that can be listened on, all different; 0 stands for any. Raises OSError where one is taken."""
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
    """A process that was started."""

    name: str
    pid: int
    program: str
    log: str
    holds_data: bool = False


class Processes:
    """The processes whose record lies in a folder. Another process that opens the same folder can stop them."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._started: list[Running] = []
        self._components: dict[str, Component] = {}
        """What was started and not stopped, in the order of the start."""

    @property
    def running(self) -> list[Running]:
        """Those that are alive, in the order of their start. If the folder is deleted, only those started here."""
        try:
            rows = json.loads((self._folder / _RECORD).read_text(encoding="utf-8"))
        except FileNotFoundError:
            rows = []
        items = dict.fromkeys([*(Running(**row) for row in rows), *self._started])
        return [item for item in items if is_alive(item)]

    def start(self, trusted: Path, *components: Component) -> None:
        """Start components beside each other and wait until all are ready.

        Args:
            trusted: The authority that signed the certificates of their servers.
            components: What to start.

        Raises:
            CommandError: One ended or did not get ready; with the last lines of its log.
        """
        self._components |= {component.name: component for component in components}
        launched = [(component, *self._launch(component)) for component in components]
        for component, item, child in launched:
            self._wait(component, item, child, trusted)

    def restart_ended(self, trusted: Path) -> list[str]:
        """Start again, one after the other, what ended by itself. Returns the names.

        Raises:
            CommandError: One does not get ready; the next call tries it again.
        """
        ended = [item for name, item in self._components.items() if self._children[name].poll() is not None]
        for component in ended:
            self._started = [item for item in self._started if item.name != component.name]
            self.start(trusted, component)
        return [component.name for component in ended]

    def _launch(self, component: Component) -> tuple[Running, subprocess.Popen[bytes]]:
        """Start a process with a log and a working folder of its own, and put it on record."""
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
                # Ctrl-C in a terminal is for the command that runs there.
                start_new_session=True,
            )
        self._children[component.name] = child
        started = Running(component.name, child.pid, str(component.command[0]), str(log), component.holds_data)
        # A process that was started now may not have its command line yet, by which it is known to run.
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
        """Stop those of these names, or all, and no process that is not of the record; what holds data goes last."""
        running = self.running
        stopped = [item for item in running if not names or item.name in names]
        self._components = {name: item for name, item in self._components.items() if names and name not in names}
        for holds_data, seconds in _STOP_SECONDS.items():
            self._end([item for item in stopped if item.holds_data == holds_data], seconds)
        for name in [name for name in self._children if not names or name in names]:
            # One that was started just now may not be known to run yet.
            child = self._children.pop(name)
            child.terminate()
            child.wait()
        self._started = [item for item in self._started if names and item not in stopped]
        if names:
            self._write([item for item in running if item not in stopped])
        else:
            (self._folder / _RECORD).unlink(missing_ok=True)

    def _end(self, items: list[Running], seconds: float) -> None:
        """End processes beside each other; those that do not end by themselves in so many seconds are killed."""
        for item in items:
            _signal(item, signal.SIGTERM)
        deadline = time.monotonic() + seconds
        while alive := [item for item in items if self._is_alive(item)]:
            for item in alive if time.monotonic() > deadline else ():
                _signal(item, signal.SIGKILL)
            time.sleep(_POLL_SECONDS)

    def _is_alive(self, item: Running) -> bool:
        for child in self._children.values():
            # A child that ended stays in the table of processes until somebody asks for its end.
            child.poll()
        return is_alive(item)

    def _write(self, items: list[Running]) -> None:
        new = self._folder / f"{_RECORD}.new"
        new.write_text(json.dumps([asdict(item) for item in items]), encoding="utf-8")
        new.replace(self._folder / _RECORD)


def _signal(item: Running, number: signal.Signals) -> None:
    # It may end by itself after it was seen alive.
    with suppress(ProcessLookupError):
        os.kill(item.pid, number)


def is_alive(item: Running) -> bool:
    """Whether the process lives and still is the recorded program; ids are given out again."""
    return item.program.encode() in command_line(item.pid)[:1]


def answers(url: str, trusted: Path) -> bool:
    """Whether a URL on loopback answers 200, over a certificate of `trusted`."""
    context = ssl.create_default_context(cafile=str(trusted)) if url.startswith("https:") else None
    # Loopback is never behind a proxy.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    try:
        with opener.open(url, timeout=2) as answer:
            return answer.status == 200
    except OSError:
        # Not yet: nobody listens, or it says 500 until it is ready.
        return False


def _tail(log: str) -> str:
    return "\n".join(Path(log).read_text(encoding="utf-8", errors="replace").splitlines()[-_LAST_LINES:])
